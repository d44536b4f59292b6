"""The posterior over every partition of a few rewards, from textbook formulas that share no code with the kernels."""

import functools

import numpy as np
from scipy.special import gammaln, logsumexp

from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array
from tests.reference import log_eppf, partitions

Partition = tuple[int, ...]  # component of each reward, numbered in order of appearance


def log_evidence(x: Array, y: Array, base: NormalInverseGamma) -> float:
    """Log marginal density of linear-Gaussian rewards: a multivariate Student t."""
    n = len(y)
    shape, scale = base.shape, base.scale
    spread = np.eye(n) + x @ base.covariance_matrix @ x.T
    gap = y - x @ base.mean_vector
    rest = scale + 0.5 * gap @ np.linalg.solve(spread, gap)
    return float(
        gammaln(shape + n / 2)
        - gammaln(shape)
        + shape * np.log(scale)
        - (shape + n / 2) * np.log(rest)
        - 0.5 * np.linalg.slogdet(spread)[1]
        - 0.5 * n * np.log(2 * np.pi)
    )


def blocks_of(z: Partition) -> list[tuple[int, ...]]:
    """The rewards of every component."""
    return [tuple(i for i, label in enumerate(z) if label == k) for k in range(max(z) + 1)]


def log_seating(z: Partition, model: LinearMixture) -> float:
    """Log prior probability of the partition."""
    return log_eppf([len(block) for block in blocks_of(z)], model.concentration, model.discount)


def log_joint(z: Partition, x: Array, y: Array, model: LinearMixture) -> float:
    """Log joint density of rewards and partition."""
    parts = [list(block) for block in blocks_of(z)]
    return log_seating(z, model) + sum(log_evidence(x[own], y[own], model.base) for own in parts)


def log_joints(x: Array, y: Array, model: LinearMixture) -> dict[Partition, float]:
    """Log joint density for every partition; partitions share their components' evidence."""

    @functools.cache
    def evidence(block: tuple[int, ...]) -> float:
        return log_evidence(x[list(block)], y[list(block)], model.base)

    return {z: log_seating(z, model) + sum(map(evidence, blocks_of(z))) for z in partitions(len(y))}


def posterior(x: Array, y: Array, model: LinearMixture) -> dict[Partition, float]:
    """Posterior probability of every partition."""
    joints = log_joints(x, y, model)
    total = logsumexp(list(joints.values()))
    return {z: float(np.exp(value - total)) for z, value in joints.items()}


def excess_tv(exact: dict[Partition, float], seen: dict[Partition, int], autocorrelation: float = 1.0) -> float:
    """Total variation between frequencies and truth, over what independent draws would give on average."""
    n = sum(seen.values())
    distance = 0.5 * sum(abs(p - seen.get(z, 0) / n) for z, p in exact.items())
    expected = 0.5 * sum(np.sqrt(2 * p * (1 - p) / (np.pi * n)) for p in exact.values())
    return float(distance / (expected * autocorrelation))


def small_problem(
    n: int, seed: int = 0, discount: float = 0.3, slope: float = 1.0
) -> tuple[Array, Array, LinearMixture]:
    """N rewards in two dimensions with a correlated prior: off-diagonal mistakes must show."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = slope * np.where(rng.random(n) < 0.5, 1.5, -1.0) * x[:, 1] + 0.5 * rng.normal(size=n)
    base = NormalInverseGamma(2, [0.2, -0.1], [[2.0, 0.9], [0.9, 1.0]], 2.0, 0.5)
    return x, y, LinearMixture(base, 1.0, discount)
