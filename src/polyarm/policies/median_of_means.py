"""Upper confidence bounds around a median of means, for heavy tails."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from polyarm.choosing import PolicyDefaults, surely_best_of
from polyarm.errors import require_arm, require_context, require_count, require_number, require_positive, require_reward
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.kernels.indices import central_moment, median_of_means
from polyarm.policies.history import History, first_unplayed, no_history, rewards_of, with_reward
from polyarm.types import Array, Choice, Mask, Rng


@dataclass(frozen=True)
class MedianOfMeansUCB(PolicyDefaults[History]):
    """Play the arm with the highest median of means + exploration (12 v)^(1/(1+e)) (16 L / n)^(e/(1+e)).

    Robust UCB of Bubeck, Cesa-Bianchi & Lugosi 2013, their lemma 2 at confidence t^-2: L = 1/8 + 2 log t, and the
    median is over min(8 L, n/2) blocks.  `moment_bound` is v, a bound of the central moment of order 1 + e, with e =
    `moment_order` in (0, 1]; without it the moment of all rewards together stands in, which the theory does not cover.
    Their constants are cautious: an `exploration` below 1 shrinks the bonus.  Each arm is played once first.  The
    context is ignored.  A choice costs n for n rewards so far.
    """

    n_arms: int
    context_dim: int
    moment_bound: float | None = None
    moment_order: float = 1.0
    exploration: float = 1.0
    _door: Door = field(init=False, repr=False, compare=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_number(self.moment_order, "moment_order", "above 0 and at most 1", lambda order: 0 < order <= 1)
        require_positive(self.exploration, "exploration")
        if self.moment_bound is not None:
            require_positive(self.moment_bound, "moment_bound")

    def init(self) -> History:
        """State before any reward."""
        return no_history(self.n_arms)

    def choose(self, state: History, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play; ties go to the lowest number."""
        if state is not self._door.last:
            self._door.check(self, state)
        require_context(context, self.context_dim)
        unplayed = first_unplayed(state.counts, eligible)
        if unplayed is not None:
            return unplayed
        confidence = 0.125 + 2 * math.log(state.counts.sum() + 1)
        arms = [rewards_of(state, arm) for arm in range(self.n_arms)]
        moment = self.moment(np.concatenate(arms)) if self.moment_bound is None else self.moment_bound
        scores = np.array([self.index(y, moment, confidence) for y in arms])
        return surely_best_of(scores, eligible)

    def moment(self, rewards: Array) -> float:
        """Empirical central moment of order 1 + e, around the median."""
        return central_moment(rewards, float(np.median(rewards)), 1 + self.moment_order)

    def index(self, rewards: Array, moment: float, confidence: float) -> float:
        """Upper bound of an arm's mean; `confidence` is L above."""
        n, power = len(rewards), 1 + self.moment_order
        centre = median_of_means(rewards, max(1, math.floor(min(8 * confidence, n / 2))))
        bonus = (12 * moment) ** (1 / power) * (16 * confidence / n) ** (self.moment_order / power)
        return float(centre + self.exploration * bonus)

    def with_arm(self, state: History) -> "tuple[MedianOfMeansUCB, History]":
        """The policy and the state with one more arm, without rewards."""
        if state is not self._door.last:
            self._door.check(self, state)
        policy = replace(self, n_arms=self.n_arms + 1)
        return policy, with_empty_arm(state, policy.init())

    def update(self, state: History, context: Array, arm: int, reward: float, rng: Rng) -> History:
        """State after one reward."""
        require_context(context, self.context_dim)
        a, y = require_arm(arm, self.n_arms), require_reward(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        self._door.last = state = with_reward(state, a, y)
        return state
