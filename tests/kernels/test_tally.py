"""Counts of single values against an exact count of everything."""

from collections import Counter

import numpy as np
import pytest

from polyarm.kernels import tally
from polyarm.kernels._jit import plain
from polyarm.kernels.tally import COUNT, FORGOTTEN, LOST, SLOTS, USED, VALUE, N
from polyarm.types import Array


def counted(rewards: Array) -> tuple[Array, Array]:
    slots, seen = np.zeros((SLOTS, 2)), np.zeros(3)
    for y in rewards:
        plain(tally.count_value)(slots, seen, float(y))
    return slots, seen


def as_dict(slots: Array, seen: Array) -> dict[float, float]:
    return {float(v): float(c) for v, c in slots[: int(seen[USED])]}


def misra_gries(rewards: Array) -> tuple[dict[float, float], int]:
    """The published algorithm on a dictionary."""
    counts: dict[float, float] = {}
    lost = 0
    for y in map(float, rewards):
        if y in counts or len(counts) < SLOTS:
            counts[y] = counts.get(y, 0.0) + 1.0
        else:
            lost += 1
            counts = {v: c - 1.0 for v, c in counts.items() if c - 1.0 > 0.0}
    return counts, lost


@pytest.mark.parametrize("n_values", [3, SLOTS, SLOTS + 1, 60, 5000])
def test_counts_are_those_of_the_published_algorithm_and_bound_the_truth(n_values: int) -> None:
    rng = np.random.default_rng(n_values)
    rewards = np.where(rng.random(700) < 0.4, rng.integers(4, size=700), rng.integers(n_values, size=700)) / 8
    slots, seen = counted(rewards)
    expected, lost = misra_gries(rewards)
    assert as_dict(slots, seen) == expected
    assert (seen[N], seen[LOST], seen[USED]) == (700, lost, len(expected))
    truth = Counter(map(float, rewards))
    assert lost <= 700 / (SLOTS + 1)
    assert all(expected.get(v, 0) <= c <= expected.get(v, 0) + lost for v, c in truth.items())


def test_free_slots_are_filled_in_the_order_of_what_is_kept() -> None:
    slots, seen = np.zeros((SLOTS, 2)), np.array([20.0, 0.0, 4.0])
    slots[:5] = [[1.5, 2.0], [2.5, 0.4], [3.5, 0.5], [4.5, 7.0], [9.0, 9.0]]  # the last is beyond those in use
    plain(tally.drop)(slots, seen, 0.5)
    assert as_dict(slots, seen) == {1.5: 2.0, 3.5: 0.5, 4.5: 7.0}
    np.testing.assert_array_equal(slots[:3, VALUE], [1.5, 3.5, 4.5])


def test_fading_scales_every_count_and_drops_what_is_nearly_gone() -> None:
    slots, seen = counted(np.array([1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0]))
    seen[LOST] = 6.0
    plain(tally.fade)(slots, seen, 0.25)
    assert as_dict(slots, seen) == {1.0: 1.0, 2.0: 0.5}
    assert FORGOTTEN == 0.5
    assert (seen[N], seen[LOST]) == (1.75, 1.5)
    plain(tally.count_value)(slots, seen, 2.0)
    assert slots[1, COUNT] == 1.5
