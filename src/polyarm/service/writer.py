"""One thread writes: what waits is written in one transaction, and answered after its commit.

A commit that reaches the disk takes milliseconds whatever it holds, so waiting requests share one.
"""

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from polyarm.errors import PolyarmError
from polyarm.service.database import Database, Unavailable

Result = TypeVar("Result")
CAPACITY = 4096
BATCH = 512
PATIENCE = 10.0  # seconds that a request waits for the database
COLLISIONS = ("40001", "40P01")  # PostgreSQL: two transactions wanted the same rows in another order
log = logging.getLogger("polyarm.service")


class Overloaded(PolyarmError, RuntimeError):
    """More requests wait than the queue holds; nothing was recorded."""


@dataclass(eq=False, slots=True)
class Job(Generic[Result]):
    """Something to write: `write` is called with all waiting jobs' arguments of its kind, inside one transaction."""

    write: Callable[[Connection, Sequence[Any]], Sequence[Result]]
    argument: Any
    reply: "asyncio.Future[Result] | Future[Result]"
    alone: bool = False


@dataclass(eq=False)
class Writer:
    """The thread that owns the writing connection."""

    database: Database
    _queue: "queue.Queue[Job[Any] | None]" = field(default_factory=lambda: queue.Queue(CAPACITY))
    _thread: threading.Thread | None = None
    _connection: Connection | None = None
    batches: int = 0
    rows: int = 0

    def start(self) -> None:
        """Begin to write."""
        self._thread = threading.Thread(target=self._run, name="polyarm-writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, then end."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    @property
    def waiting(self) -> int:
        """Jobs in the queue."""
        return self._queue.qsize()

    async def write(self, write: Callable[[Connection, Sequence[Any]], Sequence[Result]], argument: Any) -> Result:
        """Write one argument together with what else waits; returns after the commit."""
        reply: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._put(Job(write, argument, reply))
        return await _in_time(reply)

    async def run(self, work: Callable[[Connection], Result]) -> Result:
        """Run a function in a transaction of its own; returns after the commit."""
        reply: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._put(_alone(work, reply))
        return await _in_time(reply)

    def run_blocking(self, work: Callable[[Connection], Result]) -> Result:
        """As `run`, for threads."""
        reply: Future[Result] = Future()
        self._queue.put(_alone(work, reply))
        return reply.result()

    def _put(self, job: Job[Any]) -> None:
        try:
            self._queue.put_nowait(job)
        except queue.Full:
            raise Overloaded(f"the service must have fewer than {CAPACITY} requests waiting, got that many") from None

    def _run(self) -> None:
        running = True
        while running:
            jobs = [self._queue.get()]
            while len(jobs) < BATCH and jobs[-1] is not None:
                try:
                    jobs.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            running = jobs[-1] is not None
            for group in _groups([job for job in jobs if job is not None]):
                self._write(group)
        self._disconnect()

    def _write(self, jobs: list[Job[Any]], tries: int = 3) -> None:
        try:
            connection = self._connect()
            with connection.begin():
                results = _call(connection, jobs)
        except SQLAlchemyError as error:
            self._disconnect()
            if tries > 1 and getattr(getattr(error, "orig", None), "sqlstate", None) in COLLISIONS:
                self._write(jobs, tries - 1)
                return
            log.warning("nothing of %d jobs was written: %s", len(jobs), str(error).splitlines()[0])
            _answer(jobs, [Unavailable("the database must be writable, got an error; try again")] * len(jobs))
        except BaseException as error:  # noqa: BLE001  the thread lives on, its caller gets the error
            if len(jobs) > 1:
                for job in jobs:  # one of them is at fault: each by itself
                    self._write([job])
            else:
                _answer(jobs, [error])
        else:
            self.batches += 1
            self.rows += len(jobs)
            _answer(jobs, results)

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = self.database.writing.connect()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(SQLAlchemyError):  # it may be broken in any way
                connection.invalidate()
                connection.close()


async def _in_time(reply: "asyncio.Future[Result]") -> Result:
    """The reply, unless the database falls silent: then it may be written later, and asking again shows whether."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await reply
    except TimeoutError:
        rule = f"the database must answer within {PATIENCE:g} seconds, got silence"
        raise Unavailable(f"{rule}; ask again with the same idempotency key or decision") from None


def _alone(work: Callable[[Connection], Result], reply: Any) -> Job[Result]:
    return Job(lambda connection, _: [work(connection)], None, reply, alone=True)


def _groups(jobs: list[Job[Any]]) -> list[list[Job[Any]]]:
    """Jobs that may share a transaction, in order."""
    groups: list[list[Job[Any]]] = []
    for job in jobs:
        if groups and not job.alone and not groups[-1][0].alone:
            groups[-1].append(job)
        else:
            groups.append([job])
    return groups


def _call(connection: Connection, jobs: list[Job[Any]]) -> list[Any]:
    """Results of all jobs; jobs of one kind are written together, kinds in the order of their first job."""
    kinds: dict[Any, list[int]] = {}
    for index, job in enumerate(jobs):
        kinds.setdefault(job if job.alone else job.write, []).append(index)
    results: list[Any] = [None] * len(jobs)
    for indices in kinds.values():
        write = jobs[indices[0]].write
        for index, result in zip(indices, write(connection, [jobs[i].argument for i in indices]), strict=True):
            results[index] = result
    return results


def _answer(jobs: list[Job[Any]], results: Sequence[Any]) -> None:
    loops: dict[Any, list[tuple[Any, Any]]] = {}
    for job, result in zip(jobs, results, strict=True):
        if isinstance(job.reply, Future):
            _resolve([(job.reply, result)])
        else:
            loops.setdefault(job.reply.get_loop(), []).append((job.reply, result))
    for loop, pairs in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, pairs)


def _resolve(pairs: list[tuple[Any, Any]]) -> None:
    for reply, result in pairs:
        if reply.done():  # the client went away
            continue
        if isinstance(result, BaseException):
            reply.set_exception(result)
        else:
            reply.set_result(result)
