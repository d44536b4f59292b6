"""Upper confidence bounds for linear rewards."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from polyarm.choosing import PolicyDefaults, surely_best_of
from polyarm.errors import (
    require_arm,
    require_context,
    require_count,
    require_name,
    require_number,
    require_positive,
    require_reward,
)
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.conjugate import ConjugateState
from polyarm.inference.door import Door
from polyarm.kernels.conjugate import learn
from polyarm.kernels.indices import upper_bounds
from polyarm.types import Array, Choice, Mask, Rng


@dataclass(frozen=True)
class LinearUCB(PolicyDefaults[ConjugateState]):
    """Play the arm with the highest x'U + width sqrt(x'Vx), U and V^-1 = ridge I + sum xx' of its ridge regression.

    `bound="linucb"`: the width is fixed (Li, Chu, Langford & Schapire 2010, disjoint arms).  `bound="oful"`: it is
    noise_sd sqrt(2 log(n_arms det(V)^-1/2 ridge^-d/2 / failure)) + sqrt(ridge) norm_bound, the confidence radius of
    Abbasi-Yadkori, Pal & Szepesvari 2011 for every arm at once, and `width` is not used.  Widths are in the unit of
    the rewards.  `intercept` appends a one to the context.  A step costs d^2 per arm, whatever the number of rewards.
    """

    n_arms: int
    context_dim: int
    width: float = 1.0
    ridge: float = 1.0
    bound: Literal["linucb", "oful"] = "linucb"
    noise_sd: float = 1.0
    norm_bound: float = 1.0
    failure: float = 0.05
    intercept: bool = False
    _door: Door = field(init=False, repr=False, compare=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_number(self.width, "width", "a finite number of at least 0", lambda width: width >= 0)
        require_name(self.bound, ("linucb", "oful"), "bound")
        require_number(self.failure, "failure", "a number between 0 and 1", lambda failure: 0 < failure < 1)
        for name in ("ridge", "noise_sd", "norm_bound"):
            require_positive(getattr(self, name), name)

    def init(self) -> ConjugateState:
        """State before any reward."""
        dim = self.context_dim + int(self.intercept)
        sqrt_information = np.zeros((dim + 1, dim + 1))
        sqrt_information[:-1, :-1] = math.sqrt(self.ridge) * np.eye(dim)
        counts = np.zeros(self.n_arms, np.int64)
        return ConjugateState(np.tile(sqrt_information, (self.n_arms, 1, 1)), counts, self._door.settings(self))

    def features(self, context: Array) -> Array:
        """What the regressions see of a context."""
        x = require_context(context, self.context_dim)
        return np.append(x, 1.0) if self.intercept else x

    def widths(self, state: ConjugateState) -> Array:
        """Width of every arm's bound, in units of sqrt(x'Vx)."""
        if state is not self._door.last:
            self._door.check(self, state)
        if self.bound == "linucb":
            return np.full(self.n_arms, float(self.width))
        diagonal = np.abs(state.roots.diagonal(axis1=1, axis2=2)[:, :-1])
        growth = np.log(diagonal / math.sqrt(self.ridge)).sum(axis=1)
        radius = self.noise_sd * np.sqrt(2 * (growth + math.log(self.n_arms / self.failure)))
        return np.asarray(radius + math.sqrt(self.ridge) * self.norm_bound)

    def choose(self, state: ConjugateState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = self.features(context)
        scores = np.empty(self.n_arms)
        upper_bounds(state.roots, x, self.widths(state), scores)
        return surely_best_of(scores, eligible)

    def with_arm(self, state: ConjugateState) -> "tuple[LinearUCB, ConjugateState]":
        """The policy and the state with one more arm, without rewards."""
        if state is not self._door.last:
            self._door.check(self, state)
        policy = replace(self, n_arms=self.n_arms + 1)
        return policy, with_empty_arm(state, policy.init())

    def update(self, state: ConjugateState, context: Array, arm: int, reward: float, rng: Rng) -> ConjugateState:
        """State after one reward."""
        x = self.features(context)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        learn(state.roots, state.counts, a, x, y)
        return state
