"""The hierarchical mixture: arms learn from each other's rewards."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from polyarm.errors import require_arm, require_context, require_count, require_reward
from polyarm.inference.gibbs import FIRST_CAPACITY, Prior, grown, prior_of
from polyarm.kernels import franchise as kernels
from polyarm.kernels._jit import stream
from polyarm.kernels.gibbs import ROWS
from polyarm.models import HierarchicalMixture, LinearMixture
from polyarm.types import Array, IntArray, Rng

Books: TypeAlias = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]
Arrays: TypeAlias = tuple[Array, IntArray, IntArray, Array, Array, Array, Array, *Books, Array]


class FranchiseState(NamedTuple):
    """Dishes, rewards with their tables and dishes, and tables of every arm; see kernels.franchise for the layout."""

    dishes: Array
    labels: IntArray
    size: IntArray
    data: Array
    z: IntArray
    arm_of: IntArray
    seat: IntArray
    menu: IntArray
    dish: IntArray
    guests: IntArray
    arms: IntArray

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        rows = dict.fromkeys(("data", "z", "arm_of", "seat", "menu"), (0,))
        return {**rows, **dict.fromkeys(("dishes", "labels", "dish", "guests"), (1,))}


def doubled(array: IntArray, axis: int = -1) -> IntArray:
    """The array with twice the room along an axis."""
    return np.ascontiguousarray(np.concatenate([array, np.zeros_like(array)], axis=axis))


@dataclass(frozen=True, eq=False)
class HierarchicalEngine:
    """Mixtures that share their components across arms, by Gibbs moves in the restaurant franchise.

    After every reward min(moves, 10 n) rewards, of any arm, change table and dish, and with probability
    min(1, moves/n) `table_moves` whole tables change their dish.
    """

    model: HierarchicalMixture
    n_arms: int
    moves: int = 64
    table_moves: int = 1
    _prior: Prior = field(init=False, repr=False)
    _rules: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.moves, "moves", at_least=0)
        require_count(self.table_moves, "table_moves", at_least=0)
        model = self.model
        columns, roots, laws = prior_of([LinearMixture(model.base)])
        laws[0, 2:] = 0.0  # masses are those of tables, not of rewards
        object.__setattr__(self, "_prior", Prior(columns[0], roots[0], laws[0]))
        rules = [model.concentration, model.discount, model.shared_concentration, model.shared_discount]
        object.__setattr__(self, "_rules", np.array(rules))

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.model.base.dim

    def init(self) -> FranchiseState:
        """State before any reward."""
        n = FIRST_CAPACITY
        return FranchiseState(
            dishes=np.zeros((len(self._prior.columns), n)),
            labels=np.tile(np.arange(n), (2, 1)),
            size=np.zeros(4, np.int64),
            data=np.zeros((n, self.context_dim + 2)),
            z=np.zeros(n, np.int64),
            arm_of=np.zeros(n, np.int64),
            seat=np.zeros(n, np.int64),
            menu=np.zeros(n, np.int64),
            dish=np.zeros((self.n_arms, n), np.int64),
            guests=np.zeros((self.n_arms, n), np.int64),
            arms=np.zeros((self.n_arms, 3), np.int64),
        )

    def _arrays(self, state: FranchiseState) -> Arrays:
        return (*state[:3], *self._prior, *state[3:], self._rules)

    def _with_room(self, state: FranchiseState) -> FranchiseState:
        if state.size[0] + 2 > state.dishes.shape[1]:
            capacity = state.dishes.shape[1]
            labels = doubled(state.labels)
            labels[:, capacity:] = np.arange(capacity, 2 * capacity)
            state = state._replace(dishes=grown(state.dishes), labels=labels, menu=doubled(state.menu))
        if state.arms[:, kernels.SEEN].max() == state.dish.shape[1]:
            state = state._replace(dish=doubled(state.dish), guests=doubled(state.guests))
        if state.size[ROWS] == len(state.data):
            state = state._replace(
                data=grown(state.data, axis=0),
                z=doubled(state.z),
                arm_of=doubled(state.arm_of),
                seat=doubled(state.seat),
            )
        return state

    def update(self, state: FranchiseState, context: Array, arm: int, reward: float, rng: Rng) -> FranchiseState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        state = self._with_room(state)
        kernels.learn(*self._arrays(state), a, x, y, stream(rng))
        n = int(state.size[ROWS])
        state = self.move_rewards(state, min(self.moves, 10 * n), rng)
        if self.table_moves and rng.random() * n < self.moves:
            state = self.move_tables(state, self.table_moves, rng)
        return state

    def move_rewards(self, state: FranchiseState, n_moves: int, rng: Rng) -> FranchiseState:
        """State after that many uniformly drawn rewards have drawn table and dish again."""
        left = n_moves if state.size[ROWS] > 0 else 0
        while left > 0:
            left = kernels.move_rewards(*self._arrays(state), left, stream(rng))
            state = self._with_room(state)
        return state

    def move_tables(self, state: FranchiseState, n_moves: int, rng: Rng) -> FranchiseState:
        """State after that many tables, drawn by their guests, have drawn their dish again."""
        left = n_moves if state.size[ROWS] > 0 else 0
        while left > 0:
            left = kernels.move_tables(*self._arrays(state), left, stream(rng))
            state = self._with_room(state)
        return state

    def draw_means(self, state: FranchiseState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward, (n_draws, n_arms): arms share the draw of a component."""
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        columns, _, law = self._prior
        kernels.draw_means(*state[:3], columns, law, *state[7:], self._rules, x, out, stream(rng))
        return out

    def expected_means(self, state: FranchiseState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward given the seating, (n_arms,)."""
        x = require_context(context, self.context_dim)
        out = np.empty(self.n_arms)
        kernels.expected_means(*state[:3], self._prior.columns, *state[7:], self._rules, x, out)
        return out

    def n_components(self, state: FranchiseState) -> IntArray:
        """Components that each arm uses, (n_arms,)."""
        used = [
            np.unique(state.z[: state.size[ROWS]][state.arm_of[: state.size[ROWS]] == a]) for a in range(self.n_arms)
        ]
        return np.array([len(u) for u in used])

    def seating(self, state: FranchiseState) -> tuple[IntArray, IntArray, IntArray]:
        """Arm, table within the arm, and dish of every reward."""
        n = state.size[ROWS]
        return state.arm_of[:n].copy(), state.seat[:n].copy(), state.z[:n].copy()
