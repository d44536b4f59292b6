"""Linear regression with Student-t noise, by Gibbs sampling over precisions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.errors import require, require_arm, require_context, require_count, require_positive, require_reward
from polyarm.inference.arms import model_of_all, with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.failure import all_finite, backup_of, give_up
from polyarm.inference.state_checks import require_above, require_range, require_rewards, require_roots
from polyarm.kernels import conjugate
from polyarm.kernels import student_regression as kernels
from polyarm.kernels._jit import rng_handle
from polyarm.models import LinearGaussian
from polyarm.types import Array, IntArray, Rng

FIRST_CAPACITY = 16  # rewards there is room for at first; doubled when full


class StudentState(NamedTuple):
    """Square-root information (n_arms, dim + 1, dim + 1), number of rewards, and each arm's rewards with precisions."""

    roots: Array
    counts: IntArray
    rows: tuple[Array, ...]
    made_with: str = ""

    def require_sound(self) -> None:
        """Raise unless the roots can be solved and every reward has a row and a precision."""
        require_roots(self.roots)
        for a, (rows, n) in enumerate(zip(self.rows, self.counts, strict=True)):
            require_range(self.counts[a : a + 1], 0, len(rows), f"state.counts[{a}]")
            require_rewards(rows[:n, :-1], rows.shape[1] - 2, f"state.rows.{a}")
            require_above(rows[:n, -1], 0.0, f"precision in state.rows.{a}")

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        return {"rows": (0,)}


@dataclass(frozen=True, eq=False)
class StudentEngine:
    """Linear rewards with noise s t(dof): Gaussian ones whose precisions are drawn (Geweke 1993).

    After a reward its arm makes `n_sweeps` full Gibbs sweeps, so that an update costs n d^2 for an arm with n rewards;
    a draw of the means costs d^2 per arm and is exact given the precisions.  The base's scale is that of s^2.

    >>> import numpy as np
    >>> from polyarm import LinearGaussian, NormalInverseGamma
    >>> arm = LinearGaussian(NormalInverseGamma(dim=1, mean=0.0, covariance=1.0, shape=1.0, scale=1.0))
    >>> engine, rng = StudentEngine([arm, arm], dof=3.0), np.random.default_rng(0)
    >>> state = engine.update(engine.init(), np.ones(1), 0, 3.0, rng)
    >>> engine.draw_means(state, np.ones(1), 5, rng).shape
    (5, 2)
    """

    arms: Sequence[LinearGaussian]
    dof: float = 3.0
    n_sweeps: int = 1
    _noise_priors: Array = field(init=False, repr=False)
    _priors: Array = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require(len(self.arms) > 0, "arms", "at least one model", self.arms)
        dims = {arm.base.dim for arm in self.arms}
        require(len(dims) == 1, "arms", "models of one context dimension", sorted(dims))
        require_positive(self.dof, "dof")
        require_count(self.n_sweeps, "n_sweeps")
        noise_priors = [(arm.base.shape, arm.base.scale, arm.noise_var or 0.0) for arm in self.arms]
        object.__setattr__(self, "_noise_priors", np.array(noise_priors))
        object.__setattr__(self, "_priors", np.stack([arm.base.sqrt_information for arm in self.arms]))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.arms[0].base.dim

    def init(self) -> StudentState:
        """State before any reward."""
        rows = tuple(np.zeros((FIRST_CAPACITY, self.context_dim + 2)) for _ in self.arms)
        return StudentState(self._priors.copy(), np.zeros(self.n_arms, np.int64), rows, self._door.settings(self))

    def with_arm(self, state: StudentState) -> "tuple[StudentEngine, StudentState]":
        """The engine and the state with one more arm, which starts from the arms' common prior."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, arms=[*self.arms, model_of_all(self.arms)])
        return engine, with_empty_arm(state, engine.init())

    def update(self, state: StudentState, context: Array, arm: int, reward: float, rng: Rng) -> StudentState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        handle = rng_handle(rng)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        given, backup = state, backup_of(state, y)
        n = int(state.counts[a])
        if n == len(state.rows[a]):
            rows = list(state.rows)
            rows[a] = np.concatenate([rows[a], np.zeros_like(rows[a])])
            state = state._replace(rows=tuple(rows))
        state.rows[a][n, :-2] = x
        state.rows[a][n, -2] = y
        state.counts[a] = n + 1
        noise_prior, prior = self._noise_priors[a], self._priors[a]
        kernels.learn(state.rows[a][: n + 1], prior, state.roots[a], noise_prior, self.dof, self.n_sweeps, handle)
        if not self._sound(state, a) and not self._mended(state, a):
            give_up(given, backup, y)
        self._door.last = state
        return state

    def _sound(self, state: StudentState, arm: int) -> bool:
        """Whether an arm's root is finite and its precisions are above 0."""
        return all_finite(state.roots[arm]) and bool(state.rows[arm][: state.counts[arm], -1].min() > 0.0)

    def _mended(self, state: StudentState, arm: int) -> bool:
        """Begin an arm's sampling again from precisions of 1, in place; tell whether all is finite now."""
        rows = state.rows[arm][: state.counts[arm]]
        rows[:, -1] = 1.0
        kernels.weigh(rows, self._priors[arm], state.roots[arm])
        return self._sound(state, arm)

    def draw_means(self, state: StudentState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward given the precisions, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        conjugate.draw_means(state.roots, state.counts, self._noise_priors, x, out, rng_handle(rng))
        return out

    def expected_means(self, state: StudentState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward given the precisions, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        out = np.empty(self.n_arms)
        conjugate.expected_means(state.roots, require_context(context, self.context_dim), out)
        return out
