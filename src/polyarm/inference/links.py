"""Models of a link beside another model of rewards: counts and marks, weighted by how well each has predicted.

Rewards lie on a grid where all of them are lowest + k step.  While they do, and more than three different ones were
seen, they may be counts (0 is on the grid and none is below) or marks (at most MOST_MARKS values from the lowest to the
highest).  The first reward off the grid ends it for good.
Weights of models, and of some values of the dispersion of counts, are those of kernels.links.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polyarm import special
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.columns import observe
from polyarm.inference.failure import all_finite
from polyarm.inference.gibbs import with_room
from polyarm.inference.links_checks import require_links
from polyarm.inference.links_grid import OFF, applicable, n_cells, place
from polyarm.inference.migration import forget_sums
from polyarm.inference.rounding import snapped
from polyarm.kernels import generalized
from polyarm.kernels import links as kernels
from polyarm.kernels import sticks as columns_of
from polyarm.kernels._jit import rng_handle, trusted
from polyarm.kernels.links import ALIVE, FAMILIES, HIGHEST, LOWEST, MARKS, STATUS, STEP, TAKEN, Links
from polyarm.models import AmountMixture, JumpMixture, Objective, StudentMixture
from polyarm.types import Array, IntArray, Rng

DISPERSIONS = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0])
HYPERPRIORS = np.array(  # shape and scale of lam, variance of beta_0, largest lam, each for slopes and height
    [
        [3.0, 3.0, 0.6, 2.0, 0.1, 1.0, 1.0, 4.0],  # counts: a column of size 1 changes the mean by a factor of e^0.4
        [3.0, 3.0, 1.5, 3.0, 0.1, 0.01, 2.0, 4.0],  # marks: the cut points already say where all arms are
    ]
)
PASSES = 8  # over all rewards when models begin
YOUNG = 64  # rewards up to which an arm's are visited twice after each
WORK = 20_000  # multiplications a reward may cost for what the arms share
MARK_GUESS = 0.5  # rewards of every mark that the prior of the cut points counts for
NEAR = 1e-6  # of a step of the grid, within which a value is one that was seen
UNLIKELY = 1e-9  # values of less probability are no jumps
ROUNDING = 1e-12  # a probability that rounding may leave, and a share of the largest value
LOOKED_AT = 2048  # rewards of an arm, the latest, that the cut points are fitted to


class LinkState(NamedTuple):
    """Weights of the other model, counts and marks; those of the dispersions; both models with every arm's rewards."""

    weights: Array
    dispersions: Array
    models: Links
    data: tuple[Array, ...]

    def require_sound(self) -> None:
        """Raise unless every reward has a row, and all numbers are finite and in their ranges."""
        require_links(self)

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Rewards."""
        return {"data": (0,)}


class Reward(NamedTuple):
    """A reward as it is kept."""

    arm: int
    context: Array
    value: float


def is_on(state: LinkState) -> bool:
    """Whether there are models of a link."""
    return bool(state.models.fits.shape[1] > 0)


@dataclass(frozen=True, eq=False)
class LinkModels:
    """Both models of the rewards of all arms; `moves` rewards of the played arm are looked at again after a reward."""

    n_arms: int
    context_dim: int
    moves: int = 32
    memory: int | None = None
    fixed_units: bool = False

    def init(self) -> LinkState:
        """State before any reward."""
        return self._empty(np.zeros(ALIVE + FAMILIES))

    def _empty(self, grid: Array, families: int = 0) -> LinkState:
        A, D = self.n_arms, self.context_dim + 1
        columns = np.zeros((6, D))
        columns[columns_of.UNIT] = 1.0
        sums = np.zeros((A, families, 1 + D + D * (D + 1) // 2))
        guess = np.zeros((families, 3, D))
        for each, hyperprior in zip(guess, HYPERPRIORS, strict=False):
            each[:] = first_guess(hyperprior, D)
        links = Links(
            sums=sums,
            kept=sums.copy(),
            fits=np.zeros((A, families, D, D + 1)),
            guess=guess,
            cuts=np.zeros(0),
            level=np.zeros(2),
            grid=grid,
            columns=columns,
            sizes=np.zeros((A, 2), np.int64),
        )
        weights, dispersions = np.zeros(1 + FAMILIES), np.full(len(DISPERSIONS), 1 / len(DISPERSIONS))
        weights[0] = 1.0
        data = tuple(np.zeros((0, D + 1 + 2 * FAMILIES)) for _ in range(A))
        return LinkState(weights, dispersions, links, data)

    def off(self, state: LinkState) -> LinkState:
        """State of rewards that are on no grid."""
        grid = state.models.grid.copy()
        grid[STATUS], grid[ALIVE:] = OFF, 0.0
        return self._empty(grid)

    def judge(self, state: LinkState, reward: Reward, base: float) -> None:
        """Weigh the models by the probabilities that they give to a reward, the other's being `base`; in place."""
        at = (reward.arm, reward.context, reward.value)
        trusted(kernels.judge)(state.models, state.weights, state.dispersions, DISPERSIONS, *at, base)

    def learnt(
        self, state: LinkState, reward: Reward, n: int, many_values: bool, kept: Callable[[], Iterable[Reward]]
    ) -> LinkState:
        """State after the n-th reward; `kept` are all rewards that can still be learnt, this one too."""
        grid = state.models.grid
        finer = place(grid, reward.value)
        if grid[STATUS] == OFF or grid[TAKEN] != n:  # a state of before there were grids has not seen all rewards
            return self.off(state)
        if not is_on(state) and not many_values:
            return state
        alive = applicable(grid)
        if not any(alive):
            return self.off(state)
        if finer or not is_on(state):
            rewards = list(kept())  # none where all have just faded: then the next reward is the first
            state = self._begun(grid, alive, rewards) if rewards else self._empty(grid)
        else:
            state = self._followed(state, alive, reward, n)
        whole = all_finite(state.models.fits, state.models.sums, state.weights)
        return state if whole else self.off(state)

    def _begun(self, grid: Array, alive: tuple[bool, bool], rewards: list[Reward]) -> LinkState:
        """State of models that have learnt some rewards at once; no model is preferred."""
        state = self._empty(grid, FAMILIES)
        links = state.models
        grid[ALIVE:] = alive
        state.weights[:] = np.append(True, alive) / (1.0 + sum(alive))
        values = np.array([reward.value for reward in rewards])
        links.level[kernels.DISPERSION] = float(state.dispersions @ DISPERSIONS)
        links.level[kernels.LEVEL] = math.log(0.5 + max(float(values.mean() / grid[STEP]), 0.0))
        if alive[MARKS]:
            state = with_cuts(state, values)
        kernels.fit_all(state.models)
        for reward in rewards:
            state = self._taken_in(state, reward)
        for _ in range(PASSES):
            for arm, rows in enumerate(state.data):
                self._visit(state, arm, len(rows), 0)
            kernels.share(state.models, HYPERPRIORS)
            if alive[MARKS]:
                self._move_cuts(state)
        return state

    def _followed(self, state: LinkState, alive: tuple[bool, bool], reward: Reward, n: int) -> LinkState:
        """State with one more reward on the same grid."""
        links, a = state.models, reward.arm
        for family in range(FAMILIES):
            if links.grid[ALIVE + family] and not alive[family]:
                links.grid[ALIVE + family] = state.weights[1 + family] = 0.0
                state.weights[:] /= state.weights.sum()
        wider = bool(links.grid[ALIVE + MARKS]) and len(links.cuts) != n_cells(links.grid) - 1
        if wider:
            state = with_cuts(state, np.append(self._values(state), reward.value), reward.value == links.grid[LOWEST])
        state = self._taken_in(state, reward)
        rows = int(state.models.sizes[a, columns_of.ROWS])
        if rows > YOUNG and rows & (rows - 1) == 0 and rows == state.models.sizes[a, columns_of.NEXT]:
            kernels.recount(state.models, state.data[a], a)
        for _ in range(2 if rows <= YOUNG else 1):
            self._visit(state, a, self.moves, n * self.moves)
        if n <= YOUNG or n % (1 + self.n_arms * (self.context_dim + 1) ** 3 // WORK) == 0:
            kernels.share(state.models, HYPERPRIORS)
        if state.models.grid[ALIVE + MARKS] and (wider or is_due(n)):
            self._move_cuts(state)
            for arm in range(self.n_arms):
                self._visit(state, arm, LOOKED_AT, 0)
        return state

    def _visit(self, state: LinkState, arm: int, moves: int, start: int) -> None:
        trusted(kernels.visit)(state.models, state.data[arm], arm, moves, start)

    def _taken_in(self, state: LinkState, reward: Reward) -> LinkState:
        a, links = reward.arm, state.models
        if not self.fixed_units:
            observe(links.columns, reward.context, links.fits)
        data = with_room(state.data, links.sizes, a, self.memory)
        trusted(kernels.add_reward)(links, data[a], a, reward.context, reward.value)
        return state._replace(data=data)

    def _values(self, state: LinkState) -> Array:
        D = self.context_dim + 1
        sizes = state.models.sizes[:, columns_of.ROWS]
        return np.concatenate([rows[:n, D] for rows, n in zip(state.data, sizes, strict=True)])

    def _move_cuts(self, state: LinkState) -> None:
        """Bring the cut points nearer to what the latest rewards say: all the way if there are no others."""
        links, D = state.models, self.context_dim + 1
        eta, values = [], []
        for arm, rows in enumerate(state.data):
            latest = rows[: links.sizes[arm, columns_of.ROWS]][-LOOKED_AT:]
            eta.append(latest[:, :D] @ links.fits[arm, MARKS, :, D])
            values.append(latest[:, D])
        numbers = np.round((np.concatenate(values) - links.grid[LOWEST]) / links.grid[STEP]).astype(np.int64)
        numbers = np.clip(numbers, 0, len(links.cuts))
        cuts, seen = links.cuts.copy(), np.clip(np.concatenate(eta), -generalized.EDGE, generalized.EDGE)
        for _ in range(2):
            generalized.cut_step(cuts, MARK_GUESS, seen, numbers)
        share = len(numbers) / max(float(links.sums[:, MARKS, 0].sum()), 1.0)
        links.cuts[:] += min(share, 1.0) * (cuts - links.cuts)

    def fade(self, state: LinkState, share: float) -> None:
        """Let only a share of the past remain, also of what models have predicted; in place."""
        forget_sums(state.models, share)
        fade_weights(state.weights, share)
        fade_weights(state.dispersions, share)

    def with_arm(self, state: LinkState) -> LinkState:
        """State with one more arm, which starts from what the arms share."""
        fresh = replace(self, n_arms=self.n_arms + 1)._empty(state.models.grid, state.models.fits.shape[1])
        state = with_empty_arm(state, fresh)
        kernels.fit_all(state.models)
        return state

    def draw_means(self, state: LinkState, x: Array, draws: Array, rng: Rng) -> None:
        """Replace draws of every arm's mean reward, (n_draws, n_arms), by those of the models that are drawn."""
        chosen = self._models(state, len(draws), rng)
        for family in range(FAMILIES):
            rows = np.flatnonzero(chosen == 1 + family)
            if len(rows):
                eta = self._predictors(state, family, x, len(rows), rng)
                kernels.means_at(state.models, family, eta, eta)
                draws[rows] = eta

    def draw_objectives(self, state: LinkState, x: Array, objective: Objective, draws: Array, rng: Rng) -> None:
        """The same for draws of what every arm's reward is worth."""
        chosen = self._models(state, len(draws), rng)
        for family in range(FAMILIES):
            rows = np.flatnonzero(chosen == 1 + family)
            if len(rows):
                eta = self._predictors(state, family, x, len(rows), rng)
                values, means = self.values(state, family), np.empty_like(eta)
                shares = np.empty((*eta.shape, len(values)))
                for at in np.ndindex(eta.shape):
                    kernels.probabilities_at(state.models, family, float(eta[at]), shares[at])
                kernels.means_at(state.models, family, eta, means)
                draws[rows] = objective.of_mixture(*completed(shares, values, means), 0.0)

    def _models(self, state: LinkState, n: int, rng: Rng) -> IntArray:
        return np.asarray(np.searchsorted(np.cumsum(state.weights)[:-1], rng.random(n), side="right"))

    def _predictors(self, state: LinkState, family: int, x: Array, n: int, rng: Rng) -> Array:
        eta = np.empty((n, self.n_arms))
        kernels.draw_predictors(state.models, family, x, eta, rng_handle(rng))
        return eta

    def values(self, state: LinkState, family: int) -> Array:
        """The values that a reward of a family may take; counts up to twice the highest so far, and what is beyond."""
        grid = state.models.grid
        if family == MARKS:
            return np.asarray(grid[LOWEST] + grid[STEP] * np.arange(len(state.models.cuts) + 1))
        return np.asarray(grid[STEP] * np.arange(2 * round(grid[HIGHEST] / grid[STEP]) + 20))

    def predictive(
        self, state: LinkState, x: Array, arm: int, base: StudentMixture | JumpMixture, known: Array
    ) -> JumpMixture:
        """Posterior predictive distribution of the mixture of all models; values near a known one are that one."""
        jumps: dict[float, float] = {}
        rest: StudentMixture | AmountMixture | None = base if isinstance(base, StudentMixture) else base.rest
        if isinstance(base, JumpMixture):
            for value, weight in zip(base.values.tolist(), base.weights.tolist(), strict=True):
                jumps[value] = jumps.get(value, 0.0) + float(state.weights[0]) * weight
        for family in range(FAMILIES):
            if state.weights[1 + family] > 0:
                values = snapped(self.values(state, family), known, NEAR * float(state.models.grid[STEP]))
                shares, mean, alone = np.empty(len(values)), np.zeros((2, self.n_arms)), np.zeros(1 + FAMILIES)
                alone[1 + family] = 1.0
                kernels.probabilities(state.models, family, arm, x, shares)
                kernels.moments(state.models, alone, x, mean)
                found, at = completed(shares, values, mean[0, arm])
                for value, weight in zip(at.tolist(), found.tolist(), strict=True):
                    jumps[value] = jumps.get(value, 0.0) + float(state.weights[1 + family]) * weight
        likely = {value: weight for value, weight in jumps.items() if weight > UNLIKELY}
        likely[max(likely, key=likely.__getitem__)] += sum(jumps.values()) - sum(likely.values())
        return JumpMixture(np.array(list(likely)), np.array(list(likely.values())), rest)


def first_guess(hyperprior: Array, D: int) -> Array:
    """What is known of a new arm's coefficients before any reward, (3, D): their mean and variance, and lam."""
    guess = np.zeros((3, D))
    shape, scale, wide = hyperprior[:6].reshape(3, 2)
    guess[kernels.LAM, :-1], guess[kernels.LAM, -1] = scale / shape
    guess[kernels.VARIANCE, :-1], guess[kernels.VARIANCE, -1] = scale / shape + wide
    return guess


def fade_weights(weights: Array, share: float) -> None:
    """Let only a share of what models have predicted count; in place."""
    weights[:] **= share
    weights[:] /= weights.sum()


def is_due(n: int) -> bool:
    """Whether the cut points are fitted at the n-th reward: at every one at first, then ten times per doubling."""
    return n < 2 or int(10 * math.log2(n)) != int(10 * math.log2(n - 1))


def with_cuts(state: LinkState, values: Array, below: bool = False) -> LinkState:
    """State with a cut point between all marks so far, at the log odds of the rewards not above it.

    Cut points that there were stay where they are, and the others stand as far from them; new ones are at one end.
    """
    grid = state.models.grid
    marks = n_cells(grid)
    numbers = np.clip(np.round((values - grid[LOWEST]) / grid[STEP]).astype(np.int64), 0, marks - 1)
    counts = np.bincount(numbers, minlength=marks) + MARK_GUESS
    cuts, old = special.logit(np.cumsum(counts)[:-1] / counts.sum()), state.models.cuts
    if len(old) and below:
        first = len(cuts) - len(old)
        cuts += old[0] - cuts[first]
        cuts[first:] = old
    elif len(old):
        cuts += old[-1] - cuts[len(old) - 1]
        cuts[: len(old)] = old
    return state._replace(models=state.models._replace(cuts=cuts))


def completed(shares: Array, values: Array, mean: Array | float) -> tuple[Array, Array]:
    """Probabilities (..., n) and the values that have them, of which the last is where all beyond has its mean."""
    share, at = shares.copy(), np.broadcast_to(values, shares.shape).copy()
    share[..., -1] = np.maximum(1.0 - share[..., :-1].sum(axis=-1), 0.0)
    lacking = mean - (share * at).sum(axis=-1)  # of the mean
    is_far = (share[..., -1] > ROUNDING) & (lacking > ROUNDING * np.abs(values).max())
    at[..., -1] += np.divide(lacking, share[..., -1], out=np.zeros(is_far.shape), where=is_far)
    return share, at
