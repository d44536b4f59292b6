"""Variational inference: soft seating, without randomness."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.errors import (
    require,
    require_arm,
    require_context,
    require_count,
    require_number,
    require_reward,
    require_vector,
)
from polyarm.inference.arms import model_of_all, with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.failure import all_finite, backup_of, give_up
from polyarm.inference.gibbs import FIRST_CAPACITY, Priors, grown, prior_of
from polyarm.inference.predictive import process_mixture
from polyarm.inference.state_checks import (
    SLACK,
    require_components,
    require_lanes,
    require_numbers,
    require_range,
    require_rewards,
)
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.lanes import LANES
from polyarm.kernels.mixture import means
from polyarm.kernels.mixture import variational as kernels
from polyarm.kernels.mixture.component import COUNT, DISCOUNT, SHAPE, cache_constants, n_rows, reset
from polyarm.kernels.mixture.finite import finite_columns
from polyarm.kernels.mixture.records import Prior
from polyarm.models import LinearMixture, Objective, StudentMixture
from polyarm.renaming import renamed
from polyarm.types import Array, IntArray, Rng


class SoftSeating(NamedTuple):
    """Components, responsibilities, sizes and rewards of one arm; see kernels.mixture.variational for the layout."""

    table: Array
    responsibilities: Array
    size: IntArray
    data: Array

    def require_sound(self) -> None:
        """Raise unless every reward has a row, and its responsibilities sum to one."""
        require_lanes(self.table.shape[1], "table of a seating")
        rows, n = len(self.data), int(self.size[0])
        require(len(self.responsibilities) == rows > 0, "rows of a seating", f"{rows} of both", rows)
        require_range(self.size[:1], 0, rows, "rewards of a seating")
        require_range(self.size[1:], 0, rows, "turn of a seating")
        require_rewards(self.data[:n], self.data.shape[1] - 2, "data of a seating")
        shares = self.responsibilities[:n]
        require_numbers(shares, "responsibilities of a seating")
        whole = bool((shares >= 0).all() and (np.abs(shares.sum(axis=1) - 1) < SLACK).all())
        require(whole, "responsibilities of a seating", "of sum 1", shares)
        require_components(self.table, self.table.shape[1], "table of a seating")
        require(bool((self.table[COUNT] >= 0).all()), "counts of a seating", "at least 0", self.table[COUNT])

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        return {"responsibilities": (0,), "data": (0,)}


class VariationalState(NamedTuple):
    """The soft seating of every arm."""

    seatings: tuple[SoftSeating, ...]
    made_with: str = ""


@renamed(open_threshold="opening")
@dataclass(frozen=True, eq=False)
class VariationalEngine:
    """Mixtures of linear regressions by zero-order collapsed variational Bayes: the same data, the same state.

    A reward is shared among at most `max_components` components, then `refreshes` earlier ones are, in turn; a new
    component opens only on arrival, if it would take more than `open_threshold` of the reward.  From about a
    hundred rewards on, the spread of the draws is mostly 0.8 to 0.9 of the posterior's: it explores too little.

    >>> import numpy as np
    >>> from polyarm import LinearMixture, NormalInverseGamma
    >>> arm = LinearMixture(NormalInverseGamma(dim=1, mean=0.0, covariance=1.0, shape=1.0, scale=1.0))
    >>> engine, rng = VariationalEngine([arm, arm]), np.random.default_rng(0)
    >>> state = engine.update(engine.init(), np.ones(1), 0, 3.0, rng)
    >>> round(float(engine.expected_means(state, np.ones(1))[0]), 6)  # half of the mass is still unseen
    0.75
    """

    arms: Sequence[LinearMixture]
    max_components: int = 12
    open_threshold: float = 0.3
    refreshes: int = 5
    _prior: Priors = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require(len(self.arms) > 0, "arms", "at least one model", self.arms)
        dims = {arm.base.dim for arm in self.arms}
        require(len(dims) == 1, "arms", "models of one context dimension", sorted(dims))
        require_count(self.max_components, "max_components")
        require_number(self.open_threshold, "open_threshold", "a number between 0 and 1", lambda v: 0 <= v <= 1)
        require_count(self.refreshes, "refreshes", at_least=0)
        for arm in self.arms:
            most = arm.n_components or self.max_components
            require(self.max_components <= most, "max_components", f"at most the model's {most}", self.max_components)
        object.__setattr__(self, "_prior", prior_of(self.arms))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.arms[0].base.dim

    def init(self) -> VariationalState:
        """State before any reward."""
        return VariationalState(tuple(self._empty_seating(a) for a in range(self.n_arms)), self._door.settings(self))

    def _empty_seating(self, arm: int) -> SoftSeating:
        places = -(-self.max_components // LANES) * LANES
        table = np.zeros((n_rows(self.context_dim), places))
        table[:] = self._prior.columns[arm][:, None]
        return SoftSeating(
            table=table,
            responsibilities=np.zeros((FIRST_CAPACITY, places)),
            size=np.zeros(2, np.int64),
            data=np.zeros((FIRST_CAPACITY, self.context_dim + 2)),
        )

    def with_arm(self, state: VariationalState) -> "tuple[VariationalEngine, VariationalState]":
        """The engine and the state with one more arm, which starts from the arms' common prior."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, arms=[*self.arms, model_of_all(self.arms)])
        return engine, with_empty_arm(state, engine.init())

    def update(self, state: VariationalState, context: Array, arm: int, reward: float, rng: Rng) -> VariationalState:
        """State after one reward; the generator is not used."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        given, backup = state, backup_of(state, y)
        seating = state.seatings[a]
        if seating.size[0] == len(seating.data):
            r, data = grown(seating.responsibilities, axis=0), grown(seating.data, axis=0)
            seating = seating._replace(responsibilities=r, data=data)
            state = state._replace(seatings=(*state.seatings[:a], seating, *state.seatings[a + 1 :]))
        books, prior = kernels.Seating(*seating), self._prior_of(a)
        kernels.learn(books, prior, x, y, self.max_components, self.open_threshold, self.refreshes)
        if not finite_columns(seating.table, seating.table.shape[1]) and not self._mended(seating, a):
            give_up(given, backup, y)
        self._door.last = state
        return state

    def _prior_of(self, arm: int) -> Prior:
        columns, sqrt_information, processes = self._prior
        return Prior(columns[arm], sqrt_information[arm, 0], processes[arm])

    def _mended(self, seating: SoftSeating, arm: int) -> bool:
        """Compute every component afresh from the responsibilities, in place; tell whether all are finite now."""
        prior = self._prior_of(arm)
        table, shares, n = seating.table, seating.responsibilities, int(seating.size[0])
        if not all_finite(shares[:n]):
            return False
        for k in range(table.shape[1]):
            kernels.rebuild_soft(table, k, prior, seating.data, shares, n)
            if table[COUNT, k] < kernels.EMPTY:
                reset(table, k, prior.column)
            else:
                cache_constants(table, k, prior.process[SHAPE], prior.process[DISCOUNT])
        return bool(finite_columns(table, table.shape[1]))

    def draw_means(self, state: VariationalState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Draws of every arm's mean reward given the soft seating, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((self.n_arms, require_count(n_draws, "n_draws")))
        columns, _, processes = self._prior
        for a, seating in enumerate(state.seatings):
            kernels.draw_means(seating.table, columns[a], processes[a], x, out[a], rng_handle(rng))
        return np.ascontiguousarray(out.T)

    def expected_means(self, state: VariationalState, context: Array) -> Array:
        """Expectation of every arm's mean reward given the soft seating, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        columns, _, processes = self._prior
        means = [kernels.expected_mean(s.table, columns[a], processes[a], x) for a, s in enumerate(state.seatings)]
        return np.array(means)

    def draw_objectives(
        self, state: VariationalState, context: Array, objective: Objective, n_draws: int, rng: Rng
    ) -> Array:
        """Draws of what every arm's reward is worth given the soft seating, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((self.n_arms, require_count(n_draws, "n_draws")))
        columns, _, processes = self._prior
        for a in range(self.n_arms):
            places = self._in_use(state, a)
            worths = (places.shape[1], processes[a], columns[a], x, objective.functional, out[a], rng_handle(rng))
            means.draw_worths(places, *worths)
        return np.ascontiguousarray(out.T)

    def n_components(self, state: VariationalState) -> IntArray:
        """Components in use, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        return np.array([(s.table[COUNT] >= kernels.EMPTY).sum() for s in state.seatings])

    def _in_use(self, state: VariationalState, arm: int) -> Array:
        """Components of an arm that have a positive mass, side by side."""
        table = state.seatings[arm].table
        return np.ascontiguousarray(table[:, table[COUNT] - self._prior.processes[arm, DISCOUNT] > kernels.EMPTY])

    def predictive(self, state: VariationalState, context: Array, arm: int) -> StudentMixture:
        """Predictive distribution of an arm's next reward in this context, given the soft seating."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        return process_mixture(self._in_use(state, a), self._prior.columns[a], self._prior.processes[a], x)

    def draw_densities(
        self, state: VariationalState, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng
    ) -> Array:
        """Draws of the density of an arm's reward at the grid's points given the soft seating, (n_draws, len(grid))."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        points = require_vector(grid, "grid")
        out = np.zeros((require_count(n_draws, "n_draws"), len(points)))
        places = self._in_use(state, a)
        process, column = self._prior.processes[a], self._prior.columns[a]
        means.draw_density(places, places.shape[1], process, column, x, points, out, rng_handle(rng))
        return out
