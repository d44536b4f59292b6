"""The slice move of learnt hyperparameters, step by step."""

import math

import numpy as np
import pytest
from scipy.special import expit, gammaln

from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import hyperparameters
from polyarm.kernels.mixture.component import COUNT, SCALE
from polyarm.kernels.mixture.hyperparameters import MAX_STEPS, OF_CONCENTRATION, OF_DISCOUNT, OF_SCALE, STEP
from polyarm.types import Array
from tests.kernels.script import Script

BELIEFS = np.array([1.5, 0.7, 2.0, 3.0, 1.2, 0.4])
PROCESSES = np.tile([1.5, 0.9, 0.8, 0.3], (2, 1))
SIZES = np.array([[2], [1]])


def tables() -> Array:
    T = np.zeros((2, 7, 3))
    T[0, COUNT, :2], T[1, COUNT, 0] = [3.0, 5.0], 4.0
    T[0, SCALE, :2], T[1, SCALE, 0] = [1.9, 2.4], 0.9
    return T


def target(u: float, which: int) -> float:
    return float(plain(hyperparameters.target_at)(u, which, BELIEFS, PROCESSES, tables(), SIZES))


def log_partition(counts: list[float], c: float, d: float) -> float:
    """Log probability of a partition in the Pitman-Yor process."""
    n, K = sum(counts), len(counts)
    tables = sum(math.log(c + k * d) for k in range(1, K))
    return float(tables + gammaln(c + 1) - gammaln(c + n) + sum(gammaln(m - d) - gammaln(1 - d) for m in counts))


@pytest.mark.parametrize("which", [OF_CONCENTRATION, OF_DISCOUNT, OF_SCALE])
def test_targets_are_posterior_densities_of_what_is_moved(which: int) -> None:
    def exact(u: float) -> float:
        if which == OF_SCALE:  # every component's b - b0 is that of its rewards
            b = math.exp(u)
            total = BELIEFS[4] * u - BELIEFS[5] * b
            for n, extra in ((3.0, 1.0), (5.0, 1.5), (4.0, 0.0)):
                total += 1.5 * u - (1.5 + n / 2) * math.log(b + extra)
            return float(total)
        c, d = (math.exp(u), 0.3) if which == OF_CONCENTRATION else (0.8, float(expit(u)))
        prior = BELIEFS[0] * math.log(c) - BELIEFS[1] * c
        if which == OF_DISCOUNT:  # Beta(2, 3) of d, and the density of its logit
            prior = BELIEFS[2] * math.log(d) + BELIEFS[3] * math.log(1 - d)
        return float(prior + log_partition([3.0, 5.0], c, d) + log_partition([4.0], c, d))

    points = [-1.2, -0.3, 0.4]
    found = [target(u, which) - target(0.0, which) for u in points]
    np.testing.assert_allclose(found, [exact(u) - exact(0.0) for u in points], rtol=1e-9)


@pytest.mark.parametrize(("share", "height"), [(0.0, 1e-12), (0.999, 1e-12), (0.5, 0.3), (0.5, 1e-12)])
def test_the_slice_steps_out_by_its_share_and_shrinks_towards_where_it_was(share: float, height: float) -> None:
    """Neal 2003: an interval of STEP around u, stepped out in both directions MAX_STEPS - 1 times in all."""
    u, offset, tries = math.log(0.8), 0.25, [0.999999, 1e-6, 0.5]
    script = Script(uniforms=[height, offset, share, *tries, *[0.5] * 50])
    found = plain(hyperparameters.draw_slice)(u, OF_CONCENTRATION, BELIEFS, PROCESSES, tables(), SIZES, script)
    level = target(u, OF_CONCENTRATION) + math.log(height)
    low, high = u - STEP * offset, u + STEP * (1 - offset)
    up = int(share * MAX_STEPS)
    for _ in range(MAX_STEPS - 1 - up):
        if target(low, OF_CONCENTRATION) <= level:
            break
        low -= STEP
    for _ in range(up):
        if target(high, OF_CONCENTRATION) <= level:
            break
        high += STEP
    for r in [*tries, *[0.5] * 50]:
        new = low + (high - low) * r
        if target(new, OF_CONCENTRATION) > level:
            break
        low, high = (new, high) if new < u else (low, new)
    assert found == pytest.approx(new)
