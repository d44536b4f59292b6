"""Every setting of every engine, rule and policy has its limits: up to these it is taken, beyond them it is named."""

from collections.abc import Callable, Sequence
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
)
from polyarm.inference.beta import BetaEngine
from polyarm.inference.generalized import GeneralizedEngine
from polyarm.inference.hurdle import HurdleEngine
from polyarm.kernels.mixture.hyperparameters import MOST
from polyarm.models import HierarchicalMixture, LinearGaussian, LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.policies import (
    NPTS,
    UCBV,
    BayesUCB,
    InformationDirected,
    InitialPulls,
    LinearPHE,
    LinearUCB,
    MedianOfMeansUCB,
    OptimisticSampling,
    RandomBlockDuels,
    ThompsonSampling,
    Uniform,
    make_policy,
)

TINY = 1e-9
BASE = NormalInverseGamma(2)
LINES = [LinearGaussian(BASE)] * 2
ENGINE = ConjugateEngine(LINES)


def process(concentration: float = 0.5, discount: float = 0.0, scale: float = 1.0) -> LinearMixture:
    return LinearMixture(NormalInverseGamma(2, scale=scale), concentration, discount)


PROCESSES = (process(), process())


def of_arms(kind: Any) -> Callable[..., Any]:
    """An engine of mixtures, which may be given as `arms`."""
    return lambda arms=PROCESSES, **options: kind(arms, **options)


def sized(kind: Any) -> Callable[..., Any]:
    """A policy or engine that is made of numbers of arms and columns."""
    return lambda n_arms=2, context_dim=2, **options: kind(n_arms, context_dim, **options)


def franchise(concentration: float = 1.0, shared_concentration: float = 1.0, **options: Any) -> HierarchicalEngine:
    model = HierarchicalMixture(BASE, concentration, 0.3, shared_concentration, 0.3)
    return HierarchicalEngine(model, **{"n_arms": 2, **options})


def features(kind: Any = "intercept", dim: int = 1, engine: Any = ENGINE) -> FeatureEngine[Any]:
    return FeatureEngine(engine, kind, dim)


Limits = tuple[Sequence[Any], Sequence[Any]]  # values that are taken, values that are refused
COUNT: Limits = ((1,), (0, 1.5, True))
NONE_OR_MORE: Limits = ((0,), (-1, 0.5))
POSITIVE: Limits = ((TINY,), (0.0, -1.0, np.nan, np.inf))
PAIR: Limits = ((None, (TINY, TINY)), ((0.0, 1.0), (1.0, 0.0), (1.0,), (1.0, 1.0, 1.0), (np.inf, 1.0), (1.0, np.nan)))
THREE = LinearMixture(NormalInverseGamma(3))
MIXED = (process(), THREE)
SIZES: dict[str, Limits] = {"n_arms": COUNT, "context_dim": COUNT}
ARMS: dict[str, Limits] = {"arms": (([process()],), ([], MIXED))}
LIMITS: list[tuple[Callable[..., Any], dict[str, Limits]]] = [
    (Budget, dict.fromkeys(("moves", "split_merge", "warmup_rewards"), NONE_OR_MORE)),
    (Sweeps, {**dict.fromkeys(("max_sweeps", "split_merge"), NONE_OR_MORE), "tolerance": ((0.0,), (-TINY, np.nan))}),
    (of_arms(ConjugateEngine), {"arms": ((LINES,), ([], [*LINES, LinearGaussian(THREE.base)]))}),
    (
        lambda arms=LINES, **options: StudentEngine(arms, **options),
        {"arms": ((LINES,), ([], [*LINES, LinearGaussian(THREE.base)])), "dof": POSITIVE, "n_sweeps": COUNT},
    ),
    (
        of_arms(GibbsEngine),
        {
            **ARMS,
            "draws": (("exact", "paper", "weights"), ("none",)),
            "memory": COUNT,
            "half_life": POSITIVE,
            "learn_concentration": PAIR,
            "learn_discount": ((), ((1.0, 1.0), (0.0, 1.0))),  # of a discount of 0: see below
            "learn_scale": PAIR,
        },
    ),
    (of_arms(ParticleEngine), {**ARMS, "n_particles": COUNT}),
    (
        of_arms(VariationalEngine),
        {
            **ARMS,
            "max_components": COUNT,
            "open_threshold": ((0.0, 1.0), (-TINY, 1.0 + TINY, np.nan)),
            "refreshes": NONE_OR_MORE,
        },
    ),
    (
        franchise,
        {
            **{"n_arms": COUNT, "moves": NONE_OR_MORE, "table_moves": NONE_OR_MORE},
            **{"learn_concentration": PAIR, "learn_shared_concentration": PAIR},
        },
    ),
    (
        lambda **options: RobustEngine(RobustMixture(2, 2), **options),
        {"moves": NONE_OR_MORE, "other_arm_moves": NONE_OR_MORE, "memory": COUNT, "half_life": POSITIVE},
    ),
    (lambda **options: KindsEngine(RobustEngine(RobustMixture(2, 2)), **options), {"moves": NONE_OR_MORE}),
    (
        sized(GeneralizedEngine),
        {
            **SIZES,
            "family": (("logistic", "ordinal", "poisson", "gamma"), ("normal",)),
            "n_marks": ((2,), (1, 2.5)),
            "prior_mean": ((-3.0, np.array([1.0, -1.0])), (np.nan, np.ones(3), np.ones((1, 2)))),
            "prior_var": ((TINY, np.array([1.0, 2.0])), (0.0, -1.0, np.inf, np.ones(3), np.array([1.0, 0.0]))),
        },
    ),
    (sized(BetaEngine), {**SIZES, "prior": (((TINY, TINY),), ((0.0, 1.0), (1.0, 0.0), (1.0,), (1.0, 1.0, 1.0)))}),
    (sized(HurdleEngine), {**SIZES, "amounts": (("log-normal", "gamma", "normal"), ("poisson",))}),
    (features, {"kind": (("intercept",), ("square",))}),
    (sized(Uniform), SIZES),
    (sized(NPTS), {**SIZES, "upper_bound": ((None, -3.0), (np.inf, np.nan))}),
    (sized(RandomBlockDuels), SIZES),
    (
        sized(UCBV),
        {
            **{**SIZES, "exploration": POSITIVE, "reward_range": POSITIVE},
            "range_factor": ((0.0,), (-TINY, np.inf)),
        },
    ),
    (
        sized(MedianOfMeansUCB),
        {
            **{**SIZES, "exploration": POSITIVE, "moment_bound": POSITIVE},
            "moment_order": ((TINY, 1.0), (0.0, 1.0 + TINY)),
        },
    ),
    (
        sized(LinearUCB),
        {
            **SIZES,
            "width": ((0.0,), (-TINY, np.inf)),
            "bound": (("linucb", "oful"), ("ucb1",)),
            "failure": ((TINY, 1 - TINY), (0.0, 1.0)),
            **dict.fromkeys(("ridge", "noise_sd", "norm_bound"), POSITIVE),
        },
    ),
    (sized(LinearPHE), {**SIZES, "n_pseudo": COUNT, "ridge": POSITIVE, "noise_sd": POSITIVE}),
    (
        lambda n_arms=2, **options: InitialPulls(Uniform(2, 2), n_arms, **options),
        {"n_arms": COUNT, "pulls": NONE_OR_MORE},
    ),
    (lambda **options: ThompsonSampling(ENGINE, **options), {"n_draws": COUNT}),
    (
        lambda **options: OptimisticSampling(ENGINE, **options),
        {"draw_scale": POSITIVE, "floor": NONE_OR_MORE, "n_draws": COUNT},
    ),
    (
        lambda **options: InformationDirected(ENGINE, **options),
        {"n_draws": ((2,), (1, 2.5)), "n_rounds": COUNT, "power": ((1 + TINY,), (1.0, np.nan))},
    ),
    (
        lambda **options: BayesUCB(ENGINE, **options),
        {"n_draws": ((2,), (1, 2.5)), "horizon": ((None, 2), (1, 2.5))},
    ),
    (
        lambda **options: make_policy("nonparametric-paper", 2, 2, **options),
        {"gibbs_max": COUNT, "initial_pulls": ((0, 1), (-1,))},
    ),
    (lambda **options: make_policy("oracle-mixture", 2, 2, **{"n_components": 2, **options}), {"gibbs_max": COUNT}),
]
NAMED = {"initial_pulls": "pulls"}  # settings that are handed on under another name


@pytest.mark.parametrize(
    ("number", "name"), [(i, name) for i, (_, limits) in enumerate(LIMITS) for name in limits], ids=lambda v: str(v)
)
def test_a_setting_is_taken_up_to_its_limits(number: int, name: str) -> None:
    build, limits = LIMITS[number]
    taken, refused = limits[name]
    for value in taken:
        build(**{name: value})
    for value in refused:
        with pytest.raises(InvalidArgument, match=rf"^({NAMED.get(name, name)}|discount) must be "):
            build(**{name: value})


@pytest.mark.parametrize(
    ("arms", "learned", "refusal"),
    [
        ((process(), process()), "learn_concentration", None),
        ((process(0.5), process(0.6)), None, None),
        ((process(0.5), process(0.6)), "learn_scale", None),
        ((process(0.5), process(0.6)), "learn_concentration", "arms must be of one concentration and discount"),
        ((process(0.5, 0.1), process(0.5, 0.2)), "learn_concentration", "arms must be of one concentration and disc"),
        ((process(0.5, 0.1), process(0.5, 0.2)), "learn_discount", "arms must be of one concentration and discount"),
        ((LinearMixture.finite(BASE, 3, 0.5),), "learn_concentration", "arms must be infinite mixtures"),
        ((process(0.0, 0.2),), "learn_concentration", "concentration must be above 0 to learn it"),
        ((process(-0.1, 0.2),), "learn_discount", "concentration must be above 0 to learn it"),
        ((process(0.5, 0.0),), "learn_discount", f"discount must be between 0 and {MOST}"),
        ((process(0.5, MOST),), "learn_discount", f"discount must be between 0 and {MOST}"),
        ((process(0.5, TINY),), "learn_discount", None),
        ((process(0.5, MOST - TINY),), "learn_discount", None),
        ((process(scale=1.0), process(scale=2.0)), "learn_scale", "arms must be of one prior_scale to learn it"),
        ((process(scale=1.0), process(scale=2.0)), "learn_concentration", None),
    ],
)
def test_what_is_learned_is_one_number_of_all_arms_inside_its_range(
    arms: Any, learned: str | None, refusal: str | None
) -> None:
    options: dict[str, Any] = {learned: (1.0, 1.0)} if learned else {}
    if refusal is None:
        GibbsEngine(arms, **options)
        return
    with pytest.raises(InvalidArgument, match=refusal):
        GibbsEngine(arms, **options)


@pytest.mark.parametrize("name", ["concentration", "shared_concentration"])
def test_a_concentration_of_zero_is_not_learned(name: str) -> None:
    franchise(**{name: 0.0})
    options: dict[str, Any] = {name: 0.0, f"learn_{name}": (1.0, 1.0)}
    with pytest.raises(InvalidArgument, match=f"^{name} must be above 0 to learn it, got 0"):
        franchise(**options)


def test_soft_seatings_have_no_more_components_than_a_finite_mixture() -> None:
    arms = [LinearMixture.finite(BASE, 3, 0.5), LinearMixture.finite(BASE, 4, 0.5)]
    VariationalEngine(arms, 3)
    with pytest.raises(InvalidArgument, match="max_components must be at most the model's 3, got 4"):
        VariationalEngine(arms, 4)


def test_features_are_as_many_as_the_engine_has_columns() -> None:
    one = ConjugateEngine([LinearGaussian(NormalInverseGamma(1))])
    features("intercept", 1), features("constant", 7, one)
    for kind, dim, engine in (("intercept", 2, ENGINE), ("constant", 2, ENGINE), ("intercept", 1, one)):
        with pytest.raises(InvalidArgument, match=r"engine must be for . features, got"):
            features(kind, dim, engine)
    with pytest.raises(InvalidArgument, match="context_dim must be"):
        features("constant", 0, one)
