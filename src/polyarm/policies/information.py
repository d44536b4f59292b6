"""Information-directed sampling."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Protocol

import numpy as np

from polyarm.choosing import PolicyDefaults
from polyarm.errors import require_contexts, require_count, require_eligible, require_number
from polyarm.inference.moments import draw_arm
from polyarm.kernels import information
from polyarm.kernels._jit import rng_handle
from polyarm.models.objectives import MEAN, Objective
from polyarm.policies.objective import draw_worths
from polyarm.types import Array, Choice, Engine, Mask, Rng, State


class MomentEngine(Engine[State], Protocol[State]):
    """An engine that knows the spread of its posterior."""

    def moments(self, state: State, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward, (2, n_arms)."""
        ...

    def moments_many(self, state: State, contexts: Array) -> Array:
        """The same in many contexts, (n, 2, n_arms)."""
        ...

    def with_arm(self, state: State) -> "tuple[MomentEngine[State], State]":
        """The engine and the state with one more arm."""
        ...


@dataclass(frozen=True)
class InformationDirected(PolicyDefaults[State]):
    """Play for the least expected regret to a `power` per unit of information about which arm is best in this context.

    Russo & Van Roy 2018, variance criterion, with power 2; a smaller power tries an arm that is probably not the best
    more often, 1 / (power - 1) times where it is far worse than the best one.  Posteriors are normal with the engine's
    moments; expectations are means over `n_draws` draws.  A choice's scores are those of a race: an arm's share in the
    best mix over an Exp(1) draw.  The mix depends on the draws; `probabilities` averages it over `n_rounds` sets of
    them.  Where the engine knows how noisy each arm is (`outlook` and `outlook_many`), information counts by how much
    of it one reward gives (Kirschner & Krause 2018): a noisy arm tells less of its mean.
    With another `objective` than the mean, regret and information are those of the engine's own draws of it.

    >>> import numpy as np
    >>> from polyarm import make_policy
    >>> policy = InformationDirected(make_policy("nonparametric", 3, 2).engine)
    >>> choice = policy.choose(policy.init(), np.ones(2), np.random.default_rng(0))
    >>> round(float(choice.probabilities.sum()), 9)
    1.0
    """

    engine: MomentEngine[State]
    n_draws: int = 100
    n_rounds: int = 1
    objective: Objective = MEAN
    power: float = 2.0

    def __post_init__(self) -> None:
        require_number(self.power, "power", "a number above 1", lambda power: power > 1)
        require_count(self.n_draws, "n_draws", at_least=2)
        require_count(self.n_rounds, "n_rounds")

    @cached_property
    def _by_mean(self) -> bool:
        return self.objective == MEAN

    @cached_property
    def _at_once(self) -> Callable[..., Choice] | None:
        """How the engine chooses by this rule in one call, where it can."""
        return getattr(self.engine, "choose_by_information", None)

    def init(self) -> State:
        """State before any reward."""
        return self.engine.init()

    def choose(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context."""
        if not self._by_mean:
            return self._choose_by_draws(state, context, rng, eligible)
        if eligible is None and self._at_once is not None:
            return self._at_once(state, context, self.n_draws, self.power, rng)
        moments, noise = self._outlook(state, context)
        mask = require_eligible(eligible, moments.shape[1])
        if mask is not None:
            moments, noise = np.ascontiguousarray(moments[:, mask]), np.ascontiguousarray(noise[mask])
        arm, scores, mix = draw_arm(moments, noise, self.n_draws, self.power, rng)
        if mask is None:
            return Choice(arm, scores, mix)
        return Choice(int(np.flatnonzero(mask)[arm]), spread_out(scores, mask, -np.inf), spread_out(mix, mask, 0.0))

    def probabilities(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """Share of each eligible arm in the mix, a mean over the rounds, (n_arms,)."""
        if self.objective != MEAN:
            rounds = [self._mix_of_draws(state, context, rng, eligible) for _ in range(self.n_rounds)]
            return np.asarray(np.mean(rounds, axis=0))
        moments, noise = self._outlook(state, context)
        return np.asarray(self._mixes(moments[None], noise, rng, eligible)[0])

    def probabilities_many(self, state: State, contexts: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """Distributions for many contexts in the same state, (n, n_arms)."""
        x = require_contexts(contexts, self.engine.context_dim)
        if self.objective != MEAN:
            return super().probabilities_many(state, x, rng, eligible)
        return self._mixes(*self._outlook_many(state, x), rng, eligible)

    def _mix_of_draws(self, state: State, context: Array, rng: Rng, eligible: Mask | None) -> Array:
        rows = draw_worths(self.engine, state, context, self.objective, self.n_draws, rng)
        mask = require_eligible(eligible, rows.shape[1])
        rows = rows if mask is None else np.ascontiguousarray(rows[:, mask])
        mix = np.empty(rows.shape[1])
        information.find_mix_of_rows(rows, self.power, mix)
        return mix if mask is None else spread_out(mix, mask, 0.0)

    def _choose_by_draws(self, state: State, context: Array, rng: Rng, eligible: Mask | None) -> Choice:
        mix = self._mix_of_draws(state, context, rng, eligible)
        scores = np.empty(len(mix))
        arm = information.race(mix, scores, rng_handle(rng))
        return Choice(arm, scores if eligible is None else np.where(eligible, scores, -np.inf), mix)

    def _outlook(self, state: State, context: Array) -> tuple[Array, Array]:
        """Moments of every arm, and its noise beside that of a typical arm."""
        find: Callable[..., tuple[Array, Array]] | None = getattr(self.engine, "outlook", None)
        if find is not None:
            return find(state, context)
        return self.engine.moments(state, context), equal_noise(self.engine.n_arms)

    def _outlook_many(self, state: State, contexts: Array) -> tuple[Array, Array]:
        """The same in many contexts: the noise is that of all."""
        find: Callable[..., tuple[Array, Array]] | None = getattr(self.engine, "outlook_many", None)
        if find is not None:
            return find(state, contexts)
        return self.engine.moments_many(state, contexts), equal_noise(self.engine.n_arms)

    def _mixes(self, moments: Array, noise: Array, rng: Rng, eligible: Mask | None) -> Array:
        mask = require_eligible(eligible, moments.shape[2])
        if mask is not None:
            moments, noise = np.ascontiguousarray(moments[:, :, mask]), np.ascontiguousarray(noise[mask])
        mixes = np.empty((moments.shape[0], moments.shape[2]))
        information.find_many(moments, noise, self.n_draws, self.n_rounds, self.power, mixes, rng_handle(rng))
        return mixes if mask is None else spread_out(mixes, mask, 0.0)

    def judge(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> tuple[Array, Array]:
        """`probabilities` and the expected rewards that they rest on, (n_arms,) each, for an objective of the mean."""
        moments, noise = self._outlook(state, context)
        return np.asarray(self._mixes(moments[None], noise, rng, eligible)[0]), np.asarray(moments[0])

    def judge_many(self, state: State, contexts: Array, rng: Rng, eligible: Mask | None = None) -> tuple[Array, Array]:
        """The same in many contexts, (n, n_arms) each."""
        moments, noise = self._outlook_many(state, contexts)
        return self._mixes(moments, noise, rng, eligible), np.asarray(moments[:, 0])

    def with_arm(self, state: State) -> "tuple[InformationDirected[State], State]":
        """The policy and the state with one more arm."""
        engine, wider = self.engine.with_arm(state)
        return replace(self, engine=engine), wider

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        return self.engine.update(state, context, arm, reward, rng)


@cache
def equal_noise(n_arms: int) -> Array:
    """Noise of arms that are all typical."""
    return np.ones(n_arms)


def spread_out(values: Array, mask: Mask, elsewhere: float) -> Array:
    """Values of the eligible arms (..., n_eligible) at their places among all, (..., n_arms)."""
    out = np.full((*values.shape[:-1], len(mask)), elsewhere)
    out[..., mask] = values
    return out
