"""The engines that must keep the contract: a new one adds a line."""

from collections.abc import Callable
from typing import Any

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
from polyarm.models import HierarchicalMixture, LinearGaussian, LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.types import AnyEngine
from tests.contracts.pages import skeleton


def base(dim: int) -> NormalInverseGamma:
    return NormalInverseGamma(dim, 0.0, 1.0, 2.0, 0.5)


def process(dim: int, concentration: float = 0.5, discount: float = 0.0) -> LinearMixture:
    return LinearMixture(base(dim), concentration, discount)


class CountsEngine(KindsEngine):
    """The engine of every kind of reward, fed with counts."""

    family = "counts"


class WindfallsEngine(KindsEngine):
    """The same, fed with rewards that are far larger than others now and then."""

    family = "windfalls"


class ProfitsEngine(KindsEngine):
    """The same, fed with what is left of rewards above 1/2 when every arm has a cost of its own."""

    def update(self, state: Any, context: Any, arm: Any, reward: Any, rng: Any) -> Any:
        """State after one reward, less the cost of its arm."""
        if type(reward) is float and type(arm) is int and abs(reward) < LARGE:
            reward = max(reward - 0.5, 0.0) - 0.05 * (1 + arm)
        return super().update(state, context, arm, reward, rng)


LARGE = 1e6  # rewards above are meant to be refused, or to be that large

ENGINES: dict[str, Callable[[int, int], AnyEngine]] = {  # number of arms, context dimension -> engine
    "conjugate": lambda n, d: ConjugateEngine([LinearGaussian(base(d))] * n),
    "conjugate, known variance": lambda n, d: ConjugateEngine([LinearGaussian(base(d), 0.3)] * n),
    "student": lambda n, d: StudentEngine([LinearGaussian(base(d))] * n),
    "dirichlet, budget": lambda n, d: GibbsEngine([process(d)] * n, Budget(8)),
    "dirichlet, sweeps": lambda n, d: GibbsEngine([process(d)] * n, Sweeps(2)),
    "dirichlet, paper draws": lambda n, d: GibbsEngine([process(d)] * n, Budget(8), "paper"),
    "dirichlet, sampled weights": lambda n, d: GibbsEngine([process(d)] * n, Budget(8), "weights"),
    "pitman-yor": lambda n, d: GibbsEngine([process(d, 0.2, 0.3)] * n, Budget(8)),
    "finite": lambda n, d: GibbsEngine([LinearMixture.finite(base(d), 3, 0.5)] * n, Budget(8)),
    "finite, paper draws": lambda n, d: GibbsEngine([LinearMixture.finite(base(d), 3, 0.5)] * n, Sweeps(2), "paper"),
    "split-merge": lambda n, d: GibbsEngine([process(d)] * n, Budget(8, split_merge=2)),
    "bounded memory": lambda n, d: GibbsEngine([process(d)] * n, Budget(8), memory=10),
    "particles": lambda n, d: ParticleEngine([process(d, 0.2, 0.3)] * n, 20),
    "variational": lambda n, d: VariationalEngine([process(d, 0.2, 0.3)] * n),
    "learned": lambda n, d: GibbsEngine([process(d)] * n, Budget(8), learn_concentration=(1, 1)),
    "learned discount": lambda n, d: GibbsEngine([process(d, 0.5, 0.1)] * n, Budget(8), learn_discount=(1, 9)),
    "learned scale": lambda n, d: GibbsEngine([process(d)] * n, Budget(8), learn_scale=(2, 2)),
    "all learned, bounded memory": lambda n, d: GibbsEngine(
        [process(d, 0.5, 0.1)] * n,
        Budget(8),
        learn_concentration=(1, 1),
        learn_discount=(1, 9),
        learn_scale=(2, 2),
        memory=10,
    ),
    "fading": lambda n, d: GibbsEngine([process(d)] * n, Budget(8), half_life=15.0),
    "hierarchical": lambda n, d: HierarchicalEngine(HierarchicalMixture(base(d), 0.5, 0.1, 1.0, 0.1), n, 8),
    "hierarchical, learned": lambda n, d: HierarchicalEngine(
        HierarchicalMixture(base(d), 0.5, 0.1, 1.0),
        n,
        8,
        1,
        learn_concentration=(1, 1),
        learn_shared_concentration=(1, 1),
    ),
    "with intercept": lambda n, d: FeatureEngine(GibbsEngine([process(d + 1)] * n), "intercept", d),
    "without context": lambda n, d: FeatureEngine(ConjugateEngine([LinearGaussian(base(1))] * n), "constant", d),
    "robust, kinds": lambda n, d: KindsEngine(RobustEngine(RobustMixture(n, d), 8, 4)),
    "robust, kinds, fading": lambda n, d: KindsEngine(RobustEngine(RobustMixture(n, d), 8, 4, half_life=15.0)),
    "robust, counts": lambda n, d: CountsEngine(RobustEngine(RobustMixture(n, d), 8, 4)),
    "robust, counts, bounded memory": lambda n, d: CountsEngine(RobustEngine(RobustMixture(n, d), 8, 4, memory=10)),
    "robust, windfalls": lambda n, d: WindfallsEngine(RobustEngine(RobustMixture(n, d), 8, 4)),
    "robust, windfalls, fading": lambda n, d: WindfallsEngine(RobustEngine(RobustMixture(n, d), 8, 4, half_life=15.0)),
    "robust, windfalls, bounded memory": lambda n, d: WindfallsEngine(
        RobustEngine(RobustMixture(n, d), 8, 4, memory=10)
    ),
    "robust, profits": lambda n, d: ProfitsEngine(RobustEngine(RobustMixture(n, d), 8, 4)),
    "robust, profits, fading": lambda n, d: ProfitsEngine(RobustEngine(RobustMixture(n, d), 8, 4, half_life=150.0)),
    "robust, profits, bounded memory": lambda n, d: ProfitsEngine(RobustEngine(RobustMixture(n, d), 8, 4, memory=10)),
    "robust": lambda n, d: RobustEngine(RobustMixture(n, d), 8, 4),
    "robust, bounded memory": lambda n, d: RobustEngine(RobustMixture(n, d), 8, 4, memory=10),
    "robust, fading": lambda n, d: RobustEngine(RobustMixture(n, d), 8, 4, half_life=15.0),
    "beta": lambda n, d: BetaEngine(n, d),
    "logistic": lambda n, d: GeneralizedEngine(n, d, "logistic"),
    "poisson": lambda n, d: GeneralizedEngine(n, d, "poisson", prior_var=0.25),
    "ordinal": lambda n, d: GeneralizedEngine(n, d, "ordinal"),
    "gamma": lambda n, d: GeneralizedEngine(n, d, "gamma", prior_var=0.25),
    "hurdle, normal": lambda n, d: HurdleEngine(n, d, "normal"),
    "of the how-to": lambda n, d: skeleton("write-an-engine", "RidgeEngine")(n, d),
}

LEARNED = ("learned", "learned discount", "learned scale", "all learned, bounded memory")
ROBUST = tuple(name for name in ENGINES if name.startswith("robust"))
SHARING = (
    *LEARNED,
    "fading",
    "hierarchical",
    "hierarchical, learned",
    "ordinal",
    "gamma",
    *ROBUST,
)  # a reward of one arm changes all arms
IN_TURN = LEARNED  # arms take turns with the generator by their numbers
