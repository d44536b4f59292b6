"""Perturbed-history exploration for linear rewards."""

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.choosing import PolicyDefaults, best_of
from polyarm.errors import require_arm, require_context, require_count, require_positive, require_reward
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.conjugate import ConjugateState
from polyarm.inference.door import NOTHING, Door
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.conjugate import learn
from polyarm.kernels.indices import perturbed_mean
from polyarm.policies.history import History, first_unplayed, no_history, with_reward
from polyarm.policies.linear_ucb import LinearUCB
from polyarm.types import Array, Choice, Mask, Rng


class LinearPHEState(NamedTuple):
    """Every context and reward, and the ridge regression of every arm without perturbation."""

    history: History
    fits: ConjugateState


@dataclass(frozen=True)
class LinearPHE(PolicyDefaults[LinearPHEState]):
    """Play the arm whose ridge regression, fitted to a perturbed history, promises most.

    Kveton, Szepesvari, Ghavamzadeh & Boutilier 2020 (LinPHE), with `n_pseudo` = a pseudo-rewards for every reward, new
    at every step.  Theirs are Bernoulli(1/2), of the largest sd that noise in [0, 1] can have; here, where rewards
    have no bounds, they are +-`noise_sd`, or without it +- the residual sd of all arms' ridge regressions so far.  Each
    arm has its own coefficients and is played once first.  A choice costs n d^2 for n rewards so far.
    """

    n_arms: int
    context_dim: int
    n_pseudo: int = 1
    ridge: float = 1.0
    noise_sd: float | None = None
    _door: Door = field(init=False, repr=False, compare=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_count(self.n_pseudo, "n_pseudo")
        require_positive(self.ridge, "ridge")
        if self.noise_sd is not None:
            require_positive(self.noise_sd, "noise_sd")

    def init(self) -> LinearPHEState:
        """State before any reward."""
        fits = LinearUCB(self.n_arms, self.context_dim, ridge=self.ridge).init()
        return LinearPHEState(no_history(self.n_arms, self.context_dim), fits)

    def pseudo_reward(self, state: LinearPHEState) -> float:
        """Size of a pseudo-reward."""
        if state is not self._door.last:
            self._door.check(self, state)
        if self.noise_sd is not None:
            return self.noise_sd
        return math.sqrt((state.fits.roots[:, -1, -1] ** 2).sum() / state.fits.counts.sum())

    def choose(self, state: LinearPHEState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        rows, counts = state.history
        unplayed = first_unplayed(counts, eligible)
        if unplayed is not None:
            return unplayed
        size = self.pseudo_reward(state)
        handle = rng_handle(rng)
        scores = np.array(
            [
                perturbed_mean(rows[a, : counts[a]], x, self.ridge, self.n_pseudo, size, handle)
                for a in range(self.n_arms)
            ]
        )
        return best_of(scores, eligible)

    def with_arm(self, state: LinearPHEState) -> "tuple[LinearPHE, LinearPHEState]":
        """The policy and the state with one more arm, without rewards."""
        if state is not self._door.last:
            self._door.check(self, state)
        policy = replace(self, n_arms=self.n_arms + 1)
        return policy, with_empty_arm(state, policy.init())

    def update(self, state: LinearPHEState, context: Array, arm: int, reward: float, rng: Rng) -> LinearPHEState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        learn(state.fits.roots, state.fits.counts, a, x, y)
        self._door.last = state = LinearPHEState(with_reward(state.history, a, *x, y), state.fits)
        return state
