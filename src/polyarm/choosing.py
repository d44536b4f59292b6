"""What all rules that pick arms share: eligible arms, ties, and the distribution that the arm is drawn from."""

from typing import Any, ClassVar

import numpy as np

from polyarm.errors import InvalidArgument, require, require_eligible
from polyarm.types import Array, Choice, Mask, Policy, Rng, State


def one_at(arm: int, n_arms: int) -> Array:
    """The distribution that always gives this arm."""
    out = np.zeros(n_arms)
    out[arm] = 1.0
    return out


def best_of(scores: Array, eligible: Mask | None = None) -> Choice:
    """The eligible arm of the highest score; ties go to the lowest number."""
    mask = require_eligible(eligible, len(scores))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return Choice(int(scores.argmax()), scores)


def surely_best_of(scores: Array, eligible: Mask | None = None) -> Choice:
    """The same for scores without chance: it is known that this arm is played."""
    arm, masked, _ = best_of(scores, eligible)
    return Choice(arm, masked, one_at(arm, len(scores)))


def win_shares(draws: Array, eligible: Mask | None = None) -> Array:
    """How often each arm is the best eligible one among draws (n_draws, n_arms); ties go to the lowest number."""
    n_draws, n_arms = draws.shape
    mask = require_eligible(eligible, n_arms)
    scores = draws if mask is None else np.where(mask, draws, -np.inf)
    return np.asarray(np.bincount(scores.argmax(axis=1), minlength=n_arms) / n_draws)


class PolicyDefaults(Policy[State]):
    """Inherit from it to write a policy with `init`, `choose` and `update` alone.

    `probabilities` is what a choice says of itself, or else the shares of the arms in `n_choices` choices.

    >>> import numpy as np
    >>> from polyarm import Choice
    >>> class First(PolicyDefaults):
    ...     n_arms, context_dim = 2, 1
    ...     def init(self):
    ...         return 0
    ...     def choose(self, state, context, rng, eligible=None):
    ...         return Choice(0, np.array([1.0, 0.0]))
    ...     def update(self, state, context, arm, reward, rng):
    ...         return state + 1
    >>> First().probabilities(0, np.ones(1), np.random.default_rng(0)).tolist()
    [1.0, 0.0]
    """

    n_choices: ClassVar[int] = 1000

    def probabilities(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """Distribution to draw the arm from, (n_arms,)."""
        more = () if eligible is None else (eligible,)
        choice = self.choose(state, context, rng, *more)
        if choice.probabilities is not None:
            return choice.probabilities
        arms = [choice.arm, *(self.choose(state, context, rng, *more).arm for _ in range(self.n_choices - 1))]
        return np.bincount(arms, minlength=len(choice.scores)) / self.n_choices

    def probabilities_many(self, state: State, contexts: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """Distributions for many contexts in the same state, (n, n_arms)."""
        require(len(contexts) > 0, "contexts", "at least one row", contexts)
        return np.stack([self.probabilities(state, context, rng, eligible) for context in contexts])

    def engine_state(self, state: State) -> Any:
        """State of the policy's `engine`, whatever is wrapped around it."""
        if not hasattr(self, "engine"):
            raise InvalidArgument(f"policy must be one with an engine, got {type(self).__name__}")
        return state

    def with_arm(self, state: State) -> tuple[Policy[State], State]:
        """The policy and the state with one more arm, if the policy says how."""
        raise InvalidArgument(f"policy must be one that can take another arm, got {type(self).__name__}")
