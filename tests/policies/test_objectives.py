"""Policies that judge arms by other objectives than the mean."""

from typing import Any

import numpy as np
import pytest

import polyarm as pa
from polyarm import ExpectedShortfall, ExponentialUtility, Objective, ProbabilityAbove, Quantile
from polyarm.choosing import win_shares
from polyarm.environments import Judged
from polyarm.errors import InvalidArgument
from polyarm.models import MEAN
from polyarm.policies import objective_of, takes_objective, with_objective

TAILS: dict[Objective, int] = {
    Quantile(0.1): 0,
    ExpectedShortfall(0.1): 0,
    ExponentialUtility(1.0): 0,
    ProbabilityAbove(1.0): 1,
    Quantile(0.5): 2,
    ProbabilityAbove(3.0): 3,
}
JACKPOT: dict[Objective, int] = {
    MEAN: 1,
    ExponentialUtility(0.01): 1,
    ProbabilityAbove(5.0): 1,
    Quantile(0.1): 0,
    ExpectedShortfall(0.1): 0,
    ExponentialUtility(1.0): 0,
}
CELLS = [("risk/tails", o, arm) for o, arm in TAILS.items()] + [("risk/jackpot", o, arm) for o, arm in JACKPOT.items()]
HORIZON, RUNS = 600, 3


def last_plays(scenario: str, objective: Objective, name: str, seed: int) -> Any:
    """Arms of the last third of a run."""
    environment = pa.make_scenario(scenario).environment
    world = environment.sample(HORIZON, np.random.default_rng([3, seed]))
    policy, rng = pa.make_policy(name, environment.n_arms, 1, objective=objective), np.random.default_rng(seed)
    state, arms = policy.init(), []
    for x, rewards in zip(world.contexts, world.rewards, strict=True):
        arms.append(policy.choose(state, x, rng).arm)
        state = policy.update(state, x, arms[-1], float(rewards[arms[-1]]), rng)
    return arms[-HORIZON // 3 :]


@pytest.mark.parametrize(("scenario", "objective", "right"), CELLS, ids=lambda value: str(value))
def test_the_default_plays_the_right_arm_in_every_cell_of_risk(scenario: str, objective: Objective, right: int) -> None:
    world = Judged(pa.make_scenario(scenario).environment, objective).sample(2, np.random.default_rng(0))
    assert world.means.argmax(axis=1).tolist() == [right] * 2
    plays = [arm for seed in range(RUNS) for arm in last_plays(scenario, objective, "nonparametric", seed)]
    assert np.mean(np.array(plays) == right) > 0.5


@pytest.mark.parametrize("objective", [Quantile(0.1), ExpectedShortfall(0.1), Quantile(0.5)], ids=str)
def test_thompson_sampling_of_mixtures_plays_it_too(objective: Objective) -> None:
    plays = [arm for seed in range(RUNS) for arm in last_plays("risk/tails", objective, "dirichlet", seed)]
    assert np.mean(np.array(plays) == TAILS[objective]) > 0.5


@pytest.mark.parametrize("name", ["nonparametric", "dirichlet", "pitman-yor", "linear", "linear-showdown", "gaussian"])
def test_choices_follow_the_distribution(name: str) -> None:
    policy = pa.make_policy(name, 3, 1, objective="quantile:0.2")
    rng, x = np.random.default_rng(0), np.ones(1)
    state = policy.init()
    for t in range(30):
        state = policy.update(state, x, t % 3, float(rng.standard_normal() + 0.2 * (t % 3)), rng)
    engine, inner = pa.policies.engine_of(policy, state)
    for mask in (None, np.array([True, False, True])):
        played = np.bincount([policy.choose(state, x, rng, mask).arm for _ in range(400)], minlength=3) / 400
        given = np.mean([policy.probabilities(state, x, rng, mask) for _ in range(60)], axis=0)
        assert np.abs(played - given).max() < 0.12  # above four standard errors
    able: Any = engine
    best = win_shares(able.draw_objectives(inner, x, Quantile(0.2), 2000, rng))
    assert np.abs(pa.probability_best(policy, state, x, 2000, rng).probability - best).max() < 0.07


def test_draws_of_the_mean_objective_are_draws_of_the_mean() -> None:
    rng, x = np.random.default_rng(1), np.array([0.5, -0.2])
    for name in ("nonparametric", "dirichlet", "pitman-yor", "linear"):
        policy: Any = pa.make_policy(name, 2, 2)
        state = policy.init()
        for t in range(40):
            state = policy.update(state, rng.standard_normal(2), t % 2, float(rng.standard_normal()), rng)
        means = policy.engine.draw_means(state, x, 4000, rng)
        worths = policy.engine.draw_objectives(state, x, MEAN, 4000, rng)
        for level in (0.25, 0.5, 0.75):
            low, high = (np.quantile(means, p, axis=0) for p in (level - 0.05, level + 0.05))
            assert (np.quantile(worths, level, axis=0) > low).all()
            assert (np.quantile(worths, level, axis=0) < high).all()


def test_policies_that_only_know_means_say_so() -> None:
    for name in ("linear-ucb", "npts", "uniform", "hierarchical", "linear-student-t"):
        policy = pa.make_policy(name, 2, 2)
        assert not takes_objective(policy)
        assert with_objective(policy, "mean") is policy
        with pytest.raises(InvalidArgument, match=r"objective must be the mean, .*, got quantile:0\.1"):
            pa.make_policy(name, 2, 2, objective="quantile:0.1")
    assert objective_of(pa.make_policy("linear-showdown", 2, 2, objective="above:1")) == ProbabilityAbove(1.0)


def test_regret_is_measured_in_the_objective() -> None:
    found = pa.compare(
        "risk/jackpot", ["dirichlet", "dirichlet:objective='mean'", "optimal"], 4, 200, objective="quantile:0.1"
    )
    verdict = found.summary()
    assert verdict["objective"] == "quantile:0.1"
    regret = {label: policy["regret"]["mean"] for label, policy in verdict["policies"].items()}
    assert regret["optimal"] == 0
    assert regret["dirichlet"] < 0.5 * regret["dirichlet:objective=mean"]
    assert verdict["policies"]["dirichlet"]["observed_regret"]["mean"] is None
    assert "regret in quantile:0.1" in found.tables()[0].title
    with pytest.raises(InvalidArgument, match="scenario must be one that knows the distributions of its rewards"):
        pa.compare("revenue", ["linear"], 1, 10, objective="quantile:0.1")


@pytest.mark.parametrize("name", ["mixture-a", "bimodal", "gaussian", "linear-gaussian", "linear", "linear-outliers"])
def test_values_of_the_mean_are_the_means(name: str) -> None:
    environment: Any = pa.make_scenario(name).environment
    world = environment.sample(20, np.random.default_rng(0))
    np.testing.assert_allclose(environment.values(world, MEAN), world.means, rtol=1e-12, atol=1e-12)


def test_values_are_quantiles_of_rewards() -> None:
    for name in ("heavy-tailed", "linear-outliers", "risk/tails"):
        environment: Any = pa.make_scenario(name).environment
        world = environment.sample(20_000, np.random.default_rng(1))
        below = world.rewards <= environment.values(world, Quantile(0.1))
        np.testing.assert_allclose(below.mean(axis=0), 0.1, atol=0.01)


def test_single_values_count_as_what_they_are() -> None:
    """Rewards of 0 or an amount: draws of an objective sit around its value in the empirical distribution."""
    rng, x = np.random.default_rng(5), np.ones(1)
    policy: Any = pa.make_policy("nonparametric", 2, 1)
    state, paid = policy.init(), []
    for _ in range(600):
        reward = float(rng.random() < 0.7) * float(5 + rng.standard_normal())
        state = policy.update(state, x, 0, reward, rng)
        paid.append(reward)
    for objective, tolerance in (
        (MEAN, 0.5),
        (Quantile(0.1), 1e-9),
        (Quantile(0.6), 0.4),
        (ExpectedShortfall(0.5), 0.4),
        (ProbabilityAbove(0.0), 0.08),
        (ProbabilityAbove(5.0), 0.08),
    ):
        draws = policy.engine.draw_objectives(state, x, objective, 200, rng)[:, 0]
        truth = float(objective.of_mixture(np.ones(600), paid, 0.0))
        assert np.median(draws) == pytest.approx(truth, abs=tolerance)


def test_clicks_are_judged_by_their_rate() -> None:
    rng, x = np.random.default_rng(6), np.ones(1)
    policy: Any = pa.make_policy("nonparametric", 2, 1)
    state = policy.init()
    for t in range(300):
        state = policy.update(state, x, t % 2, float(rng.random() < (0.3, 0.6)[t % 2]), rng)
    draws = policy.engine.draw_objectives(state, x, ProbabilityAbove(0.5), 500, rng)
    assert draws.mean(axis=0) == pytest.approx([0.3, 0.6], abs=0.12)
    assert policy.engine.draw_objectives(state, x, Quantile(0.5), 50, rng)[:, 0].max() == pytest.approx(0.0)
