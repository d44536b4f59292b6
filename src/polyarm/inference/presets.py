"""The named engines: one for every budget."""

from collections.abc import Callable, Sequence
from typing import Any

from polyarm.errors import InvalidArgument, refused_option, require, require_name
from polyarm.inference.conjugate import ConjugateEngine
from polyarm.inference.gibbs import GibbsEngine
from polyarm.inference.particles import ParticleEngine
from polyarm.inference.rules import Budget, Sweeps
from polyarm.inference.variational import VariationalEngine
from polyarm.models import LinearGaussian, LinearMixture
from polyarm.renaming import renamed
from polyarm.types import AnyEngine


def gibbs(arms: Sequence[LinearMixture], sweeps: int = 1, split_merge: int = 1, **options: Any) -> AnyEngine:
    """Full sweeps and a split-merge proposal after every reward: as exact as can be, cost grows with n."""
    return GibbsEngine(arms, Sweeps(sweeps, 0.0, split_merge), **options)


@renamed(warmup_rewards="young")
def budget(
    arms: Sequence[LinearMixture], moves: int = 64, split_merge: int = 0, warmup_rewards: int = 320, **options: Any
) -> AnyEngine:
    """A constant number of moves after every reward, more while an arm is young: the default."""
    return GibbsEngine(arms, Budget(moves, split_merge, warmup_rewards), **options)


def conjugate(arms: Sequence[LinearMixture]) -> AnyEngine:
    """One component per arm, in closed form: linear regression."""
    return ConjugateEngine([LinearGaussian(arm.base) for arm in arms])


ENGINES: dict[str, Callable[..., AnyEngine]] = {
    "gibbs": gibbs,
    "budget": budget,
    "particles": ParticleEngine,
    "variational": VariationalEngine,
    "conjugate": conjugate,
}


def engine_names() -> tuple[str, ...]:
    """Names of the engines.

    >>> "gibbs" in engine_names()
    True
    """
    return tuple(ENGINES)


def make_engine(name: str, arms: Sequence[LinearMixture], **options: Any) -> AnyEngine:
    """The engine of that name for these arms; options are its settings.

    >>> from polyarm import LinearMixture, NormalInverseGamma
    >>> arm = LinearMixture(NormalInverseGamma(dim=2, mean=0.0, covariance=1.0, shape=1.0, scale=1.0))
    >>> make_engine("particles", [arm, arm], n_particles=50).n_arms
    2
    """
    build = ENGINES[require_name(name, engine_names(), "engine")]
    require(all(not option.startswith("_") for option in options), "options", "settings of the engine", options)
    try:
        return build(arms, **options)
    except TypeError as error:
        raise InvalidArgument(f"options of engine {name!r} must be its settings, got {refused_option(error)}") from None
