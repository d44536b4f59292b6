"""A long look at what was learnt: averages over many states of the sampler, never the one it happens to be in.

The state of a mixture is one draw of its posterior.  A look copies it, refreshes the copy again and again, and asks
every state for a few draws.  Its random numbers follow from the seed and the number of rewards, so that looking twice
shows the same; `look` in `Bandit.predict` and its like numbers further looks, which differ by their Monte Carlo error.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyarm.bandit.learner import copied
from polyarm.bandit.lottery import rng_at
from polyarm.errors import InvalidArgument
from polyarm.types import AnyPolicy, Array, Mask, Rng

N_STATES = 100  # for means and bands, which settle soon
N_DRAWS = (
    10_000  # in all states together, shared by the contexts that are looked at, though none gets less than a fifth
)
PIECE = 200  # states of a long look between two checks of its error: longer than the sampler remembers, mostly
EVERY = 4  # of them are drawn from; the others only lead away from it
FEWEST, MOST = 8, 120  # pieces of a long look
TOLERANCE = 0.004  # standard error of a probability at which a long look ends


@dataclass(frozen=True, eq=False)
class Look:
    """The engine of a policy and its state, to be looked at without touching either."""

    engine: Any
    state: Any
    seed: int
    name: str
    objective: Any = None  # None is the mean

    @classmethod
    def at(cls, policy: AnyPolicy, state: Any, seed: int, n_learnt: int, look: int = 0) -> "Look":
        """Look at a policy's state."""
        inner: Any = policy
        try:
            engine = inner.engine
        except AttributeError:
            raise InvalidArgument(
                f"policy must be one with a model of the rewards, got {type(policy).__name__}; try 'nonparametric'"
            ) from None
        state, alone = inner.engine_state(state), getattr(engine, "by_one_chain", None)
        return cls(engine, alone(state) if alone else state, seed, f"{n_learnt}/{look}", objective_of(policy))

    def worths(self, state: Any, x: Array, n_draws: int, rng: Rng, means: Array) -> Array:
        """Draws of what the arms are judged by, (n_draws, n_arms); the given draws of their means, if it is that."""
        if self.objective is None:
            return means
        return np.asarray(self.engine.draw_objectives(state, x, self.objective, n_draws, rng))

    @property
    def is_exact(self) -> bool:
        """Whether the state stands for the whole posterior, so that one is enough."""
        return refresher(self.engine) is None

    def states(self, n_states: int = N_STATES) -> Iterator[tuple[Any, Rng]]:
        """So many states of the sampler, one after the other, and the generator to draw with; one if it is exact."""
        rng = rng_at(self.seed, self.name, "looking")
        refresh = refresher(self.engine)
        if refresh is None:
            yield self.state, rng
            return
        state = copied(self.state)
        for _ in range(n_states):
            state = refresh(state, rng)
            yield state, rng

    def draws(self, xs: Array, n_states: int = N_STATES) -> tuple[Array, Array]:
        """Draws of the arms' mean rewards and worths in contexts (m, context_dim), (m, n_draws, n_arms) each.

        Every context sees the same random numbers: what is not known of an arm is not averaged away over contexts.
        """
        n = max(N_DRAWS // len(xs), N_DRAWS // 5) // (1 if self.is_exact else n_states)
        means, worths = [], []
        for state, rng in self.states(n_states):
            start = rng.bit_generator.state
            parts = []
            for x in xs:
                rng.bit_generator.state = start
                drawn = self.engine.draw_means(state, x, n, rng)
                parts.append((drawn, self.worths(state, x, n, rng, drawn)))
            means.append([mean for mean, _ in parts])
            worths.append([worth for _, worth in parts])
        return np.concatenate(means, axis=1), np.concatenate(worths, axis=1)

    def means(self, xs: Array, n_states: int = N_STATES) -> Array:
        """The draws of the mean rewards alone."""
        return self.draws(xs, n_states)[0]

    def expected(self, xs: Array) -> Array:
        """Expected rewards of the arms in contexts (m, context_dim), a mean over the states, (m, n_arms)."""
        parts = [[self.engine.expected_means(state, x) for x in xs] for state, _ in self.states()]
        return np.asarray(np.mean(parts, axis=0))

    def settled_draws(self, x: Array, active: Mask) -> tuple[Array, Array, float]:
        """Means and worths in one context, from as many states as it takes to know the best arm, and the error left.

        The error is the largest standard error of a probability of being best, from means of pieces of the chain.
        """
        if self.is_exact:
            mean, worth = self.draws(x[None])
            return mean[0], worth[0], 0.5 / N_DRAWS**0.5
        means: list[Array] = []
        worths: list[Array] = []
        shares: list[Array] = []
        error = np.inf
        for number, (state, rng) in enumerate(self.states(PIECE * MOST), 1):
            if number % EVERY == 0:
                means.append(self.engine.draw_means(state, x, 10, rng))
                worths.append(self.worths(state, x, 10, rng, means[-1]))
            if number % PIECE == 0:
                shares.append(shares_of_best(np.concatenate(worths[-PIECE // EVERY :])[None], active)[0])
                error = float(np.std(shares, axis=0, ddof=1).max() / len(shares) ** 0.5) if len(shares) > 1 else np.inf
                if len(shares) >= FEWEST and error < TOLERANCE:
                    break
        return np.concatenate(means), np.concatenate(worths), error


def objective_of(policy: Any) -> Any:
    """What a policy judges arms by; None for their mean reward."""
    while not hasattr(policy, "objective") and hasattr(policy, "policy"):
        policy = policy.policy
    objective = getattr(policy, "objective", None)
    return None if objective is None or str(objective) == "mean" else objective


def refresher(engine: Any) -> Callable[[Any, Rng], Any] | None:
    """How to move an engine's state to another draw of the same posterior; None where it stands for all of it."""
    if hasattr(engine, "refresh"):
        refresh: Callable[[Any, Rng], Any] = engine.refresh
        return refresh
    if hasattr(engine, "sweep"):
        return lambda state, rng: swept(engine, state, rng)
    return refresher(engine.engine) if hasattr(engine, "engine") else None


def swept(engine: Any, state: Any, rng: Rng) -> Any:
    """State after a Gibbs sweep over every arm."""
    for arm in range(engine.n_arms):
        state = engine.sweep(state, arm, rng)
    return state


def shares_of_best(draws: Array, active: Mask) -> Array:
    """How often each active arm is best among draws (m, n, n_arms), (m, n_arms)."""
    scores = np.where(active, draws, -np.inf)
    winners = scores.argmax(axis=2)
    return np.stack([np.bincount(row, minlength=draws.shape[2]) / len(row) for row in winners])
