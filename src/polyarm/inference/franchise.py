"""The hierarchical mixture: arms learn from each other's rewards."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.errors import require, require_arm, require_context, require_count, require_reward, require_vector
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.failure import backup_of, give_up
from polyarm.inference.gibbs import FIRST_CAPACITY, REDRAW_EVERY, Priors, grown, prior_of, require_pair
from polyarm.inference.predictive import student_mixture
from polyarm.inference.slots import doubled_slots
from polyarm.inference.state_checks import (
    require_at_places,
    require_components,
    require_lanes,
    require_numbers,
    require_permutation,
    require_range,
    require_rewards,
)
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.franchise import draws, moves
from polyarm.kernels.franchise.books import (
    SEEN,
    TABLES,
    Dishes,
    Franchise,
    Guests,
    Rules,
    Tables,
    new_dish_mass,
    new_table_mass,
)
from polyarm.kernels.mixture.component import COUNT, DISCOUNT, GAMMA, SHAPE
from polyarm.kernels.mixture.finite import finite_columns
from polyarm.kernels.mixture.gibbs import rebuild_components
from polyarm.kernels.mixture.hyperparameters import redraw
from polyarm.kernels.mixture.records import ROWS, Books
from polyarm.models import HierarchicalMixture, LinearMixture, StudentMixture
from polyarm.types import Array, IntArray, Rng


class FranchiseState(NamedTuple):
    """Dishes, rewards with their tables and dishes, tables of every arm, rules: laid out as in kernels.franchise."""

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
    rules: Array
    made_with: str = ""

    def require_sound(self) -> None:
        """Raise unless every reward sits at a table of its arm, every table has a dish, and the books agree."""
        capacity, n, n_dishes = self.dishes.shape[1], int(self.size[ROWS]), int(self.size[0])
        require_lanes(capacity, "state.dishes")
        lengths = (self.labels.shape[1], len(self.menu))
        require(lengths == (capacity, capacity), "state.menu", f"for {capacity} dishes", lengths)
        require(self.dish.shape == self.guests.shape, "state.guests", f"of {self.dish.shape}", self.guests.shape)
        rows = {len(self.data), len(self.z), len(self.arm_of), len(self.seat)}
        require(len(rows) == 1, "rows of the state", "of one length", sorted(rows))
        require_range(self.size[:1], 0, capacity, "state.size[0]")
        require_range(self.size[ROWS : ROWS + 1], 0, len(self.data), "state.size[ROWS]")
        require_range(self.size[ROWS + 1 :], n, n, "state.size")
        require_permutation(self.labels[0], self.labels[1], "state.labels")
        require_components(self.dishes, n_dishes, "state.dishes")
        require_rewards(self.data[:n], self.data.shape[1] - 2, "state.data")
        require_numbers(self.rules, "state.rules")
        require_at_places(self.z[:n], self.labels[1], self.dishes[COUNT, :n_dishes], "state.z")
        self._require_tables(n, n_dishes)

    def _require_tables(self, n: int, n_dishes: int) -> None:
        """Raise unless guests, dishes and menu count what the rewards say."""
        n_arms, room = self.dish.shape
        require_range(self.arm_of[:n], 0, n_arms - 1, "state.arm_of")
        require_range(self.arms, 0, np.iinfo(np.int64).max, "state.arms")
        require_range(self.arms[:, SEEN], 0, room, "state.arms[:, SEEN]")
        require_range(self.seat[:n], 0, room - 1, "state.seat")
        guests = np.zeros((n_arms, room), np.int64)
        np.add.at(guests, (self.arm_of[:n], self.seat[:n]), 1)
        require(bool((guests == self.guests).all()), "state.guests", "the rewards at each table", self.guests)
        seen = np.where(guests > 0, np.arange(1, room + 1), 0).max(axis=1)
        books = np.column_stack([(guests > 0).sum(axis=1), seen, guests.sum(axis=1)])
        require(bool((books == self.arms).all()), "state.arms", "tables, tables seen and rewards", self.arms)
        eaten = self.dish[guests > 0]
        require_range(eaten, 0, len(self.menu) - 1, "state.dish")
        require(bool((self.dish[self.arm_of[:n], self.seat[:n]] == self.z[:n]).all()), "state.z", "dishes", self.z)
        tables = np.bincount(eaten, minlength=len(self.menu))
        used = self.labels[0, :n_dishes]
        require(bool((tables[used] == self.menu[used]).all()), "state.menu", "the tables of each dish", self.menu)

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        rows = dict.fromkeys(("data", "z", "arm_of", "seat", "menu"), (0,))
        return {**rows, **dict.fromkeys(("dishes", "labels", "dish", "guests"), (1,))}


def doubled(array: IntArray, axis: int = -1) -> IntArray:
    """The array with twice the room along an axis."""
    return np.ascontiguousarray(np.concatenate([array, np.zeros_like(array)], axis=axis))


def redraw_concentration(counts: Sequence[IntArray], rule: Array, prior: tuple[float, float], rng: Rng) -> None:
    """Draw the concentration rule[0] given how many sit at each table of every restaurant; rule[1] is the discount."""
    tables = np.zeros((len(counts), 1, max(len(c) for c in counts)))
    sizes = np.array([[len(c)] for c in counts])
    processes = np.tile([0.0, 0.0, *rule], (len(counts), 1))
    for table, sitting in zip(tables, counts, strict=True):
        table[COUNT, : len(sitting)] = sitting
    redraw(tables, sizes, processes, np.array([*prior, 1.0, 1.0]), True, False, rng_handle(rng))
    rule[0] = processes[0, GAMMA]


@dataclass(frozen=True, eq=False)
class HierarchicalEngine:
    """Mixtures that share their components across arms, by Gibbs moves in the restaurant franchise.

    After every reward min(moves, 10 n) rewards, of any arm, change table and dish, and with probability
    min(1, moves/n) `table_moves` whole tables change their dish.

    learn_concentration          (shape, rate) of a Gamma prior: one concentration of all arms is redrawn as we go
    learn_shared_concentration   the same for the menu's concentration

    >>> import numpy as np
    >>> from polyarm import HierarchicalMixture, NormalInverseGamma
    >>> base = NormalInverseGamma(dim=1, mean=0.0, covariance=1.0, shape=1.0, scale=1.0)
    >>> engine = HierarchicalEngine(HierarchicalMixture(base), n_arms=2)
    >>> state = engine.update(engine.init(), np.ones(1), 0, 3.0, np.random.default_rng(0))
    >>> bool(engine.expected_means(state, np.ones(1))[1] > 0)  # the other arm shares its components
    True
    """

    model: HierarchicalMixture
    n_arms: int
    moves: int = 64
    table_moves: int = 1
    learn_concentration: tuple[float, float] | None = None
    learn_shared_concentration: tuple[float, float] | None = None
    _prior: Priors = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.moves, "moves", at_least=0)
        require_count(self.table_moves, "table_moves", at_least=0)
        model = self.model
        columns, sqrt_information, processes = prior_of([LinearMixture(model.base)])
        processes[0, [GAMMA, DISCOUNT]] = 0.0  # masses are those of tables, not of rewards
        object.__setattr__(self, "_prior", Priors(columns[0], sqrt_information[0], processes[0]))
        for name in ("concentration", "shared_concentration"):
            if getattr(self, f"learn_{name}") is not None:
                require_pair(getattr(self, f"learn_{name}"), f"learn_{name}")
                require(getattr(model, name) > 0, name, "above 0 to learn it", getattr(model, name))

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.model.base.dim

    def init(self) -> FranchiseState:
        """State before any reward."""
        n, model = FIRST_CAPACITY, self.model
        rules = [model.concentration, model.discount, model.shared_concentration, model.shared_discount]
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
            rules=np.array(rules),
            made_with=self._door.settings(self),
        )

    def with_arm(self, state: FranchiseState) -> "tuple[HierarchicalEngine, FranchiseState]":
        """The engine and the state with one more arm, whose components are those of all arms."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, n_arms=self.n_arms + 1)
        return engine, with_empty_arm(state, engine.init())

    def require_fit(self, state: FranchiseState) -> None:
        """Raise unless concentrations that are not learned are those of the model."""
        model = self.model
        rules = [model.concentration, model.discount, model.shared_concentration, model.shared_discount]
        learned = [self.learn_concentration is not None, False, self.learn_shared_concentration is not None, False]
        same = (state.rules == rules) | (np.array(learned) & (state.rules > 0))
        require(bool(same.all()), "state.rules", f"{rules}, as the model's, where they are not learned", state.rules)

    def books(self, state: FranchiseState) -> Franchise:
        """The state as kernels take it."""
        return Franchise(
            Dishes(state.dishes, state.labels, state.size, *self._prior),
            Guests(state.data, state.z, state.arm_of, state.seat),
            Tables(state.menu, state.dish, state.guests, state.arms),
            Rules(*state.rules.tolist()),
        )

    def _with_room(self, state: FranchiseState) -> FranchiseState:
        if state.size[0] + 2 > state.dishes.shape[1]:
            labels = doubled_slots(state.labels)
            state = state._replace(dishes=grown(state.dishes), labels=labels, menu=doubled(state.menu))
        if state.arms[:, SEEN].max() == state.dish.shape[1]:
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
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        given, backup = state, backup_of(state, y)
        state = self._with_room(state)
        moves.learn(self.books(state), a, x, y, rng_handle(rng))
        n = int(state.size[ROWS])
        state = self._move_rewards(state, min(self.moves, 10 * n), rng)
        if self.table_moves and rng.random() * n < self.moves:
            state = self._move_tables(state, self.table_moves, rng)
        if not finite_columns(state.dishes, int(state.size[0])) and not self._mended(state):
            give_up(given, backup, y)
        self._door.last = state
        if n < REDRAW_EVERY or n % REDRAW_EVERY == 0:
            self.redraw_hyperparameters(state, rng)
        return state

    def _mended(self, state: FranchiseState) -> bool:
        """Compute every dish afresh from its rewards, in place; tell whether all are finite now."""
        dishes, labels, size = state.dishes[None], state.labels[None], state.size[None]
        column, sqrt_information, process = (part[None] for part in self._prior)
        rebuild_components(Books(dishes, labels, size, column, sqrt_information, process, state.data, state.z), 0)
        return bool(finite_columns(state.dishes, int(state.size[0])))

    def redraw_hyperparameters(self, state: FranchiseState, rng: Rng) -> None:
        """Draw the concentrations that are learned: given every arm's tables, and given the menu; in place."""
        if state is not self._door.last:
            self._door.check(self, state)
        if self.learn_concentration is not None:
            tables = [guests[guests > 0] for guests in state.guests]
            redraw_concentration(tables, state.rules[:2], self.learn_concentration, rng)
        if self.learn_shared_concentration is not None:
            menu = state.menu[state.labels[0, : state.size[0]]]
            redraw_concentration([menu], state.rules[2:], self.learn_shared_concentration, rng)

    def move_rewards(self, state: FranchiseState, n_moves: int, rng: Rng) -> FranchiseState:
        """State after that many uniformly drawn rewards have drawn table and dish again."""
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        self._door.last = state = self._move_rewards(state, n_moves, rng)
        return state

    def _move_rewards(self, state: FranchiseState, n_moves: int, rng: Rng) -> FranchiseState:
        left = n_moves if state.size[ROWS] > 0 else 0
        while left > 0:
            left = moves.move_rewards(self.books(state), left, rng_handle(rng))
            state = self._with_room(state)
        return state

    def move_tables(self, state: FranchiseState, n_moves: int, rng: Rng) -> FranchiseState:
        """State after that many tables, drawn by their guests, have drawn their dish again."""
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        self._door.last = state = self._move_tables(state, n_moves, rng)
        return state

    def _move_tables(self, state: FranchiseState, n_moves: int, rng: Rng) -> FranchiseState:
        left = n_moves if state.size[ROWS] > 0 else 0
        while left > 0:
            left = moves.move_tables(self.books(state), left, rng_handle(rng))
            state = self._with_room(state)
        return state

    def draw_means(self, state: FranchiseState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward, (n_draws, n_arms): arms share the draw of a component."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        draws.draw_means(self.books(state), x, out, rng_handle(rng))
        return out

    def expected_means(self, state: FranchiseState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward given the seating, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty(self.n_arms)
        draws.expected_means(self.books(state), x, out)
        return out

    def n_components(self, state: FranchiseState) -> IntArray:
        """Components that each arm uses, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        used = [
            np.unique(state.z[: state.size[ROWS]][state.arm_of[: state.size[ROWS]] == a]) for a in range(self.n_arms)
        ]
        return np.array([len(u) for u in used])

    def seating(self, state: FranchiseState) -> tuple[IntArray, IntArray, IntArray]:
        """Arm, table within the arm, and dish of every reward."""
        if state is not self._door.last:
            self._door.check(self, state)
        n = state.size[ROWS]
        return state.arm_of[:n].copy(), state.seat[:n].copy(), state.z[:n].copy()

    def predictive(self, state: FranchiseState, context: Array, arm: int) -> StudentMixture:
        """Posterior predictive distribution of an arm's next reward in this context, given the seating."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        n_dishes = int(state.size[0])
        rules = Rules(*state.rules.tolist())
        eaten = state.menu[state.labels[0, :n_dishes]] - rules.shared_discount
        menu = np.append(eaten, new_dish_mass(rules, n_dishes))
        used = state.guests[a] > 0
        at = state.labels[1, state.dish[a, used]]
        seated = np.bincount(at, state.guests[a, used] - rules.discount, minlength=n_dishes + 1)
        new = new_table_mass(rules, int(state.arms[a, TABLES]), n_dishes)
        places = np.column_stack([state.dishes[:, :n_dishes], self._prior.columns])
        return student_mixture(places, seated + new * menu / menu.sum(), self._prior.processes[SHAPE], x)

    def draw_densities(
        self, state: FranchiseState, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng
    ) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid))."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        points = require_vector(grid, "grid")
        out = np.zeros((require_count(n_draws, "n_draws"), len(points)))
        draws.draw_densities(self.books(state), x, a, points, out, rng_handle(rng))
        return out
