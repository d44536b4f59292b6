"""Several chains of the sampler while arms are young: what they learn, what they say together, and when one goes on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm import make_policy
from polyarm.errors import InvalidArgument
from polyarm.inference import KindsEngine, KindsState, RobustEngine, RobustState, load_state, save_state
from polyarm.inference.chains import ChainsEngine, are_alive, chains_of
from polyarm.inference.door import copied
from polyarm.inference.kinds_found import CONSTANT, MIXTURE
from polyarm.inference.moments import draw_arm
from polyarm.kernels import chains as chains_kernels
from polyarm.kernels.mixture.records import K_USED, ROWS
from polyarm.kernels.robust import choice, update
from polyarm.kernels.robust.update import LATE
from polyarm.models import ProbabilityAbove, RobustMixture
from polyarm.types import Array
from tests.contracts.states import bits
from tests.inference.learning import Listen

X = np.array([0.4, -1.1])


def engine(n_chains: int = 3, n_arms: int = 3, **options: Any) -> KindsEngine:
    return KindsEngine(RobustEngine(RobustMixture(n_arms, 2), 8, 4, **options), n_chains=n_chains)


def fed(kinds: KindsEngine, n: int, seed: int = 0, state: KindsState | None = None, zeros: float = 0.0) -> KindsState:
    """State after rewards of arms in turn: mixtures of two lines, or nothing with a probability."""
    rng = np.random.default_rng(seed)
    state = kinds.init() if state is None else state
    for i in range(n):
        x, arm = rng.standard_normal(2), i % kinds.n_arms
        y = float(x[arm % 2] * rng.choice([-1.0, 2.0]) + 0.3 * rng.standard_normal() + 3 * arm)
        state = kinds.update(state, x, arm, 0.0 if rng.random() < zeros else y, rng)
    return state


def test_every_chain_learns_every_reward_and_seats_it_by_itself() -> None:
    kinds = engine()
    state = fed(kinds, 60)
    chains = chains_of(state)
    assert len(chains) == 3
    for chain in chains:
        assert chain.n_rewards == state.n_rewards == 60
        np.testing.assert_array_equal(chain.sizes[:, ROWS], [20] * 3)
        for arm in range(3):
            np.testing.assert_allclose(chain.data[arm][:20, :2], chains[0].data[arm][:20, :2])
            rewards = chain.data[arm][:20, 3] + chain.shared.origin
            np.testing.assert_allclose(rewards, chains[0].data[arm][:20, 3] + chains[0].shared.origin)
    assert len({chain.shared.noise_scale for chain in chains}) == 3
    state.require_sound()


def test_one_chain_is_the_robust_engine_to_the_bit() -> None:
    kinds, alone = engine(1), RobustEngine(RobustMixture(3, 2), 8, 4)
    state = fed(kinds, 40)
    rng, rest = np.random.default_rng(0), alone.init()
    for i in range(40):
        x, arm = rng.standard_normal(2), i % 3
        y = float(x[arm % 2] * rng.choice([-1.0, 2.0]) + 0.3 * rng.standard_normal() + 3 * arm)
        rng.random()
        rest = alone.update(rest, x, arm, y, rng)
    assert state.other_chains == ()
    assert bits(state.rest) == bits(rest)


def test_several_chains_share_the_moves(listen: Any) -> None:
    calls = listen(update, "update")
    kinds = engine(4)
    state = fed(kinds, 30)
    assert {given[3] for given, _ in calls if given[2] == update.UNITS} == {(4, 2)}
    assert [each.thinning for each in kinds._chains.each] == [4] * 4
    assert kinds._chains.alone.thinning == 1
    calls.clear()
    alone = state._replace(other_chains=kinds._chains.others())
    fed(kinds, 1, 1, alone)
    assert [given[3] for given, _ in calls if given[2] == update.UNITS] == [(8, 4)]


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, LATE * 3),
        ({"memory": 4}, LATE * 3),
        ({"half_life": 30.0}, LATE * 3),
        ({"memory": 4, "half_life": 9.0}, 192),
    ],
)
def test_the_first_chain_goes_on_alone_once_arms_are_known(options: dict[str, Any], steps: int) -> None:
    kinds = engine(2, **options)
    state = fed(kinds, steps - 1)
    assert are_alive(state.rest, state.other_chains)
    first = state.rest
    state = fed(kinds, 1, 1, state)
    assert not are_alive(state.rest, state.other_chains)
    assert chains_of(state) == (state.rest,)
    assert state.rest.n_rewards == first.n_rewards + 1
    assert state.rest.hyper is first.hyper  # arrays of the first chain are changed in place
    assert [bits(chain) for chain in state.other_chains] == [bits(chain) for chain in kinds._chains.others()]
    state = fed(kinds, 20, 2, state)
    assert chains_of(state) == (state.rest,)
    state.require_sound()


def test_arms_that_were_never_played_do_not_keep_the_chains() -> None:
    """64 rewards of every arm that was played at all, in the mean."""
    chains = ChainsEngine(RobustEngine(RobustMixture(3, 2)), 2)
    state = chains.alone.init()
    for n, components, known in (
        (3 * LATE, (2, 1, 1), True),
        (3 * LATE - 1, (2, 1, 1), False),
        (2 * LATE, (4, 1, 0), True),
        (2 * LATE, (4, 1, 1), False),
        (LATE, (1, 0, 0), True),
    ):
        sizes = np.zeros((3, 3), np.int64)
        sizes[:, K_USED] = components
        assert chains.are_known(state._replace(n_rewards=n, sizes=sizes)) == known, (n, components)


def test_what_chains_say_is_the_mixture_of_what_each_says() -> None:
    kinds = engine()
    state = fed(kinds, 45)
    pairs = [(replace(kinds.rest), chain) for chain in chains_of(state)]
    each = np.array([one.moments(chain, X) for one, chain in pairs])
    variance = (each[:, 1] ** 2).mean(axis=0) + each[:, 0].var(axis=0, ddof=1)
    np.testing.assert_allclose(kinds.moments(state, X), [each[:, 0].mean(axis=0), np.sqrt(variance)])
    np.testing.assert_allclose(kinds.expected_means(state, X), each[:, 0].mean(axis=0))
    contexts = np.random.default_rng(1).standard_normal((4, 2))
    np.testing.assert_allclose(kinds.moments_many(state, contexts), [kinds.moments(state, x) for x in contexts])
    grid = np.linspace(-6.0, 12.0, 50)
    for arm in range(3):
        laws = [one.predictive(chain, X, arm) for one, chain in pairs]
        law = kinds.predictive(state, X, arm)
        np.testing.assert_allclose(law.pdf(grid), np.mean([each.pdf(grid) for each in laws], axis=0))
        np.testing.assert_allclose(law.cdf(grid), np.mean([each.cdf(grid) for each in laws], axis=0), atol=1e-12)
        between = kinds._chains.probability_between(chains_of(state), X, arm, 1.0, 2.5)
        assert between == pytest.approx(float(law.cdf(2.5) - law.cdf(1.0)))
        mean, density = kinds._chains.forecast(chains_of(state), X, arm, 1.3)
        assert mean == pytest.approx(each[:, 0, arm].mean())
        assert density == pytest.approx(float(law.pdf(1.3)))


def test_the_rule_counts_the_spread_between_chains_twice() -> None:
    kinds = engine()
    state = fed(kinds, 30)
    found = [replace(kinds.rest).outlook(chain, X) for chain in chains_of(state)]
    each, noise = np.array([moments for moments, _ in found]), np.array([noise for _, noise in found])
    variance = (each[:, 1] ** 2).mean(axis=0) + 2 * each[:, 0].var(axis=0, ddof=1)
    outlook, relative = kinds.outlook(state, X)
    np.testing.assert_allclose(outlook, [each[:, 0].mean(axis=0), np.sqrt(variance)])
    np.testing.assert_allclose(relative, np.exp(np.log(noise).mean(axis=0)))
    many, same = kinds.outlook_many(state, np.array([X, -X]))
    np.testing.assert_allclose(many[0], outlook)
    np.testing.assert_allclose(same, relative)
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    choice = kinds.choose_by_information(state, X, 50, 2.0, one)
    assert choice.arm == draw_arm(outlook, relative, 50, 2.0, other)[0]


@pytest.mark.parametrize("n_chains", [1, 3])
def test_a_whole_power_is_no_integer_to_kernels(listen: Listen, n_chains: int) -> None:
    """The first call settles types: powers that come later in the same process would be cut to 1."""
    calls = listen(choice if n_chains == 1 else chains_kernels, "choose")
    policy: Any = make_policy("nonparametric", 3, 2, n_chains=n_chains, power=2)
    policy.choose(fed(policy.engine, 6), X, np.random.default_rng(0))
    ((arguments, _),) = calls
    assert [type(each) for each in arguments if isinstance(each, (int, float))] == [int, float]


def test_draws_come_from_every_chain_in_turn() -> None:
    """Their mean and spread are those of `moments`, which draws of one chain alone would miss."""
    kinds = engine()
    state = fed(kinds, 12)
    draws = kinds.draw_means(state, X, 60_000, np.random.default_rng(1))
    mean, sd = kinds.moments(state, X)
    n = len(chains_of(state))
    each = np.array([one[0] for one in (replace(kinds.rest).moments(chain, X) for chain in chains_of(state))])
    sd = np.sqrt(
        sd**2 - each.var(axis=0, ddof=1) + each.var(axis=0)
    )  # of these three chains, not of all there could be
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=6 * float(sd.max()) / 60_000**0.5)
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.05)
    first = kinds.draw_means(state._replace(other_chains=kinds._chains.others()), X, 60_000, np.random.default_rng(1))
    assert np.abs(first.mean(axis=0) - mean).max() > 12 * float(sd.max()) / 60_000**0.5
    means = [kinds.draw_means(state, X, 1, np.random.default_rng(seed))[0, 0] for seed in range(400)]
    by_chain = [
        np.array([replace(kinds.rest).moments(chain, X)[:, 0] for chain in chains_of(state)])[c] for c in range(n)
    ]
    spread = np.sqrt(np.mean([sd**2 + m**2 for m, sd in by_chain]) - np.mean([m for m, _ in by_chain]) ** 2)
    assert abs(np.mean(means) - mean[0]) < 5 * spread / 20
    grid = np.linspace(-40.0, 40.0, 400)
    densities = kinds.draw_densities(state, X, 1, grid, 3000, np.random.default_rng(2))
    laws = kinds.predictive(state, X, 1).pdf(grid)
    assert np.abs(densities.mean(axis=0) - laws).max() < 0.15 * laws.max()
    worth = kinds.draw_objectives(state, X, ProbabilityAbove(1.0), 6000, np.random.default_rng(4))
    wanted = [1 - float(kinds.predictive(state, X, arm).cdf(1.0)) for arm in range(3)]
    np.testing.assert_allclose(worth.mean(axis=0), wanted, atol=0.05)


def test_draws_begin_with_any_chain() -> None:
    """A single draw, as Thompson sampling takes, is of each of them now and then."""
    kinds = engine()
    chains, begun = chains_of(fed(kinds, 12)), set[int]()

    def drawn(_: RobustEngine, state: RobustState, rows: slice) -> Array:
        begun.add(next(c for c, chain in enumerate(chains) if chain is state))
        return np.zeros((1, 3))

    for seed in range(40):
        kinds._chains._by_turns(chains, np.empty((1, 3)), np.random.default_rng(seed), drawn)
    assert begun == {0, 1, 2}


@pytest.mark.parametrize("n", [20, 250])
def test_a_file_continues_bit_for_bit(n: int, tmp_path: Path) -> None:
    policy: Any = make_policy("nonparametric", 3, 2)
    state = fed(policy.engine, n)
    assert are_alive(state.rest, state.other_chains) == (n == 20)
    loaded = load_state(save_state(tmp_path / "state", state, policy), policy=make_policy("nonparametric", 3, 2))
    assert bits(loaded) == bits(state)
    again: Any = make_policy("nonparametric", 3, 2)
    assert bits(fed(policy.engine, 10, 1, state)) == bits(fed(again.engine, 10, 1, loaded))


@pytest.mark.parametrize("zeros", [0.0, 0.6])
@pytest.mark.parametrize("n", [20, 800])
def test_a_look_changes_nothing_that_is_learnt_later(n: int, zeros: float) -> None:
    """Engines of a chain alone and beside others have settings of their own, and share what they trust; with a memory
    of 8 no step of the first chain does less.
    """
    state = fed(engine(3, memory=8), n, zeros=zeros)
    assert are_alive(state.rest, state.other_chains) == (n == 20)
    found = []
    for look in (True, False):
        kinds, given = engine(3, memory=8), copied(state)
        if look:
            kinds.predictive(given, X, 0)
        found.append(bits(fed(kinds, 40, 1, given, zeros)))
    assert found[0] == found[1]


@pytest.mark.parametrize("zeros", [0.0, 0.6])
@pytest.mark.parametrize("options", [{}, {"memory": 8}, {"half_life": 40.0}], ids=str)
def test_neither_looks_nor_other_hands_change_what_is_learnt(options: dict[str, Any], zeros: float) -> None:
    """While chains learn, when the first goes on alone, and after it: looked at before every reward, and handed to a
    new engine after every eight, which knows nothing but the state.
    """
    kept, quiet = engine(3, **options), engine(3, **options).init()
    seen = copied(quiet)
    for i in range(80):
        quiet = fed(kept, 8, i, quiet, zeros)
        kinds = engine(3, **options)
        kinds.moments(seen, X)
        seen = fed(kinds, 8, i, seen, zeros)
        assert bits(seen) == bits(quiet), 8 * i
    assert not are_alive(quiet.rest, quiet.other_chains) or zeros > 0


@pytest.mark.parametrize("n", [20, 250])
def test_a_new_arm_joins_every_chain(n: int) -> None:
    kinds = engine(2)
    state = fed(kinds, n)
    wider, after = kinds.with_arm(state)
    assert len(chains_of(after)) == (2 if n == 20 else 1)
    assert [chain.sizes.shape for chain in (after.rest, *after.other_chains)] == [(4, 3)] * 2
    after = fed(wider, 8, 1, after)
    assert after.rest.sizes[3, ROWS] == 2
    after.require_sound()


def test_purchases_have_chains_of_what_was_paid_and_clicks_have_none() -> None:
    kinds = engine(2)
    state = fed(kinds, 80, zeros=0.6)
    assert (state.values.tolist(), state.rest_is) == ([0.0], MIXTURE)
    assert [chain.n_rewards for chain in chains_of(state)] == [state.rest.n_rewards] * 2
    assert 0 < state.rest.n_rewards < 60
    rng = np.random.default_rng(0)
    clicks = kinds.init()
    for i in range(60):
        clicks = kinds.update(clicks, rng.standard_normal(2), i % 3, float(rng.random() < 0.3), rng)
    assert clicks.rest_is == CONSTANT
    assert [chain.n_rewards for chain in (clicks.rest, *clicks.other_chains)] == [0, 0]
    state = kinds.refresh(state, rng)
    assert len(chains_of(state)) == 2
    state.require_sound()


def test_a_memory_that_changes_holds_for_every_chain() -> None:
    state = fed(engine(2), 60)
    kinds = engine(2, memory=5)
    after = fed(kinds, 1, 1, state)
    for chain in chains_of(after):
        assert [len(seats) for seats in chain.seats] == [5] * 3
    after.require_sound()


def test_a_chain_that_is_not_sound_is_refused() -> None:
    kinds = engine(2)
    state = fed(kinds, 20)
    state.other_chains[0].tables[0, 0, 0] = np.nan
    with pytest.raises(InvalidArgument, match="must be finite"):
        engine(2).moments(state, X)


def test_wide_contexts_have_one_chain_unless_asked_for() -> None:
    """From 14 features on, where a step of one is long."""
    policies: list[Any] = [make_policy("nonparametric", 2, d) for d in (12, 13)]
    assert [policy.engine.n_chains for policy in policies] == [4, 1]
    asked: Any = make_policy("nonparametric", 2, 13, n_chains=2)
    assert asked.engine.n_chains == 2
    with pytest.raises(InvalidArgument, match="n_chains must be an integer of at least 1, got 0"):
        make_policy("nonparametric", 2, 2, n_chains=0)
