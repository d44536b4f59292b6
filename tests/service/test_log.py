"""The log on both databases: one decision per key, one verdict per reward, numbers without a gap."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select, update
from sqlalchemy.exc import DBAPIError

from polyarm.bandit.identity import new_ids
from polyarm.errors import InvalidArgument, UnknownName
from polyarm.service import audit, catalog, keys, lease, ledger, sequence
from polyarm.service.app import Service
from polyarm.service.catalog import AlreadyThere
from polyarm.service.clock import SECOND, now
from polyarm.service.database import Database, open_database
from polyarm.service.keys import LOCAL
from polyarm.service.ledger import KeyConflict, RewardEvent
from polyarm.service.messages import ExperimentPatch, ExperimentSettings
from polyarm.service.replica import Replica
from polyarm.service.schema import api_keys, audit_log, decisions, outcomes, reward_events, rollups, snapshots
from polyarm.service.snapshots import add_snapshot
from polyarm.service.writer import Writer

SETTINGS = ExperimentSettings("shop", ["a", "b"], window=10.0)


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    opened = open_database(address)
    with opened.writing.begin() as connection:
        catalog.add_experiment(connection, SETTINGS, "test")
    yield opened
    opened.close()


def row(**changes: Any) -> ledger.Row:
    return {
        "id": new_ids(1)[0],
        "experiment": "shop",
        "version": 1,
        "snapshot": 0,
        "time": now(),
        "client_time": None,
        "unit": None,
        "idempotency_key": None,
        "request": None,
        "context": "{}",
        "eligible": '["a","b"]',
        "probabilities": '{"a":0.25,"b":0.75}',
        "arm": "b",
        "propensity": 0.75,
        "stream": "bandit",
        "closes_at": now() + 10 * SECOND,
        "closes_on_reward": False,
    } | changes


def add(database: Database, *rows: ledger.Row) -> list[Any]:
    with database.writing.begin() as connection:
        return ledger.add_decisions(connection, rows)


def reward(database: Database, *events: RewardEvent) -> list[str]:
    with database.writing.begin() as connection:
        return ledger.add_rewards(connection, [events])[0]


def test_a_key_gives_the_first_decision_again_and_another_request_is_refused(database: Database) -> None:
    first = row(idempotency_key="k", request="1")
    again = row(idempotency_key="k", request="1", arm="a", propensity=0.25)
    other = row(idempotency_key="k", request="2")
    stored = add(database, first, row(), again)
    assert [r["id"] for r in (stored[0], stored[2])] == [first["id"]] * 2
    (conflict,) = add(database, other)
    assert isinstance(conflict, KeyConflict)
    with database.reading.connect() as connection:
        assert connection.execute(select(func.count()).select_from(decisions)).scalar() == 2
        sums = {r.arm: r for r in connection.execute(select(rollups))}
    assert (sums["b"].plays, sums["a"].plays) == (2, 0)
    assert sums["a"].expected_plays == pytest.approx(0.5)
    assert sums["a"].play_variance == pytest.approx(2 * 0.25 * 0.75)


def test_what_fails_half_way_leaves_nothing_behind(database: Database) -> None:
    def fail(connection: Any, _: Any) -> list[Any]:
        ledger.add_decisions(connection, [row(), row()])
        raise InvalidArgument("the second half must work, got a mistake")

    writer = Writer(database)
    writer.start()
    with pytest.raises(InvalidArgument):
        writer.run_blocking(lambda connection: fail(connection, None))
    writer.stop()
    with database.reading.connect() as connection:
        assert connection.execute(select(func.count()).select_from(decisions)).scalar() == 0
        assert connection.execute(select(func.count()).select_from(rollups)).scalar() == 0


def test_every_reward_gets_its_verdict(database: Database) -> None:
    made, closed, gone = row(), row(closes_at=now() - 1), new_ids(1)[0]
    add(database, made, closed)
    event = RewardEvent(made["id"], "reward", 2.0)
    verdicts = reward(
        database,
        event,
        event,
        event._replace(value=3.0),
        event._replace(key="tip", value=0.5),
        RewardEvent(closed["id"], "reward", 1.0),
        RewardEvent("strange", "reward", 1.0),
        RewardEvent(gone, "reward", 1.0),
    )
    assert verdicts == ["accepted", "duplicate", "conflict", "accepted", "late", "unknown", "parked"]
    assert reward(database, event, event._replace(value=3.0)) == ["duplicate", "conflict"]


def test_a_parked_reward_waits_for_its_decision(database: Database) -> None:
    made = row()
    assert reward(database, RewardEvent(made["id"], "reward", 4.0)) == ["parked"]
    add(database, made)
    with database.writing.begin() as connection:
        assert ledger.settle_parked(connection) == 1
    with database.writing.begin() as connection:
        assert ledger.settle_parked(connection) == 0
    assert reward(database, RewardEvent(made["id"], "reward", 4.0)) == ["duplicate"]


def test_a_parked_reward_whose_decision_never_comes_is_unknown(database: Database) -> None:
    reward(database, RewardEvent(new_ids(1)[0], "reward", 4.0))
    with database.writing.begin() as connection:
        connection.execute(update(reward_events).values(time=now() - 2 * ledger.PARKED_FOR))
        assert ledger.settle_parked(connection) == 0
        assert connection.execute(select(reward_events.c.verdict)).scalar() == "unknown"


def test_outcomes_are_numbered_in_the_order_of_closing_and_weighted_for_evaluation(database: Database) -> None:
    early, late, open_one = row(closes_at=100), row(closes_at=200), row()
    add(database, late, early, open_one)
    with database.writing.begin() as connection:
        connection.execute(update(decisions).where(decisions.c.id == early["id"]).values(closes_at=now() + SECOND))
    assert reward(database, RewardEvent(early["id"], "x", 3.0), RewardEvent(early["id"], "y", 1.0)) == ["accepted"] * 2
    with database.writing.begin() as connection:
        connection.execute(update(decisions).where(decisions.c.id == early["id"]).values(closes_at=100))
        assert sequence.close_due(connection, SETTINGS, now()) == 2
        assert sequence.close_due(connection, SETTINGS, now()) == 0
    with database.reading.connect() as connection:
        found = [(r.decision, r.apply_seq, r.value, r.source) for r in connection.execute(select(outcomes))]
        sums = connection.execute(select(rollups).where(rollups.c.arm == "b")).one()
        steps = list(sequence.steps(connection, "shop", 0))
    assert sorted(found, key=lambda r: r[1]) == [(early["id"], 1, 4.0, "reported"), (late["id"], 2, None, "none")]
    assert [step.subject for step in steps] == [early["id"], late["id"]]
    w = 1 / 0.75
    assert (sums.rewards, sums.total, sums.w, sums.wwrr) == pytest.approx((1, 4.0, w, (4 * w) ** 2))
    assert reward(database, RewardEvent(early["id"], "z", 1.0)) == ["late"]


def test_on_arrival_a_reward_closes_its_decision(database: Database) -> None:
    made, silent = row(closes_on_reward=True), row(closes_on_reward=True)
    add(database, made, silent)
    assert reward(database, RewardEvent(made["id"], "reward", 1.5), RewardEvent(made["id"], "second", 1.0)) == [
        "accepted",
        "late",
    ]
    with database.writing.begin() as connection:
        assert sequence.close_due(connection, SETTINGS, now()) == 1
        assert connection.execute(select(outcomes.c.value)).scalar() == 1.5


def test_changes_and_outcomes_share_one_sequence(database: Database) -> None:
    add(database, row(closes_at=1))
    with database.writing.begin() as connection:
        catalog.add_arm(connection, "shop", "c", "test")
        assert sequence.number_changes(connection, "shop") == 1
        sequence.close_due(connection, SETTINGS, now())
    with database.reading.connect() as connection:
        assert [(s.apply_seq, s.kind) for s in sequence.steps(connection, "shop", 0)] == [
            (1, "add-arm"),
            (2, "outcome"),
        ]
        assert [s.apply_seq for s in sequence.steps(connection, "shop", 1)] == [2]


def test_a_lease_is_held_by_one_and_a_stopped_holder_is_fenced(database: Database) -> None:
    with database.writing.begin() as connection:
        first = lease.take(connection, "one")
        assert first is not None
        assert lease.take(connection, "two") is None
    with database.writing.begin() as connection:
        second = lease.take(connection, "two", force=True)
        assert second == lease.Lease("two", first.epoch + 1)
    with pytest.raises(lease.Fenced), database.writing.begin() as connection:
        lease.renew(connection, first)
    with database.writing.begin() as connection:
        lease.release(connection, second)
    with database.writing.begin() as connection:
        assert lease.take(connection, "one") == lease.Lease("one", second.epoch + 1)


def test_the_audit_trail_shows_a_change(database: Database) -> None:
    with database.writing.begin() as connection:
        catalog.set_status(connection, "shop", "paused", "test")
        assert audit.first_broken(connection) is None
        connection.execute(update(audit_log).where(audit_log.c.number == 1).values(actor="somebody else"))
        assert audit.first_broken(connection) == 1


def test_a_key_is_stored_as_a_hash_and_ends_when_revoked(database: Database) -> None:
    with database.writing.begin() as connection:
        key = keys.add_key(connection, "shop front", ["decide"])
        caller = keys.find_caller(connection, key)
        assert caller is not None
        assert (caller.may("decide"), caller.may("read")) == (True, False)
        assert key not in str(connection.execute(select(api_keys)).all())
        assert keys.find_caller(connection, key + "x") is None
        with pytest.raises(InvalidArgument, match="scopes must be some of"):
            keys.add_key(connection, "other", ["everything"])
        keys.revoke_key(connection, "shop front")
        assert keys.find_caller(connection, key) is None
        with pytest.raises(UnknownName):
            keys.revoke_key(connection, "shop front")


def test_experiments_change_by_versions_and_arms_never_leave(database: Database) -> None:
    with database.writing.begin() as connection:
        changed = catalog.change_experiment(connection, "shop", ExperimentPatch(window=3.0), "test")
        assert (changed.version, changed.settings.window) == (2, 3.0)
        catalog.set_arm_status(connection, "shop", "a", "retired", "test")
        assert catalog.get_experiment(connection, "shop").active == ("b",)
    for act in (
        lambda c: catalog.add_experiment(c, SETTINGS, "test"),
        lambda c: catalog.add_arm(c, "shop", "a", "test"),
        lambda c: catalog.set_arm_status(c, "shop", "a", "active", "test"),
        lambda c: catalog.set_arm_status(c, "shop", "b", "retired", "test"),
        lambda c: catalog.set_arm_status(c, "shop", "z", "retired", "test"),
        lambda c: catalog.change_experiment(c, "shop", ExperimentPatch(min_propensity=0.6), "test"),
        lambda c: catalog.change_experiment(c, "shop", ExperimentPatch(), "test"),
        lambda c: catalog.get_experiment(c, "none"),
    ):
        with pytest.raises((InvalidArgument, AlreadyThere)), database.writing.begin() as connection:
            act(connection)


def test_two_writers_with_one_key_make_one_decision(postgres: Any) -> None:
    database = open_database(postgres.create("race"))
    with database.writing.begin() as connection:
        catalog.add_experiment(connection, SETTINGS, "test")
    made: list[str] = []

    def decide() -> None:
        made.append(add(database, row(idempotency_key="same", request="1"))[0]["id"])

    threads = [threading.Thread(target=decide) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1
    with database.reading.connect() as connection:
        assert connection.execute(select(func.sum(rollups.c.plays))).scalar() == 1
    database.close()


def test_replicas_hear_of_changes_at_once(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyarm.service.replica.POLL", 600.0)
    address = postgres.create("news")
    one, two = (Service.over(open_database(address), open_to_all=True) for _ in range(2))

    async def run() -> float:
        async with one.running(), two.running():
            await asyncio.sleep(0.5)
            await one.create(SETTINGS, LOCAL)
            start = time.monotonic()
            while "shop" not in two.replica.live:
                await asyncio.sleep(0.005)
                assert time.monotonic() - start < 5.0
            return time.monotonic() - start

    assert asyncio.run(run()) < 2.0


def test_a_replica_follows_on_after_any_failure(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would decide by an old model for ever."""
    monkeypatch.setattr("polyarm.service.replica.POLL", 0.01)
    replica, failures = Service.over(database, open_to_all=True).replica, [SystemError("once"), ValueError("twice")]

    def read() -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return {}

    async def run() -> bool:
        monkeypatch.setattr(replica, "_read", dict)
        await replica.start()
        begun = replica.seen_at
        monkeypatch.setattr(replica, "_read", read)
        deadline = time.monotonic() + 20.0
        while (failures or replica.seen_at == begun) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        await replica.stop()
        return not failures and replica.seen_at != begun

    assert asyncio.run(run())


@pytest.mark.parametrize("size", ["many", "large"])
def test_old_snapshots_are_emptied_unless_somebody_went_back_to_them(
    database: Database, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    monkeypatch.setattr("polyarm.service.snapshots.KEPT", 4 if size == "many" else 100)
    monkeypatch.setattr("polyarm.service.snapshots.KEPT_BYTES", 10**6 if size == "many" else 4000)
    with database.writing.begin() as connection:
        for number in range(4):
            add_snapshot(connection, "shop", number, 1, bytes(1000))
        catalog.ask_rollback(connection, "shop", 2, "test")
        for number in range(4, 12):
            add_snapshot(connection, "shop", number, 1, bytes(1000))
        kept = connection.execute(select(snapshots.c.version).where(snapshots.c.content.is_not(None))).scalars()
        assert sorted(kept) == [0, 2, 8, 9, 10, 11]


def test_news_at_the_moment_of_stopping_does_not_keep_a_replica(database: Database) -> None:
    async def run() -> None:
        service = Service.over(database, open_to_all=True)
        for _ in range(20):
            replica = Replica(database, service.writer, service.learner)
            await replica.start()
            await asyncio.sleep(0.005)
            assert replica._listener is not None
            replica._listener.stop()
            replica._listener = None
            replica._changed.set()
            await asyncio.wait_for(replica.stop(), 5.0)

    asyncio.run(run())


def test_due_decisions_are_found_by_their_index(tmp_path: Path) -> None:
    database = open_database(str(tmp_path / "s.db"))
    asked: list[str] = []
    with database.writing.begin() as connection:
        catalog.add_experiment(connection, SETTINGS, "test")
        event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
        sequence.close_due(connection, SETTINGS, now())
        (query,) = (text for text in asked if "closes_at" in text)
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", ("shop", now(), 10, 0)[: query.count("?")])
        assert any("decisions_open" in row[3] for row in plan)
    database.close()


def test_a_writer_that_vanished_does_not_keep_its_locks(postgres: Any) -> None:
    address = postgres.create("vanished")
    gone, here = open_database(address), open_database(address)
    with here.writing.begin() as connection:
        catalog.add_experiment(connection, SETTINGS, "test")
    cut_off = gone.writing.connect()
    ledger.add_decisions(cut_off, [row()])  # and never commits
    start = time.monotonic()
    while True:
        try:
            add(here, row())
            break
        except DBAPIError:
            assert time.monotonic() - start < 5.0
    cut_off.invalidate()
    cut_off.close()
    gone.close()
    with here.reading.connect() as connection:
        assert connection.execute(select(func.count()).select_from(decisions)).scalar() == 1
    here.close()
