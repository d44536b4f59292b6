"""Whatever is asked of the service, in whatever order: it does what a hundred lines without a database say."""

import asyncio
import itertools
import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from sqlalchemy import func, select, true

from polyarm.bandit import identity
from polyarm.bandit.identity import new_ids
from polyarm.errors import InvalidArgument
from polyarm.service import catalog, clock, replica
from polyarm.service.app import Service
from polyarm.service.audit import first_broken
from polyarm.service.database import open_database
from polyarm.service.keys import LOCAL
from polyarm.service.ledger import HOUR, KeyConflict
from polyarm.service.messages import DecisionRequest, ExperimentPatch, ExperimentSettings, RewardRequest
from polyarm.service.rebuild import rebuild
from polyarm.service.replica import Paused
from polyarm.service.reports import make_report, verdict_counts
from polyarm.service.schema import changes, decisions, long_rollups, outcomes, reward_events, rollups
from tests.service.postgres import Postgres
from tests.service.reference import Reference

LONG = bool(os.environ.get("POLYARM_CRASHES"))
PROFILES = {"sqlite": (200, 50) if LONG else (12, 25), "postgresql": (60, 50) if LONG else (4, 25)}
ARMS = ("a", "b", "c", "d")
VALUES = st.sampled_from([0.0, 1.0, 2.5])
INDEX = st.integers(0, 10**6)


class Machine(RuleBasedStateMachine):
    """The service and its reference, side by side; time passes only when told to."""

    def address(self) -> str:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.at = 1_800_000_000_000_000_000
        self.place = self.address()
        self.known: list[str] = []  # ids of decisions, and of some that come later
        self.snapshots: list[int] = [0]
        self.numbers = itertools.count()
        fake: Any = SimpleNamespace(time_ns=lambda: self.at, monotonic=lambda: self.at / 1e9)
        self.patch_time = pytest.MonkeyPatch()
        for module in (clock, identity):
            self.patch_time.setattr(module, "time", fake)
        self.patch_time.setattr(identity, "_high", 0)  # ids begin anew with every machine's time
        self.open()

    def open(self) -> None:
        self.service = Service.over(open_database(self.place), open_to_all=True)
        self.service.learner.holder = "always the same"
        self.service.writer.start()
        self.loop.run(self.service.replica.refresh())

    def close(self) -> None:
        self.service.writer.stop()
        self.service.database.close()

    def change(self, work: Any) -> Any:
        return self.loop.run(self.service.change(work))

    @property
    def time(self) -> int:
        return clock.now()

    @initialize(window=st.sampled_from([0.0, 5.0, 30.0]), default=st.sampled_from([None, 0.5]), arrival=st.booleans())
    def create(self, window: float, default: float | None, arrival: bool) -> None:
        asked = ExperimentSettings(
            "shop",
            ["a", "b"],
            policy="gaussian",
            window=window,
            default_reward=default,
            learn="on-arrival" if arrival else "at-close",
            min_propensity=0.05,
        )
        self.loop.run(self.service.create(asked, LOCAL))
        self.reference = Reference(window, default, arrival, {"a": "active", "b": "active"}, {"a", "b"})

    @rule(key=st.sampled_from([None, "k1", "k2"]), eligible=st.sampled_from([None, ["a"], ["b", "c"]]))
    def decide(self, key: str | None, eligible: list[str] | None) -> None:
        reference, request = self.reference, DecisionRequest(eligible=eligible)
        unknown = [arm for arm in eligible or [] if arm not in reference.arms]
        playable = reference.playable() & set(eligible or ARMS)
        try:
            (made,) = self.loop.run(self.service.replica.decide("shop", [request], key))
        except Paused:
            assert not reference.active
            return
        except KeyConflict:
            assert key in reference.keys
            assert reference.keys[key][1] != eligible
            return
        except InvalidArgument:
            assert unknown or not playable
            return
        assert reference.active
        if key in reference.keys:
            assert reference.keys[key] == (made.id, eligible)
            return
        assert made.arm in playable
        assert {arm for arm, share in made.probabilities.items() if share > 0} == playable
        assert sum(made.probabilities.values()) == pytest.approx(1.0, abs=1e-12)
        self.remember(made.id, key, eligible)

    def remember(self, decision: str, key: str | None, eligible: Any) -> None:
        self.reference.decide(decision, self.time)
        self.known.append(decision)
        if key is not None:
            self.reference.keys[key] = (decision, eligible)

    @precondition(lambda self: self.known)
    @rule(picks=st.lists(st.tuples(INDEX, st.sampled_from(["reward", "tip"]), VALUES), min_size=1, max_size=4))
    def reward(self, picks: list[tuple[int, str, float]]) -> None:
        self.send([(self.known[index % len(self.known)], key, value) for index, key, value in picks])

    @rule(name=st.sampled_from(["nobody", "00000000-0000-7000-8000-000000000000"]), value=VALUES)
    def reward_nobody(self, name: str, value: float) -> None:
        self.send([(name, "reward", value)])

    @rule(value=VALUES)
    def overtake(self, value: float) -> None:
        (decision,) = new_ids(1)
        self.known.append(decision)
        self.send([(decision, "reward", value)])

    def send(self, events: list[tuple[str, str, float]]) -> None:
        requests = [RewardRequest(decision, value, key) for decision, key, value in events]
        verdicts = [answer.verdict for answer in self.loop.run(self.service.replica.take_rewards(requests))]
        assert verdicts == [self.reference.reward(*event, self.time) for event in events]

    @precondition(lambda self: self.reference.active and self.reference.playable())
    @rule(index=INDEX)
    def arrive(self, index: int) -> None:
        """A decision whose reward was quicker is written at last."""
        late = [name for name in self.known if name not in self.reference.decisions]
        if late:
            decision = late[index % len(late)]
            row = replica.propose(self.service.replica.find("shop"), DecisionRequest(), decision, None)
            self.loop.run(self.service.writer.write(replica.add_batches, [row]))
            self.known.remove(decision)
            self.remember(decision, None, None)

    @rule(seconds=st.sampled_from([0.001, 1.0, 6.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.at += int(seconds * 1e9)

    @rule()
    def learn(self) -> None:
        self.service.learner.tick()
        self.loop.run(self.service.replica.refresh())
        self.reference.tick(self.time)
        self.compare()

    @rule(arm=st.sampled_from(ARMS))
    def add_arm(self, arm: str) -> None:
        if arm in self.reference.arms:
            with pytest.raises(catalog.AlreadyThere):
                self.change(lambda connection: catalog.add_arm(connection, "shop", arm, "test"))
        else:
            self.change(lambda connection: catalog.add_arm(connection, "shop", arm, "test"))
            self.reference.arms[arm] = "active"
            self.reference.waiting.append(("add-arm", arm))

    @rule(arm=st.sampled_from(ARMS), status=st.sampled_from(["active", "paused", "retired"]))
    def set_arm(self, arm: str, status: str) -> None:
        def act(connection: Any) -> None:
            catalog.set_arm_status(connection, "shop", arm, status, "test")

        if arm in self.reference.arms and self.reference.may_set(arm, status):
            self.change(act)
            self.reference.arms[arm] = status
        else:
            with pytest.raises(InvalidArgument):
                self.change(act)

    @rule(active=st.booleans())
    def pause(self, active: bool) -> None:
        self.change(lambda c: catalog.set_status(c, "shop", "active" if active else "paused", "test"))
        self.reference.active = active

    @rule(window=st.sampled_from([0.0, 5.0, 30.0]), default=st.sampled_from([None, -1.0]))
    def patch(self, window: float, default: float | None) -> None:
        asked = ExperimentPatch(window=window, default_reward=default)
        self.change(lambda connection: catalog.change_experiment(connection, "shop", asked, "test"))
        self.reference.window, self.reference.default = window, default

    @rule(index=INDEX)
    def roll_back(self, index: int) -> None:
        version = self.snapshots[index % len(self.snapshots)]
        self.change(lambda connection: catalog.ask_rollback(connection, "shop", version, "test"))
        self.reference.waiting.append(("rollback", str(version)))

    @rule()
    def restart(self) -> None:
        """As after a crash: the lease is not given back."""
        self.close()
        self.open()

    def compare(self) -> None:
        with self.service.database.reading.connect() as connection:
            found: dict[int, tuple[str, str, float | None, str]] = {}
            for row in connection.execute(select(outcomes)):
                found[row.apply_seq] = ("outcome", row.decision, row.value, row.source)
            for row in connection.execute(select(changes).where(changes.c.apply_seq.is_not(None))):
                found[row.apply_seq] = (row.kind, row.subject, None, "")
            assert found == dict(enumerate(self.reference.steps, 1))
            parked = connection.execute(select(reward_events.c.decision).where(reward_events.c.verdict == "parked"))
            assert sorted(parked.scalars()) == sorted(event.decision for event in self.reference.parked)
            report = make_report(connection, catalog.get_experiment(connection, "shop"))
            plays = connection.execute(select(func.sum(rollups.c.plays))).scalar() or 0
            rewards, *others = (
                connection.execute(select(func.sum(table.c.rewards)).where(which)).scalar() or 0
                for table, which in (
                    (rollups, true()),
                    (long_rollups, long_rollups.c.span == 0),
                    (long_rollups, long_rollups.c.span == HOUR),
                )
            )
            assert others == [rewards, rewards]
            verdicts = select(reward_events.c.verdict, func.count()).group_by(reward_events.c.verdict)
            assert verdict_counts(connection, 0) == {row[0]: row[1] for row in connection.execute(verdicts)}
            stored = connection.execute(select(func.count()).select_from(decisions)).scalar()
        closed = sum(decision.closed for decision in self.reference.decisions.values())
        assert plays == stored == report.decisions == len(self.reference.decisions)
        assert report.open_decisions == stored - closed
        self.snapshots.append(report.snapshot)

    def teardown(self) -> None:
        try:
            if hasattr(self, "reference"):
                self.reference.active = True
                self.change(lambda connection: catalog.set_status(connection, "shop", "active", "test"))
                self.learn()
                with self.service.database.reading.connect() as connection:
                    verdict = rebuild(connection, "shop")
                    assert first_broken(connection) is None
                assert verdict.compared > 0
                assert not verdict.differing
        finally:
            self.close()
            self.loop.close()
            self.patch_time.undo()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_service_does_what_its_reference_says(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    numbers = itertools.count()
    if kind == "sqlite":
        folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else tmp_path))
        empty = folder / "empty.db"
        open_database(str(empty)).close()
    else:
        server: Postgres = request.getfixturevalue("postgres")
        open_database(server.create("machine")).close()

    class Here(Machine):
        def address(self) -> str:
            if kind == "sqlite":
                return str(shutil.copy(empty, folder / f"{next(numbers)}.db"))
            return server.create(f"machine{next(numbers)}", "machine")

    examples, steps = PROFILES[kind]
    try:
        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                derandomize=not LONG,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        if kind == "sqlite":
            shutil.rmtree(folder)


def test_what_chance_rarely_comes_upon(tmp_path: Path) -> None:
    """An arm added before a rollback to a snapshot without it, and decisions that close in another order than made."""
    numbers = itertools.count()

    class Here(Machine):
        def address(self) -> str:
            return str(tmp_path / f"{next(numbers)}.db")

    machine: Any = Here()
    try:
        machine.create(window=0.0, default=0.5, arrival=False)
        machine.decide(None, None)
        machine.learn()
        machine.add_arm("c")
        machine.learn()
        for _ in range(5):
            machine.decide(None, None)
        machine.roll_back(0)
        machine.learn()
        machine.decide(None, None)
    finally:
        machine.teardown()
    machine = Here()
    try:
        machine.create(window=30.0, default=0.5, arrival=False)
        machine.decide(None, None)
        machine.patch(0.0, None)
        machine.wait(1.0)
        machine.decide(None, None)
        machine.wait(61.0)
        machine.learn()
    finally:
        machine.teardown()
