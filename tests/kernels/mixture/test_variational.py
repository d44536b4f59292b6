"""Soft seating against weighted regressions computed afresh for every reward."""

import numpy as np
import pytest
from scipy import stats

from polyarm.inference.gibbs import prior_of
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import variational
from polyarm.kernels.mixture.component import COEF, COUNT, LOG_DET, MEAN, SCALE
from polyarm.kernels.mixture.records import Prior
from polyarm.kernels.mixture.variational import EMPTY, NEGLIGIBLE, REWARDS, TURN, Seating
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array
from tests import reference

BASE = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.7)
N, C = 14, 8


def log_mass(mass: float) -> float:
    return float(np.log(mass)) if mass > 1e-12 else -np.inf


class Slow:
    """Responsibilities r of C components for the rewards X, y."""

    def __init__(self, concentration: float, discount: float, most: int, threshold: float) -> None:
        self.c, self.d, self.most, self.threshold = concentration, discount, most, threshold
        rng = np.random.default_rng(1)
        self.X = rng.standard_normal((N, 2))
        self.X[5] *= 1000.0
        self.y = self.X @ [1.0, -0.5] + np.where(rng.random(N) < 0.5, 0.0, 4.0) + 0.5 * rng.standard_normal(N)
        self.r = np.zeros((N, C))
        self.n = self.turn = 0

    def part(self, k: int) -> tuple[float, Array, Array, float]:
        """Count, mean, covariance and scale of component k."""
        w, prior = self.r[:, k], np.linalg.inv(BASE.covariance_matrix)
        V = np.linalg.inv(prior + (self.X.T * w) @ self.X)
        U = V @ (prior @ BASE.mean_vector + (self.X.T * w) @ self.y)
        off = U - BASE.mean_vector
        scale = BASE.scale + 0.5 * (w @ (self.y - self.X @ U) ** 2 + off @ prior @ off)
        return float(w.sum()), U, np.asarray(V), float(scale)

    def log_density(self, i: int, part: tuple[float, Array, Array, float]) -> float:
        n, U, V, b = part
        a, x = BASE.shape + n / 2, self.X[i]
        return float(stats.t.logpdf(self.y[i], 2 * a, x @ U, np.sqrt(b / a * (1 + x @ V @ x))))

    def share(self, i: int, own: Array) -> None:
        """Write the responsibilities for reward i, which had `own` before."""
        self.r[i] = 0.0
        parts = [self.part(k) for k in range(C)]
        used = [k for k in range(C) if parts[k][0] >= EMPTY]
        free = [k for k in range(self.most) if k not in used]
        logs, arriving = np.full(C, -np.inf), not own.any()
        for k in used:
            logs[k] = log_mass(parts[k][0] - self.d) + self.log_density(i, parts[k])
        new = max(free, key=lambda k: (own[k], -k)) if free else -1
        if new >= 0 and (arriving or own[new] > 0.0):
            empty = (0.0, BASE.mean_vector, BASE.covariance_matrix, BASE.scale)
            logs[new] = log_mass(self.c + len(used) * self.d) + self.log_density(i, empty)
        p = np.exp(logs - logs.max())
        if arriving and new >= 0 and used and p[new] <= self.threshold * p.sum():
            p[new] = 0.0
        p[p < NEGLIGIBLE * p.sum()] = 0.0
        self.r[i] = p / p.sum()

    def learn(self, n_refreshes: int) -> None:
        self.share(self.n, np.zeros(C))
        self.n += 1
        for _ in range(min(n_refreshes, self.n)):
            j = self.turn % self.n
            self.share(j, self.r[j].copy())
            self.turn = j + 1


@pytest.mark.parametrize(
    ("concentration", "discount", "most", "threshold"),
    [(0.8, 0.3, 8, 0.0), (0.8, 0.0, 8, 0.4), (2.0, 0.3, 3, 0.2), (1.5, -0.5, 8, 0.0)],
)
@pytest.mark.parametrize("n_refreshes", [0, 3])
def test_responsibilities_are_those_of_weighted_regressions(
    concentration: float, discount: float, most: int, threshold: float, n_refreshes: int
) -> None:
    prior = prior_of([LinearMixture(BASE, concentration, discount)])
    given = Prior(prior.columns[0], prior.sqrt_information[0, 0], prior.processes[0])
    seating = Seating(
        np.repeat(prior.columns[0][:, None], C, axis=1), np.full((N, C), 9.0), np.zeros(2, np.int64), np.zeros((N, 4))
    )
    slow = Slow(concentration, discount, most, threshold)
    for i in range(N):
        slow.learn(n_refreshes)
        plain(variational.learn)(seating, given, slow.X[i], slow.y[i], most, threshold, n_refreshes)
        assert seating.size[REWARDS] == slow.n
        assert seating.size[TURN] == slow.turn
        np.testing.assert_allclose(seating.r[: i + 1], slow.r[: i + 1], rtol=1e-6, atol=1e-9)
        for k in range(C):
            n, U, V, b = slow.part(k)
            T = seating.components[:, k]
            if n < EMPTY:
                np.testing.assert_array_equal(T, prior.columns[0])
                continue
            assert T[COUNT] == pytest.approx(n)
            assert T[SCALE] == pytest.approx(b, rel=1e-6)
            assert T[LOG_DET] == pytest.approx(np.linalg.slogdet(V)[1])
            np.testing.assert_allclose(T[MEAN : MEAN + 2], U, rtol=1e-5, atol=1e-6)
            if n > discount + 1e-9:
                step = float(reference.log_gamma_step(np.array(BASE.shape + n / 2)))
                assert T[COEF] == pytest.approx(np.log(n - discount) + step - 0.5 * np.log(2 * np.pi * b))
    assert (slow.r > 0).any(axis=0).sum() > 1


def test_a_soft_component_is_rebuilt_from_its_responsibilities() -> None:
    slow, rng = Slow(0.8, 0.3, 8, 0.0), np.random.default_rng(2)
    slow.r[:10] = rng.dirichlet(np.ones(C), 10)
    slow.r[4, 2] = 0.0
    prior = prior_of([LinearMixture(BASE)])
    given = Prior(prior.columns[0], prior.sqrt_information[0, 0], prior.processes[0])
    T, data = np.full((len(prior.columns[0]), C), np.nan), np.column_stack([slow.X, slow.y, np.zeros(N)])
    more = np.vstack([slow.r[:10], np.full((N - 10, C), 0.5)])  # rows beyond the tenth are not there
    plain(variational.rebuild_soft)(T, 2, given, data, more, 10)
    n, U, V, b = slow.part(2)
    assert T[COUNT, 2] == pytest.approx(n)
    assert T[SCALE, 2] == pytest.approx(b)
    assert T[LOG_DET, 2] == pytest.approx(np.linalg.slogdet(V)[1])
    np.testing.assert_allclose(T[MEAN : MEAN + 2, 2], U)
    np.testing.assert_array_equal(given.R0, prior.sqrt_information[0, 0])
