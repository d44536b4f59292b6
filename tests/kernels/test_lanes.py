"""Four numbers at a time: compiled lanes have the digits of arrays, and lanes that hold anything stay by themselves."""

import math
from collections.abc import Callable

import numba
import numpy as np
import pytest

from polyarm.kernels import elementary, lanes
from polyarm.kernels._jit import kernel, plain
from polyarm.kernels.lanes import LANES, load, splat, sqrt, store, sum_of, where_less, whole, within
from polyarm.types import Array

DIGITS = 2.0**-53  # half a unit in the last place of numbers just above one


@kernel
def arithmetic(a: Array, b: Array, out: Array) -> float:
    x, y = load(a, 1), load(b, 2, 4)
    store(x + y, out, 0)
    store(x - y, out, 1)
    store(x * y, out, 2)
    store(x / y, out, 3)
    store(sqrt(y), out, 4)
    store(2.0 * x - 3, out, 5)
    store(1 / y + x * 0.5, out, 6)
    total = splat(0.25)
    total += x
    total -= y
    total *= x
    total /= y
    store(total, out, 7)
    store(where_less(x, y, x, -1.0), out, 8)
    store(where_less(0.0, x, 7.0, y), out, 9)
    store(within(1, 3, x, y), out, 10)
    store(within(0, 9, 5.0, x), out, 11)
    store(within(2, 2, x, 0.0), out, 12)
    return sum_of(x)


def test_compiled_lanes_have_the_digits_of_arrays() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(6), rng.gamma(2.0, size=(3, 9))
    x, y = a[1:5], b[2, 4:8]
    expected = [
        x + y,
        x - y,
        x * y,
        x / y,
        np.sqrt(y),
        2 * x - 3,
        1 / y + x * 0.5,
        (0.25 + x - y) * x / y,
        np.where(x < y, x, -1),
        np.where(x > 0, 7, y),
        [y[0], x[1], x[2], y[3]],
        np.full(4, 5.0),
        np.zeros(4),
    ]
    for run in (arithmetic, plain(arithmetic)):
        out = np.full((len(expected), LANES), np.nan)
        assert run(a, b, out) == ((x[0] + x[1]) + x[2]) + x[3]
        np.testing.assert_array_equal(out, np.array(expected))


@kernel
def copied(many: Array, table: Array, vector: Array) -> None:
    for i in range(many.shape[0]):
        for j in range(many.shape[1]):
            store(load(many, i, j), table, i, LANES * j)
        store(load(table, i, 3), vector, LANES * i)


def test_numbers_are_read_and_written_where_they_stand() -> None:
    many = np.arange(24.0).reshape(2, 3, LANES)
    for run in (copied, plain(copied)):
        table, vector = np.zeros((2, 12)), np.zeros(8)
        run(many, table, vector)
        np.testing.assert_array_equal(table, many.reshape(2, 12))
        np.testing.assert_array_equal(vector, [3, 4, 5, 6, 15, 16, 17, 18])


def test_whole_lanes_have_room_for_as_many_and_no_more_than_needed() -> None:
    assert [whole(n) for n in range(1, 10)] == [4, 4, 4, 4, 8, 8, 8, 8, 12]


@kernel
def every_second(values: Array, out: Array) -> None:
    store(load(values[::2], 0), out, 0)


def test_numbers_that_do_not_lie_side_by_side_are_refused() -> None:
    with pytest.raises(Exception, match="lie side by side"):
        every_second(np.arange(8.0), np.empty(4))


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="indices are only checked by `make bounds`")
@pytest.mark.parametrize("at", [-1, 5])
def test_lanes_beyond_an_array_are_found_where_indices_are_checked(at: int) -> None:
    with pytest.raises(IndexError, match="within the array"):
        copy_from(np.arange(8.0), at, np.empty(LANES))


@kernel
def copy_from(values: Array, at: int, out: Array) -> None:
    store(load(values, at), out, 0)


@kernel
def logs(x: Array, out: Array) -> None:
    for k in range(0, x.shape[0], LANES):
        store(elementary_log(load(x, k)), out, k)


@kernel
def exps(x: Array, out: Array) -> None:
    for k in range(0, x.shape[0], LANES):
        store(elementary_exp(load(x, k)), out, k)


elementary_log, elementary_exp = elementary.log, elementary.exp


def units_off(found: Array, expected: Array) -> float:
    """Largest error in units of the last place; `expected` has more digits."""
    nearest = expected.astype(np.float64)
    return float(np.max(np.abs((found - expected) / np.spacing(np.abs(nearest)))))


def test_logarithms_are_within_one_unit_in_the_last_place() -> None:
    rng = np.random.default_rng(1)
    n = 200_000
    x = np.concatenate([
        np.exp(rng.uniform(-700, 700, n)),
        1.0 + rng.uniform(-0.5, 10, n),
        1.0 + np.exp(rng.uniform(-36, 0, n)),
        1.0 - np.exp(rng.uniform(-36, -0.1, n)),
        np.ldexp(math.sqrt(0.5) * (1.0 + rng.integers(-4, 5, n) * DIGITS), rng.integers(-900, 900, n)),
    ])  # fmt: skip
    found = np.empty_like(x)
    logs(x, found)
    exact = np.log(x.astype(np.longdouble))
    apart = exact != 0
    assert (found[~apart] == 0).all()
    assert units_off(found[apart], exact[apart]) < 1.0


def test_exponentials_are_within_one_unit_in_the_last_place() -> None:
    rng = np.random.default_rng(2)
    n = 200_000
    tiny = np.exp(rng.uniform(-40, 0, n))
    x = np.concatenate(
        [rng.uniform(-700, 700, n), rng.uniform(-40, 0, n), tiny, -tiny, math.log(2) * rng.integers(-900, 900, n) / 2]
    )
    found = np.empty_like(x)
    exps(x, found)
    assert units_off(found, np.exp(x.astype(np.longdouble))) < 1.0


@pytest.mark.parametrize(("compiled", "values"), [
    (logs, [1.0, math.inf, 2.2250738585072014e-308, 1.7976931348623157e308]),
    (logs, [math.nan, 3.0, 0.7, 1e-5]),
    (exps, [0.0, -0.0, -700.0, 700.0]),
])  # fmt: skip
def test_the_edges_are_as_in_the_c_library_compiled_or_not(compiled: Callable[..., None], values: list[float]) -> None:
    x = np.array(values)
    expected = np.log(x) if compiled is logs else np.exp(x)
    for run in (compiled, plain(compiled)):
        found = np.empty(LANES)
        run(x, found)
        np.testing.assert_allclose(found, expected, rtol=4 * DIGITS)


def test_a_constant_that_is_one_digit_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = plain(elementary.log)
    monkeypatch.setitem(wrong.__globals__, "LN2_LOW", elementary.LN2_LOW * (1 + 1e-5))
    x = np.array([1e300, 1e-300, 1e200, 1e150])
    assert units_off(wrong(x), np.log(x.astype(np.longdouble))) > 1.0


def test_lanes_of_no_number_stay_by_themselves() -> None:
    x = np.array([2.0, math.nan, -1.0, 0.0])
    found = np.empty(LANES)
    logs(x, found)
    assert found[0] == pytest.approx(math.log(2.0), rel=1e-16)
    assert lanes.within(0, 1, found, 0.0).tolist() == [found[0], 0.0, 0.0, 0.0]
