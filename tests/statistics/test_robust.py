"""The robust sampler against exact posteriors and against its own model, with planted bugs that must be rejected."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from polyarm.inference import RobustEngine, RobustState
from polyarm.inference.robust_checks import values_of
from polyarm.kernels._jit import plain, rng_handle
from polyarm.kernels.lanes import LANES
from polyarm.kernels.robust import update
from polyarm.kernels.robust.component import COUNT, SYY, VAR, sxx_row, sxy_row, w_row
from polyarm.kernels.robust.records import Rewards, hyperprior_of
from polyarm.models import RobustMixture
from polyarm.policies import InformationDirected
from polyarm.types import Array, Rng
from tests import reference
from tests.statistics.mutants import mutant, quick_mutant

# ---------------------------------------------------------------- exact posterior over partitions


def small_problem() -> tuple[RobustEngine, Array, Array]:
    model = RobustMixture(
        1,
        1,
        arm_shape=(2.0, 2.0),
        arm_scale=(1.0, 1.6),
        part_ratio=(0.7, 0.4),
        concentration=0.8,
        place_shape=0.0,
        place_scale=1.5,
        learned=False,
    )
    X, y = np.array([[0.5], [-1.0], [1.5], [0.2]]), np.array([1.0, -1.2, 4.0, 1.3])
    return RobustEngine(model, moves=12, other_arm_moves=0, fixed_units=True), X, y


@functools.cache
def exact_answer() -> dict[tuple[int, ...], float]:
    """Posterior probability of every partition of the small problem."""
    return exact_partitions(*small_problem())


def noise_nodes(model: RobustMixture, n: int) -> tuple[Array, Array]:
    """Noise variances at equally likely quantiles of either part of their prior with b = 1, and their log weights."""
    n_wild = max(n // 4, 1)
    usual = stats.invgamma.ppf((np.arange(n - n_wild) + 0.5) / (n - n_wild), model.noise_shape)
    wild = stats.invgamma.ppf((np.arange(n_wild) + 0.5) / n_wild, model.wild_shape)
    shares = [(1 - model.wild_share) / (n - n_wild)] * (n - n_wild) + [model.wild_share / n_wild] * n_wild
    return np.append(usual, wild), np.log(shares)


def exact_partitions(engine: RobustEngine, X: Array, y: Array, n_nodes: int = 20) -> dict[tuple[int, ...], float]:
    """Posterior probability of every partition: slopes integrated in closed form, noise variances on a grid."""
    model, n = engine.model, len(y)
    F = np.column_stack([X, np.ones(n)])
    L = model.by_feature(np.divide(model.arm_scale, model.arm_shape))
    R = model.by_feature(np.array(model.part_ratio)) * L
    nodes, log_weights = noise_nodes(model, n_nodes)
    logs = {}
    for labels in reference.partitions(n):
        z, K = np.array(labels), max(labels) + 1
        together = (F * L) @ F.T + (z[:, None] == z) * ((F * R) @ F.T)
        s2 = np.stack(np.meshgrid(*[nodes] * K, indexing="ij"), axis=-1).reshape(-1, K)
        covariance = together + s2[:, z][:, :, None] * np.eye(n)
        half = np.linalg.solve(covariance, np.broadcast_to(y[:, None], (len(s2), n, 1)))[:, :, 0] @ y
        log_density = -0.5 * (half + np.linalg.slogdet(covariance)[1])
        log_density += np.stack(np.meshgrid(*[log_weights] * K, indexing="ij"), axis=-1).reshape(-1, K).sum(axis=1)
        counts = np.bincount(z)
        log_prior = K * np.log(model.concentration) + gammaln(counts).sum()
        for k in range(K):  # the contexts of a component are around its place
            mine = X[z == k, 0]
            covariance_of_x = np.eye(len(mine)) + model.place_scale
            log_prior += stats.multivariate_normal.logpdf(mine, np.zeros(len(mine)), covariance_of_x)
        logs[labels] = float(log_prior + logsumexp(log_density))
    total = logsumexp(list(logs.values()))
    return {labels: float(np.exp(value - total)) for labels, value in logs.items()}


def redraw(engine: RobustEngine, state: RobustState, rng: Rng, by: Callable[..., Any] = update.update) -> None:
    """Draw arm 0 again, and what the arms share, and move no reward; by the kernel or by a twin of it."""
    rewards = state.data[0], state.seats[0]
    nothing = update.Reward(0, 0, np.zeros(engine.context_dim), 0.0, *rewards, *rewards)
    source = rng_handle(rng) if by is update.update else rng
    by(engine._books(state), nothing, update.MOVE_HERE, (0, 0), source)


def visited_partitions(
    engine: RobustEngine, X: Array, y: Array, n_rounds: int, moves: Callable[..., int] | None = None
) -> dict[tuple[int, ...], float]:
    """Shares of the partitions that the sampler visits."""
    state, rng = engine.init(), np.random.default_rng(21)
    for x, reward in zip(X, y, strict=True):
        state = engine.update(state, x, 0, float(reward), rng)
    shares: dict[tuple[int, ...], float] = {}
    for _ in range(n_rounds):
        if moves is None:
            state = engine.refresh(state, rng)
        else:
            books = engine._books(state)
            moves(books, Rewards(state.data[0], state.seats[0]), 0, engine.moves, rng)
            redraw(engine, state, rng)
        key = reference.canonical(engine.assignments(state, 0))
        shares[key] = shares.get(key, 0.0) + 1 / n_rounds
    return shares


def distance(p: dict[tuple[int, ...], float], q: dict[tuple[int, ...], float]) -> float:
    """Total variation."""
    return 0.5 * sum(abs(p.get(key, 0.0) - q.get(key, 0.0)) for key in p.keys() | q.keys())


def own_weight_with_itself(*_: Any) -> None:
    """The printed Algorithm 2: a reward is never taken out of its component before that is scored."""


def test_partitions_have_their_posterior_probabilities() -> None:
    engine, X, y = small_problem()
    assert distance(visited_partitions(engine, X, y, 12_000), exact_answer()) < 0.02


def test_a_reward_that_is_not_taken_out_is_noticed() -> None:
    engine, X, y = small_problem()
    wrong = quick_mutant(update.random_moves, {"score_own": own_weight_with_itself})
    assert distance(visited_partitions(engine, X, y, 800, wrong), exact_answer()) > 0.1


def at_home_everywhere(T: Array, k: int, features: Any, tau: float, x: Array, own: float) -> float:
    """Planted: components have no locations."""
    return 0.0


def all_at_home_everywhere(T: Array, k: int, features: Any, tau: float, x: Array) -> Array:
    """The same for four components."""
    return np.zeros(LANES)


def test_components_without_places_are_noticed() -> None:
    engine, X, y = small_problem()
    everywhere = {"minus_log_density": at_home_everywhere, "minus_log_densities": all_at_home_everywhere}
    wrong = mutant(update.random_moves, everywhere)
    assert distance(visited_partitions(engine, X, y, 800, wrong), exact_answer()) > 0.05


# ---------------------------------------------------------------- one component: closed form given the noise variance


def test_one_component_is_bayesian_linear_regression() -> None:
    """Without new components the mean reward has the posterior of a regression whose noise variance is IG(a, b)."""
    model = RobustMixture(1, 1, concentration=1e-12, learned=False, arm_shape=(1.0, 1.0), arm_scale=(0.5, 0.3))
    engine = RobustEngine(model, moves=4, other_arm_moves=0, fixed_units=True)
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (8, 1))
    y = 0.8 * X[:, 0] - 0.3 + 0.5 * rng.standard_normal(8)
    F = np.column_stack([X, np.ones(8)])
    prior = model.by_feature((1 + np.array(model.part_ratio)) * np.array([0.5, 0.3]))
    nodes, log_weights = noise_nodes(model, 4000)
    x, s2 = np.array([0.7, 1.0]), nodes[:, None, None]
    V = np.linalg.inv(F.T @ F / s2 + np.diag(1 / prior))
    mean = x @ V @ (F.T @ y) / nodes
    square = mean**2 + x @ V @ x
    covariance = (F * prior) @ F.T + s2 * np.eye(8)
    gaps = np.linalg.solve(covariance, np.broadcast_to(y[:, None], (4000, 8, 1)))[:, :, 0] @ y
    evidence = log_weights - 0.5 * (gaps + np.linalg.slogdet(covariance)[1])
    p = np.exp(evidence - logsumexp(evidence))
    state = engine.init()
    for f, reward in zip(X, y, strict=True):
        state = engine.update(state, f, 0, float(reward), rng)
    seen = np.empty((6000, 2))
    for t in range(6000):
        state = engine.refresh(state, rng)
        seen[t] = engine.moments(state, np.array([0.7]))[:, 0]
    assert engine.n_components(state)[0] == 1
    sd = np.sqrt(p @ square - (p @ mean) ** 2)
    np.testing.assert_allclose(seen[:, 0].mean(), p @ mean, atol=0.03 * sd)
    np.testing.assert_allclose((seen**2).sum(1).mean(), p @ square, atol=0.05 * sd**2 + 0.06 * sd * abs(p @ mean))


# ---------------------------------------------------------------- Geweke 2004: the sampler against the model

N_EACH = 3
LOWER = np.tril_indices(3)


class Joint(NamedTuple):
    """An engine of two arms, and what draws the first arm and what the arms share again where both have moved by
    themselves, at a step of that number; else all is refreshed by the engine.
    """

    engine: RobustEngine
    redraw: Callable[..., Any] | None = None
    step: float = 65.0  # one that draws no scales without slopes, which refreshes every arm


def joint_problem() -> Joint:
    model = RobustMixture(
        2,
        2,
        arm_shape=(4.0, 4.0),
        arm_scale=(3.0, 2.0),
        part_shape=(4.0, 4.0),
        part_scale=(3.0, 2.0),
        centre_var=1.0,
        centre_shape=4.0,
        centre_scale=4.0,
        noise_shape=3.0,
        noise_rate_shape=4.0,
        noise_rate=2.0,
        concentration_prior=(4.0, 4.0),
        place_shape=4.0,
        place_scale=4.0,
    )
    return Joint(RobustEngine(model, moves=9, other_arm_moves=0, fixed_units=True))


class Story(NamedTuple):
    """Shared values, the common centre, components in use, and contexts and rewards of either arm."""

    hyper: Array
    centre: Array
    n_components: float
    x: Array
    y: Array


def summaries(stories: list[Story]) -> Array:
    """Numbers to compare: shared values, components in use, contexts, rewards, and products of them all."""
    hyper, centre, n_components, x, y = (np.array(part) for part in zip(*stories, strict=True))
    first, pair, prod = x[:, 0, 0], y[:, 0] * y[:, 1], x.prod(axis=2)
    contexts = [np.arctan(x).mean(axis=(1, 2)), np.arctan(first * x[:, 1, 0]), np.log(x**2).mean(axis=(1, 2))]
    each = [np.arctan(z * y).mean(axis=1) for z in (prod, x[:, :, 0], x[:, :, 1])]
    pairs = [np.arctan(first * x[:, 1, 0] * pair), np.arctan(first * x[:, 1, 1] * pair)]
    rewards = [np.arctan(y).mean(axis=1), np.arctan(pair), np.log(y**2).mean(axis=1)]
    both = [np.arctan(prod).mean(axis=1), *each]
    return np.column_stack([np.log(hyper), centre, n_components, *contexts, *both, *pairs, *rewards])


@functools.cache
def forwards(n: int) -> Array:
    """Summaries of independent draws from the model; sampler and planted bugs share them."""
    model, out, rng = joint_problem().engine.model, [], np.random.default_rng(30)
    for _ in range(n):
        params = model.sample_params(rng)
        x, y, parts = [], [], 0
        for arm, places in zip(params.arms, params.places, strict=True):
            k = np.searchsorted(np.cumsum(arm.weights)[:-1], rng.random(N_EACH))
            parts += len(set(k))
            x.append(places[k] + rng.standard_normal((N_EACH, 2)))
            F = np.column_stack([x[-1], np.ones(N_EACH)])
            y.append((F * arm.coefficients[k]).sum(1) + np.sqrt(arm.noise_var[k]) * rng.standard_normal(N_EACH))
        ratio = params.part_var / params.arm_var
        others = params.noise_scale, params.concentration, params.place_var, params.centre_ratio
        hyper = np.array([*params.arm_var, *ratio, *others])
        out.append(Story(hyper, params.common_centre, parts, np.concatenate(x), np.concatenate(y)))
    return summaries(out)


def redraw_rewards(state: RobustState, engine: RobustEngine, rng: Rng) -> None:
    """Draw every context and reward again, given seating, places, slopes and noise variances."""
    D, tau = state.features.unit.shape[0], state.shared.location_var
    for arm in range(2):
        K, data = state.sizes[arm, 0], state.data[arm][:N_EACH]
        T, k = state.tables[arm][:, :K], engine.assignments(state, arm)
        own = (k == np.arange(K)[:, None]).astype(float)
        assert np.array_equal(T[COUNT], own.sum(axis=1))
        F, shrink = data[:, :D], 1 / (1 + tau * T[COUNT])
        place = (tau * shrink)[:, None] * (own @ F[:, :2])
        place += np.sqrt(tau * shrink)[:, None] * rng.standard_normal((K, 2))
        F[:, :2] = place[k] + rng.standard_normal((N_EACH, 2))
        w = T[w_row(D) : w_row(D) + D, k].T
        data[:, D] = y = (F * w).sum(axis=1) + np.sqrt(T[VAR, k]) * rng.standard_normal(N_EACH)
        T[sxx_row(D) : sxx_row(D) + len(LOWER[0])] = (own @ (F[:, LOWER[0]] * F[:, LOWER[1]])).T
        T[sxy_row(D) : sxy_row(D) + D] = (own @ (F * y[:, None])).T
        T[SYY] = own @ y**2
    update.rebuild(engine._books(state))


def backwards(joint: Joint, n: int, rng: Rng) -> Array:
    """Summaries of a chain that alternates between the sampler and new rewards."""
    engine, out = joint.engine, []
    state = engine.init()
    for i in range(2 * N_EACH):
        state = engine.update(state, rng.standard_normal(2), i % 2, float(rng.standard_normal()), rng)
    for _ in range(n):
        if joint.redraw is not None:
            state.shared.n_steps = joint.step
            state = engine.random_moves(state, 1, engine.moves, rng)
            state = engine.random_moves(state, 0, engine.moves, rng)
            redraw(engine, state, rng, joint.redraw)
        else:
            state = engine.refresh(state, rng)
        redraw_rewards(state, engine, rng)
        names = ("arm_var", "part_ratio", "noise_scale", "concentration", "location_var")
        shared_values = np.append(values_of(state.shared, names), state.centre_ratio)
        data = np.concatenate([state.data[arm][:N_EACH] for arm in range(2)])
        parts = float(state.sizes[:, 0].sum())
        out.append(Story(shared_values, state.features.centre.copy(), parts, data[:, :2], data[:, 3]))
    return summaries(out)


def z_scores(chain: Array, independent: Array, n_batches: int = 40) -> Array:
    """Differences of the means in standard errors, the chain's by batch means."""
    chain = chain[: len(chain) // n_batches * n_batches]
    batches = chain.reshape(n_batches, -1, chain.shape[1]).mean(axis=1)
    spread = batches.var(axis=0, ddof=1) / n_batches + independent.var(axis=0) / len(independent)
    return np.asarray((chain.mean(axis=0) - independent.mean(axis=0)) / np.sqrt(spread))


def test_the_sampler_leaves_the_joint_distribution_as_it_is() -> None:
    joint, rng = joint_problem(), np.random.default_rng(31)
    scores = z_scores(backwards(joint, 12_000, rng), forwards(12_000))
    assert np.abs(scores).max() < 4.2, scores.round(1)


def test_a_wrong_prior_rate_of_the_noise_is_noticed() -> None:
    joint, rng = joint_problem(), np.random.default_rng(32)
    plain(hyperprior_of)(joint.engine._hyperprior).noise_rate *= 1.3
    scores = z_scores(backwards(joint, 2000, rng), forwards(12_000))
    assert np.abs(scores).max() > 6


def test_a_wrong_prior_of_the_common_centre_is_noticed() -> None:
    joint, rng = joint_problem(), np.random.default_rng(36)
    plain(hyperprior_of)(joint.engine._hyperprior).centre_scale *= 1.5
    scores = z_scores(backwards(joint, 2000, rng), forwards(12_000))
    assert np.abs(scores).max() > 6


def test_a_wrong_prior_of_the_places_is_noticed() -> None:
    joint, rng = joint_problem(), np.random.default_rng(34)
    plain(hyperprior_of)(joint.engine._hyperprior).location_scale *= 1.3
    scores = z_scores(backwards(joint, 2000, rng), forwards(12_000))
    assert np.abs(scores).max() > 6


def test_an_arm_that_moves_without_being_refreshed_is_noticed() -> None:
    joint, rng = joint_problem(), np.random.default_rng(33)
    scores = z_scores(backwards(joint._replace(redraw=update.update), 2000, rng), forwards(12_000))
    assert np.abs(scores).max() > 6


def test_late_steps_leave_the_joint_distribution_as_it_is() -> None:
    """Both arms move, what they share waits, and then all is drawn: step 136 of two arms, with and without scales drawn
    without slopes."""
    late, rng = quick_mutant(update.update, {"FEW": N_EACH}), np.random.default_rng(36)
    for step in (136.0, 144.0):
        joint = joint_problem()._replace(redraw=late, step=step)
        scores = z_scores(backwards(joint, 1600, rng), forwards(12_000))
        assert np.abs(scores).max() < 4.2, scores.round(1)


def test_steps_of_a_chain_beside_others_leave_the_joint_distribution_as_it_is() -> None:
    """Both arms move, and what they share is drawn once in four steps: 132, and 136 where scales are drawn without
    slopes, too; with every step drawing it, an arm that waited would be out of date."""
    rng = np.random.default_rng(37)
    for step in (132.0, 136.0):
        joint = joint_problem()
        joint = joint._replace(engine=replace(joint.engine, thinning=4), redraw=update.update, step=step)
        scores = z_scores(backwards(joint, 1600, rng), forwards(12_000))
        assert np.abs(scores).max() < 4.2, scores.round(1)


# ---------------------------------------------------------------- units


def best_plays(scale: float, shift: float, columns: Array, n_runs: int = 40, n_steps: int = 120) -> Array:
    """How often the best arm is played in each of many runs when rewards and columns are measured in other units."""
    policy, plays = InformationDirected(RobustEngine(RobustMixture(3, 2), 12, 4), 32), np.zeros(n_runs)
    for run in range(n_runs):
        world, rng = np.random.default_rng([run, 0]), np.random.default_rng([run, 1])
        state = policy.init()
        for _ in range(n_steps):
            x, noise = world.random(2), world.standard_normal(3)
            arm = policy.choose(state, x * columns, rng).arm
            reward = (arm * x.sum() + noise[arm]) * scale + shift
            state = policy.update(state, x * columns, arm, float(reward), rng)
            plays[run] += arm == 2
    return plays


def test_units_leave_the_choices_statistically_as_they_are() -> None:
    usual = best_plays(1.0, 0.0, np.ones(2))
    for scale, shift, columns in ((0.01, 0.0, [1.0, 1.0]), (100.0, 0.0, [1.0, 300.0]), (1.0, 1000.0, [0.01, 1.0])):
        other = best_plays(scale, shift, np.array(columns))
        error = np.sqrt((usual.var() + other.var()) / len(usual))
        assert abs(usual.mean() - other.mean()) < 4 * error
