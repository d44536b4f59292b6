"""Arrays, the values that travel between layers, and the four protocols of polyarm."""

from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.uint64]
Mask: TypeAlias = NDArray[np.bool_]
Rng: TypeAlias = np.random.Generator

State = TypeVar("State")
Params = TypeVar("Params")

packed = tuple.__new__  # (type, fields): a NamedTuple, whose own constructor takes three times as long


class Choice(NamedTuple):
    """The arm a policy picked, the score of every arm that it was picked by, and what it was drawn from if known.

    scores (n_arms,) is minus infinity for arms that were not eligible; probabilities (n_arms,) is filled in where it
    costs nothing, else ask `Policy.probabilities`.

    >>> import numpy as np
    >>> from polyarm import make_policy
    >>> policy = make_policy("uniform", 2, 1)
    >>> choice = policy.choose(policy.init(), np.ones(1), np.random.default_rng(0))
    >>> choice.arm in (0, 1), choice.probabilities.tolist()
    (True, [0.5, 0.5])
    """

    arm: int
    scores: Array
    probabilities: Array | None = None


class World(NamedTuple):
    """One realisation of an environment, drawn whole.

    contexts (T, d), rewards (T, A) and means (T, A): what arm a would have paid at step t, and its expectation (or what
    it was worth by another objective: environments.Judged).

    >>> import numpy as np
    >>> from polyarm import make_scenario
    >>> world = make_scenario("mixture-a").environment.sample(5, np.random.default_rng(0))
    >>> world.contexts.shape, world.rewards.shape == world.means.shape
    ((5, 2), True)
    """

    contexts: Array
    rewards: Array
    means: Array


class RewardModel(Protocol[Params]):
    """Frozen settings of one arm's generative model, told forwards.

    >>> import numpy as np
    >>> from polyarm import LinearGaussian, NormalInverseGamma
    >>> model: RewardModel = LinearGaussian(NormalInverseGamma(2, 0.0, 1.0, shape=3.0, scale=1.0))
    >>> model.sample_params(np.random.default_rng(0)).weights.shape
    (2,)
    """

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
    """The posterior of every arm: data in, posterior draws out.  State is a value; `update` owns what it is given.

    >>> from polyarm import make_policy
    >>> engine: Engine = make_policy("linear", n_arms=2, context_dim=3).engine
    >>> engine.n_arms, engine.context_dim
    (2, 3)
    """

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

    def with_arm(self, state: State) -> "tuple[Engine[State], State]":
        """The engine and the state with one more arm, the last, which starts from what the arms share.

        It owns the state that it is given.  Where no arm can be added it raises, and the state is unchanged.
        """
        ...


class Policy(Protocol[State]):
    """A rule that picks arms and learns from their rewards; `polyarm.PolicyDefaults` writes all but the first three.

    >>> import numpy as np
    >>> from polyarm import make_policy
    >>> policy: Policy = make_policy("linear", n_arms=2, context_dim=3)
    >>> policy.choose(policy.init(), np.ones(3), np.random.default_rng(0)).arm in (0, 1)
    True
    """

    def init(self) -> State:
        """State before any reward."""
        ...

    def choose(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context among the eligible ones (all, if None), with the scores it was chosen by."""
        ...

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        ...

    def probabilities(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """Distribution to draw the arm from, (n_arms,).

        Where the rule's own is not known in closed form it is an estimate, which differs from call to call: whoever
        draws the arm from the returned vector knows its probability exactly.
        """
        ...

    def probabilities_many(self, state: State, contexts: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """Distributions for many contexts (n, context_dim) in the same state, (n, n_arms)."""
        ...

    def engine_state(self, state: State) -> Any:
        """State of the policy's `engine`, whatever is wrapped around it."""
        ...

    def with_arm(self, state: State) -> "tuple[Policy[State], State]":
        """The policy and the state with one more arm, the last; see `Engine.with_arm`."""
        ...


class Environment(Protocol):
    """A source of worlds.

    >>> from polyarm import make_scenario
    >>> environment: Environment = make_scenario("mixture-a").environment
    >>> environment.n_arms, environment.context_dim
    (2, 2)
    """

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
