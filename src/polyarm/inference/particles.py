"""Particles: weighted seatings that need no history."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.errors import require, require_arm, require_context, require_count, require_reward, require_vector
from polyarm.inference.arms import model_of_all, with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.failure import all_finite, backup_of, give_up
from polyarm.inference.gibbs import Priors, grown, prior_of
from polyarm.inference.predictive import student_mixture
from polyarm.inference.state_checks import (
    SLACK,
    require_above,
    require_components,
    require_lanes,
    require_numbers,
    require_range,
    require_roots,
)
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.lanes import LANES
from polyarm.kernels.mixture import means
from polyarm.kernels.mixture import particles as kernels
from polyarm.kernels.mixture.component import COUNT, n_rows
from polyarm.kernels.mixture.finite import finite_columns
from polyarm.kernels.mixture.particles import PARTICLES, POOL
from polyarm.kernels.mixture.records import Prior
from polyarm.models import LinearMixture, StudentMixture
from polyarm.types import Array, Codes, IntArray, Rng

FIRST_POOL = 4 * LANES  # components of an arm's pool there is room for at first; it doubles when full
FIRST_LENGTH = 4  # components of a particle there is room for at first; it doubles when full


class Cloud(NamedTuple):
    """The particles of one arm; see kernels.mixture.particles for the layout."""

    table: Array
    roots: Array
    marks: Codes
    members: IntArray
    lengths: IntArray
    weights: Array
    codes: Codes
    size: IntArray
    log_evidence: Array

    def require_sound(self) -> None:
        """Raise unless every particle holds components of the pool, and the weights sum to one."""
        capacity = self.table.shape[1]
        require_lanes(capacity, "table of a cloud")
        same = len(self.roots) == len(self.marks) == capacity
        require(same, "roots of a cloud", f"{capacity}, as its components", (len(self.roots), len(self.marks)))
        require_range(self.size[:1], 1, len(self.weights), "particles of a cloud")
        require_range(self.size[1:2], 0, capacity, "pool of a cloud")
        require_range(self.size[2:], 0, np.iinfo(np.int64).max, "rewards of a cloud")
        n_particles, pool = int(self.size[0]), int(self.size[1])
        require_range(self.lengths[:n_particles], 0, self.members.shape[1], "lengths of a cloud")
        held = np.arange(self.members.shape[1]) < self.lengths[:n_particles, None]
        require_range(self.members[:n_particles][held], 0, pool - 1, "members of a cloud")
        require_components(self.table, pool, "table of a cloud")
        require_above(self.table[COUNT, :pool], 0.0, "counts of a cloud")
        require_roots(self.roots[:pool], "roots of a cloud")
        require_numbers(self.log_evidence, "log_evidence of a cloud")
        weights = self.weights[:n_particles]
        require_above(weights, 0.0, "weights of a cloud")
        require(abs(float(weights.sum()) - 1.0) < SLACK, "weights of a cloud", "of sum 1", float(weights.sum()))

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        return {"table": (1,), "roots": (0,), "marks": (0,), "members": (1,)}


class ParticleState(NamedTuple):
    """The particles of every arm."""

    clouds: tuple[Cloud, ...]
    made_with: str = ""


def with_room(cloud: Cloud) -> Cloud:
    """The cloud with room for another reward's components, in the pool and in every particle."""
    n_particles, pool, _ = (int(n) for n in cloud.size)
    while pool + min(pool + 1, len(cloud.weights)) > cloud.table.shape[1]:
        marks = np.concatenate([cloud.marks, np.zeros_like(cloud.marks)])
        cloud = cloud._replace(table=grown(cloud.table), roots=grown(cloud.roots, axis=0), marks=marks)
    if cloud.lengths[:n_particles].max() == cloud.members.shape[1]:
        members = np.concatenate([cloud.members, np.zeros_like(cloud.members)], axis=1)
        cloud = cloud._replace(members=members)
    return cloud


@dataclass(frozen=True, eq=False)
class ParticleEngine:
    """Mixtures of linear regressions by n_particles weighted seatings per arm, resampled optimally.

    It keeps no history.  The posterior is exact as long as every seating fits: until n rewards of an arm for
    n_particles of at least Bell(n); then past seatings are never revised, and the error grows slowly with n.

    >>> import numpy as np
    >>> from polyarm import LinearMixture, NormalInverseGamma
    >>> arm = LinearMixture(NormalInverseGamma(dim=1, mean=0.0, covariance=1.0, shape=1.0, scale=1.0))
    >>> engine, rng = ParticleEngine([arm, arm], n_particles=20), np.random.default_rng(0)
    >>> state = engine.update(engine.init(), np.ones(1), 0, 3.0, rng)
    >>> engine.draw_means(state, np.ones(1), 5, rng).shape
    (5, 2)
    """

    arms: Sequence[LinearMixture]
    n_particles: int = 100
    _prior: Priors = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require(len(self.arms) > 0, "arms", "at least one model", self.arms)
        dims = {arm.base.dim for arm in self.arms}
        require(len(dims) == 1, "arms", "models of one context dimension", sorted(dims))
        require_count(self.n_particles, "n_particles")
        object.__setattr__(self, "_prior", prior_of(self.arms))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.arms[0].base.dim

    def init(self) -> ParticleState:
        """State before any reward: one particle without components."""
        return ParticleState(tuple(self._empty_cloud() for _ in self.arms), self._door.settings(self))

    def _empty_cloud(self) -> Cloud:
        d, n = self.context_dim, self.n_particles
        weights = np.zeros(n)
        weights[0] = 1.0
        return Cloud(
            table=np.zeros((n_rows(d), FIRST_POOL)),
            roots=np.zeros((FIRST_POOL, d + 1, d + 1)),
            marks=np.zeros(FIRST_POOL, np.uint64),
            members=np.zeros((n, FIRST_LENGTH), np.int64),
            lengths=np.zeros(n, np.int64),
            weights=weights,
            codes=np.zeros(n, np.uint64),
            size=np.array([1, 0, 0]),
            log_evidence=np.zeros(1),
        )

    def with_arm(self, state: ParticleState) -> "tuple[ParticleEngine, ParticleState]":
        """The engine and the state with one more arm, which starts from the arms' common prior."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, arms=[*self.arms, model_of_all(self.arms)])
        return engine, with_empty_arm(state, engine.init())

    def update(self, state: ParticleState, context: Array, arm: int, reward: float, rng: Rng) -> ParticleState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        data = np.append(x, (y, 0.0))[None]
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        given, backup = state, backup_of(state, y)
        cloud = with_room(state.clouds[a])
        words = data[0, :-1].view(np.uint64)
        kernels.learn(kernels.Cloud(*cloud), self._prior_of(a), data, words, rng_handle(rng))
        if not (all_finite(cloud.log_evidence) and finite_columns(cloud.table, int(cloud.size[POOL]))):
            give_up(given, backup, y)
        state = state._replace(clouds=(*state.clouds[:a], cloud, *state.clouds[a + 1 :]))
        self._door.last = state
        return state

    def draw_means(self, state: ParticleState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((self.n_arms, require_count(n_draws, "n_draws")))
        for a, cloud in enumerate(state.clouds):
            kernels.draw_means(kernels.Cloud(*cloud), self._prior_of(a), x, out[a], rng_handle(rng))
        return np.ascontiguousarray(out.T)

    def expected_means(self, state: ParticleState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        clouds = [kernels.Cloud(*cloud) for cloud in state.clouds]
        return np.array([kernels.expected_mean(cloud, self._prior_of(a), x) for a, cloud in enumerate(clouds)])

    def _prior_of(self, arm: int) -> Prior:
        columns, sqrt_information, processes = self._prior
        return Prior(columns[arm], sqrt_information[arm, 0], processes[arm])

    def n_components(self, state: ParticleState) -> IntArray:
        """Components of every arm's heaviest particle, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        return np.array([c.lengths[c.weights[: c.size[PARTICLES]].argmax()] for c in state.clouds])

    def log_evidence(self, state: ParticleState, arm: int) -> float:
        """Estimate of the log marginal density of an arm's rewards; exact while every seating fits."""
        if state is not self._door.last:
            self._door.check(self, state)
        return float(state.clouds[require_arm(arm, self.n_arms)].log_evidence[0])

    def predictive(self, state: ParticleState, context: Array, arm: int) -> StudentMixture:
        """Posterior predictive distribution of an arm's next reward in this context, averaged over the particles."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        cloud = state.clouds[a]
        n_particles, pool, n_rewards = (int(n) for n in cloud.size)
        shape, _, concentration, discount = self._prior.processes[a]
        weights, lengths = cloud.weights[:n_particles], cloud.lengths[:n_particles]
        held = np.arange(cloud.members.shape[1]) < lengths[:, None]
        holders = np.bincount(cloud.members[:n_particles][held], np.repeat(weights, lengths), minlength=pool)
        places = np.column_stack([cloud.table[:, :pool], self._prior.columns[a]])
        new = weights @ np.maximum(concentration + lengths * discount, 0.0) if n_rewards > 0 else 1.0
        return student_mixture(places, np.append(holders * (places[COUNT, :-1] - discount), new), shape, x)

    def draw_densities(
        self, state: ParticleState, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng
    ) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid))."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        points = require_vector(grid, "grid")
        out = np.zeros((require_count(n_draws, "n_draws"), len(points)))
        cloud = state.clouds[a]
        weights = cloud.weights[: cloud.size[PARTICLES]]
        chosen = rng.choice(len(weights), size=n_draws, p=weights / weights.sum())
        for i in np.unique(chosen):
            places = np.ascontiguousarray(cloud.table[:, cloud.members[i, : cloud.lengths[i]]])
            part = np.zeros((int((chosen == i).sum()), len(points)))
            process, column = self._prior.processes[a], self._prior.columns[a]
            means.draw_density(places, places.shape[1], process, column, x, points, part, rng_handle(rng))
            out[chosen == i] = part
        return out
