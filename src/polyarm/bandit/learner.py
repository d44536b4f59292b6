"""A policy with its state, kept so that a failed update leaves the last good one.

Updates work in place, so a failure half way spoils the state.  A copy is taken now and then, and the rewards since are
noted: learning them again gives the last good state to the bit, because the random numbers of reward k depend on the
seed and k alone.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from polyarm.bandit.lottery import Digest, KeyedStream
from polyarm.errors import InvalidArgument
from polyarm.types import AnyPolicy, Array

SHORTEST = 64  # rewards between two copies, at least; later an eighth of all rewards, so that copies stay cheap

Lesson = tuple[Array, int, float]


def copied(state: Any) -> Any:
    """A state that shares no array with the given one."""
    if isinstance(state, (tuple, list)):
        values = [copied(value) for value in state]
        return type(state)(*values) if hasattr(state, "_fields") else type(state)(values)
    return state.copy() if isinstance(state, np.ndarray) else state


class Learner:
    """A policy for `n_arms` arms and its state after `n_learnt` rewards."""

    def __init__(self, policy: AnyPolicy, state: Any, seed: int, n_learnt: int = 0, n_arms: int = 1) -> None:
        self.policy, self.state, self.n_learnt, self.n_arms = policy, state, n_learnt, n_arms
        self._digest, self._stream = Digest(seed, "learning"), KeyedStream()
        self._copy_now()

    def learn(self, lessons: Iterable[Lesson]) -> None:
        """Learn rewards one after the other, all of them or none."""
        start = self.n_learnt
        try:
            for x, arm, reward in lessons:
                self._learn(x, arm, reward)
        except InvalidArgument:
            if self.n_learnt > start:
                self._go_back(start)
            raise
        except BaseException:
            self._go_back(start)
            raise
        if self.n_learnt - self._kept_at >= max(SHORTEST, self.n_learnt // 8):
            self._copy_now()

    def add_arm(self) -> None:
        """Make room for one more arm, which starts from what the arms share."""
        policy: Any = self.policy
        try:
            self.policy, self.state = policy.with_arm(self.state)
        except InvalidArgument:  # it cannot, and says why
            raise
        except BaseException:
            self._go_back(self.n_learnt)
            raise
        self.n_arms += 1
        self._copy_now()

    def require_sound(self) -> None:
        """Raise unless the policy can work with the state: it gives every arm a probability."""
        policy: Any = self.policy
        context_dim = policy.engine.context_dim if hasattr(policy, "engine") else policy.context_dim
        policy.probabilities(self.state, np.ones(context_dim), self._stream.at(bytes(64)))

    def _learn(self, x: Array, arm: int, reward: float) -> None:
        rng = self._stream.at(self._digest.of(str(self.n_learnt)))
        self.state = self.policy.update(self.state, x, arm, reward, rng)
        self._since.append((x, arm, reward))
        self.n_learnt += 1

    def _copy_now(self) -> None:
        self._kept, self._kept_at = copied(self.state), self.n_learnt
        self._since: list[Lesson] = []

    def _go_back(self, n_learnt: int) -> None:
        lessons: Sequence[Lesson] = self._since[: n_learnt - self._kept_at]
        self.state, self.n_learnt, self._since = copied(self._kept), self._kept_at, []
        for lesson in lessons:
            self._learn(*lesson)
