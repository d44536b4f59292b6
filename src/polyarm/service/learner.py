"""The learner: closes windows, numbers outcomes, learns them in order and publishes snapshots.

One process at a time does this, by its lease.  A learner that starts loads the newest snapshot and takes in every
numbered step after it, so that the model depends on the steps and their order alone, never on when somebody stopped or
published.
"""

import logging
import os
import socket
import threading
import time as wall
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from polyarm.errors import BrokenFile, PolyarmError
from polyarm.service import lease as leases
from polyarm.service.catalog import Experiment, experiment_names, first_settings, get_experiment
from polyarm.service.clock import now
from polyarm.service.database import Database, Unavailable
from polyarm.service.lease import Fenced, Lease
from polyarm.service.ledger import settle_parked
from polyarm.service.model import Model
from polyarm.service.sequence import Step, close_due, number_changes, steps
from polyarm.service.snapshots import add_snapshot, get_snapshot, latest
from polyarm.service.writer import Writer

log = logging.getLogger("polyarm.service")
TICK = 0.2  # seconds between looks at the clock
PUBLISH_AFTER = 1.0  # seconds; a snapshot is published when there is something new, at most so often
PUBLISH_SHARE = (
    0.05  # of its time that the learner may spend on publishing, so that a large model is published less often
)
RENEW_AFTER = 1.5


@dataclass(eq=False)
class Progress:
    """The model of one experiment, and how far it has got."""

    model: Model
    apply_seq: int
    published: int
    published_at: float = 0.0
    publishing: float = 0.0  # seconds that the last publication took

    @property
    def publish_at(self) -> float:
        """When it may be published again."""
        return self.published_at + max(PUBLISH_AFTER, self.publishing / PUBLISH_SHARE)


@dataclass(eq=False)
class Learner:
    """A thread that learns while it holds the lease."""

    database: Database
    writer: Writer
    on_publish: Callable[[str], None] = lambda name: None
    before: Callable[[str], None] = lambda point: None  # called before each step that can be interrupted
    holder: str = field(default_factory=lambda: f"{socket.gethostname()[:32]}-{os.getpid()}-{os.urandom(4).hex()}")
    lease: Lease | None = None
    failure: str | None = None
    _renewed: float = 0.0
    _progress: dict[str, Progress] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _wake: threading.Event = field(default_factory=threading.Event)
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to learn."""
        self._thread = threading.Thread(target=self._run, name="polyarm-learner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Publish what is new, give the lease back and end."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """Look at once instead of at the next tick."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._try(self.tick)
            self._wake.wait(TICK)
            self._wake.clear()
        self._try(self._finish)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
            self.failure = None
        except Fenced as error:
            log.warning("the lease was lost: %s", error)
            self._give_up()
        except (Unavailable, DBAPIError) as error:
            self.failure = str(error).splitlines()[0]
            self._give_up()
            self._stop.wait(TICK)
        except PolyarmError as error:  # a model that cannot go on must not stop the service; /readyz tells
            self.failure = str(error)
            log.error("learning failed: %s", error)
            self._give_up()
            self._stop.wait(5 * TICK)

    def _give_up(self) -> None:
        self.lease = None
        self._progress.clear()

    def tick(self) -> None:
        """Take the lease if it is free, and learn what there is to learn."""
        with self._busy:
            self._tick()

    def _tick(self) -> None:
        if not self._hold_lease():
            return
        self._write(settle_parked)
        with self.database.reading.connect() as connection:
            experiments = [get_experiment(connection, name) for name in experiment_names(connection)]
        for experiment in experiments:
            if experiment.status == "active":
                self.advance(experiment)

    def _hold_lease(self) -> bool:
        if self.lease is None:
            self._progress.clear()
            self.before("lease")
            self.lease = self.writer.run_blocking(lambda connection: leases.take(connection, self.holder))
            self._renewed = wall.monotonic()
        elif wall.monotonic() - self._renewed > RENEW_AFTER:
            self._write(lambda connection: None)
        return self.lease is not None

    def _write(self, work: Callable[[Connection], object]) -> None:
        """Run in a transaction that nobody with a later epoch has overtaken."""
        lease = self.lease
        assert lease is not None

        def fenced(connection: Connection) -> None:
            leases.renew(connection, lease)
            work(connection)

        self.writer.run_blocking(fenced)
        self._renewed = wall.monotonic()

    def advance(self, experiment: Experiment) -> None:
        """Close what is due, learn it, and publish."""
        closed: list[int] = []

        def close(connection: Connection) -> None:
            number_changes(connection, experiment.name)
            closed.append(close_due(connection, experiment.settings, now()))

        while True:
            self.before("close")
            self._write(close)
            self.before("learn")
            self._learn(experiment)
            if not closed.pop():
                return

    def _learn(self, experiment: Experiment) -> None:
        with self.database.reading.connect() as connection:
            progress = self._progress.get(experiment.name)
            if progress is None:
                progress = self._progress[experiment.name] = begin(connection, experiment.name)
            for step in steps(connection, experiment.name, progress.apply_seq):
                self.before("step")
                progress.model = take_in(connection, experiment.name, progress.model, step)
                progress.apply_seq = step.apply_seq
                if wall.monotonic() - self._renewed > RENEW_AFTER:
                    self._write(lambda connection: None)
        if wall.monotonic() >= progress.publish_at or progress.model.n_learnt < 64:
            self._publish(experiment.name, progress)

    def _publish(self, name: str, progress: Progress) -> None:
        if progress.apply_seq == progress.published:
            return
        start = wall.monotonic()
        content, lease = progress.model.to_bytes(), self.lease
        assert lease is not None
        self.before("publish")
        self._write(lambda connection: add_snapshot(connection, name, progress.apply_seq, lease.epoch, content))
        progress.published, progress.published_at = progress.apply_seq, wall.monotonic()
        progress.publishing = progress.published_at - start
        self.before("published")
        self.on_publish(name)

    def _finish(self) -> None:
        if self.lease is None:
            return
        for name, progress in self._progress.items():
            self._publish(name, progress)
        lease = self.lease
        self.writer.run_blocking(lambda connection: leases.release(connection, lease))
        self.lease = None


def begin(connection: Connection, experiment: str) -> Progress:
    """The newest snapshot; where another version of the library wrote it, a new model that learns the log again."""
    snapshot = latest(connection, experiment)
    try:
        model = Model.from_bytes(snapshot.content)
    except BrokenFile as error:
        log.warning("%s: the log is learnt again, because %s", experiment, error)
        return Progress(Model.new(first_settings(connection, experiment)), 0, snapshot.apply_seq)
    return Progress(model, snapshot.apply_seq, snapshot.apply_seq)


def take_in(connection: Connection, experiment: str, model: Model, step: Step) -> Model:
    """The model after one step."""
    if step.kind == "rollback":
        snapshot = get_snapshot(connection, experiment, int(step.subject))
        if snapshot is None:
            raise Unavailable(f"snapshot {step.subject} must be kept until it is rolled back to, got none")
        older = Model.from_bytes(snapshot.content)
        for arm in model.arms[len(older.arms) :]:  # arms live for ever, even if they came after that snapshot
            older.add_arm(arm)
        return older
    if step.kind == "add-arm":
        model.add_arm(step.subject)
    elif step.value is not None:
        model.learn(step.subject, step.context, step.arm, step.value)
    return model
