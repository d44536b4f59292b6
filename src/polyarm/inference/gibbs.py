"""Collapsed Gibbs sampling over nonparametric and finite mixtures."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from polyarm.errors import (
    require,
    require_arm,
    require_array,
    require_context,
    require_count,
    require_name,
    require_positive,
    require_reward,
    require_share,
    require_vector,
)
from polyarm.inference.arms import model_of_all, with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.failure import backup_of, give_up
from polyarm.inference.migration import fit_memory, memory_fits
from polyarm.inference.predictive import process_mixture
from polyarm.inference.rules import Budget, Sweeps
from polyarm.inference.slots import doubled_slots, slots_in_order
from polyarm.inference.state_checks import require_components, require_numbers, require_roots, require_seating
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.lanes import LANES
from polyarm.kernels.linalg.sqrt_information import absorb
from polyarm.kernels.mixture import gibbs as kernels
from polyarm.kernels.mixture import means
from polyarm.kernels.mixture.component import DISCOUNT, GAMMA, LOG_DET, MEAN, NOISE, SCALE, SHAPE, n_rows
from polyarm.kernels.mixture.finite import finite_components
from polyarm.kernels.mixture.forgetting import forget
from polyarm.kernels.mixture.hyperparameters import MOST, rate_rewards, redraw, redraw_scale
from polyarm.kernels.mixture.records import EVER, NEXT, ROWS, Books
from polyarm.kernels.mixture.split_merge import split_merge
from polyarm.models import LinearMixture, Objective, StudentMixture
from polyarm.types import Array, IntArray, Rng

FADES = 8  # times the past fades in a half-life: rewards can move until the next fade
REDRAW_EVERY = 20  # steps between draws of the hyperparameters, once there have been that many
RATED_PER_STEP = 64  # a new scale rates every reward anew: it is drawn so rarely that this many are rated per step
FIRST_CAPACITY = 16  # components and rewards there is room for at first; both double when full
Draws: TypeAlias = Literal["exact", "paper", "weights"]
DEFAULT_RULE = Budget()
DRAWS = {"exact": means.WHOLE, "paper": means.PAPER, "weights": means.ONE_ATOM}


class GibbsState(NamedTuple):
    """Components of every arm (layout: kernels.mixture.records), and each arm's rewards with their labels."""

    tables: Array
    labels: IntArray
    sizes: IntArray
    roots: Array
    laws: Array
    data: tuple[Array, ...]
    seats: tuple[IntArray, ...]
    made_with: str = ""

    def require_sound(self) -> None:
        """Raise unless every reward sits at a component in use, and all numbers that are read are finite."""
        require_seating(self.tables, self.labels, self.sizes, self.data, self.seats)
        require_numbers(self.laws, "state.laws")
        require_roots(self.roots)
        places = (1, self.tables.shape[2])
        require(self.roots.shape[1] in places, "state.roots", f"of one place or {places[1]}", self.roots.shape)
        for table, size in zip(self.tables, self.sizes, strict=True):
            require_components(table, int(size[0]), "state.tables")

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        return {"tables": (2,), "labels": (2,), "roots": (1,), "data": (0,), "seats": (0,)}


class Priors(NamedTuple):
    """Every arm's empty component (n_arms, rows), its square-root information, and a0, b0, concentration, discount.

    sqrt_information (n_arms, 1, dim + 1, dim + 1) has the shape of a state's roots in which nothing is ever absorbed.
    """

    columns: Array
    sqrt_information: Array
    processes: Array


def prior_of(arms: Sequence[LinearMixture]) -> Priors:
    """The arms' priors as kernels take them."""
    dim = arms[0].base.dim
    columns = np.zeros((len(arms), n_rows(dim)))
    for column, arm in zip(columns, arms, strict=True):
        column[SCALE] = arm.base.scale
        column[LOG_DET] = np.linalg.slogdet(arm.base.covariance_matrix)[1]
        column[MEAN : MEAN + dim] = arm.base.mean_vector
        column[MEAN + dim :] = np.linalg.inv(arm.base.sqrt_information[:-1, :-1]).T[np.tril_indices(dim)]
    processes = [(arm.base.shape, arm.base.scale, arm.concentration, arm.discount) for arm in arms]
    return Priors(columns, np.stack([arm.base.sqrt_information[None] for arm in arms]), np.array(processes))


def require_pair(value: tuple[float, float] | None, name: str) -> Array:
    """The two positive numbers of a prior; ones where there is none."""
    pair = require_array((1.0, 1.0) if value is None else value, name)
    require(
        pair.shape == (2,) and bool((pair > 0).all() and np.isfinite(pair).all()), name, "two positive numbers", value
    )
    return pair


def grown(array: Array, axis: int = -1) -> Array:
    """The array with twice the room along an axis."""
    extra = np.zeros_like(array)
    return np.ascontiguousarray(np.concatenate([array, extra], axis=axis))


def with_room_for_component(state: GibbsState, sqrt_information: Array) -> GibbsState:
    """The state with twice the slots for components; new slots carry new labels and start from the prior's."""
    capacity = state.tables.shape[2]
    state = state._replace(tables=grown(state.tables), labels=doubled_slots(state.labels))
    if state.roots.shape[1] > 1:
        state = state._replace(roots=np.concatenate([state.roots, repeated(sqrt_information, capacity)], axis=1))
    return state


def repeated(sqrt_information: Array, times: int) -> Array:
    """Every arm's matrix that many times, (n_arms, times, dim + 1, dim + 1)."""
    return np.repeat(sqrt_information, times, axis=1)


def room_for_reward(
    data: tuple[Array, ...], seats: tuple[IntArray, ...], sizes: IntArray, arm: int, memory: int | None
) -> tuple[tuple[Array, ...], tuple[IntArray, ...]]:
    """Rewards and seats of an arm whose rows are all taken: twice as many or, at the end of memory, the first again."""
    if len(seats[arm]) == memory:
        sizes[arm, NEXT] = 0
        return data, seats
    wider, longer = list(data), list(seats)
    wider[arm] = grown(data[arm], axis=0)[:memory]
    longer[arm] = np.concatenate([seats[arm], np.zeros_like(seats[arm])])[:memory]
    return tuple(wider), tuple(longer)


def with_room(data: tuple[Array, ...], sizes: IntArray, arm: int, memory: int | None) -> tuple[Array, ...]:
    """Rows with room for one more reward of an arm: twice as many or, at the end of memory, the first again.

    sizes (A, 2) are rows that can move and the next row; it is changed in place.
    """
    rows = data[arm]
    if sizes[arm, 1] < len(rows):
        return data
    if len(rows) == memory:
        sizes[arm, 1] = 0
        return data
    wider = np.zeros((max(FIRST_CAPACITY, 2 * len(rows)), rows.shape[1]))[:memory]
    wider[: len(rows)] = rows
    return (*data[:arm], wider, *data[arm + 1 :])


def remaining_share(step: int, half_life: float) -> float:
    """What remains of the past after this step: 1, but less where one of the fades of a half-life is due."""
    interval = max(1, round(half_life / FADES))
    return float(0.5 ** (interval / half_life)) if step % interval == 0 else 1.0


@dataclass(frozen=True, eq=False)
class GibbsEngine:
    """Dirichlet-process, Pitman-Yor or finite Dirichlet mixtures of linear regressions, one model per arm.

    draws                 how a draw of the mean treats the weights and the unseen components: see kernels.mixture.means
    learn_concentration   (shape, rate) of a Gamma prior: the concentration, shared by the arms, is redrawn as we go
    learn_discount        (alpha, beta) of a Beta prior, cut off at 0.95: the same for the discount
    learn_scale           (shape, rate) of a Gamma prior: the same for the scale of the base measure's noise variance
    memory                so many rewards of an arm, the latest, can change their component; older ones stay where
                          they are in its statistics, and the state stops growing
    half_life             the past of every arm loses half its weight in so many steps of the bandit: soft counts that
                          fade eight times per half-life, for rewards that drift

    >>> import numpy as np
    >>> from polyarm import LinearMixture, NormalInverseGamma
    >>> arm = LinearMixture(NormalInverseGamma(dim=1, mean=0.0, covariance=1.0, shape=1.0, scale=1.0))
    >>> engine, rng = GibbsEngine([arm, arm]), np.random.default_rng(0)
    >>> state = engine.update(engine.init(), np.ones(1), 0, 3.0, rng)
    >>> engine.n_components(state).tolist(), engine.draw_means(state, np.ones(1), 5, rng).shape
    ([1, 0], (5, 2))
    """

    arms: Sequence[LinearMixture]
    rule: Budget | Sweeps = DEFAULT_RULE
    draws: Draws = "exact"
    learn_concentration: tuple[float, float] | None = None
    learn_discount: tuple[float, float] | None = None
    learn_scale: tuple[float, float] | None = None
    memory: int | None = None
    half_life: float | None = None
    _prior: Priors = field(init=False, repr=False)
    _hyperprior: Array = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require(len(self.arms) > 0, "arms", "at least one model", self.arms)
        dims = {arm.base.dim for arm in self.arms}
        require(len(dims) == 1, "arms", "models of one context dimension", sorted(dims))
        require_name(self.draws, tuple(DRAWS), "draws")
        if self.memory is not None:
            require_count(self.memory, "memory")
        if self.half_life is not None:
            require_positive(self.half_life, "half_life")
        object.__setattr__(self, "_prior", prior_of(self.arms))
        object.__setattr__(self, "_hyperprior", self._checked_hyperprior())

    def _checked_hyperprior(self) -> Array:
        pairs = [require_pair(self.learn_concentration, "learn_concentration")]
        pairs += [require_pair(self.learn_discount, "learn_discount"), require_pair(self.learn_scale, "learn_scale")]
        if self.learn_concentration or self.learn_discount:
            processes = self._prior.processes[:, [GAMMA, DISCOUNT]]
            concentration, discount = processes[0]
            require(
                bool((processes == processes[0]).all()),
                "arms",
                "of one concentration and discount to learn them",
                processes,
            )
            require(bool(discount >= 0), "arms", "infinite mixtures to learn their seating", processes[0])
            require(bool(concentration > 0), "concentration", "above 0 to learn it", concentration)
        if self.learn_discount:
            require(bool(0 < discount < MOST), "discount", f"between 0 and {MOST} to begin learning", discount)
        if self.learn_scale:
            scales = self._prior.processes[:, NOISE]
            require(bool((scales == scales[0]).all()), "arms", "of one prior_scale to learn it", scales)
        return np.concatenate(pairs)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.arms[0].base.dim

    def init(self) -> GibbsState:
        """State before any reward."""
        n, rows = self._prior.columns.shape
        capacity = max(FIRST_CAPACITY, LANES)
        first = min(FIRST_CAPACITY, self.memory or FIRST_CAPACITY)
        return GibbsState(
            tables=np.zeros((n, rows, capacity)),
            labels=np.tile(np.arange(capacity), (n, 2, 1)),
            sizes=np.zeros((n, 4), np.int64),
            roots=repeated(self._prior.sqrt_information, capacity if self._absorbs else 1),
            laws=self._prior.processes.copy(),
            data=tuple(np.zeros((first, self.context_dim + 2)) for _ in range(n)),
            seats=tuple(np.zeros(first, np.int64) for _ in range(n)),
            made_with=self._door.settings(self),
        )

    def with_arm(self, state: GibbsState) -> "tuple[GibbsEngine, GibbsState]":
        """The engine and the state with one more arm: the arms' common prior, with what was learned of it."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, arms=[*self.arms, model_of_all(self.arms)])
        fresh = engine.init()
        fresh.laws[-1] = state.laws[-1]
        while fresh.tables.shape[2] < state.tables.shape[2]:
            fresh = with_room_for_component(fresh, engine._prior.sqrt_information)
        return engine, with_empty_arm(state, fresh)

    @property
    def _absorbs(self) -> bool:
        return self.memory is not None or self.half_life is not None

    def require_fit(self, state: GibbsState) -> None:
        """Raise unless what is not learned of the arms' processes is that of the models."""
        processes, learned = self._prior.processes, np.zeros(4, bool)
        learned[1:] = (
            self.learn_scale is not None,
            self.learn_concentration is not None,
            self.learn_discount is not None,
        )
        _, scale, concentration, discount = state.laws.T
        inside = (scale > 0) & (concentration > -discount) & (discount < 1)
        same = (state.laws == processes) | (learned & inside[:, None])
        require(bool(same.all()), "state.laws", "the models' where they are not learned", state.laws[~same.all(axis=1)])

    def must_migrate(self, state: GibbsState) -> bool:
        """Whether the state keeps its rewards in another way than this engine."""
        alone = self._absorbs and state.roots.shape[1] == 1
        return alone or not all(memory_fits(*pair, self.memory) for pair in zip(state.seats, state.sizes, strict=True))

    def migrated(self, state: GibbsState) -> GibbsState:
        """The state of an engine with another memory or half-life; rewards beyond the memory are absorbed."""
        sqrt_information = state.roots
        if self._absorbs and sqrt_information.shape[1] == 1:
            sqrt_information = repeated(sqrt_information, state.tables.shape[2])
        sqrt_information, sizes = sqrt_information.copy(), state.sizes.copy()

        def absorb_row(arm: int, row: int) -> None:
            absorb(sqrt_information[arm, state.seats[arm][row]], state.data[arm][row, :-1].copy())

        data, seats = fit_memory(state.data, state.seats, sizes, self.memory, absorb_row)
        return state._replace(roots=sqrt_information, sizes=sizes, data=data, seats=seats)

    def update(self, state: GibbsState, context: Array, arm: int, reward: float, rng: Rng) -> GibbsState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        if state is not self._door.last:
            state = self._door.admit(self, state)
        self._door.last = NOTHING
        given, backup = state, backup_of(state, y)
        state = self._with_room(state, a)
        if isinstance(self.rule, Budget):
            state, finite = self._learn(state, a, x, y, self.rule, rng)
        else:
            kernels.seat(self._books(state, a), a, x, y, rng_handle(rng))
            state = self._sweep_until_settled(state, a, self.rule, rng)
            finite = finite_components(state.tables, state.sizes, a)
        if not finite and not self._mend(state, a):
            give_up(given, backup, y)
        self._door.last = state
        if self.half_life or self.learn_concentration or self.learn_discount or self.learn_scale:
            self._after_step(state, int(state.sizes[:, EVER].sum()), rng)
        return state

    def _mend(self, state: GibbsState, arm: int) -> bool:
        """Compute every component of an arm afresh from its rewards, in place; tell whether all are finite now."""
        kernels.rebuild_components(self._books(state, arm), arm)
        return finite_components(state.tables, state.sizes, arm)

    def _books(self, state: GibbsState, arm: int) -> Books:
        tables, slots, sizes, sqrt_information, processes, data, labels, _ = state
        return Books(tables, slots, sizes, self._columns(state), sqrt_information, processes, data[arm], labels[arm])

    def _columns(self, state: GibbsState) -> Array:
        """Every arm's empty component, with the scale that has been learned."""
        columns = self._prior.columns
        if self.learn_scale is not None:
            columns = columns.copy()
            columns[:, SCALE] = state.laws[:, NOISE]
        return columns

    def _with_room(self, state: GibbsState, arm: int) -> GibbsState:
        if state.sizes[arm, NEXT] == len(state.seats[arm]):
            data, seats = room_for_reward(state.data, state.seats, state.sizes, arm, self.memory)
            state = state._replace(data=data, seats=seats)
        if state.sizes[arm, 0] + 2 > state.tables.shape[2]:
            state = with_room_for_component(state, self._prior.sqrt_information)
        return state

    def _learn(
        self, state: GibbsState, arm: int, x: Array, y: float, rule: Budget, rng: Rng
    ) -> tuple[GibbsState, bool]:
        """State with the reward, and whether its arm is finite."""
        n_moves = rule.moves_at(int(state.sizes[arm, EVER]) + 1)
        left = kernels.learn(self._books(state, arm), arm, x, y, n_moves, rng_handle(rng))
        finite = left != kernels.NOT_FINITE
        if left > 0:
            state = self._random_moves(state, arm, left, rng)
            finite = finite_components(state.tables, state.sizes, arm)
        if finite and rule.split_merge > 0 and rng.random() * state.sizes[arm, ROWS] < rule.moves:
            state = self._split_merge(state, arm, rule.split_merge, rng)
            finite = finite_components(state.tables, state.sizes, arm)
        return state, finite

    def _after_step(self, state: GibbsState, step: int, rng: Rng) -> None:
        share = remaining_share(step, self.half_life) if self.half_life is not None else 1.0
        if share < 1.0:
            self.fade(state, share)
        interval = REDRAW_EVERY
        while self.learn_scale and interval * RATED_PER_STEP < state.sizes[:, ROWS].sum():
            interval *= 2
        if step < REDRAW_EVERY or step % interval == 0:
            self.redraw_hyperparameters(state, rng)

    def redraw_hyperparameters(self, state: GibbsState, rng: Rng) -> None:
        """Draw what is learned of concentration, discount and scale given the seating of all arms; in place."""
        if state is not self._door.last:
            self._door.check(self, state)
        learn = (self.learn_concentration is not None, self.learn_discount is not None)
        if any(learn):
            redraw(state.tables, state.sizes, state.laws, self._hyperprior, *learn, rng_handle(rng))
        if self.learn_scale is not None:
            redraw_scale(state.tables, state.sizes, state.laws, self._hyperprior, rng_handle(rng))
            for data, size, column, process in zip(
                state.data, state.sizes, self._columns(state), state.laws, strict=True
            ):
                rate_rewards(data, size[ROWS], column, process[SHAPE])

    def fade(self, state: GibbsState, share: float) -> None:
        """Let only a share of every arm's past remain; in place."""
        if state is not self._door.last:
            self._door.check(self, state)
        require_share(share, "share")
        require(self._absorbs, "half_life", "given, or a memory, where the past fades", self.half_life)
        for a in range(self.n_arms):
            forget(self._books(state, a), a, self._prior.sqrt_information[a, 0], share)

    def random_moves(self, state: GibbsState, arm: int, n_moves: int, rng: Rng) -> GibbsState:
        """State after that many Gibbs moves of uniformly drawn rewards of an arm."""
        self._begin(state, arm)
        self._door.last = state = self._random_moves(state, arm, n_moves, rng)
        return state

    def _begin(self, state: GibbsState, arm: int) -> None:
        """Check a state and an arm before moves that may change the state's arrays."""
        require_arm(arm, self.n_arms)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING

    def _random_moves(self, state: GibbsState, arm: int, n_moves: int, rng: Rng) -> GibbsState:
        left = n_moves if state.sizes[arm, ROWS] > 0 else 0
        while left > 0:
            left = kernels.random_moves(self._books(state, arm), arm, left, rng_handle(rng))
            state = with_room_for_component(state, self._prior.sqrt_information) if left > 0 else state
        return state

    def sweep(self, state: GibbsState, arm: int, rng: Rng) -> GibbsState:
        """State after one Gibbs move of every reward of an arm, in random order."""
        self._begin(state, arm)
        self._door.last = state = self._sweep(state, arm, rng)
        return state

    def _sweep(self, state: GibbsState, arm: int, rng: Rng) -> GibbsState:
        left = int(state.sizes[arm, ROWS])
        order = np.empty(left, np.int64)
        while left > 0:
            left = kernels.sweep(self._books(state, arm), arm, order, left, rng_handle(rng))
            state = with_room_for_component(state, self._prior.sqrt_information) if left > 0 else state
        return state

    def split_merge(self, state: GibbsState, arm: int, n_proposals: int, rng: Rng) -> GibbsState:
        """State after that many split-merge proposals for an arm."""
        self._begin(state, arm)
        self._door.last = state = self._split_merge(state, arm, n_proposals, rng)
        return state

    def _split_merge(self, state: GibbsState, arm: int, n_proposals: int, rng: Rng) -> GibbsState:
        left = n_proposals
        while left > 0:
            left = split_merge(self._books(state, arm), arm, left, rng_handle(rng))
            state = with_room_for_component(state, self._prior.sqrt_information) if left > 0 else state
        return state

    def _sweep_until_settled(self, state: GibbsState, arm: int, rule: Sweeps, rng: Rng) -> GibbsState:
        before = self._log_joint(state, arm)
        for _ in range(rule.max_sweeps):
            state = self._sweep(state, arm, rng)
            state = self._split_merge(state, arm, rule.split_merge, rng)
            after = self._log_joint(state, arm)
            if abs(after - before) < rule.tolerance * abs(before):
                break
            before = after
        return state

    def log_joint(self, state: GibbsState, arm: int) -> float:
        """Log joint density of an arm's rewards and their seating."""
        require_arm(arm, self.n_arms)
        if state is not self._door.last:
            self._door.check(self, state)
        return self._log_joint(state, arm)

    def _log_joint(self, state: GibbsState, arm: int) -> float:
        return kernels.log_joint(state.tables, state.sizes, self._columns(state), state.laws, arm)

    def draw_means(self, state: GibbsState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward given the seating, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        way = DRAWS[self.draws]
        means.draw_means(state.tables, state.sizes, self._prior.columns, state.laws, x, way, out, rng_handle(rng))
        return out

    def expected_means(self, state: GibbsState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward given the seating, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty(self.n_arms)
        means.expected_means(state.tables, state.sizes, self._prior.columns, state.laws, x, out)
        return out

    def draw_objectives(self, state: GibbsState, context: Array, objective: Objective, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of what every arm's reward is worth given the seating, (n_draws, n_arms).

        Draws are of the whole posterior, whatever `draws` says of those of the mean.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((self.n_arms, require_count(n_draws, "n_draws")))
        columns, functional, handle = self._columns(state), objective.functional, rng_handle(rng)
        for a in range(self.n_arms):
            table, size = state.tables[a], int(state.sizes[a, 0])
            means.draw_worths(table, size, state.laws[a], columns[a], x, functional, out[a], handle)
        return np.ascontiguousarray(out.T)

    def n_components(self, state: GibbsState) -> IntArray:
        """Components in use, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        return state.sizes[:, 0].copy()

    def assignments(self, state: GibbsState, arm: int) -> IntArray:
        """Component of each of an arm's rewards that can still move, oldest first, numbered 0, 1, ... by slot."""
        if state is not self._door.last:
            self._door.check(self, state)
        require_arm(arm, self.n_arms)
        return slots_in_order(state.labels[arm], state.sizes[arm], state.seats[arm])

    def predictive(self, state: GibbsState, context: Array, arm: int) -> StudentMixture:
        """Posterior predictive distribution of an arm's next reward in this context, given the seating."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        components = state.tables[a][:, : state.sizes[a, 0]]
        return process_mixture(components, self._columns(state)[a], state.laws[a], x)

    def draw_densities(self, state: GibbsState, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid))."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        points = require_vector(grid, "grid")
        out = np.zeros((require_count(n_draws, "n_draws"), len(points)))
        table, size = state.tables[a], int(state.sizes[a, 0])
        means.draw_density(table, size, state.laws[a], self._prior.columns[a], x, points, out, rng_handle(rng))
        return out
