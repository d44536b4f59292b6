"""Forgetting: a component that fades is a regression in which every reward weighs less, around the same prior."""

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.linalg import sqrt_information
from polyarm.kernels.mixture.component import COEF, COUNT, LOG_DET, MEAN, SCALE
from polyarm.kernels.mixture.forgetting import FORGOTTEN, forget
from polyarm.kernels.mixture.records import K_USED, NEXT, ROWS
from polyarm.types import Array
from tests import reference
from tests.kernels.mixture.chain import ARM, BASE, CAPACITY, Chain, N


def weighted(X: Array, y: Array, w: float) -> tuple[Array, Array, float]:
    """Mean, covariance and scale of a component whose rewards weigh w each."""
    prior = np.linalg.inv(BASE.covariance_matrix)
    V = np.linalg.inv(prior + w * X.T @ X)
    U = V @ (prior @ BASE.mean_vector + w * X.T @ y)
    off = U - BASE.mean_vector
    return U, np.asarray(V), float(BASE.scale + 0.5 * (w * np.sum((y - X @ U) ** 2) + off @ prior @ off))


@pytest.mark.parametrize(("memory", "discount", "shares"), [(N, 0.3, (0.4,)), (9, 0.6, (0.9, 0.6)), (9, 0.0, (0.45,))])
def test_components_fade_to_weighted_ones_and_the_forgotten_close(
    memory: int, discount: float, shares: tuple[float, ...]
) -> None:
    chain = Chain(0.8, discount, memory)
    for i in range(N):
        chain.learn(i, 6)
    if memory == N:  # rows that are absorbed only now need a root for every label
        chain.books = chain.books._replace(R0=np.repeat(chain.books.R0, CAPACITY, axis=1))
    parts, K = [list(part) for part in chain.slow.parts], len(chain.slow.parts)
    label, used = chain.books.slots[ARM, 0, :K].copy(), chain.books.R0[ARM].copy()
    start, w = BASE.sqrt_information, 1.0
    for share in shares:
        plain(forget)(chain.books, ARM, start, share)
        w *= share
    size, T, (labels, slot) = chain.books.sizes[ARM], chain.books.tables[ARM], chain.books.slots[ARM]
    assert size[ROWS] == size[NEXT] == 0
    np.testing.assert_array_equal(slot[labels], np.arange(CAPACITY))
    kept = [k for k in range(K) if w * len(parts[k]) > max(FORGOTTEN, discount)]
    assert 0 < len(kept) < K
    assert size[K_USED] == len(kept)
    for k in range(K):
        R = chain.books.R0[ARM, label[k]]
        if k not in kept:
            np.testing.assert_array_equal(R, start)
            continue
        at, part = slot[label[k]], parts[k]
        U, V, b = weighted(chain.X[part], chain.y[part], w)
        n = w * len(part)
        assert at < len(kept)
        assert T[COUNT, at] == pytest.approx(n)
        assert plain(sqrt_information.n_absorbed)(R) == pytest.approx(n)
        np.testing.assert_allclose(T[MEAN : MEAN + 2, at], U, rtol=1e-8)
        assert T[SCALE, at] == pytest.approx(b, rel=1e-8)
        assert T[LOG_DET, at] == pytest.approx(np.linalg.slogdet(V)[1])
        coefficient = np.log(n - discount) + reference.log_gamma_step(np.array(BASE.shape + n / 2))
        assert T[COEF, at] == pytest.approx(float(coefficient) - 0.5 * np.log(2 * np.pi * b))
    others = [k for k in range(CAPACITY) if k not in label]
    np.testing.assert_array_equal(chain.books.R0[ARM, others], used[others])


def test_information_fades_towards_the_prior() -> None:
    rng = np.random.default_rng(0)
    R, start = np.triu(rng.standard_normal((4, 4))), np.triu(rng.standard_normal((4, 4)))
    R[3, 0], start[3, 0] = 7.0, 0.0
    before, prior = np.triu(R).T @ np.triu(R), start.T @ start
    plain(sqrt_information.fade)(R, start, 0.3)
    np.testing.assert_allclose(np.triu(R).T @ np.triu(R), 0.3 * before + 0.7 * prior, rtol=1e-12)
    assert R[3, 0] == pytest.approx(2.1)
    row = rng.standard_normal(4)
    before = np.triu(R).T @ np.triu(R)
    plain(sqrt_information.absorb)(R, row.copy())
    np.testing.assert_allclose(np.triu(R).T @ np.triu(R), before + np.outer(row, row), rtol=1e-12)
    assert plain(sqrt_information.n_absorbed)(R) == pytest.approx(3.1)
