"""Generators handed to kernels by their addresses."""

import sys
import threading

import numpy as np
import pytest

from polyarm.errors import InvalidArgument
from polyarm.kernels import _jit
from polyarm.kernels._jit import kernel, rng_from, rng_handle
from polyarm.types import Rng


@kernel
def draw(handle: _jit.RngHandle) -> float:
    return rng_from(handle).random()


def test_many_threads_with_many_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draws what its generator would draw, and nobody trips over the table of known ones."""
    monkeypatch.setattr(_jit, "HANDLES_KEPT", 3)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for seed in range(first, first + 400):
                rng: Rng = np.random.default_rng(seed)
                assert draw(rng_handle(rng)) == np.random.default_rng(seed).random()
        except BaseException as error:  # noqa: BLE001  whatever it is, the test must hear of it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
    assert len(_jit._handles) <= 3 + len(threads)


def test_no_generator_is_nobodys_latest() -> None:
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="rng must be"):
            rng_handle(None)  # type: ignore[arg-type]
