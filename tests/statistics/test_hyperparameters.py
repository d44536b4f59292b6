"""Learned concentration and discount against quadrature, and simulation-based calibration of the whole sampler."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from polyarm.errors import PolyarmError
from polyarm.inference import GibbsEngine, HierarchicalEngine, Sweeps
from polyarm.kernels._jit import RngHandle, kernel, rng_from, rng_handle
from polyarm.kernels.mixture.hyperparameters import MOST, redraw
from polyarm.models import HierarchicalMixture, LinearMixture, NormalInverseGamma
from polyarm.types import Array, IntArray
from tests.statistics.exact import small_problem
from tests.statistics.mutants import seated
from tests.statistics.test_calibration import contexts, fresh_rewards, model_of, sample_joint, statistics_of

SEATINGS = {(2, 3): [2, 1], (3, 10): [6, 3, 1], (5, 100): [60, 25, 10, 4, 1]}


@kernel
def fill_chain(
    tables: Array,
    sizes: IntArray,
    processes: Array,
    beliefs: Array,
    concentration: bool,
    discount: bool,
    out: Array,
    handle: RngHandle,
) -> None:
    """Fill every row of `out` with another draw of what is learned of concentration and discount."""
    rng = rng_from(handle)
    for row in range(out.shape[0]):
        redraw(tables, sizes, processes, beliefs, concentration, discount, rng)
        out[row] = processes[0, 2:]


def chain(arms: list[list[int]], beliefs: Array, learn: tuple[bool, bool], start: tuple[float, float], n: int) -> Array:
    """N draws of (concentration, discount) given the sizes of every arm's components."""
    tables = np.ones((len(arms), 16, 8))
    sizes = np.zeros((len(arms), 4), np.int64)
    for a, counts in enumerate(arms):
        tables[a, 0, : len(counts)] = counts
        sizes[a, :2] = len(counts), sum(counts)
    processes = np.tile([1.0, 1.0, *start], (len(arms), 1))
    out = np.empty((n, 2))
    fill_chain(tables, sizes, processes, beliefs, *learn, out, rng_handle(np.random.default_rng(0)))
    return out


def log_density(c: Array, d: Array, arms: list[list[int]], beliefs: Array) -> Array:
    """Log posterior density of (c, d) up to a constant."""
    total = (beliefs[0] - 1) * np.log(c) - beliefs[1] * c
    total = total + (beliefs[2] - 1) * np.log(d) + (beliefs[3] - 1) * np.log1p(-d) if np.all(d > 0) else total
    for counts in arms:
        total = total + gammaln(c + 1) - gammaln(c + sum(counts))
        for k in range(1, len(counts)):
            total = total + np.log(c + k * d)
        for count in counts:
            total = total + gammaln(count - d) - gammaln(1 - d)
    return np.asarray(total)


def concentration_mean(arms: list[list[int]], beliefs: Array) -> float:
    c = np.exp(np.linspace(-16, 6, 4001))
    w = np.exp(log_density(c, np.zeros(1), arms, beliefs)) * c
    return float(w @ c / w.sum())


@pytest.mark.parametrize("key", SEATINGS)
@pytest.mark.parametrize("prior", [(1.0, 1.0), (2.0, 0.5)])
def test_concentration_follows_its_posterior(key: tuple[int, int], prior: tuple[float, float]) -> None:
    beliefs = np.array([*prior, 1.0, 1.0])
    draws = chain([SEATINGS[key]], beliefs, (True, False), (1.0, 0.0), 100_000)[:, 0]
    assert draws.mean() == pytest.approx(concentration_mean([SEATINGS[key]], beliefs), rel=0.015)


def test_concentration_is_shared_by_the_arms() -> None:
    arms, beliefs = [SEATINGS[2, 3], SEATINGS[3, 10], SEATINGS[5, 100]], np.array([1.0, 1.0, 1.0, 1.0])
    draws = chain(arms, beliefs, (True, False), (1.0, 0.0), 100_000)[:, 0]
    assert draws.mean() == pytest.approx(concentration_mean(arms, beliefs), rel=0.015)


def test_a_gamma_auxiliary_is_seen() -> None:
    beliefs, rng, n, k = np.array([1.0, 1.0, 1.0, 1.0]), np.random.default_rng(0), 10, 3
    c, draws = 1.0, []
    for _ in range(30_000):  # planted: Gamma(c + 1, rate n) in place of Beta(c + 1, n), as found in a peer
        rate = 1.0 - np.log(min(rng.gamma(c + 1) / n, 1.0))
        shape = 1.0 + k - (rng.random() * (n + c) < n)
        c = rng.gamma(shape) / rate
        draws.append(c)
    assert abs(np.mean(draws) / concentration_mean([SEATINGS[3, 10]], beliefs) - 1) > 0.015


@pytest.mark.parametrize("arms", [[SEATINGS[3, 10]], [SEATINGS[2, 3], SEATINGS[5, 100]]])
def test_concentration_and_discount_follow_their_joint_posterior(arms: list[list[int]]) -> None:
    beliefs = np.array([1.0, 1.0, 1.0, 2.0])
    draws = chain(arms, beliefs, (True, True), (1.0, 0.2), 100_000)
    c, d = np.meshgrid(np.exp(np.linspace(-14, 5, 500)), (np.arange(500) + 0.5) / 500 * MOST, indexing="ij")
    w = np.exp(log_density(c, d, arms, beliefs)) * c
    w /= w.sum()
    assert draws[:, 0].mean() == pytest.approx((w * c).sum(), rel=0.02)
    assert draws[:, 1].mean() == pytest.approx((w * d).sum(), rel=0.02)
    assert draws[:, 1].std() == pytest.approx(np.sqrt((w * d**2).sum() - (w * d).sum() ** 2), rel=0.02)


N_RANKS, N_REWARDS = 19, 25


def ranks(n_runs: int, seed: int, rate: float = 1.0) -> dict[str, Array]:
    """Ranks of the truth among posterior draws; the truth has concentration ~ Gamma(2, 1)."""
    rng = np.random.default_rng(seed)
    base = NormalInverseGamma(2, 0.0, 25.0, 3.0, 1.0)
    engine = GibbsEngine([LinearMixture(base, 1.0)], Sweeps(1, 0.0), learn_concentration=(2.0, rate))
    at = np.array([1.0, -0.5])
    found = np.empty((n_runs, 4))
    for run in range(n_runs):
        truth = LinearMixture(base, rng.gamma(2.0))
        params = truth.sample_params(rng)
        z = np.searchsorted(np.cumsum(params.weights), rng.random(N_REWARDS) * params.weights.sum())
        x = rng.normal(size=(N_REWARDS, 2))
        y = rng.normal((params.coefficients[z] * x).sum(1), np.sqrt(params.noise_var[z]))
        state = engine.init()
        for xi, yi in zip(x, y, strict=True):
            state = engine.update(state, xi, 0, yi, rng)
        sample = np.empty((N_RANKS, 4))
        for i in range(N_RANKS):
            for _ in range(6):
                state = engine.sweep(state, 0, rng)
                engine.redraw_hyperparameters(state, rng)
            k = int(state.sizes[0, 0])
            mean = engine.draw_means(state, at, 1, rng)[0, 0]
            sample[i] = state.laws[0, 2], k, state.tables[0, 0, :k].max(), mean
        sizes = np.bincount(z)
        true = np.array([truth.concentration, (sizes > 0).sum(), sizes.max(), truth.mean_reward(params, at)])
        ties = (sample == true).sum(axis=0)
        found[run] = (sample < true).sum(axis=0) + (rng.random(4) * (ties + 1)).astype(int)
    return dict(zip(("concentration", "components", "largest", "mean"), found.T, strict=True))


def p_value(rank: Array) -> float:
    return float(stats.chisquare(np.bincount(rank.astype(int), minlength=N_RANKS + 1)).pvalue)


def test_ranks_of_the_truth_are_uniform() -> None:
    for name, rank in ranks(600, seed=1).items():
        assert p_value(rank) > 1e-4, name


def test_a_wrong_hyperprior_is_seen() -> None:
    wrong = ranks(200, seed=2, rate=0.4)
    assert p_value(wrong["concentration"]) < 1e-4
    assert p_value(wrong["components"]) < 1e-4


def test_learning_needs_one_law_for_all_arms() -> None:
    _, _, model = small_problem(3)
    other = LinearMixture(model.base, 2.0, 0.3)
    for arms, options in (
        ([model, other], {"learn_concentration": (1.0, 1.0)}),
        ([LinearMixture.finite(model.base, 2)], {"learn_concentration": (1.0, 1.0)}),
        ([LinearMixture(model.base, 1.0)], {"learn_discount": (1.0, 2.0)}),
        ([model], {"learn_discount": (1.0, -2.0)}),
        ([model], {"learn_scale": (0.0, 1.0)}),
        ([model, LinearMixture(replace(model.base, scale=3.0), 1.0, 0.3)], {"learn_scale": (1.0, 1.0)}),
    ):
        with pytest.raises(PolyarmError):
            GibbsEngine(arms, **options)  # type: ignore[arg-type]


def test_learning_a_hierarchy_needs_positive_concentrations() -> None:
    base = small_problem(3)[2].base
    for concentrations, options in (
        ((-0.1, 0.5, 1.0, 0.0), {"learn_concentration": (1.0, 1.0)}),
        ((1.0, 0.0, -0.1, 0.5), {"learn_shared_concentration": (1.0, 1.0)}),
        ((1.0, 0.0, 1.0, 0.0), {"learn_shared_concentration": (1.0, 0.0)}),
    ):
        with pytest.raises(PolyarmError, match="concentration must be"):
            HierarchicalEngine(HierarchicalMixture(base, *concentrations), 2, **options)  # type: ignore[arg-type]


@functools.cache
def forward_statistics() -> Array:
    """Statistics of concentration, rewards and labels drawn from the prior; sampler and planted bug share them."""
    rng, x, base = np.random.default_rng(0), contexts(6), model_of(1.0, 0.0).base
    concentrations = rng.gamma(2.0, size=6000)
    stories = [sample_joint(LinearMixture(base, c), x, rng) for c in concentrations]
    return told(concentrations, np.array([y for y, _, _ in stories]), np.array([labels for _, labels, _ in stories]))


def geweke_p_value(rate: float, steps: int, seed: int) -> float:
    """Smallest p-value, corrected, of prior against successive-conditional statistics; the prior is Gamma(2, 1)."""
    rng, x, base = np.random.default_rng(seed), contexts(6), model_of(1.0, 0.0).base
    engine = GibbsEngine([LinearMixture(base, 1.0)], learn_concentration=(2.0, rate))
    forward, concentration = forward_statistics(), rng.gamma(2.0)
    concentrations, rewards, seats = np.empty(steps), np.empty((steps, 6)), np.empty((steps, 6), np.int64)
    y, labels, _ = sample_joint(LinearMixture(base, concentration), x, rng)
    for step in range(steps):
        rewards[step] = y = fresh_rewards(engine.arms[0], x, y, labels, rng)
        state = seated(engine, x, y, labels)
        state.laws[:, 2] = concentration
        state = engine.split_merge(engine.sweep(state, 0, rng), 0, 2, rng)
        engine.redraw_hyperparameters(state, rng)
        concentrations[step] = concentration = float(state.laws[0, 2])
        seats[step] = labels = engine.assignments(state, 0)
    chain = told(concentrations, rewards, seats)
    batches = chain.reshape(40, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(batches.var(axis=0, ddof=1) / 40 + forward.var(axis=0, ddof=1) / len(forward))
    z = (chain.mean(axis=0) - forward.mean(axis=0)) / error
    return float(min(1.0, len(z) * 2 * stats.t.sf(np.abs(z), 39).min()))


def told(concentrations: Array, y: Array, labels: IntArray) -> Array:
    """Concentration, components, rewards in the largest, level and spread of every story, (m, 5)."""
    return np.column_stack([concentrations, statistics_of(y, labels, concentrations)[:, :4]])


def test_geweke_with_a_learned_concentration() -> None:
    assert geweke_p_value(1.0, 6_000, seed=1) > 1e-4
    assert geweke_p_value(0.7, 2_000, seed=1) < 1e-4  # planted: another prior in the sampler than in the story
