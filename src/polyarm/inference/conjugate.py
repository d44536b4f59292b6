"""Exact posteriors in closed form."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.errors import (
    require,
    require_arm,
    require_context,
    require_contexts,
    require_count,
    require_eligible,
    require_generator,
    require_reward,
    require_vector,
)
from polyarm.inference.arms import model_of_all, with_empty_arm
from polyarm.inference.door import Door
from polyarm.inference.moments import MomentDefaults
from polyarm.inference.state_checks import require_range, require_roots
from polyarm.kernels import conjugate as kernels
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.linalg.sqrt_information import leverage
from polyarm.models import LinearGaussian, Objective, StudentMixture
from polyarm.types import Array, IntArray, Mask, Rng


class ConjugateState(NamedTuple):
    """Square-root information (n_arms, dim + 1, dim + 1) and number of rewards (n_arms,) of every arm."""

    roots: Array
    counts: IntArray
    made_with: str = ""

    def require_sound(self) -> None:
        """Raise unless the roots can be solved, now and after any number of rewards."""
        require_roots(self.roots)
        require_range(self.counts, 0, np.iinfo(np.int64).max, "state.counts")


@dataclass(frozen=True, eq=False)
class ConjugateEngine(MomentDefaults):
    """Linear-Gaussian rewards with known or unknown noise variance; a constant context makes them Gaussian.

    >>> import numpy as np
    >>> from polyarm import LinearGaussian, NormalInverseGamma
    >>> arm = LinearGaussian(NormalInverseGamma(dim=1, mean=0.0, covariance=1.0, shape=1.0, scale=1.0))
    >>> engine = ConjugateEngine([arm, arm])
    >>> state = engine.update(engine.init(), np.ones(1), 0, 3.0, np.random.default_rng(0))
    >>> engine.expected_means(state, np.ones(1)).round(6).tolist()
    [1.5, 0.0]
    """

    arms: Sequence[LinearGaussian]
    _noise_priors: Array = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require(len(self.arms) > 0, "arms", "at least one model", self.arms)
        dims = {arm.base.dim for arm in self.arms}
        require(len(dims) == 1, "arms", "models of one context dimension", sorted(dims))
        noise_priors = [(arm.base.shape, arm.base.scale, arm.noise_var or 0.0) for arm in self.arms]
        object.__setattr__(self, "_noise_priors", np.array(noise_priors))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.arms[0].base.dim

    def init(self) -> ConjugateState:
        """State before any reward."""
        sqrt_information, counts = (
            np.stack([arm.base.sqrt_information for arm in self.arms]),
            np.zeros(self.n_arms, np.int64),
        )
        return ConjugateState(sqrt_information, counts, self._door.settings(self))

    def with_arm(self, state: ConjugateState) -> "tuple[ConjugateEngine, ConjugateState]":
        """The engine and the state with one more arm, which starts from the arms' common prior."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, arms=[*self.arms, model_of_all(self.arms)])
        return engine, with_empty_arm(state, engine.init())

    def update(self, state: ConjugateState, context: Array, arm: int, reward: float, rng: Rng) -> ConjugateState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        kernels.learn(state.roots, state.counts, a, x, y)
        return state

    def draw_means(self, state: ConjugateState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        kernels.draw_means(state.roots, state.counts, self._noise_priors, x, out, rng_handle(rng))
        return out

    def win_shares(
        self, state: ConjugateState, contexts: Array, n_draws: int, rng: Rng, eligible: Mask | None = None
    ) -> Array:
        """How often each eligible arm is best among joint posterior draws in each context, (n, n_arms).

        The contexts share their random numbers: each row is right by itself, but rows are not independent.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_contexts(contexts, self.context_dim)
        mask = require_eligible(eligible, self.n_arms)
        who = np.ones(self.n_arms, np.bool_) if mask is None else mask
        n, out = require_count(n_draws, "n_draws"), np.empty((len(x), self.n_arms))
        kernels.count_wins(state.roots, state.counts, self._noise_priors, x, who, n, out, rng_handle(rng))
        return out

    def expected_means(self, state: ConjugateState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        out = np.empty(self.n_arms)
        kernels.expected_means(state.roots, require_context(context, self.context_dim), out)
        return out

    def noise(self, state: ConjugateState) -> tuple[Array, Array]:
        """Shape and scale of every arm's inverse-gamma noise variance, (n_arms,) each."""
        if state is not self._door.last:
            self._door.check(self, state)
        growth = 0.5 * state.roots[:, -1, -1] ** 2
        return self._noise_priors[:, 0] + 0.5 * state.counts, self._noise_priors[:, 1] + growth

    def noise_variances(self, state: ConjugateState) -> Array:
        """Known or expected noise variance of every arm, (n_arms,); b / (a - 1), with a - 1 taken for at least 1/2."""
        if state is not self._door.last:
            self._door.check(self, state)
        shape, scale = self.noise(state)
        known = self._noise_priors[:, 2]
        return np.asarray(np.where(known > 0, known, scale / np.maximum(shape - 1.0, 0.5)))

    def predictors(self, state: ConjugateState, context: Array) -> Array:
        """Posterior mean x'U and leverage x'Vx of every arm, (2, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        out = np.empty((2, self.n_arms))
        kernels.predictors(state.roots, require_context(context, self.context_dim), out)
        return out

    def moments(self, state: ConjugateState, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward, (2, n_arms); see `noise_variances`."""
        if state is not self._door.last:
            self._door.check(self, state)
        out = self.predictors(state, context)
        out[1] = np.sqrt(out[1] * self.noise_variances(state))
        return out

    def draw_objectives(
        self, state: ConjugateState, context: Array, objective: Objective, n_draws: int, rng: Rng
    ) -> Array:
        """Posterior draws of what every arm's reward is worth, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        kernels.draw_worths(
            state.roots, state.counts, self._noise_priors, x, objective.functional, out, rng_handle(rng)
        )
        return out

    def n_components(self, state: ConjugateState) -> IntArray:
        """Components in use, (n_arms,): one for every arm that has rewards."""
        if state is not self._door.last:
            self._door.check(self, state)
        return (state.counts > 0).astype(np.int64)

    def predictive(self, state: ConjugateState, context: Array, arm: int) -> StudentMixture:
        """Posterior predictive distribution of an arm's next reward in this context."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        mean, square = leverage(state.roots[a], x, np.empty_like(x))
        shape, scale, noise_var = self._noise_priors[a]
        shape += 0.5 * state.counts[a]
        scale += 0.5 * state.roots[a, -1, -1] ** 2
        spread = noise_var if noise_var > 0 else scale / shape
        dof = np.inf if noise_var > 0 else 2 * shape
        return StudentMixture(np.ones(1), np.array([dof]), np.array([mean]), np.array([np.sqrt(spread * (1 + square))]))

    def draw_densities(
        self, state: ConjugateState, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng
    ) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid))."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        points, n = require_vector(grid, "grid"), require_count(n_draws, "n_draws")
        require_generator(rng)
        mean, square = leverage(state.roots[a], x, np.empty_like(x))
        shape, scale, noise_var = self._noise_priors[a]
        rate = scale + 0.5 * state.roots[a, -1, -1] ** 2
        draws = rate / rng.standard_gamma(shape + 0.5 * state.counts[a], (n, 1))
        variance = np.full((n, 1), noise_var) if noise_var > 0 else draws
        centre = mean + np.sqrt(variance * square) * rng.standard_normal((n, 1))
        gap = points - centre
        return np.asarray(np.exp(-0.5 * gap**2 / variance) / np.sqrt(2 * np.pi * variance))
