"""The particle engine is exact while every seating fits, and its resampling is the optimal one."""

import numpy as np
import pytest
from scipy.special import logsumexp

from polyarm.inference.particles import ParticleEngine, with_room
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import particles as kernels
from polyarm.models import LinearMixture
from polyarm.types import Array, IntArray
from tests.reference import partitions
from tests.statistics.exact import Partition, log_joint, log_joints, posterior, small_problem
from tests.statistics.test_calibration import (
    POINT,
    REJECTED,
    contexts,
    model_of,
    ranks_of_truth,
    sample_joint,
    uniformity_p_value,
)

BELL = {3: 5, 5: 52, 7: 877}


def seating_weights(engine: ParticleEngine, x: Array, y: Array, seed: int = 0) -> tuple[dict[int, float], float]:
    rng = np.random.default_rng(seed)
    state = engine.init()
    for xi, yi in zip(x, y, strict=True):
        state = engine.update(state, xi, 0, yi, rng)
    cloud = state.clouds[0]
    n = int(cloud.size[0])
    return dict(zip(cloud.codes[:n].tolist(), cloud.weights[:n], strict=True)), engine.log_evidence(state, 0)


def code_of(z: Partition, x: Array, y: Array) -> int:
    keys = [kernels.key_of(np.append(xi, yi).view(np.uint64)) for xi, yi in zip(x, y, strict=True)]
    blocks = [sum(k for k, label in zip(keys, z, strict=True) if label == b) % 2**64 for b in range(max(z) + 1)]
    return sum(int(kernels.mixed(np.uint64(b))) for b in blocks) % 2**64


@pytest.mark.parametrize("discount", [0.0, 0.3])
@pytest.mark.parametrize("n", [3, 5, 7])
def test_exact_when_every_seating_fits(n: int, discount: float) -> None:
    x, y, model = small_problem(n, discount=discount)
    weights, evidence = seating_weights(ParticleEngine([model], BELL[n]), x, y)
    exact = posterior(x, y, model)
    assert len(weights) == BELL[n]
    for z in partitions(n):
        assert weights[code_of(z, x, y)] == pytest.approx(exact[z], abs=1e-10)
    assert evidence == pytest.approx(logsumexp(list(log_joints(x, y, model).values())), abs=1e-10)


def test_a_slightly_wrong_prior_is_seen() -> None:
    x, y, model = small_problem(5)
    weights, evidence = seating_weights(ParticleEngine([model], 52), x, y)
    wrong = LinearMixture(model.base, model.concentration * 1.001, model.discount)
    exact = posterior(x, y, wrong)
    assert max(abs(weights[code_of(z, x, y)] - exact[z]) for z in exact) > 1e-6
    assert abs(evidence - logsumexp(list(log_joints(x, y, wrong).values()))) > 1e-6


def test_finite_mixture_is_exact() -> None:
    x, y, model = small_problem(5)
    finite = LinearMixture.finite(model.base, 2, 0.5)
    weights, _ = seating_weights(ParticleEngine([finite], 52), x, y)
    few = {z: log_joint(z, x, y, finite) for z in partitions(5) if max(z) < 2}
    assert len(weights) == len(few) == 16
    total = logsumexp(list(few.values()))
    for z, value in few.items():
        assert weights[code_of(z, x, y)] == pytest.approx(np.exp(value - total), abs=1e-10)


def test_equal_rewards_are_merged_without_error() -> None:
    _, _, model = small_problem(3)
    x, y = np.ones((7, 2)), np.full(7, 0.5)
    weights, evidence = seating_weights(ParticleEngine([model], 15), x, y)
    assert len(weights) == 15  # partitions of the number 7
    assert evidence == pytest.approx(logsumexp(list(log_joints(x, y, model).values())), abs=1e-10)


def resampled(w: Array, n: int, rng: np.random.Generator) -> Array:
    m = len(w)
    index, value = np.arange(m), w.copy()
    kept = kernels.resample(kernels.Children(index, np.zeros(m, np.int64), value, np.zeros(m, np.uint64)), m, n, rng)
    out = np.zeros(m)
    out[index[:kept]] = value[:kept]
    return out


def test_resampling_keeps_the_heavy_and_is_unbiased() -> None:
    rng = np.random.default_rng(3)
    w = np.array([0.3, 0.2, 0.15, 0.1, 0.08, 0.06, 0.05, 0.03, 0.02, 0.01])
    c = kernels.threshold(w, 10, 5)
    assert np.minimum(w / c, 1).sum() == pytest.approx(5)
    draws = np.array([resampled(w, 5, rng) for _ in range(20_000)])
    assert ((draws > 0).sum(axis=1) == 5).all()
    assert np.allclose(draws.sum(axis=1), 1)
    assert (draws[:, w >= c] == w[w >= c]).all()
    error = draws.std(axis=0) / np.sqrt(len(draws)) + 1e-12
    assert (np.abs(draws.mean(axis=0) - w) / error < 4.5).all()
    biased = draws / draws.max(axis=1, keepdims=True)  # planted: weights forgotten after resampling
    assert (np.abs(biased.mean(axis=0) - w) / error > 4.5).any()


def test_draws_follow_the_exact_mixture_of_seatings() -> None:
    x, y, model = small_problem(6)
    engine = ParticleEngine([model], 203)
    rng = np.random.default_rng(5)
    state = engine.init()
    for xi, yi in zip(x, y, strict=True):
        state = engine.update(state, xi, 0, yi, rng)
    at = np.array([1.0, 0.7])
    draws = engine.draw_means(state, at, 200_000, rng)[:, 0]
    centre = engine.expected_means(state, at)[0]
    assert abs(draws.mean() - centre) < 4 * draws.std() / np.sqrt(len(draws))


def test_compiled_equals_plain() -> None:
    x, y, model = small_problem(6)
    fast, slow = ParticleEngine([model], 20), ParticleEngine([model], 20)
    a, cloud = fast.init(), slow.init().clouds[0]
    ra, rb = np.random.default_rng(1), np.random.default_rng(1)
    for xi, yi in zip(x, y, strict=True):
        a = fast.update(a, xi, 0, yi, ra)
        data = np.append(xi, (yi, 0.0))[None]
        cloud = with_room(cloud)
        with np.errstate(over="ignore"):
            words = data[0, :-1].view(np.uint64)
            plain(kernels.learn)(kernels.Cloud(*cloud), slow._prior_of(0), data, words, rb)
    n = int(a.clouds[0].size[0])
    assert n == cloud.size[0]
    assert np.allclose(a.clouds[0].weights[:n], cloud.weights[:n], rtol=1e-10)
    assert (a.clouds[0].codes[:n] == cloud.codes[:n]).all()


def calibration_ranks(n: int, runs: int, forget_weights: bool, n_particles: int = 52) -> IntArray:
    """Ranks (runs, 2) of the true mean and number of components among 19 draws after n rewards."""
    rng, X, model = np.random.default_rng(6), contexts(n), model_of(1.0, 0.3)
    engine = ParticleEngine([model], n_particles)
    ranks = np.empty((runs, 2), np.int64)
    for run in range(runs):
        y, labels, mean = sample_joint(model, X, rng)
        state = engine.init()
        for xi, yi in zip(X, y, strict=True):
            state = engine.update(state, xi, 0, float(yi), rng)
        cloud = state.clouds[0]
        if forget_weights:
            cloud.weights[:] = 1 / n_particles
        drawn = [kernels.draw_particle(cloud.weights, n_particles, rng) for _ in range(19)]
        means = np.append(mean, engine.draw_means(state, POINT, 19, rng)[:, 0])
        sizes = np.append(labels.max() + 1, cloud.lengths[drawn])
        ranks[run] = ranks_of_truth(np.column_stack([means, sizes]), rng)
    return ranks


def test_draws_are_calibrated() -> None:
    assert uniformity_p_value(calibration_ranks(5, 1500, forget_weights=False)) > REJECTED
    assert uniformity_p_value(calibration_ranks(5, 1500, forget_weights=True)) < REJECTED  # planted
