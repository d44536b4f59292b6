"""How our own calls compute, leaving a user's settings as they are."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import jax


@contextmanager
def numerics() -> Iterator[None]:
    """Context in which JAX keeps 64-bit numbers (networks ask for 32 by name) and LAPACK runs on one thread.

    XLA already uses every core; threads of OpenBLAS inside its own slow small factorisations down tenfold and more.
    """
    threads = _blas_threads()
    with double_precision(), nullcontext() if threads is None else threads.limit(limits=1, user_api="blas"):
        yield


def double_precision() -> AbstractContextManager[Any]:
    """Context in which JAX keeps 64-bit numbers."""
    if not hasattr(jax, "enable_x64"):  # JAX before 0.8
        return import_module("jax.experimental").enable_x64(True)
    return jax.enable_x64(True)


@cache
def _blas_threads() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # on a GPU machine nothing is lost without it
        return None
    return ThreadpoolController()
