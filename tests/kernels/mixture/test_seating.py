"""Seating laws against enumeration and definitions."""

import numpy as np
import pytest
from scipy.stats import chisquare

from polyarm.kernels._jit import RngHandle, kernel, plain, rng_from, rng_handle
from polyarm.kernels.lanes import whole
from polyarm.kernels.mixture import seating
from polyarm.types import Array, IntArray
from tests import reference
from tests.kernels.script import Script

LAWS = [
    (0.01, 0.0),
    (1.0, 0.0),
    (50.0, 0.0),
    (0.01, 0.3),
    (1.0, 0.3),
    (50.0, 0.9),
    (-0.2, 0.3),
    (1.5, -0.5),
    (4.0, -1.0),
]


def counts_of(labels: tuple[int, ...]) -> Array:
    return np.bincount(np.asarray(labels)).astype(float)


@pytest.mark.parametrize(("concentration", "discount"), LAWS)
def test_the_partition_law_sums_to_one(concentration: float, discount: float) -> None:
    total = 0.0
    for labels in reference.partitions(7):
        counts = counts_of(labels)
        total += np.exp(seating.log_partition(counts, len(counts), concentration, discount))
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("concentration", "discount"), LAWS)
def test_the_partition_law_equals_sequential_seating(concentration: float, discount: float) -> None:
    for labels in reference.partitions(6):
        counts = counts_of(labels)
        expected = reference.log_eppf([int(n) for n in counts], concentration, discount)
        ours = seating.log_partition(counts, len(counts), concentration, discount)
        assert ours == pytest.approx(expected, abs=1e-11) or (ours == expected == -np.inf)


@kernel
def tally(logw: Array, size: int, n: int, handle: RngHandle) -> IntArray:
    rng = rng_from(handle)
    counts = np.zeros(size, np.int64)
    for _ in range(n):
        counts[seating.draw_index(logw.copy(), size, rng)] += 1
    return counts


def test_an_index_is_drawn_in_proportion_to_its_weight() -> None:
    logw = np.array([-1000.0, -999.0, -997.5, -np.inf, -1001.0])
    room = np.full(whole(len(logw)), np.nan)  # what lies beyond is not there
    room[: len(logw)] = logw
    counts = tally(room, len(logw), 200_000, rng_handle(np.random.default_rng(0)))
    p = np.exp(logw - logw.max())
    keep = p > 0
    assert counts[~keep].sum() == 0
    assert chisquare(counts[keep], 200_000 * p[keep] / p.sum()).pvalue > 1e-4


def test_shuffle_is_uniform_over_permutations() -> None:
    rng = np.random.default_rng(1)
    seen: dict[tuple[int, ...], int] = {}
    order = np.empty(3, np.int64)
    for _ in range(12_000):
        seating.shuffle(order, 3, rng)
        key = tuple(int(i) for i in order)
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 6
    assert chisquare(list(seen.values())).pvalue > 1e-4


def test_labels_are_numbered_by_appearance() -> None:
    labels, out = np.array([7, 2, 7, 0, 2, 5]), np.full(6, -1, np.int32)
    plain(seating.number_by_appearance)(labels, out, np.full(8, 9))
    assert out.tolist() == [0, 1, 0, 2, 1, 3]


@pytest.mark.parametrize("u", [0.0, 0.1, 0.29, 0.31, 0.5, 0.69, 0.71, 0.999999])
def test_an_index_is_where_the_cumulated_weights_pass_a_uniform_number(u: float) -> None:
    weights = np.array([0.3, 1e-300, 0.4, 0.0, 0.3])
    with np.errstate(divide="ignore"):
        logw = np.append(np.log(weights) - 5.0, [99.0, np.nan, -np.inf])  # what lies beyond is not there
    found = plain(seating.draw_index)(logw, 5, Script(uniforms=[u]))
    assert found == np.searchsorted(np.cumsum([0.3, 0.0, 0.4, 0.0, 0.3]), u, side="right")


def test_a_shuffle_puts_every_number_behind_or_in_place_of_an_earlier_one() -> None:
    order = np.full(4, -1)
    plain(seating.shuffle)(order, 4, Script(uniforms=[0.5, 0.2, 0.99, 0.5]))
    assert order.tolist() == [1, 0, 3, 2]  # 0; 1 0; 1 0 2; 3 takes the third place and 2 goes last
