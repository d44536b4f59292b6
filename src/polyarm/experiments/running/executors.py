"""Where the work is done: here, in local processes, or on a Dask cluster."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from polyarm.errors import InvalidArgument, require_count, require_extra


class Inline(Executor):
    """Does each piece of work at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is already done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  an executor hands every error to its future
            future.set_exception(error)
        return future


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone, however it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def local_processes(workers: int) -> Executor:
    """Pool of processes on this machine."""
    context = multiprocessing.get_context("spawn")  # forking a process that has threads is not safe
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)


@contextmanager
def open_executor(workers: int = 1, cluster: str | None = None) -> Iterator[Executor]:
    """Executor for that many local processes, or for the Dask cluster at that address."""
    require_count(workers, "workers")
    if cluster is not None:
        with _dask_client(cluster) as client, client.get_executor() as executor:
            yield executor
        return
    executor = Inline() if workers == 1 else local_processes(workers)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _dask_client(address: str) -> Any:
    distributed = require_extra("distributed", "cluster")
    try:
        return distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"cluster must be the address of a Dask scheduler, got {address!r}: {error}") from None
