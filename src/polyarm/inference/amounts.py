"""A gamma regression beside another model of amounts, the two weighted by how well each has predicted their means;
where a distribution is asked for, by how probable each has found them.

Rewards of no kind are amounts where all of them are above the lowest kind, or all below the highest: what was paid
beside nothing, a cost beside none.  The model begins with the eighth; the first reward on the other side ends it until
the kinds change.  Where there are no kinds at all, rewards are amounts when none is below 0, or none above, and they
are of several sizes: `are_amounts`, asked after 8, 16, 32, ... of them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polyarm import special
from polyarm.inference.amounts_checks import require_amounts
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.columns import observe
from polyarm.inference.generalized import gamma_shape
from polyarm.inference.gibbs import with_room
from polyarm.inference.links import LOOKED_AT, WORK, YOUNG, Reward, fade_weights, first_guess, is_due
from polyarm.inference.migration import forget_sums
from polyarm.kernels import amounts as kernels
from polyarm.kernels import sticks as columns_of
from polyarm.kernels._jit import rng_handle, trusted
from polyarm.kernels.amounts import (
    AMOUNT_UNIT,
    GAMMA_SHAPE,
    NEXT_TO_NOTHING,
    OFF,
    ON,
    ORIGIN,
    STATUS,
    WAITING,
    Amounts,
)
from polyarm.kernels.generalized import NODES, WEIGHTS
from polyarm.models import MEAN, AmountMixture, Objective, StudentMixture
from polyarm.models.amounts import gamma_density
from polyarm.types import Array, Rng

ENOUGH = 8  # amounts that it begins with
PASSES = 8  # over all amounts when it begins
HYPERPRIOR = np.array([3.0, 3.0, 0.6, 2.0, 0.1, 1.0, 1.0, 4.0])  # as that of counts: see links.HYPERPRIORS
NO_VALUES = np.empty(0)  # where there are no kinds
MANY, DOUBT = 2.2, 4.0  # n rewards are of many sizes from exp(MANY + DOUBT / sqrt(n)) between their quartiles on
SEVERAL, SEEN = 0.8, 32  # and of several from exp(SEVERAL) on once so many were seen
ROUNDING = 1e-12  # share of the largest amount below which one that was counted from elsewhere may be nothing
FAR = 1e3  # times the geometric mean of amounts: none counts as more where their unit is found
EVEN = 0.5  # weight that it begins with
TRUST = 0.9  # the same where rewards without kinds are of many sizes: that lines hardly do is known by then
SLICES = 32  # values that stand for a gamma distribution where an objective is asked for
ENDS = (0.002, 0.9998)  # probabilities below and above which values that stand for all arms' amounts do not reach


class AmountState(NamedTuple):
    """Weights of the other model and of this one, the model, every arm's amounts, and the weights by densities."""

    weights: Array
    model: Amounts
    data: tuple[Array, ...]
    density_weights: Array

    def require_sound(self) -> None:
        """Raise unless every amount has a row, and all numbers are finite and in their ranges."""
        require_amounts(self)

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Amounts."""
        return {"data": (0,)}

    @staticmethod
    def added_fields() -> dict[str, int]:
        """Fields that earlier layouts of states did not have."""
        return {"density_weights": 3}


def is_on(state: AmountState) -> bool:
    """Whether there is a model."""
    return bool(state.model.level[STATUS] == ON)


@dataclass(frozen=True, eq=False)
class AmountModel:
    """The amounts of all arms; `moves` amounts of the played arm are looked at again after one."""

    n_arms: int
    context_dim: int
    moves: int = 32
    memory: int | None = None
    fixed_units: bool = False

    def init(self, status: int = WAITING) -> AmountState:
        """State without a model."""
        D = self.context_dim + 1
        A = self.n_arms if status == ON else 0
        columns = np.zeros((6, D))
        columns[columns_of.UNIT] = 1.0
        level = np.array([float(status), 1.0, 0.0, 1.0, 1.0])
        sums, fits = np.zeros((A, 1 + D + D * (D + 1) // 2)), np.zeros((A, D, D + 1))
        sizes = np.zeros((self.n_arms, 2), np.int64)
        model = Amounts(sums, sums.copy(), fits, first_guess(HYPERPRIOR, D), level, columns, sizes)
        data = tuple(np.zeros((0, D + 3)) for _ in range(self.n_arms))
        return AmountState(np.array([1.0, 0.0]), model, data, np.array([1.0, 0.0]))

    def judge(self, state: AmountState, reward: Reward, mean: float, density: float) -> None:
        """Weigh the models by their predictions of an amount's mean and by its density, the other's being `mean` and
        `density`; in place.
        """
        if state.density_weights[1] == 0.0:  # a state of an earlier version
            state.density_weights[:] = state.weights
        if amount(state.model.level, reward.value) >= 0.0:
            arm, x, y = reward
            trusted(kernels.judge)(state.model, state.weights, state.density_weights, arm, x, y, mean, density)

    def learnt(
        self, state: AmountState, reward: Reward, n: int, values: Array, kept: Callable[[], Iterable[Reward]]
    ) -> AmountState:
        """State after the n-th amount; `kept` are all that can still be learnt, this one too, beside those values."""
        status = state.model.level[STATUS]
        if status == OFF or (status == WAITING and n < ENOUGH):
            return state
        if status == WAITING:
            rewards = list(kept()) or [reward]  # the others have just faded
            amounts = np.array([each.value for each in rewards])
            side = side_of(amounts, values)
            weight = TRUST if len(values) == 0 and are_of_many_sizes(amounts) else EVEN
            state = self.init(OFF) if side is None else self._begun(rewards, *side, weight)
        elif amount(state.model.level, reward.value) >= 0.0:
            state = self._followed(state, reward, n)
        else:
            state = self.init(OFF)
        whole = trusted(kernels.is_finite)(state.model, state.weights, state.density_weights)
        return state if whole else self.init(OFF)

    def _begun(self, rewards: list[Reward], origin: float, unit: float, weight: float) -> AmountState:
        """State of a model that has learnt some amounts at once, and has that weight beside the other."""
        state = self.init(ON)
        state.model.level[ORIGIN], state.model.level[AMOUNT_UNIT] = origin, unit
        state.weights[:] = state.density_weights[:] = 1.0 - weight, weight
        kernels.fit_all(state.model)
        for reward in rewards:
            state = self._taken_in(state, reward)
        for _ in range(PASSES):
            for arm, rows in enumerate(state.data):
                kernels.visit(state.model, rows, arm, len(rows), 0)
            self._find_shape(state)
            kernels.share(state.model, HYPERPRIOR)
        return state

    def _followed(self, state: AmountState, reward: Reward, n: int) -> AmountState:
        state = self._taken_in(state, reward)
        model, a = state.model, reward.arm
        rows = int(model.sizes[a, columns_of.ROWS])
        if rows > YOUNG and rows & (rows - 1) == 0 and rows == model.sizes[a, columns_of.NEXT]:
            kernels.recount(model, state.data[a], a)
        for _ in range(2 if rows <= YOUNG else 1):
            trusted(kernels.visit)(model, state.data[a], a, self.moves, n * self.moves)
        if is_due(n):
            self._find_shape(state)
        if n <= YOUNG or n % (1 + self.n_arms * (self.context_dim + 1) ** 3 // WORK) == 0:
            trusted(kernels.share)(model, HYPERPRIOR)
        return state

    def _taken_in(self, state: AmountState, reward: Reward) -> AmountState:
        a, model = reward.arm, state.model
        if not self.fixed_units:
            observe(model.columns, reward.context, model.fits)
        data = with_room(state.data, model.sizes, a, self.memory)
        value = reward.value
        if amount(model.level, value) <= 0.0:
            value = float(model.level[ORIGIN] + NEXT_TO_NOTHING * model.level[AMOUNT_UNIT])
        trusted(kernels.add_reward)(model, data[a], a, reward.context, value)
        return state._replace(data=data)

    def _find_shape(self, state: AmountState) -> None:
        """Fit the shape to the latest amounts of every arm, given the lines."""
        model, D = state.model, self.context_dim + 1
        logs, counts = [], np.zeros(self.n_arms, np.int64)
        for arm, rows in enumerate(state.data):
            latest = rows[: model.sizes[arm, columns_of.ROWS]][-LOOKED_AT:]
            counts[arm] = len(latest)
            logs.append(np.log(amount(model.level, latest[:, D])) - latest[:, :D] @ model.fits[arm, :, D])
        if counts.sum() > 0:
            model.level[GAMMA_SHAPE] = gamma_shape(np.concatenate(logs), counts, D)

    def fade(self, state: AmountState, share: float) -> None:
        """Let only a share of the past remain, also of what models have predicted; in place."""
        if is_on(state):
            forget_sums(state.model, share)
            fade_weights(state.weights, share)
            fade_weights(state.density_weights, share)

    def with_arm(self, state: AmountState) -> AmountState:
        """State with one more arm, which starts from what the arms share."""
        fresh = replace(self, n_arms=self.n_arms + 1).init(int(state.model.level[STATUS]))
        state = with_empty_arm(state, fresh)
        if is_on(state):
            kernels.fit_all(state.model)
        return state

    def draw_means(self, state: AmountState, x: Array, draws: Array, rng: Rng) -> None:
        """Replace draws of every arm's mean amount, (n_draws, n_arms), by this model's where it is drawn."""
        rows = np.flatnonzero(rng.random(len(draws)) < state.weights[1])
        level = state.model.level
        draws[rows] = level[ORIGIN] + level[AMOUNT_UNIT] * self._means(state, x, len(rows), rng)

    def draw_objectives(
        self, state: AmountState, x: Array, objective: Objective, values: Array, shares: Array, draws: Array, rng: Rng
    ) -> None:
        """Replace draws of what every arm's reward is worth likewise, where it is another matter than the mean by the
        weights of densities; shares (n_arms, n_draws, m + 1) of m values and of amounts.
        """
        weights = state.weights if objective == MEAN else state.density_weights
        rows = np.flatnonzero(rng.random(len(draws)) < weights[1])
        level = state.model.level
        means = self._means(state, x, len(rows), rng).T  # arms first, as shares are
        amounts = level[ORIGIN] + level[AMOUNT_UNIT] * means[..., None] * gamma_slices(float(level[GAMMA_SHAPE]))
        slices = np.repeat(shares[:, rows, -1:] / SLICES, SLICES, axis=-1)
        known = np.broadcast_to(values, (*means.shape, len(values)))
        parts = np.concatenate([shares[:, rows, :-1], slices], axis=-1)
        draws[rows] = objective.of_mixture(parts, np.concatenate([known, amounts], axis=-1), 0.0).T

    def draw_slices(self, state: AmountState, x: Array, n_draws: int, rng: Rng) -> tuple[Array, Array]:
        """Values that stand for amounts of all arms, (m,), and posterior draws of their probabilities under this model,
        (n_arms, n_draws, m).
        """
        level = state.model.level
        shape, means = float(level[GAMMA_SHAPE]), self._means(state, x, n_draws, rng).T
        low, high = special.gammaincinv(shape, np.array(ENDS)) / shape * (means.min(), means.max())
        edges = np.geomspace(max(low, high * NEXT_TO_NOTHING), high, 2 * SLICES + 1)
        below = special.gammainc(shape, edges * shape / means[..., None])
        below[..., 0], below[..., -1] = 0.0, 1.0
        values = level[ORIGIN] + level[AMOUNT_UNIT] * np.sqrt(edges[1:] * edges[:-1])
        return np.asarray(values), np.diff(below, axis=-1)

    def draw_densities(self, state: AmountState, x: Array, arm: int, grid: Array, densities: Array, rng: Rng) -> None:
        """Replace draws of the density of an arm's amounts, (n_draws, len(grid)), by the weights of densities."""
        rows = np.flatnonzero(rng.random(len(densities)) < state.density_weights[1])
        level = state.model.level
        means = self._means(state, x, len(rows), rng)[:, arm]
        densities[rows] = gamma_density(amount(level, grid), means[:, None], float(level[GAMMA_SHAPE]))
        densities[rows] /= abs(level[AMOUNT_UNIT])

    def _means(self, state: AmountState, x: Array, n: int, rng: Rng) -> Array:
        means = np.empty((n, self.n_arms))
        kernels.draw_means(state.model, x, means, rng_handle(rng))
        return means

    def _node_means(self, state: AmountState, x: Array, arm: int) -> Array:
        means = np.empty(len(NODES))
        kernels.node_means(state.model, arm, x, means)
        return means

    def probability_between(
        self, state: AmountState, x: Array, arm: int, between: tuple[float, float], base: float
    ) -> float:
        """Predictive probability of an amount between two rewards under both models, the other's being `base`."""
        means, level = self._node_means(state, x, arm), state.model.level
        low, high = (np.maximum(amount(level, y), 0.0) * level[GAMMA_SHAPE] / means for y in between)
        each = np.abs(special.gammainc(level[GAMMA_SHAPE], high) - special.gammainc(level[GAMMA_SHAPE], low))
        other, own = state.density_weights
        return float(other * base + own * (WEIGHTS @ each))

    def predictive(self, state: AmountState, x: Array, arm: int, base: StudentMixture) -> AmountMixture:
        """Posterior predictive distribution of an arm's next amount under both models."""
        level = state.model.level
        return AmountMixture(
            base=base,
            base_weight=float(state.density_weights[0]),
            weights=state.density_weights[1] * WEIGHTS,
            means=self._node_means(state, x, arm),
            shape=float(level[GAMMA_SHAPE]),
            origin=float(level[ORIGIN]),
            unit=float(level[AMOUNT_UNIT]),
        )


def amount(level: Array, y: Array | float) -> Array:
    """Rewards as the amounts they are, in units."""
    return np.asarray((y - level[ORIGIN]) / level[AMOUNT_UNIT])


def side_of(amounts: Sequence[float] | Array, values: Array) -> tuple[float, float] | None:
    """Origin and unit of amounts beside those values, or beside 0 without any: their mean, below 0 where they are below
    the origin.

    The prior's lines go through the unit, and they are lines of means; of many sizes amounts may have a mean ten times
    their geometric mean.  Amounts may be nothing, or have become so where they were counted from elsewhere and back.
    """
    y = np.asarray(amounts)
    nothing = ROUNDING * float(np.abs(y).max())
    lowest, highest = (float(values.min()), float(values.max())) if len(values) > 0 else (0.0, 0.0)
    for origin, sign in ((lowest, 1.0), (highest, -1.0)):
        away = sign * (y - origin)
        if (away >= -nothing).all() and (away > nothing).any():
            some = away[away > nothing]
            most = FAR * float(np.exp(np.log(some).mean()))
            return origin, sign * float(np.minimum(some, most).mean())
    return None


def are_amounts(rewards: Array, on_grid: bool) -> bool:
    """Whether rewards without kinds are amounts: of many sizes, or of several where they are no counts or marks."""
    return are_of_many_sizes(rewards) or (not on_grid and are_of_several_sizes(rewards))


def are_of_many_sizes(rewards: Array) -> bool:
    """Whether all are on one side of 0, and most of them are short beside their mean."""
    return size_ratio(rewards) > math.exp(MANY + DOUBT / math.sqrt(len(rewards)))


def are_of_several_sizes(rewards: Array) -> bool:
    """Whether all are on one side of 0, and the long ones are a multiple of the short ones."""
    return len(rewards) >= SEEN and size_ratio(rewards) > math.exp(SEVERAL)


def size_ratio(rewards: Array) -> float:
    """Upper quartile of the sizes of rewards beside the lower one; 1 where they are on both sides of 0.

    It is 5 where they are exponential, 23 where they are squares of such and 50 where they are gamma of shape 0.3.
    Where a quarter of them is nothing, that will be a kind: 1.
    """
    if side_of(rewards, NO_VALUES) is None:
        return 1.0
    low, high = np.quantile(np.abs(rewards), (0.25, 0.75))
    least = ROUNDING * float(np.abs(rewards).max())
    return float(high / low) if low > least else 1.0


def gamma_slices(shape: float) -> Array:
    """Means of SLICES equally probable slices of the gamma distribution of that shape and of mean 1."""
    edges = special.gammaincinv(shape, np.linspace(0.0, 1.0, SLICES + 1))
    return np.asarray(np.diff(special.gammainc(shape + 1.0, edges)) * SLICES)
