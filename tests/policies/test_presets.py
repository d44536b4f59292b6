"""Every named policy is the rule, engine and model that its page says, and every option arrives where it belongs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument
from polyarm.inference import (
    Budget,
    ConjugateEngine,
    FeatureEngine,
    GibbsEngine,
    HierarchicalEngine,
    KindsEngine,
    ParticleEngine,
    RobustEngine,
    StudentEngine,
    Sweeps,
    VariationalEngine,
    make_engine,
)
from polyarm.inference.beta import BetaEngine
from polyarm.inference.door import described
from polyarm.inference.generalized import GeneralizedEngine
from polyarm.inference.hurdle import HurdleEngine
from polyarm.models import HierarchicalMixture, LinearGaussian, LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.models.objectives import MEAN, Quantile
from polyarm.policies import (
    InformationDirected,
    InitialPulls,
    OptimisticSampling,
    ThompsonSampling,
    Uniform,
    make_policy,
)
from polyarm.policies.objective import objective_of, takes_objective, with_objective

N, D = 3, 2  # arms and columns: different, so that no one stands in for the other
PRIOR = {"prior_mean": 0.3, "prior_covariance": 1.7, "prior_shape": 2.5, "prior_scale": 0.6}
BASE = (0.3, 1.7, 2.5, 0.6)
Build = Callable[[], Any]


def lines(dim: int, *base: float, noise_var: float | None = None) -> list[LinearGaussian]:
    return [LinearGaussian(NormalInverseGamma(dim, *base), noise_var)] * N


def mixtures(dim: int, base: tuple[float, ...], concentration: float, discount: float = 0.0) -> list[LinearMixture]:
    return [LinearMixture(NormalInverseGamma(dim, *base), concentration, discount)] * N


def with_one(engine: Any) -> Any:
    """The engine behind an intercept."""
    return FeatureEngine(engine, "intercept", D)


def lined(family: Any, slope_var: float, intercept_var: float, **law: Any) -> Any:
    prior_var = np.array([slope_var, slope_var, intercept_var])
    return with_one(GeneralizedEngine(N, D + 1, family, prior_var=prior_var, **law))


def hurdle(amounts: Any, slope_var: float, intercept_var: float, amount_var: float) -> Any:
    return with_one(HurdleEngine(N, D + 1, amounts, np.array([slope_var, slope_var, intercept_var]), amount_var))


ZERO, ONE = (0.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0)  # mean, covariance, shape and scale
MEANT: list[tuple[str, dict[str, Any], Build]] = [
    ("dirichlet", {}, lambda: ThompsonSampling(GibbsEngine(mixtures(D, ZERO, 0.1)))),
    (
        "dirichlet",
        {**PRIOR, "concentration": 0.7, "discount": 0.2, "moves": 9, "split_merge": 2, "warmup_rewards": 50},
        lambda: ThompsonSampling(GibbsEngine(mixtures(D, BASE, 0.7, 0.2), Budget(9, 2, 50))),
    ),
    (
        "dirichlet",
        {"engine": "gibbs", "sweeps": 3, "split_merge": 4, "draws": "paper", "memory": 7, "half_life": 8.0},
        lambda: ThompsonSampling(
            GibbsEngine(mixtures(D, ZERO, 0.1), Sweeps(3, 0.0, 4), "paper", memory=7, half_life=8.0)
        ),
    ),
    (
        "dirichlet",
        {"engine": "gibbs"},
        lambda: ThompsonSampling(GibbsEngine(mixtures(D, ZERO, 0.1), Sweeps(1, 0.0, 1))),
    ),
    (
        "dirichlet",
        {"engine": "particles", "n_particles": 17},
        lambda: ThompsonSampling(ParticleEngine(mixtures(D, ZERO, 0.1), 17)),
    ),
    (
        "dirichlet",
        {"engine": "variational", "max_components": 5, "open_threshold": 0.4, "refreshes": 3},
        lambda: ThompsonSampling(VariationalEngine(mixtures(D, ZERO, 0.1), 5, 0.4, 3)),
    ),
    ("dirichlet", {"engine": "conjugate", **PRIOR}, lambda: ThompsonSampling(ConjugateEngine(lines(D, *BASE)))),
    ("pitman-yor", {}, lambda: ThompsonSampling(GibbsEngine(mixtures(D, ZERO, 0.1, 0.25)))),
    (
        "pitman-yor",
        {**PRIOR, "concentration": 0.7, "discount": 0.4, "moves": 5},
        lambda: ThompsonSampling(GibbsEngine(mixtures(D, BASE, 0.7, 0.4), Budget(5))),
    ),
    ("nonparametric", {}, lambda: InformationDirected(KindsEngine(RobustEngine(RobustMixture(N, D), 32, 12)), 100)),
    (
        "nonparametric",
        {
            "n_draws": 50,
            "power": 1.5,
            "moves": 5,
            "other_arm_moves": 3,
            "memory": 9,
            "half_life": 7.0,
            "centre_var": 2.0,
        },
        lambda: InformationDirected(
            KindsEngine(RobustEngine(RobustMixture(N, D, centre_var=2.0), 5, 3, memory=9, half_life=7.0)), 50, power=1.5
        ),
    ),
    (
        "nonparametric",
        {"explore": "thompson"},
        lambda: ThompsonSampling(KindsEngine(RobustEngine(RobustMixture(N, D)))),
    ),
    (
        "nonparametric",
        {"explore": "optimistic"},
        lambda: OptimisticSampling(KindsEngine(RobustEngine(RobustMixture(N, D)))),
    ),
    (
        "nonparametric-paper",
        {},
        lambda: ThompsonSampling(GibbsEngine(mixtures(D, ONE, 0.1), Sweeps(9, 1e-4), "paper")),
    ),
    (
        "nonparametric-paper",
        {**PRIOR, "concentration": 0.7, "discount": 0.2, "draws": "exact", "gibbs_max": 4, "tolerance": 0.01},
        lambda: ThompsonSampling(GibbsEngine(mixtures(D, BASE, 0.7, 0.2), Sweeps(3, 0.01), "exact")),
    ),
    (
        "nonparametric-paper",
        {"intercept": True, "initial_pulls": 3},
        lambda: InitialPulls(
            ThompsonSampling(with_one(GibbsEngine(mixtures(D + 1, ONE, 0.1), Sweeps(9, 1e-4), "paper"))), N, 3
        ),
    ),
    (
        "hierarchical",
        {},
        lambda: ThompsonSampling(HierarchicalEngine(HierarchicalMixture(NormalInverseGamma(D, *ZERO)), N)),
    ),
    (
        "hierarchical",
        {
            **PRIOR,
            **{"concentration": 0.7, "discount": 0.2, "shared_concentration": 0.8, "shared_discount": 0.3},
            **{
                "moves": 5,
                "table_moves": 2,
                "learn_concentration": (1.0, 2.0),
                "learn_shared_concentration": (3.0, 4.0),
            },
        },
        lambda: ThompsonSampling(
            HierarchicalEngine(
                HierarchicalMixture(NormalInverseGamma(D, *BASE), 0.7, 0.2, 0.8, 0.3), N, 5, 2, (1.0, 2.0), (3.0, 4.0)
            )
        ),
    ),
    ("linear", {}, lambda: ThompsonSampling(ConjugateEngine(lines(D, *ZERO)))),
    (
        "linear",
        {**PRIOR, "noise_var": 0.4, "intercept": True},
        lambda: ThompsonSampling(with_one(ConjugateEngine(lines(D + 1, *BASE, noise_var=0.4)))),
    ),
    ("linear-information", {}, lambda: InformationDirected(ConjugateEngine(lines(D, *ZERO)))),
    (
        "linear-information",
        {**PRIOR, "noise_var": 0.4, "intercept": True},
        lambda: InformationDirected(with_one(ConjugateEngine(lines(D + 1, *BASE, noise_var=0.4)))),
    ),
    ("linear-student-t", {}, lambda: ThompsonSampling(StudentEngine(lines(D, *ZERO), 3.0, 1))),
    (
        "linear-student-t",
        {**PRIOR, "dof": 4.5, "n_sweeps": 2},
        lambda: ThompsonSampling(StudentEngine(lines(D, *BASE), 4.5, 2)),
    ),
    (
        "linear-showdown",
        {},
        lambda: InitialPulls(ThompsonSampling(with_one(ConjugateEngine(lines(D + 1, *ZERO)))), N, 2),
    ),
    (
        "linear-showdown",
        {**PRIOR, "initial_pulls": 5},
        lambda: InitialPulls(ThompsonSampling(with_one(ConjugateEngine(lines(D + 1, *BASE)))), N, 5),
    ),
    (
        "gaussian",
        {**PRIOR, "noise_var": 0.4},
        lambda: ThompsonSampling(FeatureEngine(ConjugateEngine(lines(1, *BASE, noise_var=0.4)), "constant", D)),
    ),
    (
        "oracle-mixture",
        {"n_components": (2, 3, 4)},
        lambda: ThompsonSampling(
            GibbsEngine(
                [LinearMixture.finite(NormalInverseGamma(D, *ONE), k, 0.1) for k in (2, 3, 4)], Sweeps(9, 1e-4), "paper"
            )
        ),
    ),
    (
        "oracle-mixture",
        {**PRIOR, "n_components": 2, "weight_prior": 0.7, "draws": "exact", "gibbs_max": 4, "tolerance": 0.01},
        lambda: ThompsonSampling(
            GibbsEngine([LinearMixture.finite(NormalInverseGamma(D, *BASE), 2, 0.7)] * N, Sweeps(3, 0.01), "exact")
        ),
    ),
    ("beta", {}, lambda: ThompsonSampling(BetaEngine(N, D, (1.0, 1.0)))),
    ("beta", {"prior": (2.0, 5.0)}, lambda: ThompsonSampling(BetaEngine(N, D, (2.0, 5.0)))),
    ("beta-information", {"prior": (2.0, 5.0)}, lambda: InformationDirected(BetaEngine(N, D, (2.0, 5.0)))),
    ("logistic", {}, lambda: ThompsonSampling(lined("logistic", 1.0, 1.0))),
    ("logistic", {"slope_var": 2.0, "intercept_var": 3.0}, lambda: ThompsonSampling(lined("logistic", 2.0, 3.0))),
    ("logistic-information", {}, lambda: InformationDirected(lined("logistic", 1.0, 1.0))),
    ("poisson", {}, lambda: ThompsonSampling(lined("poisson", 0.25, 1.0))),
    ("poisson", {"slope_var": 2.0, "intercept_var": 3.0}, lambda: ThompsonSampling(lined("poisson", 2.0, 3.0))),
    ("poisson-information", {}, lambda: InformationDirected(lined("poisson", 0.25, 1.0))),
    ("ordinal", {}, lambda: ThompsonSampling(lined("ordinal", 1.0, 1.0, n_marks=5))),
    (
        "ordinal",
        {"n_marks": 7, "slope_var": 2.0, "intercept_var": 3.0},
        lambda: ThompsonSampling(lined("ordinal", 2.0, 3.0, n_marks=7)),
    ),
    ("ordinal-information", {}, lambda: InformationDirected(lined("ordinal", 1.0, 1.0, n_marks=5))),
    ("hurdle", {}, lambda: ThompsonSampling(hurdle("log-normal", 1.0, 1.0, 1.0))),
    (
        "hurdle",
        {"amounts": "gamma", "slope_var": 2.0, "intercept_var": 3.0, "amount_var": 4.0},
        lambda: ThompsonSampling(hurdle("gamma", 2.0, 3.0, 4.0)),
    ),
    ("hurdle-information", {}, lambda: InformationDirected(hurdle("log-normal", 1.0, 1.0, 1.0))),
    ("uniform", {}, lambda: Uniform(N, D)),
]


@pytest.mark.parametrize(("name", "options", "meant"), MEANT, ids=[f"{i}-{m[0]}" for i, m in enumerate(MEANT)])
def test_a_named_policy_is_what_its_page_says(name: str, options: dict[str, Any], meant: Build) -> None:
    policy: Any = make_policy(name, N, D, **options)
    assert described(policy) == described(meant())
    if hasattr(policy, "engine"):
        assert (policy.engine.n_arms, policy.engine.context_dim) == (N, D)


def test_options_that_nobody_knows_are_refused_by_name() -> None:
    for name, options in (("linear", {"moves": 3}), ("dirichlet", {"engine": "conjugate", "moves": 3})):
        with pytest.raises(InvalidArgument, match=r"options of .* must be its settings, got .*moves"):
            make_policy(name, N, D, **options)
    with pytest.raises(InvalidArgument, match="options must be settings of the engine, got"):
        make_engine("particles", mixtures(D, ZERO, 0.1), _prior=1)
    for explore in ("nobody", "optimistic"):
        with pytest.raises(InvalidArgument, match="explore must be one of thompson, information, got"):
            make_policy("beta", N, D, explore=explore)


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        *((name, True) for name in ("nonparametric", "dirichlet", "linear", "gaussian", "linear-showdown")),
        *((name, False) for name in ("linear-student-t", "beta", "logistic", "uniform", "ucb-v")),
    ],
)
def test_an_objective_reaches_the_rule_that_judges_by_it(name: str, takes: bool) -> None:
    policy, other = make_policy(name, N, D), Quantile(0.2)
    assert takes_objective(policy) == takes
    assert objective_of(policy) == MEAN
    assert with_objective(policy, "mean") is policy
    if not takes:
        with pytest.raises(InvalidArgument, match="objective must be the mean, the only one that this policy can play"):
            with_objective(policy, other)
        return
    changed = make_policy(name, N, D, objective=other)
    assert objective_of(changed) == other
    assert described(with_objective(policy, other)) == described(changed)
    assert described(with_objective(changed, MEAN)) == described(policy)
