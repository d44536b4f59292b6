"""Small policies for tests, importable by worker processes."""

import os
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyarm.choosing import PolicyDefaults, best_of
from polyarm.types import Array, Choice, Mask, Rng


class Tally(NamedTuple):
    counts: Array
    sums: Array


@dataclass(frozen=True, slots=True)
class Greedy(PolicyDefaults[Tally]):
    """Play the highest empirical mean plus noise."""

    n_arms: int
    noise_sd: float = 1.0

    def init(self) -> Tally:
        return Tally(np.zeros(self.n_arms), np.zeros(self.n_arms))

    def choose(self, state: Tally, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        spread = self.noise_sd / np.sqrt(state.counts + 1)
        scores = state.sums / (state.counts + 1) + spread * rng.standard_normal(self.n_arms)
        return best_of(scores, eligible)

    def update(self, state: Tally, context: Array, arm: int, reward: float, rng: Rng) -> Tally:
        state.counts[arm] += 1
        state.sums[arm] += reward
        return state


def greedy(n_arms: int, context_dim: int) -> Greedy:
    return Greedy(n_arms)


def bold(n_arms: int, context_dim: int) -> Greedy:
    return Greedy(n_arms, noise_sd=3.0)


class Slow(Greedy):
    """The same, with time to be interrupted where the environment asks for it."""

    def init(self) -> Tally:
        time.sleep(float(os.environ.get("GAMBLERS_PAUSE", "0")))
        return super().init()


def slow(n_arms: int, context_dim: int) -> Slow:
    return Slow(n_arms)


def broken(n_arms: int, context_dim: int) -> Greedy:
    raise ZeroDivisionError("no such policy after all")
