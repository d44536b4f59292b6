"""An engine that sees features of the context instead of the context."""

from dataclasses import dataclass, replace
from typing import Any, Generic, Literal

import numpy as np

from polyarm.errors import require, require_context, require_contexts, require_count, require_name
from polyarm.models import Objective, StudentMixture
from polyarm.types import AnyEngine, Array, IntArray, Rng, State

KINDS = ("intercept", "constant")


@dataclass(frozen=True, eq=False)
class FeatureEngine(Generic[State]):
    """`intercept` appends a one to the context; `constant` replaces it by a one: a bandit without context."""

    engine: AnyEngine
    kind: Literal["intercept", "constant"]
    context_dim: int

    def __post_init__(self) -> None:
        require_name(self.kind, KINDS, "kind")
        require_count(self.context_dim, "context_dim")
        wanted = self.context_dim + 1 if self.kind == "intercept" else 1
        require(self.engine.context_dim == wanted, "engine", f"for {wanted} features", self.engine.context_dim)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.engine.n_arms

    def features(self, context: Array) -> Array:
        """What the inner engine sees of a context."""
        x = require_context(context, self.context_dim)
        return np.append(x, 1.0) if self.kind == "intercept" else np.ones(1)

    def init(self) -> State:
        """State before any reward."""
        state: State = self.engine.init()
        return state

    def with_arm(self, state: State) -> "tuple[FeatureEngine[State], State]":
        """The engine and the state with one more arm."""
        engine, wider = self.engine.with_arm(state)
        return replace(self, engine=engine), wider

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        after: State = self.engine.update(state, self.features(context), arm, reward, rng)
        return after

    def draw_means(self, state: State, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward, (n_draws, n_arms)."""
        return self.engine.draw_means(state, self.features(context), n_draws, rng)

    def expected_means(self, state: State, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward, (n_arms,)."""
        return self.engine.expected_means(state, self.features(context))

    def moments(self, state: State, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward, (2, n_arms)."""
        inner: Any = self.engine
        found: Array = inner.moments(state, self.features(context))
        return found

    def moments_many(self, state: State, contexts: Array) -> Array:
        """The same in many contexts, (n, 2, n_arms)."""
        return np.stack([self.moments(state, x) for x in require_contexts(contexts, self.context_dim)])

    def draw_objectives(self, state: State, context: Array, objective: Objective, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of what every arm's reward is worth, (n_draws, n_arms)."""
        inner: Any = self.engine
        draws: Array = inner.draw_objectives(state, self.features(context), objective, n_draws, rng)
        return draws

    def n_components(self, state: State) -> IntArray:
        """Components in use, (n_arms,)."""
        inner: Any = self.engine
        counts: IntArray = inner.n_components(state)
        return counts

    def predictive(self, state: State, context: Array, arm: int) -> StudentMixture:
        """Posterior predictive distribution of an arm's next reward in this context."""
        inner: Any = self.engine
        mixture: StudentMixture = inner.predictive(state, self.features(context), arm)
        return mixture

    def draw_densities(self, state: State, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid))."""
        inner: Any = self.engine
        draws: Array = inner.draw_densities(state, self.features(context), arm, grid, n_draws, rng)
        return draws
