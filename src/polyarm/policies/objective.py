"""Policies that judge arms by more than their mean reward."""

from dataclasses import replace
from typing import Any

from polyarm.errors import InvalidArgument
from polyarm.inference import FeatureEngine
from polyarm.models.objectives import MEAN, Objective, ObjectiveLike, as_objective
from polyarm.policies.initial_pulls import InitialPulls
from polyarm.types import AnyEngine, AnyPolicy, Array, Rng


def draw_worths(engine: AnyEngine, state: Any, context: Array, objective: Objective, n_draws: int, rng: Rng) -> Array:
    """Posterior draws of what every arm is worth, (n_draws, n_arms): of its mean reward, or of another objective."""
    if objective == MEAN:
        return engine.draw_means(state, context, n_draws, rng)
    able: Any = engine
    draws: Array = able.draw_objectives(state, context, objective, n_draws, rng)
    return draws


def takes_objective(policy: AnyPolicy) -> bool:
    """Whether a policy can judge arms by any objective: its rule must, and its engine must draw whole distributions."""
    inner: Any = policy
    if isinstance(inner, InitialPulls):
        return takes_objective(inner.policy)
    engine = getattr(inner, "engine", None)
    while isinstance(engine, FeatureEngine):
        engine = engine.engine
    return hasattr(inner, "objective") and hasattr(engine, "draw_objectives")


def with_objective(policy: AnyPolicy, objective: ObjectiveLike) -> AnyPolicy:
    """The policy, judging arms by this objective."""
    judged, inner = as_objective(objective), policy
    if judged == objective_of(policy):
        return policy
    if not takes_objective(policy):
        raise InvalidArgument(
            f"objective must be the mean, the only one that this policy can play for, got {judged}; "
            "take nonparametric, dirichlet, pitman-yor or linear"
        )
    if isinstance(inner, InitialPulls):
        return replace(inner, policy=with_objective(inner.policy, judged))
    able: Any = inner
    changed: AnyPolicy = replace(able, objective=judged)
    return changed


def objective_of(policy: AnyPolicy) -> Objective:
    """What a policy judges arms by."""
    inner: Any = policy
    while isinstance(inner, InitialPulls):
        inner = inner.policy
    objective: Objective = getattr(inner, "objective", MEAN)
    return objective
