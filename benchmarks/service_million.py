"""A million decisions: does the log agree with itself, how soon is a server back, and how quick are its pages?

    python -m benchmarks.service_million [--database FOLDER/FILE.db | URL] [--decisions 1000000]

Decisions are drawn by the model itself from contexts over thirty days, each with a reward of known mean, and written
as the service writes them.  The model learns a few hundred outcomes now and then; a full run of the learner would take
half a millisecond each.  The file is kept: a second call finds it and measures again.
"""

import argparse
import asyncio
import math
import os
import signal
import subprocess
import sys
import time
from typing import Any

import httpx
import numpy as np
from benchmarks.service_load import memory, wait_until_ready
from sqlalchemy import select
from tests.service.server import free_port

from polyarm.bandit.identity import new_ids
from polyarm.service import ledger, replica, sequence
from polyarm.service.app import Service
from polyarm.service.catalog import experiment_names, get_experiment
from polyarm.service.clock import SECOND, now
from polyarm.service.database import open_database
from polyarm.service.keys import LOCAL
from polyarm.service.ledger import RewardEvent
from polyarm.service.messages import Column, DecisionRequest, ExperimentSettings
from polyarm.service.model import Model
from polyarm.service.offpolicy import always_each_arm
from polyarm.service.replica import Live
from polyarm.service.reports import make_report
from polyarm.service.schema import decisions, outcomes
from polyarm.service.snapshots import add_snapshot

NAME = "million"
ARMS = ("basic", "bundle", "premium")
SETTINGS = ExperimentSettings(
    NAME, list(ARMS), [Column("basket"), Column("returning", "flag")], min_propensity=0.02, window=10.0, seed=11
)
SPAN = 30 * 86_400 * SECOND
AT_ONCE = 1000
LEARN_EVERY = 50  # batches


def mean_reward(arm: str, basket: float, returning: bool) -> float:
    return {"basic": 3.0, "bundle": 2.0 + basket, "premium": 2.5 + returning}[arm]


TRUTH = {"basic": 3.0, "bundle": 2.0 + 1.2, "premium": 2.5 + 0.4}  # over baskets ~ gamma(2, 0.6), 40 % returning


def fill(address: str, n: int) -> None:
    rng = np.random.default_rng(5)
    service = Service.over(open_database(address), open_to_all=True)
    service.writer.start()
    asyncio.run(service.create(SETTINGS, LOCAL))
    live = service.replica.live[NAME]
    started = now()
    for batch in range(n // AT_ONCE):
        rows, events, taught = [], [], []
        for index, decision in enumerate(new_ids(AT_ONCE)):
            basket, returning = float(rng.gamma(2.0, 0.6)), bool(rng.random() < 0.4)
            row = replica.propose(live, DecisionRequest({"basket": basket, "returning": returning}), decision, None)
            made = started - SPAN + SPAN * (batch * AT_ONCE + index) // n
            rows.append(row | {"time": made})
            value = mean_reward(row["arm"], basket, returning) + float(rng.exponential()) - 1.0
            events.append(RewardEvent(decision, "reward", value))
            if batch % LEARN_EVERY == 0 and index < 300:
                taught.append((decision, row["context"], row["arm"], value))

        def write(connection: Any, rows: Any = rows, events: Any = events) -> None:
            ledger.add_decisions(connection, rows)
            ledger.add_rewards(connection, [events])
            sequence.close_due(connection, SETTINGS, now() + 20 * SECOND)

        service.writer.run_blocking(write)
        for outcome in taught:
            live.model.learn(*outcome)
        if taught:
            seq = (batch + 1) * AT_ONCE
            live = Live(live.experiment, live.model, publish(service, live.model, seq))
            print(f"{seq} decisions, {(now() - started) / SECOND:.0f} s", flush=True)
    last = n // AT_ONCE * AT_ONCE
    publish(service, live.model, last)
    service.writer.stop()
    service.database.close()


def publish(service: Service, model: Model, apply_seq: int) -> int:
    content = model.to_bytes()
    return service.writer.run_blocking(lambda connection: add_snapshot(connection, NAME, apply_seq, 1, content))


def check(address: str) -> None:
    database = open_database(address, exclusive=False)
    with database.reading.connect() as connection:
        experiment = get_experiment(connection, NAME)
        report = make_report(connection, experiment)
        print(f"{report.decisions} decisions; frequencies against probabilities: p = {report.propensity_test:.3f}")
        for value in always_each_arm(connection, experiment):
            assert value.interval is not None
            se = (value.interval[1] - value.interval[0]) / 2 / 1.96
            z = (value.mean - TRUTH[value.arm]) / se
            print(f"always {value.arm}: {value.mean:.4f} (se {se:.4f}), truth {TRUTH[value.arm]:.4f}, z = {z:.2f}")
        # importance weighting of a policy that plays each arm alike, from the rows themselves
        total = count = squares = 0.0
        query = select(decisions.c.propensity, outcomes.c.value).join(outcomes, outcomes.c.decision == decisions.c.id)
        for propensity, value in connection.execute(query.where(outcomes.c.value.is_not(None))):
            term = value / len(ARMS) / propensity
            total, count, squares = total + term, count + 1, squares + term**2
        mean, truth = total / count, sum(TRUTH.values()) / len(ARMS)
        se = math.sqrt((squares / count - mean**2) / count)
        print(f"IPS of the uniform policy: {mean:.4f} (se {se:.4f}), truth {truth:.4f}, z = {(mean - truth) / se:.2f}")
    database.close()


def serve(address: str) -> None:
    port = free_port()
    command = [sys.executable, "-m", "polyarm.cli", "serve", "--quiet", "--port", str(port), "--database", address]
    start = time.monotonic()
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) as http:
        wait_until_ready(http, 0.02)
        ready = time.monotonic() - start
        body = {"context": {"basket": 1.0, "returning": True}}
        http.post(f"/v1/experiments/{NAME}/decisions", json=body).raise_for_status()
        print(f"restart: ready after {ready:.1f} s, first decision after {time.monotonic() - start:.1f} s")
        page = f"/experiments/{NAME}"
        for path in ("/", page, f"{page}/live", f"{page}/model", "/audit", f"/v1{page}/report", f"/v1{page}/snapshots"):
            times = []
            for _ in range(6):
                start = time.monotonic()
                http.get(path).raise_for_status()
                times.append(1000 * (time.monotonic() - start))
            print(f"GET {path:32} first {times[0]:6.0f} ms, then {sorted(times[1:])[2]:6.0f} ms")
        print(f"memory {memory(process.pid):.0f} MB")
    process.send_signal(signal.SIGTERM)
    process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", default="results/million.db")
    parser.add_argument("--decisions", type=int, default=1_000_000)
    options = parser.parse_args()
    database = open_database(options.database)
    with database.reading.connect() as connection:
        there = NAME in experiment_names(connection)
    database.close()
    if not there:
        fill(options.database, options.decisions)
    check(options.database)
    serve(options.database)


if __name__ == "__main__":
    main()
