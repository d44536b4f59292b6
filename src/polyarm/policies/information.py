"""Information-directed sampling."""

from dataclasses import dataclass
from typing import Generic, Protocol

import numpy as np

from polyarm.errors import require_count
from polyarm.kernels import information
from polyarm.kernels._jit import stream
from polyarm.types import Array, Choice, Engine, Rng, State


class MomentEngine(Engine[State], Protocol[State]):
    """An engine that knows the spread of its posterior."""

    def moments(self, state: State, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward, (2, n_arms)."""
        ...


@dataclass(frozen=True)
class InformationDirected(Generic[State]):
    """Play for the least squared expected regret per unit of information about which arm is best in this context.

    Russo & Van Roy 2018, variance criterion, over normal posteriors with the engine's moments; expectations are means
    over `n_draws` draws.  A choice's scores are those of a race: an arm's share in the best mix over an Exp(1) draw.
    """

    engine: MomentEngine[State]
    n_draws: int = 100

    def __post_init__(self) -> None:
        require_count(self.n_draws, "n_draws", at_least=2)

    def init(self) -> State:
        """State before any reward."""
        return self.engine.init()

    def choose(self, state: State, context: Array, rng: Rng) -> Choice:
        """Arm to play in this context."""
        moments = self.engine.moments(state, context)
        scores = np.empty(moments.shape[1])
        arm = information.choose(moments, self.n_draws, scores, stream(rng))
        return Choice(arm=arm, scores=scores)

    def propensities(self, state: State, context: Array, rng: Rng, n_rounds: int = 100) -> Array:
        """Probability that each arm is played in this state and context, a mean over rounds, (n_arms,)."""
        moments = self.engine.moments(state, context)
        shares = np.empty((require_count(n_rounds, "n_rounds"), moments.shape[1]))
        for row in shares:
            information.find_shares(moments, self.n_draws, row, stream(rng))
        return np.asarray(shares.mean(axis=0))

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        return self.engine.update(state, context, arm, reward, rng)
