"""Gibbs sampling over the robust model: mixtures with a centre in every arm, scales learned across arms, no units."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from polyarm import special
from polyarm.errors import (
    is_vector,
    refuse_context,
    require,
    require_arm,
    require_context,
    require_contexts,
    require_count,
    require_positive,
    require_reward,
    require_share,
    require_vector,
)
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.failure import backup_of, give_up
from polyarm.inference.gibbs import FIRST_CAPACITY, grown, remaining_share, room_for_reward
from polyarm.inference.migration import memory_fits
from polyarm.inference.robust_checks import mended, migrated, require_hyper, require_robust
from polyarm.inference.slots import doubled_slots, slots_in_order
from polyarm.kernels._jit import RngHandle, plain, rng_handle, trusted
from polyarm.kernels.mixture.records import K_USED, NEXT
from polyarm.kernels.robust import choice, draws, outlook, predict, records, units
from polyarm.kernels.robust import update as kernels
from polyarm.kernels.robust.component import VAR, n_rows
from polyarm.kernels.robust.noise import relative_noise
from polyarm.kernels.robust.records import (
    N_FEATURES,
    N_SHARED,
    Books,
    Features,
    Rewards,
    Shared,
    features_of,
    shared_of,
)
from polyarm.kernels.robust.shared import RATIO_HIGH, RATIO_LOW, set_variances
from polyarm.kernels.robust.units import BEGIN_AGAIN, REFUSED, RESERVOIR
from polyarm.kernels.robust.update import ADD, DONE, FAILED, MOVE_HERE, UNITS, Reward
from polyarm.models import Objective, StudentMixture
from polyarm.models.robust import RobustMixture
from polyarm.renaming import renamed
from polyarm.types import Array, Choice, IntArray, Rng, packed

PER_ARM = ("components", "slots", "sizes", "centres")


class RobustState(NamedTuple):
    """Components and centre of every arm, what the arms share, and each arm's rewards with their labels.

    The layout is that of kernels.robust.records; n_rewards counts the rewards of all arms.
    """

    tables: Array
    labels: IntArray
    sizes: IntArray
    centres: Array
    hyper: Array
    columns: Array
    reservoir: Array
    centre_ratio: Array
    data: tuple[Array, ...]
    seats: tuple[IntArray, ...]
    n_rewards: int
    made_with: str = ""

    @property
    def shared(self) -> Shared:
        """The numbers of `hyper` by name: what is written there is written to the state."""
        return plain(shared_of)(self.hyper)

    @property
    def features(self) -> Features:
        """The rows of `columns` by name."""
        return plain(features_of)(self.columns)

    def counted(self) -> "RobustState":
        """The state with one reward more: `_replace` takes five times as long."""
        return packed(RobustState, (*self[:10], self[10] + 1, self[11]))

    def require_sound(self) -> None:
        """Raise unless every reward sits at a component in use, and all numbers that are read are finite."""
        require_robust(self)

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that grow: components and rewards."""
        return {"tables": (2,), "labels": (2,), "data": (0,), "seats": (0,)}

    @staticmethod
    def added_fields() -> dict[str, int]:
        """Fields that earlier layouts of states did not have."""
        return {"centre_ratio": 5}


def hyperprior_of(model: RobustMixture, fixed_units: bool, half_life: float | None = None, thinning: int = 1) -> Array:
    """The settings as kernels take them, in the order of kernels.robust.records.Hyperprior."""
    shape, rate = model.concentration_prior or (0.0, 0.0)
    pairs = [*model.arm_shape, *model.arm_scale, *model.part_shape, *model.part_scale]
    noise = [model.noise_shape, model.noise_rate_shape, model.noise_rate, model.centre_var, shape, rate]
    flags = [model.shared_centre, model.learned, model.intercept, fixed_units]
    locations = [model.place_shape * model.intercept, model.place_scale]
    window = round(2 * half_life) if half_life is not None else 0  # the mean age of a faded reward is 1.4 half-lives
    wild = [model.wild_share, model.wild_shape, _ratio(model.noise_shape, model.noise_shape + 0.5)]
    tails = [max(window, 0), *wild, _ratio(model.noise_shape, model.wild_shape), thinning]
    centre = [model.centre_shape * model.learns_centre_ratio, model.centre_scale]
    return np.array([*pairs, *noise, *flags, *locations, *tails, *centre], dtype=np.float64)


def _ratio(a: float, b: float) -> float:
    """Gamma(a) / Gamma(b)."""
    return math.exp(math.lgamma(a) - math.lgamma(b))


def with_room_for_component(state: RobustState) -> RobustState:
    """The state with twice the slots for components; new slots carry new labels."""
    return state._replace(tables=grown(state.tables), labels=doubled_slots(state.labels))


@renamed(other_arm_moves="moves_elsewhere")
@dataclass(frozen=True, eq=False)
class RobustEngine:
    """The robust model of all arms, kept by `moves` Gibbs moves in the arm that was rewarded and `other_arm_moves` in
    another arm, taken in turn, half as many once scales and arms are known (kernels.robust.update.is_late); cost does
    not grow with the number of rewards.

    fixed_units   rewards already have scale 1 and median 0 and contexts columns of size 1
    memory        so many rewards of an arm, the latest, can change their component; older ones stay where they are in
                  its sums, and the state stops growing
    half_life     the past of every arm loses half its weight in so many steps of the bandit: sums and counts fade eight
                  times per half-life, for rewards that drift
    thinning      steps between draws of what the arms share, once there are 64 rewards: several such engines beside
                  each other (chains) each do a part of the work

    >>> import numpy as np
    >>> from polyarm import RobustMixture
    >>> engine, rng = RobustEngine(RobustMixture(n_arms=2, context_dim=1)), np.random.default_rng(0)
    >>> state = engine.update(engine.init(), np.ones(1), 0, 3.0, rng)
    >>> engine.moments(state, np.ones(1)).shape
    (2, 2)
    """

    model: RobustMixture
    moves: int = 32
    other_arm_moves: int = 12
    fixed_units: bool = False
    memory: int | None = None
    half_life: float | None = None
    thinning: int = 1
    added_settings: ClassVar = ("thinning",)
    _hyperprior: Array = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.moves, "moves", at_least=0)
        require_count(self.other_arm_moves, "other_arm_moves", at_least=0)
        if self.memory is not None:
            require_count(self.memory, "memory")
        if self.half_life is not None:
            require_positive(self.half_life, "half_life")
        require_count(self.thinning, "thinning")
        settings = hyperprior_of(self.model, self.fixed_units, self.half_life, self.thinning)
        object.__setattr__(self, "_hyperprior", settings)

    @cached_property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.model.n_arms

    @cached_property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.model.context_dim

    def init(self) -> RobustState:
        """State before any reward: shared values at the middle of their priors, in units of 1."""
        n, D, model = self.n_arms, self.model.n_features, self.model
        first = min(FIRST_CAPACITY, self.memory or FIRST_CAPACITY)
        hyper, columns = np.zeros(N_SHARED), np.zeros((N_FEATURES, D))
        shared, features = plain(shared_of)(hyper), plain(features_of)(columns)
        shared.arm_var[:] = np.divide(model.arm_scale, model.arm_shape)
        shared.part_ratio[:] = model.part_ratio
        shared.noise_scale = model.noise_rate_shape / model.noise_rate
        shape, rate = model.concentration_prior or (model.concentration, 1.0)
        shared.concentration = shape / rate
        shared.reward_square = 1.0
        if model.intercept:
            shared.location_var = model.place_scale / (model.place_shape or 1.0)
        features.unit[:] = 1.0
        features.precision[: self.context_dim] = float(self.fixed_units)
        plain(set_variances)(shared, features, plain(records.hyperprior_of)(self._hyperprior))
        ratio = model.centre_var
        if model.learns_centre_ratio:
            ratio = min(max(model.centre_scale / model.centre_shape, RATIO_LOW), RATIO_HIGH)
        centres = np.zeros((n, D, D + 2))
        centres[:, range(D), range(D)] = np.sqrt(1 / features.arm_var)  # no reward has told of a centre
        return RobustState(
            tables=np.zeros((n, plain(n_rows)(D), FIRST_CAPACITY)),
            labels=np.tile(np.arange(FIRST_CAPACITY), (n, 2, 1)),
            sizes=np.zeros((n, 3), np.int64),
            centres=centres,
            hyper=hyper,
            columns=columns,
            reservoir=np.zeros(RESERVOIR),
            centre_ratio=np.array([ratio]),
            data=tuple(np.zeros((first, D + 1)) for _ in range(n)),
            seats=tuple(np.zeros(first, np.int64) for _ in range(n)),
            n_rewards=0,
            made_with=self._door.settings(self),
        )

    def with_arm(self, state: RobustState) -> "tuple[RobustEngine, RobustState]":
        """The engine and the state with one more arm, which starts from the arms' common centre and scales."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, model=replace(self.model, n_arms=self.n_arms + 1))
        fresh = engine.init()
        while fresh.tables.shape[2] < state.tables.shape[2]:
            fresh = with_room_for_component(fresh)
        wider = with_empty_arm(state, fresh)
        books = engine._books(wider)
        kernels.rebuild(books._replace(**{name: getattr(books, name)[-1:] for name in PER_ARM}))
        return engine, wider

    def require_fit(self, state: RobustState) -> None:
        """Raise unless the shared values are in their ranges, and those that are not learned are the model's."""
        require_hyper(state, self.init().hyper, self.model)

    def must_migrate(self, state: RobustState) -> bool:
        """Whether the state keeps its rewards in another way than this engine."""
        return not all(memory_fits(*pair, self.memory) for pair in zip(state.seats, state.sizes, strict=True))

    def migrated(self, state: RobustState) -> RobustState:
        """The state of an engine with another memory; rewards beyond the memory are kept in their components."""
        return migrated(state, self.memory)

    def update(self, state: RobustState, context: Array, arm: int, reward: float, rng: Rng) -> RobustState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        state = self._with_reward(state, x, require_arm(arm, self.n_arms), require_reward(reward), rng_handle(rng))
        share = remaining_share(state.n_rewards, self.half_life) if self.half_life is not None else 1.0
        if share < 1.0:
            self.fade(state, share)
        return state

    def _with_reward(
        self, state: RobustState, context: Array, arm: int, reward: float, handle: RngHandle
    ) -> RobustState:
        """State after a reward that was looked at, by this engine or by one around it, before the past fades."""
        if state is not self._door.last:
            state = self._door.admit(self, state)
        self._door.last = NOTHING
        given, backup = state, backup_of(state, reward)
        other = state.n_rewards % self.n_arms
        if other == arm:
            other = (other + 1) % self.n_arms
        state, finite = self._move(state, (arm, other), context, reward, UNITS, handle)
        if not finite and not mended(state, self.init(), self._books(state)):
            give_up(given, backup, reward)
        self._door.last = state = self._counted(state)
        return state

    def _move(
        self, state: RobustState, arms: tuple[int, int], context: Array, reward: float, stage: int, handle: RngHandle
    ) -> tuple[RobustState, bool]:
        """State after an update from a stage on, and whether its numbers are finite."""
        (a, b), left = arms, self.moves
        while True:
            data, seats = state.data, state.seats
            given = packed(Reward, (a, b, context, reward, data[a], seats[a], data[b], seats[b]))
            n_moves = (left, self.other_arm_moves)
            stage, left = trusted(kernels.update)(self._books(state), given, stage, n_moves, handle)
            if stage in (DONE, FAILED):
                return state, stage == DONE
            if stage == REFUSED:
                refuse_context(context, self.context_dim)
            if stage == UNITS:
                state = self._with_room(state, a)
            elif stage == ADD:
                self._move_origin(state)
            elif left > 0:
                state = with_room_for_component(state)

    def _books(self, state: RobustState) -> Books:
        """The state's arrays as kernels take them, with this engine's settings; those of the last state are kept."""
        owner, books = self._door.books  # perhaps with the settings of a chain that shares the door
        if owner is state and books.hyperprior is self._hyperprior:
            return books  # type: ignore[no-any-return]
        books = Books(*state[:8], self._hyperprior)
        self._door.books = state, books
        return books

    def _counted(self, state: RobustState) -> RobustState:
        """The state with one reward more, which has the same arrays."""
        (owner, books), counted = self._door.books, state.counted()
        if owner is state:
            self._door.books = counted, books
        return counted

    def _with_room(self, state: RobustState, arm: int) -> RobustState:
        """The state with a row for one more reward of an arm, and slots for two more components."""
        if state.sizes.item(arm, NEXT) == len(state.seats[arm]):
            data, seats = room_for_reward(state.data, state.seats, state.sizes, arm, self.memory)
            state = state._replace(data=data, seats=seats)
        if state.sizes.item(arm, K_USED) + 2 > state.tables.shape[2]:
            state = with_room_for_component(state)
        return state

    def _move_origin(self, state: RobustState) -> None:
        """Count rewards and columns from where they now are, and begin again where the scale of rewards is another."""
        books = self._books(state)
        if self.model.intercept:
            shift = np.zeros(self.model.n_features)
            units.recentre(books, shift)
            for arm, (K, n, _) in enumerate(state.sizes):
                rewards = Rewards(state.data[arm], state.seats[arm])
                kernels.count_from(state.tables[arm], state.labels[arm, 0], K, rewards, n, shift)
        if state.shared.scaled == BEGIN_AGAIN:
            units.begin_again(books, np.array(self.model.part_ratio))
        state.shared.off_centre = 0.0
        kernels.rebuild(books)

    def fade(self, state: RobustState, share: float) -> None:
        """Let only a share of every arm's past remain; in place."""
        if state is not self._door.last:
            self._door.check(self, state)
        require_share(share, "share")
        kernels.forget(self._books(state), share)

    def random_moves(self, state: RobustState, arm: int, n_moves: int, rng: Rng) -> RobustState:
        """State after that many Gibbs moves of uniformly drawn rewards of an arm, at most four for each."""
        require_arm(arm, self.n_arms)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        self._door.last = state = self._random_moves(state, arm, n_moves, rng)
        return state

    def _random_moves(self, state: RobustState, arm: int, n_moves: int, rng: Rng) -> RobustState:
        handle, rewards = rng_handle(rng), Rewards(state.data[arm], state.seats[arm])
        left = kernels.random_moves(self._books(state), rewards, arm, n_moves, handle)
        while left > 0:
            state = with_room_for_component(state)
            left = kernels.random_moves(self._books(state), rewards, arm, left, handle)
        return state

    def refresh(self, state: RobustState, rng: Rng) -> RobustState:
        """State after another round of moves in every arm and of draws of all that is shared."""
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        nowhere = np.zeros(self.context_dim)
        for arm in range(self.n_arms):
            state, finite = self._move(state, (arm, arm), nowhere, 0.0, MOVE_HERE, rng_handle(rng))
            if not finite:
                mended(state, self.init(), self._books(state))
        self._door.last = state
        return state

    def draw_means(self, state: RobustState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Joint posterior draws of the arms' mean rewards given the state, (n_draws, n_arms): the seating, noise and
        scales are those of the state, the arms' common centre is drawn with their means.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((require_count(n_draws, "n_draws"), self.n_arms))
        trusted(predict.draw_means)(self._books(state), x, out, rng_handle(rng))
        return out

    def moments(self, state: RobustState, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward given the state, (2, n_arms).

        The arms' common centre is integrated out, as slopes and centres are; seating, noise and scales are those of the
        state.  Where some rewards are equal, which a continuous model takes for certainty, an arm's standard deviation
        is at least that of a mean of n rewards with the spread of all arms' rewards.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        out = np.empty((2, self.n_arms))
        trusted(predict.moments)(self._books(state), x, out)
        return out

    def outlook(self, state: RobustState, context: Array) -> tuple[Array, Array]:
        """What the exploration rule sees: `moments`, standard deviations being 1 + 3 / (n + 3) times as large for an
        arm with n rewards, because one state claims to know more than it does (kernels.robust.outlook); and the
        noise variance of every arm's rewards beside a typical arm's, as far as these tell, (n_arms,).
        """
        out, noise = np.empty((2, self.n_arms)), np.empty(self.n_arms)
        self._look(state, require_context(context, self.context_dim), out, noise)
        return out, noise

    def _look(self, state: RobustState, context: Array, out: Array, noise: Array) -> None:
        """Write the outlook in a context that has the layout that kernels take."""
        if state is not self._door.last:
            self._door.check(self, state)
        trusted(outlook.outlook)(self._books(state), context, out, noise)

    def choose_by_information(self, state: RobustState, context: Array, n_draws: int, power: float, rng: Rng) -> Choice:
        """An arm by information-directed sampling with this outlook, in one call (kernels.information)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = context if is_vector(context, self.context_dim) else require_context(context, self.context_dim)
        n, mix, scores = require_count(n_draws, "n_draws"), np.empty(self.n_arms), np.empty(self.n_arms)
        arm = trusted(choice.choose)(self._books(state), x, n, float(power), mix, scores, rng_handle(rng))
        if arm == REFUSED:
            refuse_context(context, self.context_dim)
        return packed(Choice, (arm, scores, mix))

    def moments_many(self, state: RobustState, contexts: Array) -> Array:
        """The same in many contexts, (n, 2, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_contexts(contexts, self.context_dim)
        out = np.empty((len(x), 2, self.n_arms))
        trusted(predict.moments_many)(self._books(state), x, out)
        return out

    def outlook_many(self, state: RobustState, contexts: Array) -> tuple[Array, Array]:
        """`outlook` in many contexts: moments (n, 2, n_arms), noise (n_arms,)."""
        noise = np.empty(self.n_arms)
        moments = self.moments_many(state, contexts)
        outlook.widen(self._books(state), moments)
        relative_noise(state.tables, state.sizes, state.centres.shape[1], noise)
        return moments, noise

    def expected_means(self, state: RobustState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward given the state, (n_arms,)."""
        return np.asarray(self.moments(state, context)[0])

    def n_components(self, state: RobustState) -> IntArray:
        """Components in use, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        return state.sizes[:, 0].copy()

    def assignments(self, state: RobustState, arm: int) -> IntArray:
        """Component of each of an arm's rewards that can still move, oldest first, numbered 0, 1, ... by slot."""
        if state is not self._door.last:
            self._door.check(self, state)
        require_arm(arm, self.n_arms)
        return slots_in_order(state.labels[arm], state.sizes[arm], state.seats[arm])

    def predictive(self, state: RobustState, context: Array, arm: int) -> StudentMixture:
        """Posterior predictive distribution of an arm's next reward in this context, given the state.

        Components in use are normal; a new one is a Student-t, or now and then a wilder one, with the variances of its
        slopes and noise added.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        n = int(state.sizes[a, 0])
        parts = np.empty((3, n + 1))
        trusted(predict.describe_components)(self._books(state), x, a, parts)
        model = self.model
        shapes = np.array([model.noise_shape, model.wild_shape])[: 2 if model.wild_share else 1]
        counts, location, variance = (np.append(part, np.full(len(shapes) - 1, part[n])) for part in parts)
        if model.wild_share:
            counts[n:] *= 1 - model.wild_share, model.wild_share
        noise = np.append(state.tables[a, VAR, :n], state.shared.noise_scale / shapes)
        dof = np.append(np.full(n, np.inf), 2 * shapes)
        return StudentMixture(counts / counts.sum(), dof, location + state.shared.origin, np.sqrt(noise + variance))

    def probability_between(self, state: RobustState, context: Array, arm: int, low: float, high: float) -> float:
        """What `predictive` says of an arm's next reward to lie between two values, in a fraction of the time."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        n, model = int(state.sizes[a, 0]), self.model
        parts = np.empty((3, n + 1))
        trusted(predict.describe_components)(self._books(state), x, a, parts)
        counts, location, variance = parts
        origin, noise = float(state.shared.origin), float(state.shared.noise_scale)
        sd = np.sqrt(state.tables[a, VAR, :n] + variance[:n])
        normal = special.ndtr((high - origin - location[:n]) / sd) - special.ndtr((low - origin - location[:n]) / sd)
        total, at = float(counts[:n] @ normal), origin + float(location[n])
        for share, shape in ((1.0 - model.wild_share, model.noise_shape), (model.wild_share, model.wild_shape)):
            if share > 0:
                scale = math.sqrt(float(variance[n]) + noise / shape)
                inside = special.stdtr(2 * shape, (high - at) / scale) - special.stdtr(2 * shape, (low - at) / scale)
                total += share * float(counts[n]) * float(inside)
        return total / float(counts.sum())

    def forecast(self, state: RobustState, context: Array, arm: int, reward: float) -> tuple[float, float]:
        """What `moments` says of an arm's mean and `predictive` of the density at a reward, sooner than either."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a, y = require_arm(arm, self.n_arms), require_reward(reward)
        mean, density = trusted(predict.forecast)(self._books(state), x, a, y)
        return float(mean), float(density)

    def draw_densities(
        self, state: RobustState, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng
    ) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid))."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        points = require_vector(grid, "grid")
        out = np.zeros((require_count(n_draws, "n_draws"), len(points)))
        draws.draw_density(self._books(state), a, x, points, out, rng_handle(rng))
        return out

    def draw_objectives(
        self, state: RobustState, context: Array, objective: Objective, n_draws: int, rng: Rng
    ) -> Array:
        """Posterior draws of what every arm's reward is worth given the state, (n_draws, n_arms)."""
        alone = np.ones((self.n_arms, require_count(n_draws, "n_draws"), 1))
        return self.draw_objectives_beside(state, context, objective, np.empty(0), alone, rng)

    def draw_objectives_beside(
        self, state: RobustState, context: Array, objective: Objective, values: Array, shares: Array, rng: Rng
    ) -> Array:
        """The same for arms that pay some values (m,) too, with shares (n_arms, n_draws, m + 1), the model's last."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_context(context, self.context_dim)
        wanted = (self.n_arms, len(values) + 1)
        require((len(shares), *shares.shape[2:]) == wanted, "shares", "one of every arm and value", shares.shape)
        out = np.empty((shares.shape[1], self.n_arms))
        draws.draw_worths(self._books(state), x, objective.functional, values, shares, out, rng_handle(rng))
        return out
