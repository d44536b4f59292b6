"""Sub-sampling duelling with random blocks."""

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.choosing import PolicyDefaults, best_of
from polyarm.errors import (
    require,
    require_arm,
    require_context,
    require_count,
    require_eligible,
    require_generator,
    require_reward,
)
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.state_checks import require_range
from polyarm.kernels.indices import block_mean
from polyarm.policies.history import History, first_unplayed, no_history, rewards_of, with_reward
from polyarm.types import Array, Choice, IntArray, Mask, Rng


class RoundState(NamedTuple):
    """Every reward, which arms the current round has still to play, (n_arms,) of 0 and 1, and the round's number."""

    history: History
    due: IntArray
    round: int

    def require_sound(self) -> None:
        """Raise unless the rewards are sound, and a round says of every arm whether it is due."""
        self.history.require_sound()
        require_range(self.due, 0, 1, "state.due")
        require(self.round >= 0, "state.round", "at least 0", self.round)


@dataclass(frozen=True)
class RandomBlockDuels(PolicyDefaults[RoundState]):
    """RB-SDA: in each round the arms that beat the leader's sub-sample are played, or the leader if none does.

    Baudry, Kaufmann & Maillard 2020.  The leader has the most rewards (ties: the highest mean, then chance).  Each
    challenger meets the mean of a random block of the leader's rewards, as many in a row as it has itself, and wins by
    a mean at least as high.  The arms of a round are played in random order; the round ends when each has its reward.
    With `forced_exploration` an arm with fewer than sqrt(log r) rewards in round r is played too, as their theory asks
    for arms whose left tails differ.  Each arm is played once first.  The context is ignored.  A round costs the number
    of the rewards so far.
    """

    n_arms: int
    context_dim: int
    forced_exploration: bool = True
    _door: Door = field(init=False, repr=False, compare=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")

    def init(self) -> RoundState:
        """State before any reward."""
        return RoundState(no_history(self.n_arms), np.zeros(self.n_arms, np.int64), 0)

    def choose(self, state: RoundState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """One of the eligible arms that are due, each with the same probability; its score is a random number.

        If no arm that is due is eligible, one of the others.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        require_context(context, self.context_dim)
        unplayed = first_unplayed(state.history.counts, eligible)
        if unplayed is not None:
            return unplayed
        mask = require_eligible(eligible, self.n_arms)
        require_generator(rng)
        due = state.due if mask is None else state.due * mask
        if mask is not None and not due.any():
            due = mask.astype(np.int64)
        arm, scores, _ = best_of(due * (1.0 - rng.random(self.n_arms)), eligible)
        return Choice(arm, scores, due / due.sum())

    def with_arm(self, state: RoundState) -> "tuple[RandomBlockDuels, RoundState]":
        """The policy and the state with one more arm, without rewards."""
        if state is not self._door.last:
            self._door.check(self, state)
        policy = replace(self, n_arms=self.n_arms + 1)
        return policy, with_empty_arm(state, policy.init())

    def update(self, state: RoundState, context: Array, arm: int, reward: float, rng: Rng) -> RoundState:
        """State after one reward; the last reward of a round opens the next."""
        require_context(context, self.context_dim)
        require_generator(rng)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        self._door.last = state = self._with_reward(state, a, y, rng)
        return state

    def _with_reward(self, state: RoundState, arm: int, reward: float, rng: Rng) -> RoundState:
        history = with_reward(state.history, arm, reward)
        due = state.due.copy()
        due[arm] = 0
        if due.any() or not history.counts.all():
            return RoundState(history, due, state.round)
        number = state.round + 1
        enough = math.sqrt(math.log(number)) if self.forced_exploration else 0.0
        return RoundState(history, next_round(history, enough, rng), number)


def next_round(history: History, enough: float, rng: Rng) -> IntArray:
    """Arms that the next round plays, (n_arms,) of 0 and 1; one with fewer than `enough` rewards needs no victory."""
    counts = history.counts
    arms = [rewards_of(history, arm) for arm in range(len(counts))]
    means = np.array([block_mean(y, 0, len(y)) for y in arms])
    # duels go by rewards and means, not by number, so that the same seed serves arms in any order
    order = np.lexsort((rng.random(len(counts)), means, counts))
    leader = int(order[-1])
    due = np.zeros(len(counts), np.int64)
    for arm in order[:-1]:
        n = int(counts[arm])
        start = int(rng.integers(counts[leader] - n + 1))
        due[arm] = n < enough or means[arm] >= block_mean(arms[leader], start, n)
    if not due.any():
        due[leader] = 1
    return due
