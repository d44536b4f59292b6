"""Kernels as parts of kernels: the same numbers, compiled once for all flags of literals, and kept on disk."""

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba import typeof
from numba.core.errors import TypingError

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, plain, rng_from, rng_handle, trusted
from polyarm.kernels.order import in_order, place_of_greatest, place_of_least
from polyarm.types import Array, Rng


@inlined
def scaled(x: float, twice: bool) -> float:
    return 2.0 * x if twice else x


@no_refcount
def draw(shape: float, rng: Rng) -> float:
    return scaled(rng.standard_gamma(shape), True) + scaled(rng.standard_normal(), False)


@kernel
def fill(out: Array, shape: float, handle: RngHandle) -> None:
    rng = rng_from(handle)
    for i in range(out.shape[0]):
        out[i] = draw(shape, rng) + scaled(1.0, False)


def test_a_kernel_of_kernels_equals_its_plain_twin_and_has_one_part_for_both_booleans() -> None:
    fast, slow = np.empty(50), np.empty(50)
    fill(fast, 0.7, rng_handle(np.random.default_rng(3)))
    plain(fill)(slow, 0.7, np.random.default_rng(3))
    np.testing.assert_array_equal(fast, slow)
    whole: Any = fill
    parts: tuple[Any, ...] = (scaled, draw)
    whole._compiler.part(
        tuple(typeof(each) for each in (fast, 0.7, rng_handle(np.random.default_rng(3))))
    )  # also if on disk
    assert [len(part._compiler.parts) for part in parts] == [1, 1]
    assert not parts[1].signatures  # nothing of its own until Python calls it


@kernel
def greatest(x: Any, y: Any) -> Any:
    return max(x, y)


@kernel
def length_of_a_number(x: float) -> int:
    return len(x)  # type: ignore[arg-type]


def test_what_numba_found_out_is_remembered_by_type_and_mistakes_are_found_again() -> None:
    assert [type(greatest(*pair)) for pair in ((1, 2), (1, 2.5), (1.5, 2.5), (np.float32(1), 2))] == [int, *[float] * 3]
    wrong: Any = length_of_a_number
    for _ in range(2):
        with pytest.raises(TypingError, match="len"):
            wrong(1.0)
    assert "resolve_function_type" not in vars(wrong.targetdescr.typing_context)  # others find things out as ever


def test_python_can_call_an_inlined_kernel_too() -> None:
    assert scaled(3.0, True) == 6.0
    assert scaled(np.float64(3.0), False) == 3.0


def test_order_is_that_of_numpy() -> None:
    rng = np.random.default_rng(8)
    for values in (
        rng.standard_normal(64),
        rng.integers(0, 4, 30).astype(float),
        np.zeros(5),
        np.array([-np.inf, 1e300]),
    ):
        np.testing.assert_array_equal(in_order(values), np.sort(values))
        assert place_of_least(values) == np.argmin(values)
        assert place_of_greatest(values) == np.argmax(values)
    assert in_order(np.empty(0)).shape == (0,)


class Pair(NamedTuple):
    values: Array
    factor: float


def weighed(pair: Pair, at: tuple[int, int]) -> float:
    return float(pair.factor * pair.values[at[0], at[1]])


def test_a_trusted_kernel_is_called_without_a_look_at_types_once_it_has_some() -> None:
    weigh, values = kernel(weighed), np.arange(6.0).reshape(2, 3)
    assert trusted(weigh) is weigh
    for factor in (2.0, 0.5):
        assert trusted(weigh)(Pair(values, factor), (1, 2)) == 5.0 * factor == weigh(Pair(values, factor), (1, 2))
    assert numba.config.DISABLE_JIT or trusted(weigh) is not weigh
    assert trusted(plain(weigh)) is plain(weigh)
    fixed = values.copy()
    fixed.flags.writeable = False  # of another type, which is read in the same way
    assert trusted(weigh)(Pair(fixed, 2.0), (1, 2)) == 10.0


@pytest.mark.parametrize(
    "values",
    [np.zeros((2, 3), np.float32), np.zeros((2, 3), np.int32), np.zeros((3, 2)).T, np.zeros((2, 6))[:, ::2]],
)
def test_no_kernel_is_trusted_that_was_first_called_with_unusual_arguments(values: Any) -> None:
    weigh = kernel(weighed)
    assert weigh(Pair(values, 2.0), (1, 2)) == 0.0
    assert trusted(weigh) is weigh
    usual = Pair(np.arange(6.0).reshape(2, 3), 2.0)
    assert trusted(weigh)(usual, (1, 2)) == 10.0
    assert trusted(weigh) is weigh  # there are two by now


def test_no_kernel_is_trusted_that_was_first_called_with_short_integers() -> None:
    weigh, short = kernel(weighed), np.array([1, 2], np.uint8)
    at: Any = (short[0], short[1])
    assert weigh(Pair(np.ones((2, 3)), 2.0), at) == 2.0
    assert trusted(weigh) is weigh
