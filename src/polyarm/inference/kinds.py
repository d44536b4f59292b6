"""Rewards of every kind: single values that come again and again beside the robust model of all other rewards."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from polyarm.errors import (
    NumericalFailure,
    is_vector,
    require,
    require_arm,
    require_context,
    require_contexts,
    require_count,
    require_reward,
    require_vector,
)
from polyarm.inference.amounts import ENOUGH, AmountModel, are_amounts
from polyarm.inference.amounts import is_on as is_amounts_on
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.bases import (
    BASE,
    LONGEST,
    NO_BASES,
    add_to_moments,
    drawn_bases,
    find_bases,
    has_bases,
    restored,
    same_bases,
    unseen,
    with_one_more,
)
from polyarm.inference.bases import LOOKS as BASE_LOOKS
from polyarm.inference.bases import YOUNG as YOUNG_ARM
from polyarm.inference.chains import Chains, ChainsEngine, are_alive, chains_of
from polyarm.inference.columns import observe
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.failure import LARGE, backup_of, put_back
from polyarm.inference.gibbs import FIRST_CAPACITY, remaining_share, with_room
from polyarm.inference.kinds_checks import migrated, rows_fit
from polyarm.inference.kinds_found import CONSTANT, FEW, LEAST, MIXTURE, UNKNOWN, Found, find_kinds, is_kind
from polyarm.inference.kinds_state import (
    KindsState,
    are_clicks,
    counted,
    counts_seen,
    in_turn,
    is_known,
    is_parted,
    is_plain,
    some_rewards,
    values_seen,
)
from polyarm.inference.links import LinkModels, Reward, is_on
from polyarm.inference.links_grid import OFF
from polyarm.inference.migration import forget_sums
from polyarm.inference.moments import draw_arm
from polyarm.inference.robust import RobustEngine
from polyarm.inference.rounding import SAME, snapped
from polyarm.inference.windfalls import (
    NO_LIMIT,
    YOUNG,
    Limit,
    Seen,
    are_windfalls,
    find_limit,
    is_opposite,
    is_windfall,
    residuals_of,
    still_parts,
)
from polyarm.inference.windfalls import is_looked_at as may_be_parted
from polyarm.kernels import amounts, links, stick_shares
from polyarm.kernels import sticks as kernels
from polyarm.kernels import tally as tallies
from polyarm.kernels._jit import rng_handle, trusted
from polyarm.kernels.links import STATUS, STEP
from polyarm.kernels.mixture.records import NEXT, ROWS
from polyarm.kernels.sticks import Sticks
from polyarm.models import Objective, StudentMixture
from polyarm.models.amounts import AmountMixture
from polyarm.models.jumps import JumpMixture
from polyarm.models.objectives import ProbabilityAbove
from polyarm.models.sticks import LogisticSticks
from polyarm.types import Array, Choice, IntArray, Rng

LOOKS = 64  # the values are looked at in every step up to here, then at powers of two
LEAST_TIED = 2.0  # rewards of two values that say that arms may have bases of their own
PASSES = 5  # over all rewards when the kinds change


def is_looked_at(n: int) -> bool:
    """Whether rewards without kinds may turn out to be amounts after n of them."""
    return n >= ENOUGH and n & (n - 1) == 0


@dataclass(frozen=True, eq=False)
class KindsEngine:
    """The robust model of all arms for rewards without kinds, bit for bit; with kinds, sticks that tell which value a
    reward takes, and the robust model of the other rewards.

    A kind is a value that holds at least 30 % of the rewards so far and at least 4 of them, or any value seen twice
    while at most three different ones were seen; while nothing but 0 and 1 was seen, they are all that there is.  When
    the kinds change, everything is learnt anew from the rewards that can still move: all of them, unless `rest` has a
    memory or a half-life.
    Where the rest lies on one side of a kind, as what was paid does, or rewards without kinds are of many sizes on one
    side of 0, a model of amounts beside the robust one predicts its mean too (see amounts).
    Without kinds, a few rewards far beyond all others on one side are told apart from them as if they were of a kind of
    their own: their probability and their amount depend on the context (see windfalls).
    Where every arm takes a value of its own again and again, as the cost of an offer that nobody took, rewards are
    counted from their arm's value (see bases).
    Beside all of this, rewards on a grid may be counts or marks: models of these, with a link, predict too, and means,
    draws and predictive distributions are those of all models, weighted by how well each has predicted (see links).
    rest     the engine of the robust model, with its memory and half-life, which hold for the sticks too
    sticks   prior of the sticks
    moves    rewards of the played arm whose part in the sticks is drawn again after a reward, and half as many
             of another arm
    n_chains chains of the robust model's sampler that learn beside each other while arms are young (see chains)
    windfalls whether rewards far out on one side are told apart
    bases    whether rewards are counted from values that arms have of their own
    """

    rest: RobustEngine
    sticks: LogisticSticks | None = None
    moves: int = 32
    n_chains: int = 1
    windfalls: bool = True
    bases: bool = True
    added_settings: ClassVar = ("n_chains", "windfalls", "bases")
    _hyperprior: Array = field(init=False, repr=False)
    _chains: ChainsEngine = field(init=False, repr=False)
    _quick: ChainsEngine = field(init=False, repr=False)
    _links: LinkModels = field(init=False, repr=False)
    _amounts: AmountModel = field(init=False, repr=False)
    _alike: Array = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.moves, "moves", at_least=0)
        require_count(self.n_chains, "n_chains")
        require(isinstance(self.windfalls, bool), "windfalls", "True or False", self.windfalls)
        require(isinstance(self.bases, bool), "bases", "True or False", self.bases)
        prior = self.sticks or LogisticSticks(self.n_arms, self.context_dim)
        object.__setattr__(
            self,
            "_hyperprior",
            np.array([*prior.arm_shape, *prior.arm_scale, *prior.wide, *prior.most], dtype=np.float64),
        )
        own = ChainsEngine(self.rest, self.n_chains)  # two engines of the same chains
        object.__setattr__(self, "_chains", own)
        quick = replace(self.rest, moves=4, other_arm_moves=0)
        object.__setattr__(self, "_quick", ChainsEngine(quick, self.n_chains, own))
        beside = (self.n_arms, self.context_dim, self.moves, self.rest.memory, self.rest.fixed_units)
        object.__setattr__(self, "_links", LinkModels(*beside))
        object.__setattr__(self, "_amounts", AmountModel(*beside))
        object.__setattr__(self, "_alike", np.ones(self.n_arms))  # asked for at every choice

    @cached_property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.rest.n_arms

    @cached_property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.rest.context_dim

    def init(self) -> KindsState:
        """State before any reward."""
        D = self.context_dim + 1
        columns = np.zeros((6, D))
        columns[kernels.UNIT] = 1.0
        return KindsState(
            rest=self.rest.init(),
            sticks=self._sticks(0, columns),
            data=self._no_rewards(0),
            values=np.zeros(0),
            rest_is=MIXTURE,
            constant=0.0,
            tally=np.zeros((tallies.SLOTS, 2)),
            seen=np.zeros(3),
            n_rewards=0,
            links=self._links.init(),
            amounts=self._amounts.init(),
            other_chains=self._chains.others(),
            limit=np.array(NO_LIMIT),
            bases=NO_BASES.copy(),
            made_with=self._door.settings(self),
        )

    def must_migrate(self, state: KindsState) -> bool:
        """Whether the state keeps its rewards in another way than this engine; the rest sees to its own."""
        return not rows_fit(state, self.rest.memory)

    def migrated(self, state: KindsState) -> KindsState:
        """The state of an engine with another memory; rewards beyond the memory stay in the sticks' sums."""
        return migrated(state, self.rest.memory)

    def _sticks(self, m: int, columns: Array) -> Sticks:
        A, D = self.n_arms, self.context_dim + 1
        sums = np.zeros((A, m, 1 + 2 * D + D * (D + 1)))
        shape, scale = self._hyperprior[:4].reshape(2, 2)
        shared, guess = np.zeros((m, 2, D)), np.zeros((m, 2, D))
        shared[:, 1, :-1], shared[:, 1, -1] = scale / shape
        guess[:, 1] = 1.0  # what a specialist takes; the prior of what is learnt is far wider: decision 50
        sizes = np.zeros((A, 2), np.int64)
        return Sticks(sums, sums.copy(), np.zeros((A, m, D, D + 2)), shared, guess, columns, sizes)

    def _no_rewards(self, m: int) -> tuple[Array, ...]:
        rows = min(FIRST_CAPACITY, self.rest.memory or FIRST_CAPACITY) if m > 0 else 0
        return tuple(np.zeros((rows, self.context_dim + 3 + 2 * m)) for _ in range(self.n_arms))

    def with_arm(self, state: KindsState) -> "tuple[KindsEngine, KindsState]":
        """The engine and the state with one more arm, which starts from what the arms share."""
        if state is not self._door.last:
            self._door.check(self, state)
        rest_engine, rest, others = self._chains.with_arm(state.rest, state.other_chains)
        sticks = replace(self.sticks, n_arms=rest_engine.n_arms) if self.sticks is not None else None
        engine = replace(self, rest=rest_engine, sticks=sticks)
        m = len(state.values)
        wider = with_empty_arm(state.sticks, engine._sticks(m, state.sticks.columns))
        kernels.fit_all(wider)
        made_with = engine._door.settings(engine)
        data = (*state.data, engine._no_rewards(m)[-1])
        links, amounts = self._links.with_arm(state.links), self._amounts.with_arm(state.amounts)
        bases = with_one_more(state.bases)
        state = state._replace(links=links, amounts=amounts, bases=bases, made_with=made_with)
        return engine, state._replace(rest=rest, other_chains=others, sticks=wider, data=data)

    def update(self, state: KindsState, context: Array, arm: int, reward: float, rng: Rng) -> KindsState:
        """State after one reward."""
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        handle = rng_handle(rng)  # a wrong generator is refused before anything changes
        door = self._door
        n = state.n_rewards + 1 if state is door.last is door.steady else 0
        usual = n & (n - 1) and not may_be_parted(n)
        if usual and -LARGE < y < LARGE and is_vector(context, self.context_dim):
            door.last = NOTHING
            rest = self.rest._with_reward(state.rest, context, a, y, handle)
            trusted(tallies.count_value)(state.tally, state.seen, y)
            door.last = door.steady = state = state.after(rest, n)
            return state
        x = require_context(context, self.context_dim)
        if state is not door.last:
            state = door.admit(self, state)
        door.last = NOTHING
        backup = backup_of(state, y)
        try:
            door.last = state = self._with_counted(state, Reward(a, x, y), rng)
        except NumericalFailure:
            if backup is not None:
                put_back(state, backup)
            raise
        door.steady = state if self._is_steady(state) else NOTHING
        return state

    def _is_steady(self, state: KindsState) -> bool:
        """Whether the mixture alone learns from the next reward, unless it is one at which rewards are looked at."""
        off_grid = bool(state.links.models.grid[STATUS] == OFF)
        alone = not are_alive(state.rest, state.other_chains)
        plain = is_plain(state) and not has_bases(state.bases)
        return self.rest.half_life is None and off_grid and state.n_rewards >= LOOKS and alone and plain

    def _with_counted(self, state: KindsState, reward: Reward, rng: Rng) -> KindsState:
        """State that has learnt a reward, counted from its arm's base where arms have bases of their own."""
        if self.bases and self._must_look_at_bases(state, reward):
            rewards = self._uncounted(state)
            learnt = np.array([len(values) > 0 for _, values in rewards])
            contexts, values = rewards[reward.arm]
            rewards[reward.arm] = np.vstack([contexts, reward.context]), np.append(values, reward.value)
            bases = find_bases([values for _, values in rewards], state.bases)
            if not same_bases(bases, state.bases, learnt):
                return self._counted_anew(state, bases, rewards, rng)
            state = state._replace(bases=bases)
        return self._with_reward(state, counted(state, reward), rng)

    def _must_look_at_bases(self, state: KindsState, reward: Reward) -> bool:
        """Whether arms may have other bases, or none any more, with a reward."""
        n = state.n_rewards + 1
        if has_bases(state.bases):
            base, spread = state.bases[:, reward.arm]
            sizes = state.sticks.sizes if len(state.values) > 0 else state.rest.sizes[:, ROWS:]
            young = sizes[reward.arm, 0] < YOUNG_ARM
            return bool(n in BASE_LOOKS or (young and (reward.value != base or spread > 0.0)))
        if n not in BASE_LOOKS or is_parted(state) or are_clicks(state):
            return False
        return bool((counts_seen(state)[:, tallies.COUNT] >= LEAST_TIED).sum() >= 2)

    def _uncounted(self, state: KindsState) -> list[tuple[Array, Array]]:
        """Contexts and values of every arm's rewards that can still move, oldest first, counted from 0."""
        rewards = [self._rewards(state, arm) for arm in range(self.n_arms)]
        if not has_bases(state.bases):
            return rewards
        return [(x, restored(y, base, state.bases)) for (x, y), base in zip(rewards, state.bases[BASE], strict=True)]

    def _counted_anew(
        self, state: KindsState, bases: Array, rewards: list[tuple[Array, Array]], rng: Rng
    ) -> KindsState:
        """State that has learnt the latest of these rewards, counted from these bases, and nothing else."""
        n = state.n_rewards + 1
        state = self.init()._replace(bases=bases)
        for each in in_turn(rewards)[-LONGEST:]:
            state = self._with_reward(state, counted(state, each), rng)
        return state._replace(n_rewards=n)

    def _with_reward(self, state: KindsState, reward: Reward, rng: Rng) -> KindsState:
        if is_on(state.links):
            self._links.judge(state.links, reward, self._probability(state, reward))
        on = is_amounts_on(state.amounts)
        if on and not is_parted(state) and not is_kind(state.values, reward.value):
            mean, density = self._chains.forecast(chains_of(state), reward.context, reward.arm, reward.value)
            self._amounts.judge(state.amounts, reward, mean, density)
        known = state.values
        state = self._with_own(state, reward, rng)
        if len(state.values) > 0 or len(known) > 0 or on or is_looked_at(state.n_rewards):
            state = self._with_amounts(state, reward, known)
        if is_parted(state) and not is_amounts_on(state.amounts):  # no model of them: the mixture takes all again
            state = self._learnt_anew(state, self._kept(state), Found((), MIXTURE, 0.0), rng)
        if state.links.models.grid[STATUS] != OFF:
            many = bool(state.seen[tallies.USED] > FEW or state.seen[tallies.LOST] > 0)
            kept = partial(self._kept, state)
            state = state._replace(links=self._links.learnt(state.links, reward, state.n_rewards, many, kept))
        return self._faded(state)

    def _with_amounts(self, state: KindsState, reward: Reward, known: Array) -> KindsState:
        """State whose model of amounts has learnt a reward, or begins anew with other kinds than those known."""
        values = state.values
        if values is not known or state.rest_is != MIXTURE:
            state = state._replace(amounts=self._amounts.init())
        waits = is_parted(state) and not is_amounts_on(state.amounts)
        if state.rest_is != MIXTURE or (is_known(values, state.limit, reward.value) and not waits):
            return state
        if len(values) == 0 and not is_amounts_on(state.amounts):
            on_grid = bool(state.links.models.grid[STATUS] != OFF)
            if not are_amounts(some_rewards(state.rest), on_grid):
                return state
        kept, n = partial(self._kept_amounts, state), state.rest.n_rewards
        if not is_parted(state):
            return state._replace(amounts=self._amounts.learnt(state.amounts, reward, n, values, kept))
        learnt = self._amounts.learnt(state.amounts, reward, max(state.n_rewards - n, ENOUGH), values, kept)
        if is_amounts_on(learnt):
            learnt.weights[:] = learnt.density_weights[:] = 0.0, 1.0
        return state._replace(amounts=learnt)

    def _kept_amounts(self, state: KindsState) -> list[Reward]:
        return [reward for reward in self._kept(state) if not is_known(state.values, state.limit, reward.value)]

    def _probability(self, state: KindsState, reward: Reward) -> float:
        """Predictive probability of the cell of the grid around a reward, without models of counts and marks."""
        a, x, y = reward
        half = 0.5 * float(state.links.models.grid[STEP])
        found = float(abs(y - state.constant) < half)
        if state.rest_is != CONSTANT:
            found = self._chains.probability_between(chains_of(state), x, a, y - half, y + half)
            if is_amounts_on(state.amounts):
                found = self._amounts.probability_between(state.amounts, x, a, (y - half, y + half), found)
        if len(state.values) == 0:
            return found
        shares = self._expected_shares(state, x, a)
        if is_parted(state):
            bulk = self._chains.probability_between(chains_of(state), x, a, y - half, y + half)
            return float(shares[0] * bulk + shares[1] * found)
        return float(shares[:-1] @ (np.abs(state.values - y) < half) + shares[-1] * found)

    def _expected_shares(self, state: KindsState, x: Array, arm: int) -> Array:
        """Expected probabilities of an arm's kinds, that of the rest last."""
        shares = np.ones(len(state.values) + 1)
        if len(state.values) > 0:
            stick_shares.expected_shares(state.sticks, x, arm, shares)
        return shares

    def _with_own(self, state: KindsState, reward: Reward, rng: Rng) -> KindsState:
        """State whose kinds and rest have learnt a reward."""
        a, x, y = reward
        trusted(tallies.count_value)(state.tally, state.seen, y)
        n = state.n_rewards + 1
        found = self._found(state, n, reward)
        if found is not None:
            if set(found.values) != set(state.values) or found.limit != tuple(state.limit):
                return self._rebuilt(state._replace(n_rewards=n), found, reward, rng)
            state = self._with_rest(state, found, rng)
        if len(state.values) == 0:
            chains = self._chains.with_reward(chains_of(state), x, a, y, rng_handle(rng))
            return self._with_chains(state, chains).after(chains[0], n)
        return self._learnt(state._replace(n_rewards=n), reward, rng)

    def _with_chains(self, state: KindsState, chains: Chains) -> KindsState:
        """State with these chains; where one goes on alone, nothing of the others is kept."""
        first, *others = chains
        if others or not are_alive(state.rest, state.other_chains):
            return state._replace(rest=first, other_chains=tuple(others) or state.other_chains)
        return state._replace(rest=first, other_chains=self._chains.others())

    def _found(self, state: KindsState, n: int, reward: Reward) -> Found | None:
        """The kinds after the n-th reward or, where there are none, what parts windfalls from the bulk; nothing where
        neither is looked at.
        """
        parted = is_parted(state)
        kinds = state.values[:0] if parted else state.values
        clicks = not has_bases(state.bases)
        found = find_kinds(state.tally, state.seen, kinds, clicks) if self._must_look(state, n, reward.value) else None
        if len(kinds) > 0 or (found is not None and found.values):
            return found
        if self.windfalls and clicks and (may_be_parted(n) or (parted and self._is_doubtful(state, reward.value))):
            return self._parted(state, reward)
        return None if parted else found

    def _is_doubtful(self, state: KindsState, y: float) -> bool:
        """Whether a reward speaks against windfalls that are few as yet."""
        few = state.amounts.model.sizes[:, kernels.ROWS].sum() < YOUNG
        return bool(few) and is_opposite(state.limit, float(state.values[0]), y)

    def _parted(self, state: KindsState, reward: Reward) -> Found:
        """What parts windfalls from the bulk: the limit that does already, another one, or nothing."""
        limit = Limit(*state.limit.tolist())
        others_do = is_amounts_on(state.amounts) or (is_on(state.links) and state.links.weights[0] < 0.5)
        if others_do and limit == NO_LIMIT:
            return Found((), MIXTURE, 0.0)
        seen = self._seen(state, reward)
        if limit != NO_LIMIT and still_parts(limit, seen, state.n_rewards + 1):
            return Found(tuple(state.values.tolist()), MIXTURE, 0.0, limit)
        limit = find_limit(seen)
        if limit == NO_LIMIT:
            return Found((), MIXTURE, 0.0)
        middle = float(np.median(seen.rewards[~are_windfalls(limit, seen.rewards)]))
        return Found((middle,), MIXTURE, 0.0, limit)

    def _seen(self, state: KindsState, reward: Reward) -> Seen:
        """All rewards that can still move, and a new one, beside the lines that the mixture has found."""
        kept = [self._rewards(state, arm) for arm in range(self.n_arms)]
        contexts, values = kept[reward.arm]
        kept[reward.arm] = np.vstack([contexts, reward.context]), np.append(values, reward.value)
        residuals = [residuals_of(state.rest, arm, *each) for arm, each in enumerate(kept)]
        arms = np.repeat(np.arange(self.n_arms), [len(values) for _, values in kept])
        contexts, rewards = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return Seen(rewards, np.concatenate(residuals), contexts, arms)

    def _must_look(self, state: KindsState, n: int, y: float) -> bool:
        """Whether the n-th reward may change what the kinds are."""
        if n <= LOOKS or n & (n - 1) == 0:
            return True
        surprise = state.rest_is == UNKNOWN or (state.rest_is == CONSTANT and y != state.constant)
        return surprise and not is_kind(state.values, y)

    def _faded(self, state: KindsState) -> KindsState:
        half_life = self.rest.half_life
        share = remaining_share(state.n_rewards, half_life) if half_life is not None else 1.0
        if share < 1.0:
            tallies.fade(state.tally, state.seen, share)
            self._links.fade(state.links, share)
            self._amounts.fade(state.amounts, share)
            if len(state.values) > 0:
                forget_sums(state.sticks, share)
            if state.rest_is == MIXTURE:
                self._chains.fade(chains_of(state), share)
        return state

    def _learnt(self, state: KindsState, reward: Reward, rng: Rng) -> KindsState:
        if not self.rest.fixed_units:
            observe(state.sticks.columns, reward.context, state.sticks.fits)
        state = self._taken_in(state, reward, rng)
        a, b = reward.arm, state.n_rewards % self.n_arms
        n = state.sticks.sizes[a, kernels.ROWS]
        if n >= LOOKS and n & (n - 1) == 0 and n == state.sticks.sizes[a, kernels.NEXT]:
            kernels.recount(state.sticks, state.data[a], a)
        visits, handle = trusted(kernels.visits), rng_handle(rng)
        visits(state.sticks, state.data[a], a, self.moves, 2 if n <= LOOKS else 1, handle)
        if b != a:
            visits(state.sticks, state.data[b], b, self.moves // 2, 1, handle)
        trusted(kernels.redraw_shared)(state.sticks, a, b, self._hyperprior, handle)
        if state.rest_is == MIXTURE and is_known(state.values, state.limit, reward.value) == is_parted(state):
            chains = self._chains.with_reward(chains_of(state), reward.context, a, reward.value, handle)
            state = self._with_chains(state, chains)
        return state

    def _taken_in(self, state: KindsState, reward: Reward, rng: Rng) -> KindsState:
        """State with a reward in the sticks' sums."""
        a, sticks = reward.arm, state.sticks
        state = state._replace(data=with_room(state.data, sticks.sizes, a, self.rest.memory))
        same = np.flatnonzero(state.values == reward.value)
        kind = int(same[0]) if len(same) else len(state.values)
        if is_parted(state):
            kind = int(is_windfall(state.limit, reward.value))
        add_reward, handle = trusted(kernels.add_reward), rng_handle(rng)
        add_reward(sticks, state.data[a], a, reward.context, reward.value, kind, handle)
        return state

    def _kept(self, state: KindsState) -> list[Reward]:
        """All rewards that can still move, those of different arms taken in turn, oldest first."""
        return in_turn([self._rewards(state, arm) for arm in range(self.n_arms)])

    def _rewards(self, state: KindsState, arm: int) -> tuple[Array, Array]:
        """Contexts and values of an arm's rewards that can still move, oldest first."""
        d = self.context_dim
        if len(state.values) > 0:
            n, first = state.sticks.sizes[arm]
            rows = np.roll(state.data[arm][:n], -first, axis=0)
            return rows[:, :d], rows[:, d + 1]
        n, first = state.rest.sizes[arm, ROWS], state.rest.sizes[arm, NEXT]
        rows = np.roll(state.rest.data[arm][:n], -first, axis=0)
        shift = float(state.rest.shared.origin)
        values = rows[:, -1] + shift
        values = snapped(values, values_seen(state), SAME * (np.abs(values) + abs(shift)))
        return rows[:, :d] + state.rest.features.base[:d], values

    def _rebuilt(self, state: KindsState, found: Found, reward: Reward, rng: Rng) -> KindsState:
        """State with other kinds, learnt anew from the rewards that can still move and a new one."""
        rewards, known = [*self._kept(state), reward], bool(state.sticks.columns[kernels.SEEN, 0] > 0)
        if not self.rest.fixed_units and len(found.values) > 0:
            for each in [reward] if known else rewards:
                kernels.observe(state.sticks.columns, each.context)
        return self._learnt_anew(state, rewards, found, rng)

    def _learnt_anew(self, state: KindsState, rewards: list[Reward], found: Found, rng: Rng) -> KindsState:
        """State with other kinds that has learnt these rewards; columns are measured already."""
        m, columns = len(found.values), state.sticks.columns
        state = self._with_rest_of(state, rewards, found, rng)._replace(
            sticks=self._sticks(m, columns),
            data=self._no_rewards(m),
            values=np.array(found.values),
            rest_is=found.rest,
            constant=found.constant,
            limit=np.array(found.limit),
        )
        if m == 0:
            return state
        if is_parted(state):
            far = sum(is_windfall(found.limit, each.value) for each in rewards)
            state.sticks.guess[0, 0, -1] = math.log((len(rewards) - far + 0.5) / (far + 0.5))
        for each in rewards:
            state = self._taken_in(state, each, rng)
        for _ in range(PASSES):
            for arm in range(self.n_arms):
                n = int(state.sticks.sizes[arm, kernels.ROWS])
                kernels.visits(state.sticks, state.data[arm], arm, n, 1, rng_handle(rng))
                kernels.redraw_shared(state.sticks, arm, arm, self._hyperprior, rng_handle(rng))
        return state

    def _with_rest_of(self, state: KindsState, rewards: list[Reward], found: Found, rng: Rng) -> KindsState:
        """State whose robust model has learnt the rewards of no kind, or those of the bulk, and nothing else."""
        state = state._replace(rest=self.rest.init(), other_chains=self._chains.others())
        if found.rest != MIXTURE:
            return state
        chains = chains_of(state)
        values, parted = np.array(found.values), found.limit != NO_LIMIT
        others = [each for each in rewards if is_known(values, found.limit, each.value) == parted]
        engine = self._chains if len(others) <= LOOKS else self._quick
        for arm, x, y in others:
            chains = engine.with_reward(chains, x, arm, y, rng_handle(rng))
        if others:
            chains = self._chains.refresh(chains, rng)
        return state._replace(rest=chains[0], other_chains=chains[1:] or self._chains.others())

    def _with_rest(self, state: KindsState, found: Found, rng: Rng) -> KindsState:
        """State whose kinds are the same, but perhaps no longer what the rest is."""
        if found.rest == state.rest_is and found.constant == state.constant:
            return state
        if found.rest == MIXTURE:
            state = self._with_rest_of(state, self._kept(state), found, rng)
        return state._replace(rest_is=found.rest, constant=found.constant)

    def refresh(self, state: KindsState, rng: Rng) -> KindsState:
        """State after another round of moves in every arm and of draws of all that is shared."""
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        self._door.last = state = self._refreshed(state, rng)
        return state

    def _refreshed(self, state: KindsState, rng: Rng) -> KindsState:
        if len(state.values) == 0:
            return self._with_chains(state, self._chains.refresh(chains_of(state), rng))
        for arm in range(self.n_arms):
            kernels.visits(state.sticks, state.data[arm], arm, self.moves, 1, rng_handle(rng))
            kernels.redraw_shared(state.sticks, arm, arm, self._hyperprior, rng_handle(rng))
        if state.rest_is == MIXTURE:
            return self._with_chains(state, self._chains.refresh(chains_of(state), rng))
        return state

    def by_one_chain(self, state: KindsState) -> KindsState:
        """The state as its first chain alone has it, for long looks: over many states one chain says what all do, and
        sooner.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = state = state._replace(other_chains=self._chains.others())
        return state

    def draw_means(self, state: KindsState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward given the state, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        out = self._own_means(state, context, n_draws, rng)
        if is_on(state.links):
            self._links.draw_means(state.links, require_context(context, self.context_dim), out, rng)
        return out + drawn_bases(state.bases, len(out), rng) if has_bases(state.bases) else out

    def _own_means(self, state: KindsState, context: Array, n_draws: int, rng: Rng) -> Array:
        if len(state.values) == 0 and not is_amounts_on(state.amounts):
            return self._chains.draw_means(chains_of(state), context, n_draws, rng)
        x = require_context(context, self.context_dim)
        if state.rest_is == MIXTURE:
            bulk = self._chains.draw_means(chains_of(state), x, n_draws, rng)
            out = bulk.copy()
            if is_amounts_on(state.amounts):
                self._amounts.draw_means(state.amounts, x, out, rng)
        else:
            mean, sd = self._simple_rest(state)
            out = mean + sd * rng.standard_normal((require_count(n_draws, "n_draws"), self.n_arms))
        for arm in range(self.n_arms):
            shares = self.draw_shares(state, x, arm, n_draws, rng)
            others = shares[:, 0] * bulk[:, arm] if is_parted(state) else shares[:, :-1] @ state.values
            out[:, arm] = others + shares[:, -1] * out[:, arm]
        return np.asarray(out)

    def draw_shares(self, state: KindsState, context: Array, arm: int, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of the probabilities of an arm's kinds, that of the rest last, (n_draws, n_kinds + 1)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x, a = require_context(context, self.context_dim), require_arm(arm, self.n_arms)
        out, handle = np.ones((require_count(n_draws, "n_draws"), len(state.values) + 1)), rng_handle(rng)
        if len(state.values) > 0:
            stick_shares.draw_shares(state.sticks, x, a, out, handle)
        return out

    def draw_jumps(self, state: KindsState, context: Array, arm: int, n_draws: int, rng: Rng) -> tuple[Array, Array]:
        """The single values of `predictive`, (n,), and posterior draws of their probabilities, (n_draws, n).

        There are none while models of counts or marks learn, which draw no probabilities of values.
        """
        shares = self.draw_shares(state, context, arm, n_draws, rng)
        if len(state.values) == 0 or is_on(state.links) or is_parted(state):
            return np.empty(0), np.empty((len(shares), 0))
        base = float(state.bases[BASE, require_arm(arm, self.n_arms)]) if has_bases(state.bases) else 0.0
        if state.rest_is == CONSTANT:
            return base + np.append(state.values, state.constant), shares
        return base + state.values, np.ascontiguousarray(shares[:, :-1])

    def limit_of(self, state: KindsState) -> Limit:
        """The limit beyond which rewards are windfalls, whose probability `draw_shares` has last; without a side where
        none are told apart.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        return Limit(*state.limit.tolist())

    def draw_objectives(self, state: KindsState, context: Array, objective: Objective, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of what every arm's reward is worth given the state, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        if not has_bases(state.bases):
            return self._counted_objectives(state, context, objective, n_draws, rng)
        if not isinstance(objective, ProbabilityAbove):
            out = self._counted_objectives(state, context, objective, n_draws, rng)
            return out + drawn_bases(state.bases, n_draws, rng)
        seed, each = rng.bit_generator.state, []  # the same draws for all arms
        for arm, base in enumerate(state.bases[BASE]):
            rng.bit_generator.state = seed
            own = ProbabilityAbove(objective.value - float(base))
            each.append(self._counted_objectives(state, context, own, n_draws, rng)[:, arm])
        return np.stack(each, axis=1)

    def _counted_objectives(
        self, state: KindsState, context: Array, objective: Objective, n_draws: int, rng: Rng
    ) -> Array:
        """What rewards counted from their arm's base are worth."""
        out = self._own_objectives(state, context, objective, n_draws, rng)
        if is_on(state.links):
            x = require_context(context, self.context_dim)
            self._links.draw_objectives(state.links, x, objective, out, rng)
        return out

    def _own_objectives(self, state: KindsState, context: Array, objective: Objective, n_draws: int, rng: Rng) -> Array:
        if len(state.values) == 0 and not is_amounts_on(state.amounts):
            return self._chains.draw_objectives(chains_of(state), context, objective, n_draws, rng)
        x = require_context(context, self.context_dim)
        shares = np.stack([self.draw_shares(state, x, arm, n_draws, rng) for arm in range(self.n_arms)])
        if is_parted(state):
            values, each = self._amounts.draw_slices(state.amounts, x, n_draws, rng)
            parts = np.concatenate([shares[..., -1:] * each, shares[..., :1]], axis=-1)
            return self._chains.draw_objectives_beside(chains_of(state), x, objective, values, parts, rng)
        if state.rest_is == MIXTURE:
            out = self._chains.draw_objectives_beside(chains_of(state), x, objective, state.values, shares, rng)
            if is_amounts_on(state.amounts):
                self._amounts.draw_objectives(state.amounts, x, objective, state.values, shares, out, rng)
            return out
        values = np.empty(shares.shape)
        values[:, :, :-1] = state.values
        mean, sd = self._simple_rest(state)
        values[:, :, -1] = mean + sd * rng.standard_normal(shares.shape[:2])
        return np.ascontiguousarray(objective.of_mixture(shares, values, 0.0).T)

    def _simple_rest(self, state: KindsState) -> tuple[float, float]:
        """Mean and standard deviation of a rest that is a constant, or that nobody has seen."""
        if has_bases(state.bases):
            seen = counts_seen(state)
            known = (
                state.rest_is == CONSTANT
                and (seen[seen[:, tallies.VALUE] == state.constant, tallies.COUNT] >= LEAST).any()
            )
            return state.constant, 0.0 if known else unseen(state.bases)
        if state.rest_is == CONSTANT:
            return state.constant, 0.0
        return float(state.values[0]), max(abs(float(state.values[0])), 1.0)

    def moments(self, state: KindsState, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward given the state, (2, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        if is_plain(state):
            out = self._chains.moments(chains_of(state), context)
            add_to_moments(state.bases, out)
            return out
        x = require_context(context, self.context_dim)
        if state.rest_is == MIXTURE:
            out = self._chains.moments(chains_of(state), x)
            bulk = out.copy() if is_parted(state) else out
            if is_amounts_on(state.amounts):
                trusted(amounts.moments)(state.amounts.model, state.amounts.weights, x, out)
        else:
            out = np.empty((2, self.n_arms))
            out[0], out[1] = self._simple_rest(state)
        if is_parted(state):
            trusted(stick_shares.moments_of_two)(state.sticks, x, bulk, out)
        elif len(state.values) > 0:
            trusted(stick_shares.moments)(state.sticks, x, state.values, out)
        if is_on(state.links):
            trusted(links.moments)(state.links.models, state.links.weights, x, out)
        add_to_moments(state.bases, out)
        return out

    def moments_many(self, state: KindsState, contexts: Array) -> Array:
        """The same in many contexts, (n, 2, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        x = require_contexts(contexts, self.context_dim)
        if state.rest_is == MIXTURE:
            out = self._chains.moments_many(chains_of(state), x)
            bulk = out.copy() if is_parted(state) else out
            if is_amounts_on(state.amounts):
                amounts.moments_many(state.amounts.model, state.amounts.weights, x, out)
        else:
            out = np.empty((len(x), 2, self.n_arms))
            out[:, 0], out[:, 1] = self._simple_rest(state)
        if is_parted(state):
            stick_shares.moments_of_two_many(state.sticks, x, bulk, out)
        elif len(state.values) > 0:
            stick_shares.moments_many(state.sticks, x, state.values, out)
        if is_on(state.links):
            links.moments_many(state.links.models, state.links.weights, x, out)
        add_to_moments(state.bases, out)
        return out

    def outlook(self, state: KindsState, context: Array) -> tuple[Array, Array]:
        """What the exploration rule sees: the outlook of the mixture; where there are kinds, amounts, counts or marks,
        `moments`, and 1 for the noise of every arm, which is a matter of their mean there.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        if is_plain(state):
            moments, noise = self._chains.outlook(chains_of(state), context)
            add_to_moments(state.bases, moments)
            return moments, noise
        return self.moments(state, context), self._alike

    def choose_by_information(self, state: KindsState, context: Array, n_draws: int, power: float, rng: Rng) -> Choice:
        """An arm by information-directed sampling with this outlook."""
        if state is not self._door.last:
            self._door.check(self, state)
        if state is self._door.steady:
            return self.rest.choose_by_information(state.rest, context, n_draws, power, rng)
        if is_plain(state) and not has_bases(state.bases):
            return self._chains.choose_by_information(chains_of(state), context, n_draws, power, rng)
        (moments, noise), n = self.outlook(state, context), require_count(n_draws, "n_draws")
        return Choice(*draw_arm(moments, noise, n, power, rng))

    def outlook_many(self, state: KindsState, contexts: Array) -> tuple[Array, Array]:
        """The same in many contexts: moments (n, 2, n_arms), noise (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        if is_plain(state):
            moments, noise = self._chains.outlook_many(chains_of(state), contexts)
            add_to_moments(state.bases, moments)
            return moments, noise
        return self.moments_many(state, contexts), self._alike

    def expected_means(self, state: KindsState, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward given the state, (n_arms,)."""
        return np.asarray(self.moments(state, context)[0])

    def n_components(self, state: KindsState) -> IntArray:
        """Components in use by the rest, in its first chain, (n_arms,)."""
        if state is not self._door.last:
            self._door.check(self, state)
        return self.rest.n_components(state.rest)

    def predictive(self, state: KindsState, context: Array, arm: int) -> StudentMixture | JumpMixture:
        """Posterior predictive distribution of an arm's next reward in this context, given the state.

        With kinds, and with models of counts or marks, it has jumps, whose probabilities are their posterior means.
        Where amounts are learnt without kinds it is of the same type, without any jump.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        own = self._own_predictive(state, context, arm)
        if is_on(state.links):
            x = require_context(context, self.context_dim)
            own = self._links.predictive(state.links, x, arm, own, values_seen(state))
        return own.shifted(float(state.bases[BASE, arm])) if has_bases(state.bases) else own

    def _own_predictive(self, state: KindsState, context: Array, arm: int) -> StudentMixture | JumpMixture:
        """The predictive distribution without models of counts and marks."""
        rest: StudentMixture | AmountMixture
        rest = own = self._chains.predictive(chains_of(state), context, arm)
        x = require_context(context, self.context_dim)
        shares = self._expected_shares(state, x, arm)
        if is_amounts_on(state.amounts):
            rest = mixture = self._amounts.predictive(state.amounts, x, arm, own)
            if is_parted(state):
                both = replace(mixture, base_weight=float(shares[0]), weights=shares[1] * mixture.weights)
                return JumpMixture(np.empty(0), np.empty(0), both)
        elif len(state.values) == 0:
            return own
        if state.rest_is == CONSTANT:
            return JumpMixture(np.append(state.values, state.constant), shares)
        return JumpMixture(state.values.copy(), shares[:-1], rest)

    def draw_densities(self, state: KindsState, context: Array, arm: int, grid: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of the density of an arm's reward at the grid's points, (n_draws, len(grid)).

        It is that of the rewards of no kind times their probability; a rest that is one value has none, and so have
        counts and marks: what models of these weigh is taken off.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        if has_bases(state.bases):
            grid = require_vector(grid, "grid") - state.bases[BASE, require_arm(arm, self.n_arms)]
        out = self._chains.draw_densities(chains_of(state), context, arm, grid, n_draws, rng)
        bulk = out.copy()
        if is_amounts_on(state.amounts):
            x = require_context(context, self.context_dim)
            self._amounts.draw_densities(state.amounts, x, arm, np.asarray(grid, dtype=np.float64), out, rng)
        if is_on(state.links):
            out *= float(state.links.weights[0])
        if len(state.values) == 0:
            return out
        shares = self.draw_shares(state, context, arm, n_draws, rng)
        if is_parted(state):
            weight = float(state.links.weights[0]) if is_on(state.links) else 1.0
            return np.asarray(out * shares[:, -1:] + weight * bulk * shares[:, :1])
        return np.asarray(out * shares[:, -1:] * (state.rest_is != CONSTANT))
