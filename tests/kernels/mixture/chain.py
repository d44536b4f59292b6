"""One arm as kernels keep it, and by its definition: components are lists, weights ratios of joint densities."""

from collections.abc import Sequence

import numpy as np
import pytest

from polyarm.inference.gibbs import prior_of
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import gibbs
from polyarm.kernels.mixture.component import COEF, COUNT, LOG_DET, LOO, MEAN, SCALE
from polyarm.kernels.mixture.records import K_USED, NEXT, ROWS, Books
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array
from tests import reference
from tests.kernels.script import Script
from tests.statistics.exact import log_evidence

BASE = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.7)
OTHER = NormalInverseGamma(2, [-2.0, 3.0], [[1.0, 0.2], [0.2, 0.5]], 2.5, 0.3)
CAPACITY, ARM = 24, 1
N = 22


class SlowSeating:
    """Rewards X, y and the components they sit in, in the order of their slots."""

    def __init__(self, model: LinearMixture, X: Array, y: Array) -> None:
        self.model, self.X, self.y = model, X, y
        self.parts: list[list[int]] = []
        self._evidence: dict[frozenset[int], float] = {frozenset(): 0.0}

    def evidence(self, rewards: Sequence[int]) -> float:
        """Log marginal density of some rewards in one component."""
        key = frozenset(rewards)
        if key not in self._evidence:
            rows = sorted(key)
            self._evidence[key] = log_evidence(self.X[rows], self.y[rows], self.model.base)
        return self._evidence[key]

    def slot_of(self, i: int) -> int:
        """Where reward i sits, or -1."""
        return next((k for k, part in enumerate(self.parts) if i in part), -1)

    def log_weight(self, part: Sequence[int], i: int, n_others: int) -> float:
        """Log weight of reward i for a component, itself taken out; an empty one is new beside n_others."""
        others = [j for j in part if j != i]
        mass = len(others) - self.model.discount
        if not others:
            mass = self.model.concentration + n_others * self.model.discount
        if mass < 1e-9:
            return -np.inf
        return float(np.log(mass)) + self.evidence([*others, i]) - self.evidence(others)

    def log_weights(self, i: int) -> list[float]:
        """Log weights of reward i for every component and, unless it sits alone, for a new one."""
        K, k0 = len(self.parts), self.slot_of(i)
        if k0 >= 0 and self.parts[k0] == [i]:
            return [self.log_weight(part, i, K - 1) for part in self.parts]
        return [self.log_weight(part, i, K) for part in [*self.parts, []]]

    def seat(self, i: int, u: float) -> None:
        """Draw the seat of reward i by the uniform number u."""
        k0, logw = self.slot_of(i), np.array(self.log_weights(i))
        p = np.exp(logw - logw.max())
        k = int(np.searchsorted(np.cumsum(p), u * p.sum(), side="right"))
        if k == k0:
            return
        if k == len(self.parts):
            self.parts.append([])
        self.parts[k].append(i)
        if k0 >= 0:
            self.parts[k0].remove(i)
            if not self.parts[k0]:  # the last component takes its slot
                self.parts[k0] = self.parts[-1]
                self.parts.pop()


class Chain:
    """The second of two arms, as kernels keep it and as it is by definition."""

    def __init__(self, concentration: float, discount: float, memory: int) -> None:
        rng = np.random.default_rng(3)
        self.model = LinearMixture(BASE, concentration, discount)
        self.X = rng.standard_normal((N, 2))
        self.X[::5] *= 3000.0  # rewards that determine their component alone
        self.y = self.X @ [1.0, -0.5] + np.where(rng.random(N) < 0.5, 0.0, 3.0) + rng.standard_normal(N)
        self.slow = SlowSeating(self.model, self.X, self.y)
        prior = prior_of([LinearMixture(OTHER, 9.0, 0.6), self.model])
        label = np.roll(np.arange(CAPACITY), 3)
        self.books = Books(
            np.zeros((2, prior.columns.shape[1], CAPACITY)),
            np.array([[label, np.argsort(label)]] * 2),
            np.zeros((2, 4), np.int64),
            prior.columns,
            np.repeat(prior.sqrt_information, CAPACITY if memory < N else 1, axis=1),
            prior.processes,
            np.zeros((memory, 4)),
            np.full(memory, -1),
        )
        self.number = np.full(memory, -1)  # of the reward in every row
        self.uniforms = np.random.default_rng(4)

    def take(self, n: int) -> list[float]:
        """The next uniform numbers."""
        return [float(u) for u in self.uniforms.random(n)]

    def learn(self, i: int, n_moves: int) -> None:
        """Take reward i in, both ways."""
        size = self.books.sizes[ARM]
        if size[NEXT] == len(self.number):
            size[NEXT] = 0
        row, n = int(size[NEXT]), min(size[ROWS] + 1, len(self.number))
        made = min(n_moves, 10 * n)
        own, rows, moves = self.take(1), self.take(made), self.take(made)
        script = Script(uniforms=[*own, *rows, *moves])
        assert plain(gibbs.learn)(self.books, ARM, self.X[i], self.y[i], n_moves, script) == 0
        self.number[row] = i
        self.slow.seat(i, own[0])
        for place, u in zip(rows, moves, strict=True):
            self.slow.seat(int(self.number[int(place * n)]), u)

    def check(self) -> None:
        """Raise unless the books hold the seating, and every component is that of its rewards."""
        T, (label, slot), size = self.books.tables[ARM], self.books.slots[ARM], self.books.sizes[ARM]
        K, n = len(self.slow.parts), size[ROWS]
        assert size[K_USED] == K
        assert sorted(label) == list(range(CAPACITY))
        np.testing.assert_array_equal(slot[label], np.arange(CAPACITY))
        seats = [self.slow.slot_of(int(i)) for i in self.number[:n]]
        np.testing.assert_array_equal(slot[self.books.z[:n]], seats)
        for k, part in enumerate(self.slow.parts):
            fresh = reference.fresh_component(BASE, self.X[part], self.y[part])
            d, m = self.model.discount, len(part)
            assert T[COUNT, k] == m
            np.testing.assert_allclose(T[SCALE, k], fresh["scale"], rtol=1e-7)
            np.testing.assert_allclose(T[MEAN : MEAN + 2, k], fresh["mean"], rtol=1e-6, atol=1e-6)
            assert T[LOG_DET, k] == pytest.approx(np.linalg.slogdet(np.asarray(fresh["covariance"]))[1], abs=1e-7)
            steps = reference.log_gamma_step(BASE.shape + np.array([m, m - 1]) / 2)
            log_b = np.log(T[SCALE, k])
            assert T[COEF, k] == pytest.approx(np.log(m - d) + steps[0] - 0.5 * np.log(2 * np.pi) - 0.5 * log_b)
            own = -np.inf
            if m > 1:
                own = np.log(m - 1 - d) + steps[1] - 0.5 * np.log(2 * np.pi) - (BASE.shape + m / 2) * log_b
            assert T[LOO, k] == pytest.approx(own)
        assert not self.books.tables[0].any()
        np.testing.assert_array_equal(self.books.sizes[0], 0)
