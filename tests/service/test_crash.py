"""Nothing that was acknowledged is lost: the server is killed under load, again and again."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import func, select

from polyarm.service.database import open_database
from polyarm.service.rebuild import rebuild
from polyarm.service.schema import decisions, outcomes, reward_events
from polyarm.service.writer import PATIENCE
from tests.service.postgres import Postgres
from tests.service.proxy import Wire
from tests.service.server import Server, free_port

SHOP = {"name": "shop", "arms": ["a", "b"], "window": 0.3, "default_reward": 0.0, "min_propensity": 0.1}
KILLS = 50 if os.environ.get("POLYARM_CRASHES") else 2
EARLY = "tests/service/early_answers.py"  # the server with one bug: it answers before the commit


slow = pytest.mark.skipif(not os.environ.get("POLYARM_CRASHES"), reason="slow: make crashes runs it")


class Load:
    """Clients that decide and reward, and remember what was acknowledged."""

    def __init__(self, address: str, n_clients: int = 8) -> None:
        self.address = address
        self.decided: list[str] = []
        self.rewarded: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(n_clients)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        with httpx.Client(base_url=self.address, timeout=2.0) as http:
            while not self._stop.is_set():
                try:
                    answer = http.post("/v1/experiments/shop/decisions", json={})
                    if answer.status_code != 201:
                        continue
                    decision = answer.json()["id"]
                    self.decided.append(decision)
                    answer = http.post("/v1/rewards", json={"decision": decision, "value": float(number)})
                    if answer.status_code == 200 and answer.json()["rewards"][0]["verdict"] == "accepted":
                        self.rewarded.append(decision)
                except httpx.TransportError:
                    time.sleep(0.1)


def check_nothing_lost(database: str, load: Load) -> None:
    opened = open_database(database)
    with opened.reading.connect() as connection:
        stored = set(connection.execute(select(decisions.c.id)).scalars())
        accepted = list(
            connection.execute(select(reward_events.c.decision).where(reward_events.c.verdict == "accepted")).scalars()
        )
        numbers = sorted(connection.execute(select(outcomes.c.apply_seq)).scalars())
        verdict = rebuild(connection, "shop")
    opened.close()
    assert set(load.decided) <= stored
    assert set(load.rewarded) <= set(accepted)
    assert len(accepted) == len(set(accepted))
    assert numbers == list(range(1, len(numbers) + 1))
    assert verdict.compared > 0
    assert not verdict.differing


def test_a_killed_server_has_all_it_acknowledged(tmp_path: Path) -> None:
    database, port = str(tmp_path / "s.db"), free_port()
    server = Server(database, port=port).wait()
    server.http.post("/v1/experiments", json=SHOP)
    with Load(server.address) as load:
        for _ in range(KILLS):
            time.sleep(0.7)
            server.kill()
            server = Server(database, port=port).wait()
        time.sleep(0.5)
    assert server.stop() == 0
    assert len(load.decided) > 50
    print(f"{KILLS} kills, {len(load.decided)} decisions and {len(load.rewarded)} rewards acknowledged")
    check_nothing_lost(database, load)


def test_a_server_that_answers_too_early_is_found_out(tmp_path: Path) -> None:
    database, port = str(tmp_path / "s.db"), free_port()
    server = Server(database, port=port, program=(EARLY,)).wait()
    server.http.post("/v1/experiments", json=SHOP)
    lost = 0
    with Load(server.address) as load:
        for _ in range(5):
            time.sleep(0.5)
            server.kill()
            opened = open_database(database)
            with opened.reading.connect() as connection:
                stored = set(connection.execute(select(decisions.c.id)).scalars())
            opened.close()
            lost = len(set(load.decided) - stored)
            if lost:
                break
            server = Server(database, port=port, program=(EARLY,)).wait()
    if server.process.poll() is None:
        server.stop()
    assert lost > 0


@slow
def test_a_crashed_postgresql_has_all_that_was_acknowledged(postgres: Postgres) -> None:
    database = postgres.create("crash")
    with Server(database) as server:
        server.http.post("/v1/experiments", json=SHOP)
        with Load(server.address) as load:
            for _ in range(10):
                time.sleep(0.7)
                postgres.stop("immediate")
                time.sleep(0.3)
                postgres.start()
                print(f"back after {until_it_decides(server, 5.0):.2f} s")
            time.sleep(0.5)
    check_nothing_lost(database, load)


def until_it_decides(server: Server, within: float) -> float:
    """Seconds until the server decides again; what it answers before that is 503."""
    start = time.monotonic()
    while (answer := server.http.post("/v1/experiments/shop/decisions", json={})).status_code != 201:
        assert answer.status_code == 503
        assert time.monotonic() - start < within
        time.sleep(0.05)
    return time.monotonic() - start


@slow
def test_a_cut_wire_to_postgresql_gives_503_and_is_forgotten(postgres: Postgres) -> None:
    database = postgres.create("wire")
    wire = Wire(postgres.folder, postgres.port)
    try:
        with Server(database.replace(str(postgres.folder), str(wire.folder))) as server:
            server.http.post("/v1/experiments", json=SHOP)
            with Load(server.address) as load:
                for _ in range(5):
                    time.sleep(0.7)
                    wire.cut()
                    start = time.monotonic()
                    assert server.http.post("/v1/experiments/shop/decisions", json={}).status_code == 503
                    assert time.monotonic() - start < 5.0
                    time.sleep(0.5)
                    wire.mend()
                    print(f"back after {until_it_decides(server, 5.0):.2f} s")
                time.sleep(0.5)
    finally:
        wire.close()
    check_nothing_lost(database, load)


def backends(database: str) -> list[int]:
    """Processes of PostgreSQL that serve a database."""
    name = database.split("?")[0].rsplit("/", 1)[-1]
    with psycopg.connect(database.replace(f"/{name}?", "/postgres?")) as connection:
        rows = connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [name]).fetchall()
    return [int(row[0]) for row in rows]


@slow
def test_a_silent_postgresql_gives_503_in_bounded_time_and_is_forgotten(postgres: Postgres) -> None:
    """Its processes are stopped, not ended: the socket stays open, and nobody answers."""
    database = postgres.create("silent")
    with Server(database) as server:
        server.http.post("/v1/experiments", json=SHOP)
        with Load(server.address) as load:
            time.sleep(0.7)
            stopped = backends(database)
            for process in stopped:
                os.kill(process, signal.SIGSTOP)
            try:
                start = time.monotonic()
                answer = server.http.post("/v1/experiments/shop/decisions", json={}, timeout=30.0)
                assert answer.status_code == 503
                assert "silence" in answer.json()["error"]
                assert time.monotonic() - start < PATIENCE + 5.0
            finally:
                for process in stopped:
                    os.kill(process, signal.SIGCONT)
            print(f"back after {until_it_decides(server, 5.0):.2f} s")
            time.sleep(0.5)
    check_nothing_lost(database, load)


@slow
def test_a_full_disk_gives_503_and_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(3 * 2**20))
        database = str(folder / "s.db")
        with Server(database) as server:
            server.http.post("/v1/experiments", json=SHOP | {"window": 600.0})
            with Load(server.address) as load:
                end = time.monotonic() + 120.0
                while server.http.post("/v1/experiments/shop/decisions", json={}).status_code != 503:
                    assert time.monotonic() < end
                time.sleep(1.0)
                full = len(load.decided)
                ballast.unlink()
                print(f"full after {full} decisions, back after {until_it_decides(server, 5.0):.2f} s")
                time.sleep(1.0)
            assert len(load.decided) > full
            assert server.http.get("/healthz").status_code == 200
        check_nothing_lost(database, load)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@slow
def test_a_stopped_learner_is_fenced_and_another_goes_on(postgres: Postgres) -> None:
    database = postgres.create("fence")
    with Server(database) as first, Server(database) as second:
        first.http.post("/v1/experiments", json=SHOP)

        def is_learner(server: Server) -> bool:
            return bool(server.http.get("/readyz").json()["detail"]["learner"])

        leader, other = (first, second) if is_learner(first) else (second, first)
        with Load(other.address, 4) as load:
            time.sleep(1.0)
            leader.signal(signal.SIGSTOP)
            end = time.monotonic() + 15.0
            while not is_learner(other):
                assert time.monotonic() < end
                time.sleep(0.1)
            leader.signal(signal.SIGCONT)
            time.sleep(1.5)
            assert is_learner(other)
            assert not is_learner(leader)
    check_nothing_lost(database, load)


@slow
@pytest.mark.parametrize("n", [2, 4, 8])
def test_replicas_start_together_on_an_empty_database(postgres: Postgres, n: int) -> None:
    database = postgres.create(f"together{n}")
    servers = [Server(database) for _ in range(n)]
    try:
        for server in servers:
            server.wait()
        assert servers[0].http.post("/v1/experiments", json=SHOP | {"window": 60.0}).status_code == 201
        time.sleep(1.5)
        made: list[Any] = []

        def decide(server: Server) -> None:
            headers = {"idempotency-key": "same"}
            with httpx.Client(base_url=server.address, timeout=20.0) as http:
                made.append(http.post("/v1/experiments/shop/decisions", json={}, headers=headers).json())

        threads = [threading.Thread(target=decide, args=(server,)) for server in servers for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({decision["id"] for decision in made}) == 1
        verdicts: list[str] = []

        def reward(server: Server) -> None:
            body = {"decision": made[0]["id"], "value": 1.0}
            with httpx.Client(base_url=server.address, timeout=20.0) as http:
                verdicts.append(http.post("/v1/rewards", json=body).json()["rewards"][0]["verdict"])

        threads = [threading.Thread(target=reward, args=(server,)) for server in servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(verdicts) == ["accepted"] + ["duplicate"] * (n - 1)
    finally:
        for server in servers:
            server.stop()


def test_sigterm_answers_what_is_under_way(tmp_path: Path) -> None:
    database = str(tmp_path / "s.db")
    server = Server(database).wait()
    server.http.post("/v1/experiments", json=SHOP)
    with Load(server.address) as load:
        time.sleep(0.5)
        assert server.stop() == 0
    check_nothing_lost(database, load)


def test_a_second_process_on_the_file_is_refused(tmp_path: Path) -> None:
    database = str(tmp_path / "s.db")
    with Server(database):
        second = Server(database)
        assert second.process.wait(60) == 2
        assert "must not be open elsewhere" in second.errors()
        second.http.close()
        second.stderr.close()


@slow
def test_the_learner_can_be_killed_anywhere(tmp_path: Path) -> None:
    """Whatever step a learner is stopped before, another ends with the same model, to the byte."""
    from polyarm.service.app import Service
    from polyarm.service.learner import Learner
    from polyarm.service.snapshots import latest
    from tests.service.feeding import feed

    class Killed(BaseException):
        pass

    def run(path: Path, points: list[tuple[str, int]]) -> bytes:
        database = open_database(str(path))
        service = Service.over(database, open_to_all=True)
        service.writer.start()
        feed(service)
        for point, count in [*points, ("never", 0)]:
            seen = 0

            def before(here: str, point: str = point, count: int = count) -> None:
                nonlocal seen
                seen += here == point
                if here == point and seen > count:
                    raise Killed

            learner = Learner(database, service.writer, before=before, holder="the same")
            try:
                learner.tick()
                learner._finish()
            except Killed:
                continue
        with database.reading.connect() as connection:
            content = latest(connection, "fed").content
            assert connection.execute(select(func.count()).select_from(outcomes)).scalar() == 40
        service.writer.stop()
        database.close()
        return content

    whole = run(tmp_path / "whole.db", [])
    points = [(point, count) for point in ("close", "learn", "publish", "published") for count in (0, 1)]
    points += [("step", count) for count in (0, 1, 2, 5, 9, 17, 20, 26, 31, 38, 39)] + [("lease", 0)]
    for number, point in enumerate(points):
        assert run(tmp_path / f"{number}.db", [point, ("step", 3)]) == whole, point
