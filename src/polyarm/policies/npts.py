"""NPTS: Thompson sampling without a model of rewards."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from polyarm.choosing import PolicyDefaults, best_of
from polyarm.errors import require_arm, require_context, require_count, require_number, require_reward
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.indices import dirichlet_mean
from polyarm.policies.history import History, first_unplayed, no_history, rewards_of, with_reward
from polyarm.types import Array, Choice, Mask, Rng


@dataclass(frozen=True)
class NPTS(PolicyDefaults[History]):
    """Play the arm with the highest mean of its rewards and an upper bound under Dirichlet(1, ..., 1) weights.

    Riou & Honda 2020.  Their rewards have a known `upper_bound`; without one the highest reward seen so far of any arm
    stands in for it.  Each arm is played once first.  The context is ignored.  A choice costs n for n rewards so far.
    """

    saved_as: ClassVar[str] = "NonparametricTS"  # its name when the first files were written

    n_arms: int
    context_dim: int
    upper_bound: float | None = None
    _door: Door = field(init=False, repr=False, compare=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        if self.upper_bound is not None:
            require_number(self.upper_bound, "upper_bound", "a finite number")

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
        arms = [rewards_of(state, arm) for arm in range(self.n_arms)]
        anchor = max(float(y.max()) for y in arms) if self.upper_bound is None else float(self.upper_bound)
        handle = rng_handle(rng)
        scores = np.array([dirichlet_mean(y, anchor, handle) for y in arms])
        return best_of(scores, eligible)

    def with_arm(self, state: History) -> "tuple[NPTS, History]":
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
