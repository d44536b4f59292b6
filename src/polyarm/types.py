"""Arrays, the values that travel between layers, and the four protocols of polyarm."""

from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.uint64]
Rng: TypeAlias = np.random.Generator

State = TypeVar("State")
Params = TypeVar("Params")


class Choice(NamedTuple):
    """The arm a policy picked, and the score of every arm that it was picked by."""

    arm: int
    scores: Array


class World(NamedTuple):
    """One realisation of an environment, drawn whole.

    contexts (T, d), rewards (T, A) and means (T, A): what arm a would have paid at step t, and its expectation.
    """

    contexts: Array
    rewards: Array
    means: Array


class RewardModel(Protocol[Params]):
    """Frozen settings of one arm's generative model, told forwards."""

    def sample_params(self, rng: Rng) -> Params:
        """Parameters drawn from the prior."""
        ...

    def mean_reward(self, params: Params, context: Array) -> float:
        """Expected reward in this context."""
        ...

    def sample_reward(self, params: Params, context: Array, rng: Rng) -> float:
        """One reward in this context."""
        ...


class Engine(Protocol[State]):
    """The posterior of every arm: data in, posterior draws out.  State is a value; `update` owns what it is given."""

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        ...

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        ...

    def init(self) -> State:
        """State before any reward."""
        ...

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward.  On bad input it raises and the given state is unchanged."""
        ...

    def draw_means(self, state: State, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward, (n_draws, n_arms), joint across arms."""
        ...

    def expected_means(self, state: State, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward, (n_arms,)."""
        ...


class Policy(Protocol[State]):
    """A rule that picks arms and learns from their rewards."""

    def init(self) -> State:
        """State before any reward."""
        ...

    def choose(self, state: State, context: Array, rng: Rng) -> Choice:
        """Arm to play in this context, with the scores it was chosen by."""
        ...

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        ...


class Environment(Protocol):
    """A source of worlds."""

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        ...

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        ...

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps: every context, potential reward and mean at once."""
        ...


AnyPolicy: TypeAlias = Policy[Any]
AnyEngine: TypeAlias = Engine[Any]
