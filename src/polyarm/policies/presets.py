"""The named policies."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Literal

from numpy.typing import ArrayLike

from polyarm.errors import InvalidArgument, refused_option, require, require_count, require_name
from polyarm.inference import (
    ConjugateEngine,
    FeatureEngine,
    GibbsEngine,
    HierarchicalEngine,
    KindsEngine,
    RobustEngine,
    Sweeps,
    make_engine,
)
from polyarm.inference.gibbs import Draws
from polyarm.inference.student import StudentEngine
from polyarm.kernels.robust.update import MANY
from polyarm.models import HierarchicalMixture, LinearGaussian, LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.models.objectives import ObjectiveLike
from polyarm.policies.information import InformationDirected
from polyarm.policies.initial_pulls import InitialPulls
from polyarm.policies.linear_ucb import LinearUCB
from polyarm.policies.median_of_means import MedianOfMeansUCB
from polyarm.policies.npts import NPTS
from polyarm.policies.objective import with_objective
from polyarm.policies.optimistic import OptimisticSampling
from polyarm.policies.phe import LinearPHE
from polyarm.policies.specialists import beta, hurdle, linear_information, logistic, ordinal, poisson
from polyarm.policies.subsampling import RandomBlockDuels
from polyarm.policies.thompson import ThompsonSampling
from polyarm.policies.ucb_v import UCBV
from polyarm.policies.uniform import Uniform
from polyarm.renaming import renamed
from polyarm.types import AnyPolicy

N_CHAINS = 4
NETWORKS = "polyarm.neural.presets"  # a layer above this one, so it is only ever loaded by name


def dirichlet(
    n_arms: int,
    context_dim: int,
    *,
    concentration: float = 0.1,
    discount: float = 0.0,
    prior_mean: ArrayLike = 0.0,
    prior_covariance: ArrayLike = 1.0,
    prior_shape: float = 1.0,
    prior_scale: float = 1.0,
    engine: str = "budget",
    **inference: Any,
) -> AnyPolicy:
    """The paper's model, our inference: Dirichlet-process mixtures, exact draws of the mean, constant time per reward.

    `engine` names a way to infer and `inference` are its settings: moves, draws, memory, half_life, split_merge,
    learn_concentration, learn_discount and learn_scale of GibbsEngine, or those of another engine.
    """
    base = NormalInverseGamma(context_dim, prior_mean, prior_covariance, prior_shape, prior_scale)
    arms = [LinearMixture(base, concentration, discount)] * n_arms
    return ThompsonSampling(make_engine(engine, arms, **inference))


@renamed(other_arm_moves="moves_elsewhere")
def nonparametric(
    n_arms: int,
    context_dim: int,
    *,
    explore: Literal["information", "optimistic", "thompson"] = "information",
    n_draws: int = 100,
    power: float = 2.0,
    moves: int = 32,
    other_arm_moves: int = 12,
    n_chains: int | None = None,
    windfalls: bool = True,
    bases: bool = True,
    memory: int | None = None,
    half_life: float | None = None,
    **model: Any,
) -> AnyPolicy:
    """Our default: mixtures that share a centre in arms that share scales, free of units, explored by information.

    `explore` names the rule that picks arms, `power` how information weighs regret (see InformationDirected); `memory`
    bounds the state, `half_life` forgets: see RobustEngine.  `n_chains` chains of its sampler learn beside each other
    while arms are young, four unless contexts are wide, where one takes long enough; with `windfalls` rare rewards far
    out on one side are told apart, and with `bases` rewards are counted from a value that their arm pays again and
    again, where each has its own: see KindsEngine.  `model` are the settings of RobustMixture.
    """
    mixture = RobustMixture(n_arms, context_dim, **model)
    rest = RobustEngine(mixture, moves, other_arm_moves, memory=memory, half_life=half_life)
    several = 1 if mixture.n_features >= MANY else N_CHAINS
    several = several if n_chains is None else n_chains
    engine = KindsEngine(rest, n_chains=several, windfalls=windfalls, bases=bases)
    if require_name(explore, ("information", "optimistic", "thompson"), "explore") == "information":
        return InformationDirected(engine, n_draws, power=float(power))
    return ThompsonSampling(engine) if explore == "thompson" else OptimisticSampling(engine)


def nonparametric_paper(
    n_arms: int,
    context_dim: int,
    *,
    concentration: float = 0.1,
    discount: float = 0.0,
    prior_mean: ArrayLike = 1.0,
    prior_covariance: ArrayLike = 1.0,
    prior_shape: float = 1.0,
    prior_scale: float = 1.0,
    draws: Draws = "paper",
    gibbs_max: int = 10,
    tolerance: float = 1e-4,
    intercept: bool = False,
    initial_pulls: int = 0,
) -> AnyPolicy:
    """Exactly the paper's choices: prior mean 1, expected weights with one new atom, at most gibbs_max - 1 sweeps.

    `intercept` appends a one to the context, `initial_pulls` plays every arm so often first: the paper's linear rival
    does both.
    """
    dim = context_dim + int(intercept)
    base = NormalInverseGamma(dim, prior_mean, prior_covariance, prior_shape, prior_scale)
    arms = [LinearMixture(base, concentration, discount)] * n_arms
    sweeps = Sweeps(require_count(gibbs_max, "gibbs_max") - 1, tolerance)
    engine: Any = GibbsEngine(arms, sweeps, draws)
    if intercept:
        engine = FeatureEngine(engine, "intercept", context_dim)
    policy = ThompsonSampling(engine)
    return InitialPulls(policy, n_arms, initial_pulls) if initial_pulls else policy


def pitman_yor(
    n_arms: int, context_dim: int, *, concentration: float = 0.1, discount: float = 0.25, **options: Any
) -> AnyPolicy:
    """As `dirichlet`, over Pitman-Yor mixtures: more small components, for rewards with power-law tails."""
    return dirichlet(n_arms, context_dim, concentration=concentration, discount=discount, **options)


def hierarchical(
    n_arms: int,
    context_dim: int,
    *,
    concentration: float = 1.0,
    discount: float = 0.0,
    shared_concentration: float = 1.0,
    shared_discount: float = 0.0,
    prior_mean: ArrayLike = 0.0,
    prior_covariance: ArrayLike = 1.0,
    prior_shape: float = 1.0,
    prior_scale: float = 1.0,
    **inference: Any,
) -> AnyPolicy:
    """Mixtures whose components the arms share (the paper's appendix A): arms learn from each other's rewards.

    `inference` are the settings of HierarchicalEngine.
    """
    base = NormalInverseGamma(context_dim, prior_mean, prior_covariance, prior_shape, prior_scale)
    model = HierarchicalMixture(base, concentration, discount, shared_concentration, shared_discount)
    return ThompsonSampling(HierarchicalEngine(model, n_arms, **inference))


def linear(
    n_arms: int,
    context_dim: int,
    *,
    intercept: bool = False,
    noise_var: float | None = None,
    prior_mean: ArrayLike = 0.0,
    prior_covariance: ArrayLike = 1.0,
    prior_shape: float = 1.0,
    prior_scale: float = 1.0,
) -> AnyPolicy:
    """Linear Thompson sampling with the exact normal-inverse-gamma posterior, or a known noise variance.

    `intercept` appends a one to the context.
    """
    base = NormalInverseGamma(context_dim + int(intercept), prior_mean, prior_covariance, prior_shape, prior_scale)
    engine: Any = ConjugateEngine([LinearGaussian(base, noise_var)] * n_arms)
    return ThompsonSampling(FeatureEngine(engine, "intercept", context_dim) if intercept else engine)


def linear_student_t(
    n_arms: int,
    context_dim: int,
    *,
    dof: float = 3.0,
    n_sweeps: int = 1,
    prior_mean: ArrayLike = 0.0,
    prior_covariance: ArrayLike = 1.0,
    prior_shape: float = 1.0,
    prior_scale: float = 1.0,
) -> AnyPolicy:
    """Linear Thompson sampling with Student-t noise, by Gibbs sampling over the precisions of the rewards."""
    base = NormalInverseGamma(context_dim, prior_mean, prior_covariance, prior_shape, prior_scale)
    return ThompsonSampling(StudentEngine([LinearGaussian(base)] * n_arms, dof, n_sweeps))


def linear_showdown(n_arms: int, context_dim: int, *, initial_pulls: int = 2, **options: Any) -> AnyPolicy:
    """The paper's LinearGaussian TS: linear Thompson sampling with an intercept and two initial pulls per arm."""
    inner: Any = linear(n_arms, context_dim + 1, **options)
    engine: Any = FeatureEngine(inner.engine, "intercept", context_dim)
    return InitialPulls(ThompsonSampling(engine), n_arms, initial_pulls)


def gaussian(n_arms: int, context_dim: int, **options: Any) -> AnyPolicy:
    """Gaussian Thompson sampling that ignores the context."""
    inner: Any = linear(n_arms, 1, **options)
    engine: Any = FeatureEngine(inner.engine, "constant", context_dim)
    return ThompsonSampling(engine)


def oracle_mixture(
    n_arms: int,
    context_dim: int,
    *,
    n_components: int | Sequence[int],
    weight_prior: float = 0.1,
    prior_mean: ArrayLike = 1.0,
    prior_covariance: ArrayLike = 1.0,
    prior_shape: float = 1.0,
    prior_scale: float = 1.0,
    draws: Draws = "paper",
    gibbs_max: int = 10,
    tolerance: float = 1e-4,
) -> AnyPolicy:
    """The paper's Oracle TS: a finite mixture that knows the number of components of every arm."""
    counts = [n_components] * n_arms if isinstance(n_components, int) else list(n_components)
    require(len(counts) == n_arms, "n_components", f"a number or one per arm ({n_arms})", n_components)
    base = NormalInverseGamma(context_dim, prior_mean, prior_covariance, prior_shape, prior_scale)
    arms = [LinearMixture.finite(base, count, weight_prior) for count in counts]
    sweeps = Sweeps(require_count(gibbs_max, "gibbs_max") - 1, tolerance)
    return ThompsonSampling(GibbsEngine(arms, sweeps, draws))


def uniform(n_arms: int, context_dim: int) -> AnyPolicy:
    """Every arm with the same probability."""
    return Uniform(n_arms, context_dim)


SPECIALISTS: dict[str, Callable[..., AnyPolicy]] = {
    "beta": beta,
    "logistic": logistic,
    "poisson": poisson,
    "ordinal": ordinal,
    "hurdle": hurdle,
}
PRESETS: dict[str, Callable[..., AnyPolicy]] = {  # every policy that needs no network: a new one adds a line
    "nonparametric": nonparametric,
    "dirichlet": dirichlet,
    "nonparametric-paper": nonparametric_paper,
    "pitman-yor": pitman_yor,
    "hierarchical": hierarchical,
    "linear": linear,
    "linear-showdown": linear_showdown,
    "gaussian": gaussian,
    "oracle-mixture": oracle_mixture,
    "linear-ucb": LinearUCB,
    "linear-student-t": linear_student_t,
    "linear-phe": LinearPHE,
    "npts": NPTS,
    "rb-sda": RandomBlockDuels,
    "ucb-v": UCBV,
    "median-of-means-ucb": MedianOfMeansUCB,
    "linear-information": linear_information,
    **SPECIALISTS,
    **{f"{name}-information": partial(build, explore="information") for name, build in SPECIALISTS.items()},
    "uniform": uniform,
}


def network_names() -> tuple[str, ...]:
    """Names of the policies that need the extra `neural`; JAX is loaded when one is made."""
    names: tuple[str, ...] = import_module(NETWORKS).NAMES
    return names


def policy_names() -> tuple[str, ...]:
    """Names of all policies, as `make_policy` takes them.

    >>> {"nonparametric", "linear", "uniform"} <= set(policy_names())
    True
    """
    return (*PRESETS, *network_names())


def make_policy(name: str, n_arms: int, context_dim: int, **options: Any) -> AnyPolicy:
    """The policy of that name for a problem with that many arms and context entries; options are its settings.

    The option `objective` is what it judges arms by: "mean", Quantile(p), ExpectedShortfall(p), ProbabilityAbove(v),
    ExponentialUtility(risk_aversion), or one of these as text, such as "quantile:0.1".

    >>> import numpy as np
    >>> policy, rng = make_policy("nonparametric", n_arms=3, context_dim=2), np.random.default_rng(0)
    >>> state = policy.init()
    >>> choice = policy.choose(state, np.ones(2), rng)
    >>> state = policy.update(state, np.ones(2), choice.arm, 1.5, rng)
    """
    objective: ObjectiveLike = options.pop("objective", "mean")
    require_name(name, policy_names(), "policy")
    build = PRESETS[name] if name in PRESETS else partial(import_module(NETWORKS).make_policy, name)
    require_count(n_arms, "n_arms")
    require_count(context_dim, "context_dim")
    try:
        return with_objective(build(n_arms, context_dim, **options), objective)
    except TypeError as error:  # an option that neither the policy nor the model it hands options on to knows
        raise InvalidArgument(
            f"options of policy {name!r} must be its settings, got {refused_option(error)}"
        ) from error
