"""Split-merge proposals: every probability from joint densities and evidences, on six rewards in two columns."""

import math
from typing import Any

import numpy as np
import pytest

from polyarm.inference import GibbsEngine
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import gibbs, split_merge
from polyarm.kernels.mixture.component import COUNT, cache_constants, log_evidence, rebuild, reset
from polyarm.kernels.mixture.records import Arm, Books, arm_of
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

BASE = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.7)
C, DISCOUNT = 0.8, 0.3
SPLIT, MERGED = [0, 1, 0, 1, 0, 2], [0, 0, 0, 0, 0, 2]


class Seated:
    """One arm's rewards at the components of these labels."""

    def __init__(self, labels: list[int]) -> None:
        self.engine = GibbsEngine([LinearMixture(BASE, C, DISCOUNT)])
        rng, n = np.random.default_rng(3), len(labels)
        self.columns, self.roots, self.processes = self.engine._prior
        self.data = np.column_stack([rng.standard_normal((n, 2)), rng.standard_normal(n), np.zeros(n)])
        self.z = np.array(labels)
        capacity, used = 8, sorted(set(labels))
        self.labels = np.arange(capacity)[None, None].repeat(2, axis=1)
        order = np.array([*used, *(k for k in range(capacity) if k not in used)])
        self.labels[0, 0], self.labels[0, 1] = order, np.argsort(order)
        self.sizes = np.array([[len(used), n, n, n]])
        self.tables = np.zeros((1, len(self.columns[0]), capacity))
        for k, label in enumerate(used):
            plain(rebuild)(self.tables[0], k, self.columns[0], self.roots[0, 0], self.data, self.z, label, -1)
            plain(cache_constants)(self.tables[0], k, BASE.shape, DISCOUNT)

    @property
    def books(self) -> Books:
        return Books(self.tables, self.labels, self.sizes, self.columns, self.roots, self.processes, self.data, self.z)

    @property
    def arm(self) -> Arm:
        return plain(arm_of)(self.books, 0)

    def log_joint(self) -> float:
        return float(plain(gibbs.log_joint)(self.tables, self.sizes, self.columns, self.processes, 0))

    def log_evidence_of(self, rewards: list[int]) -> float:
        """Log density of some rewards in one component."""
        T, z = np.zeros((len(self.columns[0]), 4)), np.zeros(len(self.z), np.int64)
        z[rewards] = 1
        plain(reset)(T, 0, self.columns[0])
        plain(rebuild)(T, 0, self.columns[0], self.roots[0, 0], self.data, z, 1, -1)
        return float(plain(log_evidence)(T, 0, self.columns[0], BASE.shape))

    def log_q(self, i: int, j: int, order: list[int], first: list[bool]) -> float:
        """Log probability of an allocation: each reward to a side in proportion to (n - d) times its density there."""
        sides: tuple[list[int], list[int]] = ([i], [j])
        total = 0.0
        for t, goes in zip(order, first, strict=True):
            w = [
                math.log(len(side) - DISCOUNT) + self.log_evidence_of([*side, t]) - self.log_evidence_of(side)
                for side in sides
            ]
            total += w[0 if goes else 1] - float(np.logaddexp(w[0], w[1]))
            sides[0 if goes else 1].append(t)
        return total

    def propose(self, uniforms: list[float]) -> None:
        plain(split_merge.propose)(self.arm, Script(uniforms=uniforms))


PAIR = [1 / 6 + 1e-9, 1 / 5 + 1e-9]  # of the six rewards: 1, and of the others the second, which is 2


def test_the_others_are_shuffled_and_marked() -> None:
    z, whole, order = np.array([0, 1, 0, 1, 2, 0]), np.zeros(6, np.int64), np.full(6, -1)
    M = plain(split_merge.others_of)(z, 6, 0, 1, whole, order, Script(uniforms=[0.0, 0.6, 0.0]))
    assert M == 3
    np.testing.assert_array_equal(whole, [1, 1, 1, 1, 0, 1])
    assert order[:3].tolist() == [5, 3, 2]  # 2; then 3 behind it; then 5 takes the first place


def test_an_allocation_has_its_probability() -> None:
    state = Seated(MERGED)
    for splitting, uniforms in ((True, [1e-9, 1 - 1e-12]), (True, [1 - 1e-12, 1e-9]), (False, [])):
        H, side, order = np.zeros((len(state.columns[0]), 4)), np.full(6, -1), np.array([0, 3])
        for h in range(4):
            plain(reset)(H, h, state.columns[0])
        z = np.array([7, 5, 7, 5, 0, 0]) if not splitting else state.z
        sides = state.arm._replace(components=H, z=side)
        found = plain(split_merge.allocate)(sides, z, order, splitting, 1, 2, Script(uniforms=uniforms))
        first = [bool(side[t] == 0) for t in (0, 3)]
        if splitting:
            assert first == [u < 0.5 for u in uniforms]
        else:
            assert first == [False, True]
        assert found == pytest.approx(state.log_q(1, 2, [0, 3], first))
        assert H[COUNT, 0] == 1 + sum(first)
        assert H[COUNT, 1] == 3 - sum(first)


def accepted(labels: list[int], uniforms: list[float], last: float) -> tuple[bool, Seated]:
    state = Seated(labels)
    before = state.z.copy()
    state.propose([*uniforms, last])
    return bool((state.z != before).any()), state


def test_a_split_is_taken_with_metropolis_hastings_probability() -> None:
    """Joint density after over before, over the probability of the allocation."""
    uniforms = [*PAIR, 0.0, 0.0, 0.0, 1 - 1e-12, 1 - 1e-12, 1 - 1e-12]  # the others go to the side of 2
    taken, after = accepted(MERGED, uniforms, 1e-300)
    assert taken
    np.testing.assert_array_equal(after.z == after.z[1], [False, True, False, False, False, False])
    order = [4, 0, 3]  # 0, then 3 before it, then 4: each takes the first place
    log_a = after.log_joint() - Seated(MERGED).log_joint() - after.log_q(1, 2, order, [False] * 3)
    for shift, expected in ((-1e-6, True), (1e-6, False)):
        if log_a + shift < 0:
            assert accepted(MERGED, uniforms, math.exp(log_a + shift))[0] == expected
    fresh = Seated(after.z.tolist())
    assert after.log_joint() == pytest.approx(fresh.log_joint())


def test_a_merge_is_taken_with_the_inverse_probability() -> None:
    uniforms = [*PAIR, 0.0, 0.0, 0.0]  # 1 and 2 sit apart: nothing is drawn for the others
    taken, after = accepted(SPLIT, uniforms, 1e-300)
    assert taken
    assert len(set(after.z[:5].tolist())) == 1
    assert after.sizes[0, 0] == 2
    order = [4, 3, 0]
    first = [SPLIT[t] == SPLIT[1] for t in order]
    before = Seated(SPLIT)
    log_a = after.log_joint() - before.log_joint() + before.log_q(1, 2, order, first)
    for shift, expected in ((-1e-6, True), (1e-6, False)):
        if log_a + shift < 0:
            assert accepted(SPLIT, uniforms, math.exp(log_a + shift))[0] == expected
    assert after.log_joint() == pytest.approx(Seated(after.z.tolist()).log_joint())


@pytest.mark.parametrize("n_proposals", [0, 1, 5])
def test_so_many_proposals_are_made(n_proposals: int) -> None:
    state, made = Seated(SPLIT), []

    def propose(*given: Any) -> None:
        made.append(given)

    make = mutant(split_merge.split_merge, {"propose": propose})
    assert make(state.books, 0, n_proposals, Script()) == 0
    assert len(made) == n_proposals
    for n_rewards, expected in ((2, n_proposals), (1, 0)):  # one reward alone cannot be split
        made.clear()
        state.sizes[0, 1] = n_rewards
        assert make(state.books, 0, n_proposals, Script()) == 0
        assert len(made) == expected
    made.clear()
    full: Array = state.sizes
    full[0, 0] = 8
    assert make(state.books, 0, n_proposals, Script()) == n_proposals
    assert not made
