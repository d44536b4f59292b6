"""Collapsed Gibbs sampling over nonparametric and finite mixtures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from polyarm.errors import (
    require,
    require_arm,
    require_array,
    require_context,
    require_count,
    require_name,
    require_number,
    require_reward,
)
from polyarm.kernels import gibbs as kernels
from polyarm.kernels import means
from polyarm.kernels._jit import stream
from polyarm.kernels.component import COUNT, LANES, LOG_DET, MEAN, SCALE, n_rows
from polyarm.models import LinearMixture, StudentMixture
from polyarm.types import Array, IntArray, Rng

FIRST_CAPACITY = 16  # components and rewards there is room for at first; both double when full
Draws: TypeAlias = Literal["exact", "paper"]


@dataclass(frozen=True)
class Budget:
    """Seat the new reward, then make min(moves, 10 n) random single-site moves: cost does not grow with n."""

    moves: int = 64

    def __post_init__(self) -> None:
        require_count(self.moves, "moves", at_least=0)


@dataclass(frozen=True)
class Sweeps:
    """Seat the new reward, then sweep until the log joint density changes by less than `tolerance`, relatively.

    The paper's Gibbs_max = G counts the seating as its first iteration: max_sweeps = G - 1.
    """

    max_sweeps: int = 9
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        require_count(self.max_sweeps, "max_sweeps", at_least=0)
        require_number(self.tolerance, "tolerance", "a finite number of at least 0", lambda t: t >= 0)


class GibbsState(NamedTuple):
    """Components of every arm (see kernels.gibbs for the layout), and each arm's rewards with their labels."""

    tables: Array
    labels: IntArray
    sizes: IntArray
    data: tuple[Array, ...]
    seats: tuple[IntArray, ...]

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        return {"tables": (2,), "labels": (2,), "data": (0,), "seats": (0,)}


class Prior(NamedTuple):
    """Every arm's empty component (n_arms, rows), square-root information, and a0, b0, concentration, discount."""

    columns: Array
    roots: Array
    laws: Array


def prior_of(arms: Sequence[LinearMixture]) -> Prior:
    """The arms' priors as kernels take them."""
    dim = arms[0].base.dim
    columns = np.zeros((len(arms), n_rows(dim)))
    for column, arm in zip(columns, arms, strict=True):
        column[SCALE] = arm.base.scale
        column[LOG_DET] = np.linalg.slogdet(arm.base.covariance_matrix)[1]
        column[MEAN : MEAN + dim] = arm.base.mean_vector
        column[MEAN + dim :] = np.linalg.inv(arm.base.root[:-1, :-1]).T[np.tril_indices(dim)]
    laws = [(arm.base.shape, arm.base.scale, arm.concentration, arm.discount) for arm in arms]
    return Prior(columns, np.stack([arm.base.root for arm in arms]), np.array(laws))


def grown(array: Array, axis: int = -1) -> Array:
    """The array with twice the room along an axis."""
    extra = np.zeros_like(array)
    return np.ascontiguousarray(np.concatenate([array, extra], axis=axis))


def with_room_for_component(state: GibbsState) -> GibbsState:
    """The state with twice the places for components; new places carry new labels."""
    capacity = state.tables.shape[2]
    labels = np.concatenate([state.labels, state.labels + capacity], axis=2)
    labels[:, :, capacity:] = np.arange(capacity, 2 * capacity)
    return state._replace(tables=grown(state.tables), labels=np.ascontiguousarray(labels))


def with_room_for_reward(state: GibbsState, arm: int) -> GibbsState:
    """The state with twice the rows for an arm's rewards."""
    data, seats = list(state.data), list(state.seats)
    data[arm] = grown(data[arm], axis=0)
    seats[arm] = np.concatenate([seats[arm], np.zeros_like(seats[arm])])
    return state._replace(data=tuple(data), seats=tuple(seats))


@dataclass(frozen=True, eq=False)
class GibbsEngine:
    """Dirichlet-process, Pitman-Yor or finite Dirichlet mixtures of linear regressions, one model per arm.

    `draws` says how a draw of the mean treats the weights and the unseen components: see kernels.means.
    """

    arms: Sequence[LinearMixture]
    rule: Budget | Sweeps = Budget()
    draws: Draws = "exact"
    _prior: Prior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require(len(self.arms) > 0, "arms", "at least one model", self.arms)
        dims = {arm.base.dim for arm in self.arms}
        require(len(dims) == 1, "arms", "models of one context dimension", sorted(dims))
        require_name(self.draws, ("exact", "paper"), "draws")
        object.__setattr__(self, "_prior", prior_of(self.arms))

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
        return GibbsState(
            tables=np.zeros((n, rows, capacity)),
            labels=np.tile(np.arange(capacity), (n, 2, 1)),
            sizes=np.zeros((n, 2), np.int64),
            data=tuple(np.zeros((FIRST_CAPACITY, self.context_dim + 2)) for _ in range(n)),
            seats=tuple(np.zeros(FIRST_CAPACITY, np.int64) for _ in range(n)),
        )

    def update(self, state: GibbsState, context: Array, arm: int, reward: float, rng: Rng) -> GibbsState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        if state.sizes[a, 1] == state.seats[a].shape[0]:
            state = with_room_for_reward(state, a)
        if state.sizes[a, 0] + 2 > state.tables.shape[2]:
            state = with_room_for_component(state)
        if isinstance(self.rule, Budget):
            moves, source = self.rule.moves, stream(rng)
            left = kernels.learn(*state[:3], *self._prior, state.data[a], state.seats[a], a, x, y, moves, source)
            return state if left == 0 else self.random_moves(state, a, left, rng)
        kernels.seat(*state[:3], *self._prior, state.data[a], state.seats[a], a, x, y, stream(rng))
        return self._sweep_until_settled(state, a, self.rule, rng)

    def random_moves(self, state: GibbsState, arm: int, n_moves: int, rng: Rng) -> GibbsState:
        """State after that many Gibbs moves of uniformly drawn rewards of an arm."""
        left = n_moves if state.sizes[arm, 1] > 0 else 0
        while left > 0:
            data, seats = state.data[arm], state.seats[arm]
            left = kernels.random_moves(*state[:3], *self._prior, data, seats, arm, left, stream(rng))
            state = with_room_for_component(state) if left > 0 else state
        return state

    def sweep(self, state: GibbsState, arm: int, rng: Rng) -> GibbsState:
        """State after one Gibbs move of every reward of an arm, in random order."""
        left = int(state.sizes[arm, 1])
        order = np.empty(left, np.int64)
        while left > 0:
            data, seats = state.data[arm], state.seats[arm]
            left = kernels.sweep(*state[:3], *self._prior, data, seats, arm, order, left, stream(rng))
            state = with_room_for_component(state) if left > 0 else state
        return state

    def _sweep_until_settled(self, state: GibbsState, arm: int, rule: Sweeps, rng: Rng) -> GibbsState:
        before = self.log_joint(state, arm)
        for _ in range(rule.max_sweeps):
            state = self.sweep(state, arm, rng)
            after = self.log_joint(state, arm)
            if abs(after - before) < rule.tolerance * abs(before):
                break
            before = after
        return state

    def log_joint(self, state: GibbsState, arm: int) -> float:
        """Log joint density of an arm's rewards and their seating."""
        return kernels.log_joint(state.tables, state.sizes, self._prior.columns, self._prior.laws, arm)

    def draw_means(self, state: GibbsState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward given the seating, (n_draws, n_arms)."""
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        columns, _, laws = self._prior
        exact = self.draws == "exact"
        means.draw_means(state.tables, state.sizes, columns, laws, x, exact, out, stream(rng))
        return out

    def expected_means(self, state: GibbsState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward given the seating, (n_arms,)."""
        x = require_context(context, self.context_dim)
        out = np.empty(self.n_arms)
        means.expected_means(state.tables, state.sizes, self._prior.columns, self._prior.laws, x, out)
        return out

    def n_components(self, state: GibbsState) -> IntArray:
        """Components in use, (n_arms,)."""
        return state.sizes[:, 0].copy()

    def assignments(self, state: GibbsState, arm: int) -> IntArray:
        """Component of each of an arm's rewards, numbered 0, 1, ... by place."""
        n = state.sizes[arm, 1]
        return np.asarray(state.labels[arm, 1][state.seats[arm][:n]])

    def predictive(self, state: GibbsState, context: Array, arm: int) -> StudentMixture:
        """Posterior predictive distribution of an arm's next reward in this context, given the seating."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        n_components = int(state.sizes[a, 0])
        shape, _, concentration, discount = self._prior.laws[a]
        places = np.column_stack([state.tables[a][:, :n_components], self._prior.columns[a]])
        m, q = np.empty(n_components + 1), np.empty(n_components + 1)
        means.locate(places, n_components + 1, x, m, q)
        counts = places[COUNT]
        mass = np.append(counts[:-1] - discount, max(concentration + n_components * discount, 0.0))
        shapes = shape + 0.5 * counts
        return StudentMixture(mass / mass.sum(), 2 * shapes, m, np.sqrt(places[SCALE] / shapes * (1 + q)))

    def draw_densities(self, state: GibbsState, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid))."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        points = require_array(grid, "grid")
        out = np.zeros((require_count(n_draws, "n_draws"), len(points)))
        table, size = state.tables[a], int(state.sizes[a, 0])
        means.draw_density(table, size, self._prior.laws[a], self._prior.columns[a], x, points, out, stream(rng))
        return out
