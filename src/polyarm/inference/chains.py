"""Several chains of the robust model's sampler over the same rewards, while arms are young.

One state of the sampler is one draw from the posterior: of an arm with few rewards the next state says something else.
So a few chains learn beside each other at first, with half the moves each; what is decided and reported is by all of
them.  Once scales and arms are known the first chain goes on alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from polyarm.errors import is_vector, refuse_context, require_context, require_count, require_generator
from polyarm.inference.robust import RobustEngine, RobustState
from polyarm.kernels import chains as kernels
from polyarm.kernels._jit import RngHandle, rng_handle, trusted
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.units import REFUSED
from polyarm.kernels.robust.update import LATE
from polyarm.models import Objective, StudentMixture
from polyarm.types import Array, Choice, Rng, packed

Chains = tuple[RobustState, ...]  # states of chains over the same rewards, at least one

LOOK = 8  # steps between looks at whether the first chain goes on alone


class ChainsEngine:
    """The robust model by one chain or by several.

    engine    of a chain by itself
    n_chains  so many chains begin
    beside    another such engine for the same states, whose trust in them this one shares
    """

    def __init__(self, engine: RobustEngine, n_chains: int, beside: "ChainsEngine | None" = None) -> None:
        self.alone = engine
        moves, elsewhere = (engine.moves + 1) // 2, (engine.other_arm_moves + 1) // 2
        self.each = tuple(
            replace(engine, moves=moves, other_arm_moves=elsewhere, thinning=n_chains) for _ in range(n_chains)
        )
        known = beside.each if beside is not None else (engine,)
        for ours, theirs in zip(self.each, known, strict=False):
            object.__setattr__(ours, "_door", theirs._door)
        object.__setattr__(engine, "_door", known[0]._door)

    def others(self) -> Chains:
        """What the chains beside the first one are before any reward, and when it is alone."""
        return tuple(engine.init() for engine in self.each[1:])

    def engines(self, chains: Chains) -> Iterator[tuple[RobustEngine, RobustState]]:
        """Every chain with its engine, the one chain with that which goes on alone."""
        return zip(self.each if len(chains) > 1 else (self.alone,), chains, strict=True)

    def with_arm(self, first: RobustState, others: Chains) -> tuple[RobustEngine, RobustState, Chains]:
        """The engine of one chain, its state and those of the others with one more arm."""
        engine, wider = self.alone.with_arm(first)
        if not are_alive(first, others):
            return engine, wider, ChainsEngine(engine, len(self.each)).others()
        return engine, wider, tuple(e.with_arm(s)[1] for e, s in zip(self.each[1:], others, strict=True))

    def with_reward(self, chains: Chains, context: Array, arm: int, reward: float, handle: RngHandle) -> Chains:
        """Chains after a reward that was looked at, before the past fades; only the first, where it goes on alone."""
        if len(chains) == 1:
            return (self.alone._with_reward(chains[0], context, arm, reward, handle),)
        learnt = tuple(e._with_reward(s, context, arm, reward, handle) for e, s in self.engines(chains))
        return learnt[:1] if learnt[0].n_rewards % LOOK == 0 and self.are_known(learnt[0]) else learnt

    def are_known(self, state: RobustState) -> bool:
        """Whether enough is known of scales and arms for one chain: so many rewards of every arm that has any, in the
        mean.
        """
        return state.n_rewards >= LATE * int(np.count_nonzero(state.sizes[:, K_USED]))

    def fade(self, chains: Chains, share: float) -> None:
        """Let only a share of every arm's past remain; in place."""
        for engine, state in self.engines(chains):
            engine.fade(state, share)

    def refresh(self, chains: Chains, rng: Rng) -> Chains:
        """Chains after another round of moves in every arm and of draws of all that is shared."""
        if len(chains) == 1:
            return (self.alone.refresh(chains[0], rng),)
        return tuple(engine.refresh(state, rng) for engine, state in self.engines(chains))

    def moments(self, chains: Chains, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward by all chains, (2, n_arms)."""
        if len(chains) == 1:
            return self.alone.moments(chains[0], context)
        return pooled(np.array([engine.moments(state, context) for engine, state in self.engines(chains)]))

    def moments_many(self, chains: Chains, contexts: Array) -> Array:
        """The same in many contexts, (n, 2, n_arms)."""
        if len(chains) == 1:
            return self.alone.moments_many(chains[0], contexts)
        return pooled_many([engine.moments_many(state, contexts) for engine, state in self.engines(chains)])

    def outlook(self, chains: Chains, context: Array) -> tuple[Array, Array]:
        """What the exploration rule sees: the chains' outlooks, pooled with twice the variance between chains."""
        if len(chains) == 1:
            return self.alone.outlook(chains[0], context)
        moments, noise = self._outlooks(chains, require_context(context, self.alone.context_dim))
        return pooled(moments, kernels.TWICE), pooled_noise(noise)

    def _outlooks(self, chains: Chains, context: Array) -> tuple[Array, Array]:
        """What every chain sees, (n_chains, 2, n_arms) and (n_chains, n_arms)."""
        n, n_arms = len(chains), self.alone.n_arms
        moments, noise = np.empty((n, 2, n_arms)), np.empty((n, n_arms))
        for engine, state, *out in zip(self.each, chains, moments, noise, strict=True):
            engine._look(state, context, *out)
        return moments, noise

    def outlook_many(self, chains: Chains, contexts: Array) -> tuple[Array, Array]:
        """The same in many contexts: moments (n, 2, n_arms), noise (n_arms,)."""
        if len(chains) == 1:
            return self.alone.outlook_many(chains[0], contexts)
        found = [engine.outlook_many(state, contexts) for engine, state in self.engines(chains)]
        return pooled_many([moments for moments, _ in found], kernels.TWICE), pooled_noise(
            np.array([noise for _, noise in found])
        )

    def choose_by_information(self, chains: Chains, context: Array, n_draws: int, power: float, rng: Rng) -> Choice:
        """An arm by information-directed sampling with this outlook."""
        if len(chains) == 1:
            return self.alone.choose_by_information(chains[0], context, n_draws, power, rng)
        n_arms, d = self.alone.n_arms, self.alone.context_dim
        x = context if is_vector(context, d) else require_context(context, d)
        n, mix, scores = require_count(n_draws, "n_draws"), np.empty(n_arms), np.empty(n_arms)
        arm = trusted(kernels.choose)(*self._outlooks(chains, x), x, n, float(power), mix, scores, rng_handle(rng))
        if arm == REFUSED:
            refuse_context(context, d)
        return packed(Choice, (arm, scores, mix))

    def draw_means(self, chains: Chains, context: Array, n_draws: int, rng: Rng) -> Array:
        """Joint posterior draws of the arms' mean rewards, by every chain in turn, (n_draws, n_arms)."""
        if len(chains) == 1:
            return self.alone.draw_means(chains[0], context, n_draws, rng)
        out = np.empty((require_count(n_draws, "n_draws"), self.alone.n_arms))
        return self._by_turns(chains, out, rng, lambda e, s, rows: e.draw_means(s, context, len(out[rows]), rng))

    def draw_densities(self, chains: Chains, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid))."""
        if len(chains) == 1:
            return self.alone.draw_densities(chains[0], context, arm, grid, n_draws, rng)
        out = np.empty((require_count(n_draws, "n_draws"), len(grid)))

        def drawn(engine: RobustEngine, state: RobustState, rows: slice) -> Array:
            return engine.draw_densities(state, context, arm, grid, len(out[rows]), rng)

        return self._by_turns(chains, out, rng, drawn)

    def draw_objectives(self, chains: Chains, context: Array, objective: Objective, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of what every arm's reward is worth, (n_draws, n_arms)."""
        alone = np.ones((self.alone.n_arms, require_count(n_draws, "n_draws"), 1))
        return self.draw_objectives_beside(chains, context, objective, np.empty(0), alone, rng)

    def draw_objectives_beside(
        self, chains: Chains, context: Array, objective: Objective, values: Array, shares: Array, rng: Rng
    ) -> Array:
        """The same for arms that pay some values (m,) too, with shares (n_arms, n_draws, m + 1), the model's last."""
        if len(chains) == 1:
            return self.alone.draw_objectives_beside(chains[0], context, objective, values, shares, rng)

        def drawn(engine: RobustEngine, state: RobustState, rows: slice) -> Array:
            mine = np.ascontiguousarray(shares[:, rows])
            return engine.draw_objectives_beside(state, context, objective, values, mine, rng)

        return self._by_turns(chains, np.empty((shares.shape[1], self.alone.n_arms)), rng, drawn)

    def _by_turns(
        self, chains: Chains, out: Array, rng: Rng, drawn: Callable[[RobustEngine, RobustState, slice], Array]
    ) -> Array:
        """Rows of `out` drawn by every chain in turn, beginning with any of them."""
        n, first = len(chains), int(require_generator(rng).integers(len(chains)))
        for c, (engine, state) in enumerate(self.engines(chains)):
            rows = slice((c - first) % n, None, n)
            if len(out[rows]) > 0:
                out[rows] = drawn(engine, state, rows)
        return out

    def predictive(self, chains: Chains, context: Array, arm: int) -> StudentMixture:
        """Posterior predictive distribution of an arm's next reward: the mean of the chains' distributions."""
        found = [engine.predictive(state, context, arm) for engine, state in self.engines(chains)]
        if len(found) == 1:
            return found[0]
        weights = np.concatenate([each.weights for each in found]) / len(found)
        rest = [np.concatenate([getattr(each, name) for each in found]) for name in ("dof", "location", "scale")]
        return StudentMixture(weights, *rest)

    def probability_between(self, chains: Chains, context: Array, arm: int, low: float, high: float) -> float:
        """What `predictive` says of an arm's next reward to lie between two values."""
        found = [e.probability_between(s, context, arm, low, high) for e, s in self.engines(chains)]
        return sum(found) / len(found)

    def forecast(self, chains: Chains, context: Array, arm: int, reward: float) -> tuple[float, float]:
        """What `moments` says of an arm's mean and `predictive` of the density at a reward."""
        found = [engine.forecast(state, context, arm, reward) for engine, state in self.engines(chains)]
        return sum(mean for mean, _ in found) / len(found), sum(density for _, density in found) / len(found)


def pooled(each: Array, weight: float = 1.0) -> Array:
    """Moments (2, n_arms) of the mixture of the chains' distributions; weight of the variance between them."""
    out = np.empty(each[0].shape)
    trusted(kernels.pool)(each, weight, out)
    return out


def pooled_many(each: list[Array], weight: float = 1.0) -> Array:
    """The same in many contexts, (n, 2, n_arms)."""
    out = np.empty(each[0].shape)
    kernels.pool_many(np.stack(each, axis=1), weight, out)
    return out


def pooled_noise(each: Array) -> Array:
    """Noise beside a typical arm's by all chains, (n_arms,)."""
    out = np.empty(each[0].shape)
    trusted(kernels.pool_noise)(each, out)
    return out


def are_alive(first: RobustState, others: Chains) -> bool:
    """Whether the other chains have learnt what the first one has."""
    return len(others) > 0 and others[0].n_rewards == first.n_rewards


def chains_of(state: Any) -> Chains:
    """The chains that speak for the rest of a state of every kind of reward."""
    first, others = state.rest, state.other_chains
    return (first, *others) if are_alive(first, others) else (first,)
