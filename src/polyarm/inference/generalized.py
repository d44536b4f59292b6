"""Generalised linear rewards: clicks, marks, counts and positive amounts, each arm on its own."""

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from polyarm import special
from polyarm.errors import (
    CONTEXT_LIMIT,
    REWARD_LIMIT,
    require,
    require_arm,
    require_array,
    require_context,
    require_count,
    require_finite,
    require_name,
    require_reward,
)
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.failure import all_finite, backup_of, give_up
from polyarm.inference.moments import MomentDefaults
from polyarm.inference.state_checks import require_above, require_numbers, require_range
from polyarm.kernels import generalized as kernels
from polyarm.kernels._jit import rng_handle
from polyarm.types import Array, IntArray, Rng

FIRST_CAPACITY = 16  # rewards there is room for at first; doubled when full
WORK = 10_000  # multiplications that a reward may cost: a fit to all of an arm's rewards waits for so much work
MARK_GUESS = 0.5  # rewards of every mark that the prior of the cut points counts for
GAMMA_SHAPES = (0.05, 1e4)  # the least and the greatest that is believed
SHAPE_MEMORY = 2.0  # rewards that the prior guess of a gamma shape counts for
FAMILIES = {"logistic": kernels.MARKS, "ordinal": kernels.MARKS, "poisson": kernels.POISSON, "gamma": kernels.GAMMA}
Family = Literal["logistic", "ordinal", "poisson", "gamma"]


class GeneralizedState(NamedTuple):
    """Centre and covariance of every arm's coefficients, what the arms share, and every arm's rewards.

    extra holds the cut points of marks or the shape of gamma amounts; stale counts an arm's rewards since all of its
    rewards were last looked at.
    """

    centres: Array
    covariances: Array
    extra: Array
    counts: IntArray
    stale: IntArray
    rows: tuple[Array, ...]
    made_with: str = ""

    def require_sound(self) -> None:
        """Raise unless every reward has a row, and coefficients have a centre and variances."""
        for name in ("centres", "covariances", "extra"):
            require_numbers(getattr(self, name), f"state.{name}")
        require_above(np.diagonal(self.covariances, axis1=1, axis2=2), 0.0, "variances in state.covariances")
        for a, (rows, n) in enumerate(zip(self.rows, self.counts, strict=True)):
            require_range(self.counts[a : a + 1], 0, len(rows), f"state.counts[{a}]")
            require_range(self.stale[a : a + 1], 0, int(n), f"state.stale[{a}]")
            require_numbers(rows[:n, :-1], f"state.rows.{a}", CONTEXT_LIMIT)
            require_numbers(rows[:n, -1], f"state.rows.{a}", REWARD_LIMIT)

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        return {"rows": (0,)}


def is_sound(state: GeneralizedState) -> bool:
    """Whether centres, covariances and what the arms share are finite, and variances above 0."""
    variances = state.covariances.diagonal(axis1=1, axis2=2)
    return all_finite(state.centres, state.covariances, state.extra) and bool(variances.min() > 0.0)


def is_due(n: int) -> bool:
    """Whether what the arms share is fitted at the n-th reward: at every one at first, then ten times per doubling."""
    return n < 2 or int(10 * np.log2(n)) != int(10 * np.log2(n - 1))


@dataclass(frozen=True, eq=False)
class GeneralizedEngine(MomentDefaults):
    """Arm a's reward has a mean that is a link of f'beta_a: the normal nearest to the posterior of every beta_a.

    family       logistic: 0 or 1;  ordinal: marks 1, ..., n_marks (proportional odds);  poisson: counts;
                 gamma: positive amounts, logarithmic link
    prior_var    of every coefficient, one number or one per column; their prior mean is `prior_mean`
    n_marks      of family ordinal; the cut points are shared by all arms and learned by their posterior mode
    See kernels.generalized for the approximation.  All of an arm's rewards are fitted anew after each of its rewards
    while that is cheap, else as often as a flat cost per reward allows, with a rank-one update in between.
    """

    n_arms: int
    context_dim: int
    family: Family = "logistic"
    prior_mean: float | Array = 0.0
    prior_var: float | Array = 1.0
    n_marks: int = 5
    _prior: Array = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_name(self.family, tuple(FAMILIES), "family")
        require_count(self.n_marks, "n_marks", at_least=2)
        mean, var = require_array(self.prior_mean, "prior_mean"), require_array(self.prior_var, "prior_var")
        for values, name in ((mean, "prior_mean"), (var, "prior_var")):
            require_finite(values, name)
            require(values.shape in ((), (self.context_dim,)), name, "a number or one per column", values.shape)
        require(bool((var > 0).all()), "prior_var", "above 0", self.prior_var)
        prior = np.empty((2, self.context_dim))
        prior[0], prior[1] = mean, 1.0 / var
        object.__setattr__(self, "_prior", prior)

    @property
    def lowest(self) -> float:
        """The mark that is numbered 0 inside."""
        return 1.0 if self.family == "ordinal" else 0.0

    def init(self) -> GeneralizedState:
        """State before any reward."""
        n, d = self.n_arms, self.context_dim
        n_marks = self.n_marks if self.family == "ordinal" else 2
        extra = special.logit(np.arange(1, n_marks) / n_marks) if FAMILIES[self.family] == kernels.MARKS else np.ones(1)
        return GeneralizedState(
            centres=np.tile(self._prior[0], (n, 1)),
            covariances=np.tile(np.diag(1.0 / self._prior[1]), (n, 1, 1)),
            extra=extra,
            counts=np.zeros(n, np.int64),
            stale=np.zeros(n, np.int64),
            rows=tuple(np.zeros((FIRST_CAPACITY, d + 1)) for _ in range(n)),
            made_with=self._door.settings(self),
        )

    def require_fit(self, state: GeneralizedState) -> None:
        """Raise unless the rewards are of this family, and what the arms share is in order."""
        for rows, n in zip(state.rows, state.counts, strict=True):
            for y in np.unique(rows[:n, -1]):
                self.require_kind(y + self.lowest)
        if self.family == "ordinal":
            require(bool((np.diff(state.extra) > 0).all()), "state.extra", "rising cut points", state.extra)
        elif self.family == "gamma":
            require_above(state.extra, 0.0, "state.extra")

    def require_kind(self, reward: float) -> float:
        """Reward, if it is one of this family's."""
        y = require_reward(reward)
        if self.family == "logistic":
            require(y in (0.0, 1.0), "reward", "0 or 1", reward)
        elif self.family == "ordinal":
            rule = f"a whole number from 1 to {self.n_marks}"
            require(y == round(y) and 1 <= y <= self.n_marks, "reward", rule, reward)
        elif self.family == "poisson":
            require(y == np.floor(y) and y >= 0, "reward", "a whole number of at least 0", reward)
        else:
            require(y > 0, "reward", "above 0", reward)
        return y - self.lowest

    def update(self, state: GeneralizedState, context: Array, arm: int, reward: float, rng: Rng) -> GeneralizedState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = self.require_kind(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        given, backup = state, backup_of(state, y)
        n, d = int(state.counts[a]), self.context_dim
        if n == len(state.rows[a]):
            rows = list(state.rows)
            rows[a] = np.concatenate([rows[a], np.zeros_like(rows[a])])
            state = state._replace(rows=tuple(rows))
        state.rows[a][n, :-1] = x
        state.rows[a][n, -1] = y
        state.counts[a] += 1
        state.stale[a] += 1
        if state.stale[a] * WORK >= (n + d) * d * d:
            self._fit(state, a)
        else:
            row, likelihood = state.rows[a][n], (FAMILIES[self.family], state.extra)
            kernels.add(*likelihood, row, state.centres[a], state.covariances[a])
        if self.family in ("ordinal", "gamma") and is_due(int(state.counts.sum())):
            self._fit_shared(state)
        if not is_sound(state) and not self._mended(state):
            give_up(given, backup, reward)
        self._door.last = state
        return state

    def _mended(self, state: GeneralizedState) -> bool:
        """Fit every arm again, starting from the prior, in place; tell whether all is finite now."""
        fresh = self.init()
        if not all_finite(state.extra):
            state.extra[:] = fresh.extra
        state.centres[:], state.covariances[:] = fresh.centres, fresh.covariances
        for arm in np.flatnonzero(state.counts):
            self._fit(state, int(arm))
        return is_sound(state)

    def _fit(self, state: GeneralizedState, arm: int) -> None:
        data, n = state.rows[arm], int(state.counts[arm])
        beta = (state.centres[arm], state.covariances[arm])
        kernels.fit(FAMILIES[self.family], state.extra, self._prior, data, n, *beta)
        state.stale[arm] = 0

    def _fit_shared(self, state: GeneralizedState) -> None:
        """Bring cut points or shape to what all arms' rewards say, then every arm's coefficients after them."""
        filled = [rows[:n] for rows, n in zip(state.rows, state.counts, strict=True)]
        eta = np.concatenate([rows[:, :-1] @ centre for rows, centre in zip(filled, state.centres, strict=True)])
        rewards = np.concatenate([rows[:, -1] for rows in filled])
        if self.family == "ordinal":
            for _ in range(2):
                kernels.cut_step(state.extra, MARK_GUESS, eta, rewards.astype(np.int64))
        else:
            state.extra[0] = gamma_shape(np.log(rewards) - eta, state.counts, self.context_dim)
        for arm in np.flatnonzero(state.counts):
            self._fit(state, int(arm))

    def with_arm(self, state: GeneralizedState) -> "tuple[GeneralizedEngine, GeneralizedState]":
        """The engine and its state with one more arm, the last, that has no rewards yet."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, n_arms=self.n_arms + 1)
        fresh = engine.init()
        centres, covariances, _, counts, stale = (
            np.concatenate([old, new[-1:]]) for old, new in zip(state[:5], fresh[:5], strict=True)
        )
        rows = (*state.rows, fresh.rows[-1])
        return engine, GeneralizedState(centres, covariances, state.extra, counts, stale, rows, fresh.made_with)

    def draw_means(self, state: GeneralizedState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        likelihood, beta = (FAMILIES[self.family], state.extra), (state.centres, state.covariances)
        kernels.draw_means(*likelihood, *beta, x, out, rng_handle(rng))
        return out + self.lowest

    def moments(self, state: GeneralizedState, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward, (2, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((2, self.n_arms))
        kernels.moments(FAMILIES[self.family], state.extra, state.centres, state.covariances, x, out)
        out[0] += self.lowest
        return out


def gamma_shape(log_ratio: Array, counts: IntArray, dim: int) -> float:
    """Shape of gamma amounts, given the logarithms of amount over mean: the mode of Greenwood & Durand 1960's equation.

    Every arm's fitted coefficients cost it up to half of its rewards as degrees of freedom.
    """
    log_ratio = np.minimum(log_ratio, 30.0)
    ratio = np.exp(log_ratio)
    freedom = counts.sum() - np.minimum(dim, counts / 2).sum()
    gap = float((np.sum(ratio - 1.0 - log_ratio) + 0.5 * SHAPE_MEMORY) / (freedom + SHAPE_MEMORY))
    return float(np.clip((1.0 + np.sqrt(1.0 + 4.0 * gap / 3.0)) / (4.0 * gap), *GAMMA_SHAPES))
