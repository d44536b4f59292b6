"""Forty decisions with their rewards, always the same, written straight into the log."""

import asyncio

from sqlalchemy import Connection

from polyarm.service import ledger, replica
from polyarm.service.app import Service
from polyarm.service.catalog import get_experiment
from polyarm.service.keys import LOCAL
from polyarm.service.ledger import RewardEvent
from polyarm.service.messages import Column, DecisionRequest, ExperimentSettings

SETTINGS = ExperimentSettings("fed", ["a", "b"], [Column("x")], window=0.0, min_propensity=0.2, seed=5)


def feed(service: Service, n: int = 40) -> None:
    """Create the experiment and its decisions, each with its reward."""
    asyncio.run(service.create(SETTINGS, LOCAL))
    live = service.replica.live["fed"]
    rows, events = [], []
    for i in range(n):
        decision = f"00000000-0000-7000-8000-{i:012d}"
        row = replica.propose(live, DecisionRequest({"x": i / n}), decision, None)
        rows.append(row | {"closes_at": 10**18, "time": 1_000_000 + i})
        events.append(RewardEvent(decision, "reward", (i % 7) * (1.0 if row["arm"] == "a" else 0.5)))
    service.writer.run_blocking(lambda connection: ledger.add_decisions(connection, rows))
    service.writer.run_blocking(lambda connection: ledger.add_rewards(connection, [events]))
    service.writer.run_blocking(_due)


def _due(connection: Connection) -> None:
    from polyarm.service.schema import decisions

    assert get_experiment(connection, "fed").status == "active"
    connection.execute(decisions.update().values(closes_at=decisions.c.time))
