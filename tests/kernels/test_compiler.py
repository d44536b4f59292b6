"""Kernels as parts of kernels: the same numbers, compiled once for all flags of literals, and kept on disk."""

import gc
import os
import subprocess
import sys
from typing import Any, NamedTuple, cast

import numba
import numpy as np
import pytest
from numba import typeof
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys

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


class Pile(NamedTuple):
    """A record of records, numbers and arrays."""

    rows: Array
    counts: Array
    scale: float
    is_low: bool


class Two(NamedTuple):
    """A record of records."""

    left: Pile
    right: Pile
    offset: int


@no_refcount
def worth_of(pile: Pile, i: int, j: int) -> float:
    found = pile.rows[i, j] * pile.scale + pile.counts[i]
    return float(-found if pile.is_low else found)


@kernel
def sum_up(two: Two, out: Array) -> int:
    seen = 0
    for each in (two, Two(two.right, two.left, -two.offset)):
        for i in range(each.left.rows.shape[0]):
            for j in range(each.left.rows.shape[1]):
                out[i, j, 0] += worth_of(each.left, i, j)
                out[i, j, 1] -= worth_of(each.right, i, j) + each.offset
                seen += 1
    out[-1, -1, 1] = seen
    return seen


def test_records_of_records_are_handed_over_as_they_are() -> None:
    rng = np.random.default_rng(4)
    left, right = (Pile(rng.standard_normal((3, 2)), np.arange(3.0) + i, 0.5 + i, i == 0) for i in range(2))
    fast, slow = np.zeros((3, 2, 2)), np.zeros((3, 2, 2))
    two = Two(left, right, 3)
    assert sum_up(two, fast) == plain(sum_up)(two, slow) == 12
    np.testing.assert_array_equal(fast, slow)


@no_refcount
def worth_of_both(two: Two, i: int) -> float:
    return worth_of(two.left, i, 0) - two.offset * worth_of(two.right, i, 1)


@kernel
def exchange(two: Two, out: Array) -> None:
    left, right = two.left, two.right
    for i in range(out.shape[0]):
        before, row = left, right.counts
        left, right = right, left
        out[i, 0] = worth_of(before, 0, 0) - worth_of(left, 0, 1) * worth_of(right, 1, 0) + row[1]
        two = Two(right, two.left, two.offset + i)
        out[i, 1] = worth_of_both(two, 1)
        if i % 2:
            before = two.right
        out[i, 2] = worth_of(before, 2, 1)


@kernel
def exchanged(two: Two, n: int) -> Array:
    out = np.zeros((n, 3))
    exchange(two, out)
    before = two
    two = Two(Pile(out, two.right.counts, 0.5, False), two.left, 1)
    out[0, 0] += worth_of_both(before, 0) + worth_of_both(two, 1)
    return two.left.rows


def test_a_record_that_was_lent_is_read_as_it_was_then() -> None:
    """Variables that hold records are exchanged, and arguments replaced, between reading them and calling with them."""
    rng = np.random.default_rng(5)
    left, right = (Pile(rng.standard_normal((3, 2)), rng.standard_normal(3), 0.5 + i, i == 0) for i in range(2))
    fast, slow, two = np.zeros((5, 3)), np.zeros((5, 3)), Two(left, right, 2)
    exchange(two, fast)
    plain(exchange)(two, slow)
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_array_equal(exchanged(two, 4), plain(exchanged)(two, 4))


def gammas(rng: Rng, out: Array) -> float:
    for i in range(out.shape[0]):
        out[i] = rng.standard_gamma(0.7) + max(rng.standard_normal(), 0.0) + rng.standard_exponential()
    return float(np.zeros(3)[1] + rng.random() + in_order(out)[1])


def test_users_functions_use_kernels_and_what_kernels_use_of_numbas_own() -> None:
    whole: Any = fill
    given = typeof(np.empty(1)), typeof(0.7), typeof(rng_handle(np.random.default_rng(3)))
    whole._compiler.part(given)  # if on disk, too
    fast, slow = np.empty(20), np.empty(20)
    ends = numba.njit(gammas)(np.random.default_rng(6), fast), gammas(np.random.default_rng(6), slow)
    assert ends[0] == pytest.approx(ends[1], rel=1e-14)
    np.testing.assert_allclose(fast, slow, rtol=1e-14)


@kernel
def count(start: int, stop: int, step: int, out: Array) -> int:
    last = -7
    for i in range(stop):
        out[0] += i
        last = i
    for i in range(start, stop):
        if i == 5:
            continue
        if i > 8:
            break
        out[1] += i
        last = i
    for i in range(start, stop, step):
        for j in range(i, stop - i):
            out[2] += i * j
        out[3] += 1.0
    for _ in range(start, stop, -1):
        out[4] += 1.0
    return last


@pytest.mark.parametrize("span", [(0, 0, 1), (0, 10, 3), (7, 3, -2), (-4, 12, 5), (3, -3, -1), (9, 9, 1), (-9, -2, 2)])
def test_loops_count_as_pythons_do(span: tuple[int, int, int]) -> None:
    fast, slow = np.zeros(5), np.zeros(5)
    assert count(*span, fast) == plain(count)(*span, slow)
    np.testing.assert_array_equal(fast, slow)


@kernel
def elements(numbers: Any, places: Any, out: Any) -> Any:
    for i in range(places.shape[0]):
        out[i] = numbers[places[i], 1] + numbers[0, places[i]] - numbers[-1, 0]
        out[i] += numbers[places[i]][1]
    out[-1] = out[0] * 2
    return out[-1]


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.float32])
def test_elements_of_arrays_of_every_make(kind: type) -> None:
    numbers: Any = np.arange(12, dtype=kind).reshape(3, 4)
    places = np.array([0, 2, 1, 2], dtype=np.int64)
    for given in (numbers, np.asfortranarray(numbers), numbers[:, ::-1]):
        for at in (places, places.astype(np.uint64), places.astype(np.int32)):
            fast, slow = np.zeros(4), np.zeros(4)
            assert elements(given, at, fast) == plain(elements)(given, at, slow)
            np.testing.assert_array_equal(fast, slow)


@kernel
def made(n: int) -> Pile:
    rows = np.zeros((n, n))
    for i in range(n):
        rows[i, i] = 1.0
    return Pile(rows, rows[0], 1.0, False)


@kernel
def trace(n: int) -> float:
    found = 0.0
    for k in range(1, n):
        pile = made(k)
        part = pile.rows[k - 1]
        found += worth_of(pile, k - 1, k - 1) + part[k - 1]
    return found


def test_what_kernels_allocate_is_freed_once() -> None:
    assert trace(9) == plain(trace)(9)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for _ in range(20):
        trace(9)
        made(3)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 100
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


FROM_THE_END = """
import numpy as np
from tests.kernels.test_compiler import element_of_part
numbers = np.arange(4.0)
print(element_of_part(numbers, 2))
for place in (-1, 4):
    try:
        element_of_part(numbers, place)
    except IndexError as error:
        print(error)
"""


@kernel
def element(numbers: Array, i: int) -> float:
    return float(numbers[i])


@kernel
def element_of_part(numbers: Array, i: int) -> float:
    return element(numbers, i) + 1.0


def test_checked_kernels_refuse_places_beyond_either_end(tmp_path: Any) -> None:
    tmp_path.chmod(0o700)
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "POLYARM_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", FROM_THE_END], env=environment, capture_output=True, text=True)
    assert run.stdout.splitlines() == ["3.0", "a place below 0", "index is out of bounds"], run.stderr


@kernel
def perhaps(x: float) -> float | None:
    if x > 0.0:
        return x
    return None


@kernel
def asks(x: float) -> float:
    return perhaps(x) or 0.0


def test_a_part_returns_always_or_never() -> None:
    with pytest.raises(TypeError, match="perhaps must always return a value"):
        asks(1.0)


class Heights(NamedTuple):
    """A record of one array."""

    numbers: Array


@kernel
def total(heights: Heights, others: tuple[Array, Array]) -> float:
    made = np.zeros(3)
    made[0] = others[0][0] + others[1][0]
    return float(made[0] + heights.numbers[0])


@kernel
def later(numbers: Array, n: int) -> Array:
    return numbers[n:]


def test_arrays_are_borrowed_for_a_call_and_kept_only_where_they_are_returned() -> None:
    """Also where a call fails half way."""
    numbers, more = np.arange(4.0), np.arange(5.0)
    heights, no_array = Heights(numbers), cast(Array, "no array")
    counts = [sys.getrefcount(each) for each in (numbers, more)]
    for _ in range(100):
        assert total(heights, (more, numbers)) == 0.0
        with pytest.raises(TypeError):
            trusted(total)(heights, (more, no_array))
    assert trusted(total) is not total
    assert [sys.getrefcount(each) for each in (numbers, more)] == counts
    part = later(np.arange(1000.0), 990)  # nobody else holds it
    gc.collect()
    np.zeros(1000)
    assert part.tolist() == list(range(990, 1000))
    assert sys.getrefcount(part.base) <= 3
