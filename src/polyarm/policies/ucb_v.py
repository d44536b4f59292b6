"""Upper confidence bounds that use the variance."""

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.choosing import PolicyDefaults, surely_best_of
from polyarm.errors import (
    require,
    require_arm,
    require_context,
    require_count,
    require_number,
    require_positive,
    require_reward,
)
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.state_checks import require_numbers, require_range
from polyarm.policies.history import first_unplayed
from polyarm.types import Array, Choice, IntArray, Mask, Rng


class UCBVState(NamedTuple):
    """Number, mean and sum of squared deviations of every arm's rewards, and the lowest and highest reward of all."""

    counts: IntArray
    means: Array
    squares: Array
    low: float
    high: float

    def require_sound(self) -> None:
        """Raise unless counts and moments are those of some rewards; before the first there is no lowest or highest."""
        require_range(self.counts, 0, np.iinfo(np.int64).max, "state.counts")
        require_numbers(self.means, "state.means")
        require_numbers(self.squares, "state.squares")
        require(bool((self.squares >= 0).all()), "state.squares", "at least 0", self.squares)
        ordered = self.low <= self.high if self.counts.any() else (self.low, self.high) == (math.inf, -math.inf)
        require(ordered, "state.low", "at most the highest reward", self.low)


@dataclass(frozen=True)
class UCBV(PolicyDefaults[UCBVState]):
    """Play the arm with the highest mean + sqrt(2 V E / n) + 3 c b E / n, where E = exploration log t, V its variance.

    Audibert, Munos & Szepesvari 2009: exploration 1.2 and c = 1 are theirs, and rewards lie in a range of known length
    b; without `reward_range` the range seen so far stands in for it.  Each arm is played once first.  The context is
    ignored.  The cost of a step does not grow.
    """

    n_arms: int
    context_dim: int
    exploration: float = 1.2
    range_factor: float = 1.0
    reward_range: float | None = None
    _door: Door = field(init=False, repr=False, compare=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_positive(self.exploration, "exploration")
        require_number(self.range_factor, "range_factor", "a finite number of at least 0", lambda c: c >= 0)
        if self.reward_range is not None:
            require_positive(self.reward_range, "reward_range")

    def init(self) -> UCBVState:
        """State before any reward."""
        zeros = np.zeros(self.n_arms)
        return UCBVState(np.zeros(self.n_arms, np.int64), zeros, zeros.copy(), math.inf, -math.inf)

    def choose(self, state: UCBVState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play; ties go to the lowest number."""
        if state is not self._door.last:
            self._door.check(self, state)
        require_context(context, self.context_dim)
        unplayed = first_unplayed(state.counts, eligible)
        if unplayed is not None:
            return unplayed
        spread = state.high - state.low if self.reward_range is None else self.reward_range
        share = self.exploration * math.log(state.counts.sum() + 1) / state.counts
        scores = (
            state.means + np.sqrt(2 * state.squares / state.counts * share) + 3 * self.range_factor * spread * share
        )
        return surely_best_of(scores, eligible)

    def with_arm(self, state: UCBVState) -> "tuple[UCBV, UCBVState]":
        """The policy and the state with one more arm, without rewards."""
        if state is not self._door.last:
            self._door.check(self, state)
        policy = replace(self, n_arms=self.n_arms + 1)
        return policy, with_empty_arm(state, policy.init())

    def update(self, state: UCBVState, context: Array, arm: int, reward: float, rng: Rng) -> UCBVState:
        """State after one reward."""
        require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        state.counts[a] += 1
        gap = y - state.means[a]
        state.means[a] += gap / state.counts[a]
        state.squares[a] += gap * (y - state.means[a])
        self._door.last = state = state._replace(low=min(state.low, y), high=max(state.high, y))
        return state
