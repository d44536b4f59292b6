"""Slow, independent answers: straight from the definitions, with SciPy and no kernel."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array, IntArray


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Every partition of n things, as labels in order of first appearance."""

    def extend(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(labels) == n:
            yield labels
            return
        for k in range(max(labels, default=-1) + 2):
            yield from extend((*labels, k))

    yield from extend(())


def canonical(labels: Sequence[int] | IntArray) -> tuple[int, ...]:
    """The same partition with labels in order of first appearance."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(k), len(seen)) for k in labels)


def log_eppf(counts: Sequence[int], concentration: float, discount: float) -> float:
    """Log probability of a partition, by seating its members one after the other."""
    total, n = 0.0, 0
    for k, count in enumerate(counts):
        mass = concentration + k * discount
        if k > 0 and mass < 1e-12:
            return -np.inf
        total += np.log(mass) - np.log(n + concentration) if k > 0 else 0.0
        n += 1
        for j in range(1, count):
            total += np.log(j - discount) - np.log(n + concentration)
            n += 1
    return float(total)


def log_evidence(base: NormalInverseGamma, X: Array, y: Array) -> float:
    """Log marginal density of rewards in one component: a multivariate Student-t."""
    spread = np.eye(len(y)) + X @ base.covariance_matrix @ X.T
    shape = base.scale / base.shape * spread
    return float(stats.multivariate_t.logpdf(y, X @ base.mean_vector, shape, df=2 * base.shape))


def log_joint(model: LinearMixture, X: Array, y: Array, labels: Sequence[int]) -> float:
    """Log p(y, z) of a labelled data set."""
    z = np.asarray(labels)
    groups = [z == k for k in np.unique(z)]
    counts = [int(group.sum()) for group in groups]
    return log_eppf(counts, model.concentration, model.discount) + sum(
        log_evidence(model.base, X[group], y[group]) for group in groups
    )


def posterior(model: LinearMixture, X: Array, y: Array) -> dict[tuple[int, ...], float]:
    """Posterior probability of every partition."""
    every = list(partitions(len(y)))
    logp = np.array([log_joint(model, X, y, labels) for labels in every])
    return dict(zip(every, np.exp(logp - logsumexp(logp)), strict=True))


def fresh_component(base: NormalInverseGamma, X: Array, y: Array) -> dict[str, Array | float]:
    """Parameters of a component from its rewards, by the paper's equations in extended precision where it helps."""
    information = np.linalg.inv(base.covariance_matrix)
    stacked = np.vstack([np.linalg.cholesky(information).T, X])
    target = np.concatenate([np.linalg.cholesky(information).T @ base.mean_vector, y])
    q, r = np.linalg.qr(stacked)
    mean = np.linalg.solve(r, q.T @ target)
    residual = target - stacked @ mean
    inverse = np.linalg.inv(r)
    return {
        "count": float(len(y)),
        "scale": float(base.scale + 0.5 * residual @ residual),
        "mean": mean,
        "covariance": inverse @ inverse.T,
    }


def log_gamma_step(a: Array) -> Array:
    """lgamma(a + 1/2) - lgamma(a)."""
    return np.asarray(gammaln(a + 0.5) - gammaln(a))
