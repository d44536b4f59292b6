"""What each rule adds to its engine."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from polyarm.errors import InvalidArgument, UnknownName
from polyarm.inference import ConjugateEngine
from polyarm.inference.conjugate import ConjugateState
from polyarm.models import LinearGaussian, NormalInverseGamma
from polyarm.policies import (
    BayesUCB,
    Greedy,
    InitialPulls,
    ThompsonSampling,
    Uniform,
    make_policy,
    network_names,
    policy_names,
    probability_best,
)
from tests.contracts.states import suited

X = np.array([1.0, 0.5])


def learnt(n: int = 30) -> tuple[ConjugateEngine, ConjugateState]:
    engine = ConjugateEngine([LinearGaussian(NormalInverseGamma(2))] * 3)
    state, rng = engine.init(), np.random.default_rng(0)
    for i in range(n):
        state = engine.update(state, rng.random(2), i % 3, rng.normal(0.3 * (i % 3)), rng)
    return engine, state


def test_thompson_sampling_plays_an_arm_as_often_as_it_is_best() -> None:
    engine, state = learnt()
    policy, rng = ThompsonSampling(engine), np.random.default_rng(1)
    plays = np.bincount([policy.choose(state, X, rng).arm for _ in range(20_000)], minlength=3)
    best = probability_best(engine, state, X, 1_000_000, rng)
    assert chisquare(plays, 20_000 * best.probability).pvalue > 1e-4


def test_probability_best_sums_to_one_and_its_error_is_its_spread() -> None:
    engine, state = learnt()
    rng = np.random.default_rng(2)
    runs = [probability_best(engine, state, X, 400, rng) for _ in range(500)]
    assert all(run.probability.sum() == pytest.approx(1.0) for run in runs)
    spread = np.std([run.probability for run in runs], axis=0)
    np.testing.assert_allclose(runs[0].standard_error, spread, rtol=0.25)


def test_greedy_plays_the_highest_expectation_and_draws_nothing() -> None:
    engine, state = learnt()
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    choice = Greedy(engine).choose(state, X, rng)
    np.testing.assert_array_equal(choice.scores, engine.expected_means(state, X))
    assert choice.arm == engine.expected_means(state, X).argmax()
    assert rng.bit_generator.state == before


def test_bayes_ucb_scores_are_the_quantiles_of_the_posterior() -> None:
    engine, inner = learnt()
    policy = BayesUCB(engine, n_draws=200_000)
    state = policy.init()._replace(inner=inner, n_rewards=9)
    scores = policy.choose(state, X, np.random.default_rng(4)).scores
    draws = engine.draw_means(inner, X, 200_000, np.random.default_rng(5))
    np.testing.assert_allclose(scores, np.quantile(draws, 0.9, axis=0), atol=0.01)
    assert policy.level(0) == 0.5
    assert BayesUCB(engine, horizon=100, exponent=1.0).level(9) == pytest.approx(1 - 1 / (10 * np.log(100)))


def test_initial_pulls_go_round_the_arms_and_are_learnt_from() -> None:
    engine, _ = learnt(0)
    policy, rng = InitialPulls(ThompsonSampling(engine), n_arms=3, pulls=2), np.random.default_rng(6)
    state, arms = policy.init(), []
    for _ in range(6):
        arms.append(policy.choose(state, X, rng).arm)
        state = policy.update(state, X, arms[-1], 1.0, rng)
    assert arms == [0, 1, 2, 0, 1, 2]
    assert state.inner.counts.tolist() == [2, 2, 2]


def test_uniform_plays_every_arm_alike() -> None:
    policy, rng = Uniform(4, 2), np.random.default_rng(7)
    plays = np.bincount([policy.choose(policy.init(), X, rng).arm for _ in range(8000)], minlength=4)
    assert chisquare(plays).pvalue > 1e-4


def test_every_name_makes_a_policy_that_plays() -> None:
    rng = np.random.default_rng(8)
    for name in set(policy_names()) - set(network_names()):
        options = {"n_components": 2} if name == "oracle-mixture" else {}
        policy = make_policy(name, 3, 2, **options)
        state = policy.init()
        for _ in range(8):
            arm = policy.choose(state, X, rng).arm
            state = policy.update(state, X, arm, suited(policy, float(arm)), rng)


def test_unknown_names_and_options_are_refused_by_name() -> None:
    with pytest.raises(UnknownName, match=r"policy must be one of nonparametric, .* got 'thompson'"):
        make_policy("thompson", 2, 2)
    with pytest.raises(InvalidArgument, match=r"options of policy 'linear' must be its settings, .*concentration"):
        make_policy("linear", 2, 2, concentration=1.0)
    with pytest.raises(InvalidArgument, match="concentration must be a finite number above 0, got -1"):
        make_policy("dirichlet", 2, 2, concentration=-1)
    with pytest.raises(InvalidArgument, match="n_components must be a number or one per arm"):
        make_policy("oracle-mixture", 3, 2, n_components=(2, 2))


def test_the_paper_policy_counts_sweeps_as_the_authors_do() -> None:
    assert make_policy("nonparametric-paper", 2, 2, gibbs_max=1).engine.rule.max_sweeps == 0  # type: ignore[attr-defined]
    assert make_policy("nonparametric-paper", 2, 2).engine.rule.max_sweeps == 9  # type: ignore[attr-defined]
    assert make_policy("nonparametric-paper", 2, 2).engine.arms[0].base.mean_vector.tolist() == [1.0, 1.0]  # type: ignore[attr-defined]


def test_linear_showdown_sees_an_intercept_and_gaussian_no_context() -> None:
    rng = np.random.default_rng(9)
    showdown, flat = make_policy("linear-showdown", 2, 3), make_policy("gaussian", 2, 3)
    state, level = showdown.init(), flat.init()
    for _ in range(400):
        x = rng.standard_normal(3)
        reward = 5.0 + x[0] + 0.1 * rng.standard_normal()
        state = showdown.update(state, x, 0, reward, rng)
        level = flat.update(level, x, 0, reward, rng)
    inner = showdown.policy.engine  # type: ignore[attr-defined]
    assert inner.expected_means(state.inner, np.zeros(3))[0] == pytest.approx(5.0, abs=0.1)
    assert inner.expected_means(state.inner, np.array([1.0, 0, 0]))[0] == pytest.approx(6.0, abs=0.1)
    assert flat.engine.expected_means(level, np.array([9.0, 0, 0]))[0] == pytest.approx(5.0, abs=0.2)  # type: ignore[attr-defined]


def test_the_papers_policy_can_have_an_intercept_and_initial_pulls() -> None:
    policy: Any = make_policy("nonparametric-paper", 3, 2, gibbs_max=2, intercept=True, initial_pulls=2)
    assert policy.policy.engine.engine.context_dim == 3
    state, rng = policy.init(), np.random.default_rng(0)
    for t in range(6):
        arm = policy.choose(state, np.ones(2), rng).arm
        assert arm == t % 3
        state = policy.update(state, np.ones(2), arm, 1.0, rng)
