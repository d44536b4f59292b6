"""What decides: the newest snapshot of every experiment, held in memory, and the log that each decision goes to."""

import asyncio
import contextlib
import gc
import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy.exc import DBAPIError

from polyarm.bandit.identity import new_ids
from polyarm.errors import InvalidArgument, PolyarmError, UnknownArm, UnknownName
from polyarm.service import ledger
from polyarm.service.catalog import Experiment, experiment_names, get_experiment
from polyarm.service.clock import now, seconds
from polyarm.service.database import Database
from polyarm.service.learner import Learner
from polyarm.service.ledger import KeyConflict, RewardEvent, Row
from polyarm.service.messages import (
    DecisionAnswer,
    DecisionRequest,
    RewardAnswer,
    RewardRequest,
    to_json,
)
from polyarm.service.model import Model
from polyarm.service.news import Listener
from polyarm.service.snapshots import get_snapshot, latest_versions
from polyarm.service.writer import Writer

log = logging.getLogger("polyarm.service")
POLL = 1.0  # seconds between looks for new snapshots and settings, where no news of them is heard
SEARCH = 0.1  # seconds between looks for an experiment that is not known


class Paused(PolyarmError, RuntimeError):
    """The experiment takes no decisions now."""


@dataclass(eq=False, slots=True)
class Live:
    """An experiment as decisions meet it."""

    experiment: Experiment
    model: Model
    snapshot: int


@dataclass(eq=False)
class Replica:
    """Decides, takes rewards, and follows what the learner publishes."""

    database: Database
    writer: Writer
    learner: Learner
    live: dict[str, Live] = field(default_factory=dict)
    listeners: set[asyncio.Event] = field(default_factory=set)
    seen_at: int = 0
    _searched: float = 0.0
    _loop: asyncio.AbstractEventLoop | None = None
    _task: asyncio.Task[None] | None = None
    _reading: "asyncio.Future[dict[str, Live]] | None" = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _search: asyncio.Lock = field(default_factory=asyncio.Lock)
    _listener: Listener | None = None
    _ended: bool = False

    async def start(self) -> None:
        """Load every experiment and begin to follow."""
        self._loop = asyncio.get_running_loop()
        await self.refresh()
        self._task = asyncio.create_task(self._follow())
        self.learner.on_publish = self.notice
        self._listener = Listener(self.database, self.notice)
        self._listener.start()

    async def stop(self) -> None:
        """Stop following."""
        if self._listener is not None:
            await asyncio.to_thread(self._listener.stop)
        if self._task is not None:
            self._ended = True
            self._changed.set()  # not cancelled: `wait_for` may swallow that when news comes at the same moment
            await self._task
        if self._reading is not None:
            with contextlib.suppress(Exception):  # told by whoever asked for it
                await self._reading

    def notice(self, _name: str = "") -> None:
        """Look at once: something was published; may be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), POLL)
            self._changed.clear()
            if self._ended:
                return
            try:
                await self.refresh()
            except DBAPIError as error:
                log.warning("experiments could not be read: %s", error.orig)
            except Exception:  # whoever stopped to follow would decide by an old model for ever
                log.exception("experiments could not be read")

    async def refresh(self) -> None:
        """Take over new settings and snapshots."""
        async with self._turn:  # one after the other: what was read earlier must not replace what was read later
            self._reading = asyncio.ensure_future(asyncio.to_thread(self._read))
            fresh = await asyncio.shield(self._reading)  # a thread cannot be cancelled: `stop` waits for it
            changed = {name: live for name, live in fresh.items() if live is not self.live.get(name)}
            self.live = fresh
            self.seen_at = now()
        if changed:
            for listener in self.listeners:
                listener.set()

    def _read(self) -> dict[str, Live]:
        live: dict[str, Live] = {}
        with self.database.reading.connect() as connection:
            versions = latest_versions(connection)
            for name in experiment_names(connection):
                if name not in versions:
                    continue
                old = self.live.get(name)
                experiment = get_experiment(connection, name)
                if old is not None and old.snapshot == versions[name]:
                    live[name] = old if old.experiment == experiment else Live(experiment, old.model, old.snapshot)
                    continue
                snapshot = get_snapshot(connection, name, versions[name])
                if snapshot is not None:
                    live[name] = Live(experiment, Model.from_bytes(snapshot.content), snapshot.version)
                    if old is None:
                        live[name].model.warm()
                        gc.freeze()  # kernels stay for good: looking them over again and again stops all threads
        return live

    def find(self, name: str) -> Live:
        """The experiment of that name."""
        live = self.live.get(name)
        if live is None:
            raise UnknownName(f"experiment must be one that exists, got {name!r}")
        return live

    async def find_now(self, name: str) -> Live:
        """The experiment of that name, even if another replica has only just added it."""
        if name not in self.live:
            async with self._search:  # who comes while another searches waits for what that finds
                if name not in self.live and time.monotonic() - self._searched > SEARCH:
                    await self.refresh()
                    self._searched = time.monotonic()  # a flood of wrong names must not become one of queries
        return self.find(name)

    async def decide(
        self, name: str, requests: Sequence[DecisionRequest], key: str | None = None
    ) -> list[DecisionAnswer]:
        """Decisions, all on one snapshot, answered when they are on disk."""
        live = await self.find_now(name)
        rows = [
            propose(live, request, decision, _part(key, index))
            for index, (request, decision) in enumerate(zip(requests, new_ids(len(requests)), strict=True))
        ]
        stored = await self.writer.write(add_batches, rows)
        if isinstance(stored, KeyConflict):
            raise stored
        return [answer(row) for row in stored]

    async def take_rewards(self, requests: Sequence[RewardRequest]) -> list[RewardAnswer]:
        """Write rewards and say what became of each."""
        events = [RewardEvent(request.decision, request.key, request.value, request.time) for request in requests]
        verdicts = await self.writer.write(ledger.add_rewards, events)
        return [
            RewardAnswer(event.decision, verdict)  # type: ignore[arg-type]
            for event, verdict in zip(events, verdicts, strict=True)
        ]


def _part(key: str | None, index: int) -> str | None:
    return key if key is None or index == 0 else f"{key}#{index}"


def add_batches(connection: Any, batches: Sequence[Sequence[Row]]) -> list[Any]:
    """Write the decisions of several requests together."""
    stored = ledger.add_decisions(connection, [row for batch in batches for row in batch])
    results: list[Any] = []
    start = 0
    for batch in batches:
        part = stored[start : start + len(batch)]
        start += len(batch)
        conflicts = [row for row in part if isinstance(row, KeyConflict)]
        results.append(conflicts[0] if conflicts else part)
    return results


def propose(live: Live, request: DecisionRequest, decision: str, key: str | None) -> Row:
    """The row of a decision: probabilities from the snapshot, the arm drawn from them by the decision's id."""
    experiment = live.experiment
    if experiment.status != "active":
        raise Paused(f"experiment must be active, got {experiment.name!r}, which is paused")
    known = set(live.model.arms)
    active = [arm for arm in experiment.active if arm in known]
    eligible = active
    if request.eligible is not None:
        unknown = [arm for arm in request.eligible if arm not in experiment.arms]
        if unknown:
            raise UnknownArm(f"eligible must be arms of the experiment, got {unknown[0]!r}")
        eligible = [arm for arm in active if arm in set(request.eligible)]
        if not eligible:
            raise InvalidArgument(f"eligible must hold an active arm, got {request.eligible!r}")
    settings = experiment.settings
    drawn = live.model.draw(decision, request.context, eligible, settings)
    arm, propensity, stream = drawn.arm, drawn.propensity, drawn.stream
    if request.played is not None:
        if request.played not in experiment.arms:
            raise UnknownArm(f"played must be an arm of the experiment, got {request.played!r}")
        arm, stream = request.played, "shadow"
        propensity = drawn.probabilities.get(arm, 0.0)
    made = now()
    return {
        "id": decision,
        "experiment": experiment.name,
        "version": experiment.version,
        "snapshot": live.snapshot,
        "time": made,
        "client_time": request.time,
        "unit": request.unit,
        "idempotency_key": key,
        "request": hashlib.sha256(to_json(request)).hexdigest() if key is not None else None,
        "context": to_json(request.context).decode(),
        "eligible": to_json(eligible).decode(),
        "probabilities": to_json(drawn.probabilities).decode(),
        "arm": arm,
        "propensity": propensity,
        "stream": stream,
        "closes_at": made + seconds(settings.window),
        "closes_on_reward": settings.learn == "on-arrival",
    }


def answer(row: Row) -> DecisionAnswer:
    """A decision as its caller gets it."""
    return DecisionAnswer(
        row["id"],
        row["arm"],
        row["propensity"],
        msgspec.json.decode(row["probabilities"], type=dict[str, float]),
        row["snapshot"],
        row["stream"],
    )
