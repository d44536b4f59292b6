"""Bases: what arms always pay, when rewards are counted from it, and that this is all that differs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from polyarm.environments.presets import make_scenario
from polyarm.errors import InvalidArgument
from polyarm.experiments.running.play import play, sample_world
from polyarm.inference import KindsEngine, KindsState, RobustEngine, kinds, kinds_state, load_state, save_state
from polyarm.inference.bases import (
    BASE,
    EVIDENCE,
    NO_BASES,
    SPREAD,
    counted_from,
    evidence,
    find_bases,
    has_bases,
    tied_values,
    with_one_more,
)
from polyarm.inference.kinds_state import in_turn
from polyarm.models import RobustMixture
from polyarm.models.jumps import JumpMixture
from polyarm.models.objectives import (
    MEAN,
    ExpectedShortfall,
    ExponentialUtility,
    ProbabilityAbove,
    Quantile,
)
from polyarm.policies import make_policy
from polyarm.types import Array, Rng
from tests.contracts.states import bits

COSTS = np.array([0.25, 1.5, 0.75])
Row = tuple[Array, int, float]
Margins = Callable[[Rng], float]


def gamma_margin(rng: Rng) -> float:
    return float(np.ceil(64.0 * 4.0 * rng.standard_gamma(2.0)) / 64.0)  # so that costs come off it exactly


def price(rng: Rng) -> float:
    return 8.0


def profits(
    n: int, margin: Margins = gamma_margin, costs: Array = COSTS, seed: int = 0, rate: float = 0.2
) -> list[Row]:
    """Contexts, arms and profits: an arm's cost comes off what it brings in now and then."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        x, arm = rng.standard_normal(2), int(rng.integers(len(costs)))
        rows.append((x, arm, (margin(rng) if rng.random() < rate else 0.0) - float(costs[arm])))
    return rows


def engine_of(n_arms: int = 3, **options: Any) -> KindsEngine:
    rest = RobustEngine(RobustMixture(n_arms, 2), 8, 4, memory=options.pop("memory", None))
    return KindsEngine(replace(rest, half_life=options.pop("half_life", None)), **options)


def learnt(engine: KindsEngine, rows: list[Row], seed: int = 1, state: KindsState | None = None) -> KindsState:
    rng, state = np.random.default_rng(seed), engine.init() if state is None else state
    for x, arm, y in rows:
        state = engine.update(state, x, arm, y, rng)
    return state


def by_arm(rows: list[Row], n_arms: int = 3) -> list[Array]:
    return [np.array([y for _, a, y in rows if a == arm]) for arm in range(n_arms)]


@pytest.mark.parametrize("margin", [gamma_margin, price])
@pytest.mark.parametrize("rate", [0.02, 0.2, 0.55])
def test_costs_are_found_whatever_is_brought_in_and_however_often(margin: Margins, rate: float) -> None:
    for seed in range(5):
        rows = profits(300, margin, seed=seed, rate=rate)
        bases = find_bases(by_arm(rows))
        np.testing.assert_array_equal(bases[BASE], -COSTS)
        np.testing.assert_array_equal(bases[SPREAD], 0.0)


def test_a_fee_less_what_goes_wrong_is_found_from_above() -> None:
    rows = [(x, arm, 2 * COSTS[arm] - (y + COSTS[arm])) for x, arm, y in profits(300, seed=3)]
    np.testing.assert_array_equal(find_bases(by_arm(rows))[BASE], 2 * COSTS)


NO_BASE: dict[str, Callable[[int, Rng], Any]] = {  # rewards of an arm of this number that share their values
    "clicks": lambda arm, rng: (rng.random(60) < [0.01, 0.5, 0.95][arm]) * 1.0,
    "gains and losses of one": lambda arm, rng: np.where(rng.random(60) < [0.1, 0.5, 0.9][arm], 1.0, -1.0),
    "a price of its own beside nothing": lambda arm, rng: (rng.random(60) < 0.4) * (3.0 + arm),
    "ratings": lambda arm, rng: rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], 60, p=np.roll([0.6, 0.1, 0.1, 0.1, 0.1], arm)),
    "counts": lambda arm, rng: rng.poisson(1.0 + arm, 60) * 1.0,
    "continuous": lambda arm, rng: arm + rng.standard_normal(60),
    "one value of all": lambda arm, rng: np.full(60, 3.0),
    "one arm that pays a value": lambda arm, rng: np.full(60, 3.0) if arm == 0 else rng.standard_normal(60),
    "rounded": lambda arm, rng: np.round(arm + rng.standard_normal(60), 1),
}


@pytest.mark.parametrize("name", NO_BASE)
def test_values_that_arms_share_are_no_bases(name: str) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        assert not has_bases(find_bases([NO_BASE[name](arm, rng) for arm in range(3)])), seed


def test_shared_values_are_hardly_ever_taken_for_bases_and_not_for_long() -> None:
    """Two values, -1 and 4, with probabilities that are uniform for every arm: whatever n, rarely, and never late."""
    rng, taken, late = np.random.default_rng(0), 0, 0
    for _ in range(300):
        rows = [np.where(rng.random(60) < rng.random(), 4.0, -1.0) for _ in range(3)]
        found = [n for n in (2, 3, 4, 6, 8, 12, 20, 40, 60) if has_bases(find_bases([y[:n] for y in rows]))]
        taken += len(found) > 0
        late += 60 in found
    assert taken < 0.15 * 300  # at least 8 times as improbable: and there are two ways of being apart
    assert late < 0.02 * 300


def test_the_evidence_is_a_ratio_of_probabilities() -> None:
    counts, values, own = np.array([3, 2, 5]), np.array([-1.0, -2.0, -2.0]), np.array([True, True, True])
    assert np.exp(evidence(counts, values, own)) == pytest.approx(4.0)  # the arm at -1 took it three times
    assert np.exp(evidence(counts, np.array([-1.0, -2.0, -3.0]), own)) == pytest.approx(12.0)
    p = (np.arange(10**5) + 0.5) / 10**5
    assert (p**3).mean() == pytest.approx(1 / 4, rel=1e-6)  # probability of three such rewards, p being uniform
    assert not has_bases(find_bases([np.full(6, -1.0), np.full(99, -2.0)]))  # 7 < 8
    assert has_bases(find_bases([np.full(7, -1.0), np.full(99, -2.0)]))
    assert EVIDENCE == 8.0


def test_an_arm_that_has_paid_nothing_twice_has_a_guess() -> None:
    rows = [np.full(9, -1.0), np.full(9, -2.0), np.empty(0), np.array([5.0]), np.array([-1.75]), np.array([-0.5, 7.0])]
    bases = find_bases(rows, np.array([[-1.0, -2.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]]))
    np.testing.assert_array_equal(bases[BASE], [-1.0, -2.0, -1.5, -1.5, -1.75, -0.5])
    np.testing.assert_array_equal(bases[SPREAD], [0.0, 0.0, 0.5, 0.5, 0.0, 0.0])
    wider = with_one_more(bases)
    assert wider.shape == (2, 7)
    assert wider[SPREAD, -1] > 0.0
    assert with_one_more(NO_BASES).shape == (2, 0)


def test_an_arm_keeps_its_base_until_enough_is_heard_of_another() -> None:
    before = np.array([[-1.0, -2.0, -3.0], [0.0, 0.0, 0.0]])
    others = [np.full(9, -2.0), np.full(9, -3.0)]
    few, many = 50.0 + np.arange(7.0), 50.0 + np.arange(10.0)
    assert find_bases([few, *others], before)[:, 0].tolist() == [-1.0, 0.0]
    assert find_bases([many, *others], before)[:, 0].tolist() == [-2.5, 0.5]
    assert find_bases([np.array([-0.5, -0.5]), *others], before)[BASE, 0] == -1.0  # two rewards, and not further out
    assert find_bases([np.array([-1.5, -1.5]), *others], before)[BASE, 0] == -1.5
    assert find_bases([np.full(8, -0.5), *others], before)[BASE, 0] == -0.5


def test_a_success_that_nobody_or_hardly_anybody_has_seen_may_have_any_size() -> None:
    engine = engine_of()
    state = learnt(engine, [(x, arm, -float(COSTS[arm])) for x, arm, _ in profits(60)])
    size, X = 10.0 * np.ptp(COSTS), np.zeros(2)
    p = engine.draw_shares(state, X, 1, 4000, np.random.default_rng(0))[:, -1]
    sd = np.sqrt((p**2).mean()) * size  # of p times a success of mean 0
    assert engine.moments(state, X)[1, 1] == pytest.approx(sd, rel=0.1)
    for n in range(1, 6):
        state = engine.update(state, X, 1, 8.0 - float(COSTS[1]), np.random.default_rng(n))
        spread = engine.draw_means(state, X, 2000, np.random.default_rng(0))[:, 1].std()
        assert (spread > 0.08 * size) == (n < 4), (n, spread)


def test_the_latest_rewards_are_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "LONGEST", 12)
    engine, rng = engine_of(), np.random.default_rng(0)
    state, rows = learnt(engine, profits(60)), profits(60)
    rewards = [(np.full((20, 2), arm + np.arange(20.0)[:, None] / 100), np.arange(20.0)) for arm in range(3)]
    anew = engine._counted_anew(state, state.bases, rewards, rng)
    assert anew.n_rewards == 61
    firsts = [engine._rewards(anew, arm)[0][:, 0] - arm for arm in range(3)]
    np.testing.assert_allclose(np.concatenate(firsts), np.tile([0.16, 0.17, 0.18, 0.19], 3))
    bounded = engine_of(memory=5)
    assert learnt(bounded, rows).n_rewards == 60


def test_no_windfalls_are_told_apart_from_rewards_that_are_counted_from_bases() -> None:
    """Two arms always pay a value of their own and are hardly played, two are continuous with a rare 1000."""
    rng, engine = np.random.default_rng(0), engine_of(4)
    state = engine.init()
    for t in range(500):
        arm = t % 4 if t < 60 or t % 10 == 0 else 2 + t % 2
        y = rng.standard_normal() + (1000.0 if rng.random() < 0.08 else 0.0) if arm > 1 else -1.0 - arm
        state = engine.update(state, rng.standard_normal(2), arm, float(y), rng)
    state.require_sound()
    assert has_bases(state.bases)
    assert len(state.values) == 0  # else nobody would look for windfalls
    assert engine.limit_of(state).side == 0.0


def test_rounding_makes_no_new_values() -> None:
    known = np.array([8.0, 0.0])
    for cost in (0.37, 1.1, 1e-9, 123.456):
        assert counted_from(-cost, 8.0 - cost, known) == 8.0
        assert counted_from(-cost, -cost, known) == 0.0
    assert counted_from(-0.37, 7.0, known) == pytest.approx(7.37)


def test_tied_values_hold_a_twentieth() -> None:
    tied = tied_values(np.array([3.0, 3.0, *np.arange(4.0, 60.0)]))
    assert len(tied.values) == 0
    assert tied_values(np.array([3.0, 3.0, 1.0])).values.tolist() == [3.0]


def told(engine: KindsEngine, bases: Array) -> tuple[KindsEngine, KindsState]:
    """An engine that takes rewards counted from the bases, and its first state."""
    same = replace(engine, bases=False)
    return same, same.init()._replace(bases=np.zeros(bases.shape))


def require_told(margin: Margins) -> None:
    """Raise unless all that is learnt and said is what an engine says that is told rewards beyond the bases."""
    engine, rng = engine_of(n_chains=2), np.random.default_rng(1)
    state, rows = engine.init(), profits(120, margin, seed=1)
    n = 0
    while not has_bases(state.bases):
        before = rng.bit_generator.state
        state = engine.update(state, *rows[n], rng)
        n += 1
    assert 6 <= n < 40
    same_rng = np.random.default_rng()
    same_rng.bit_generator.state = before
    other, other_state = told(engine, state.bases)
    first = [
        (np.array([x for x, a, _ in rows[:n] if a == arm]).reshape(-1, 2), y) for arm, y in enumerate(by_arm(rows[:n]))
    ]
    for arm, x, y in in_turn(first):
        other_state = other.update(other_state, x, arm, y + COSTS[arm], same_rng)
    for x, arm, y in rows[n:]:
        state = engine.update(state, x, arm, y, rng)
        other_state = other.update(other_state, x, arm, y + COSTS[arm], same_rng)
    for name in KindsState._fields:
        if name not in ("bases", "made_with"):
            assert bits(getattr(state, name)) == bits(getattr(other_state, name)), name
    require_same_words(engine, state, other, other_state)


def require_same_words(engine: KindsEngine, state: KindsState, other: KindsEngine, other_state: KindsState) -> None:
    """Raise unless moments, draws, densities and distributions are those beyond the bases, moved by the costs."""
    X, bases = np.random.default_rng(5).standard_normal((4, 2)), -COSTS
    shift = np.zeros((2, 3))
    shift[0] = bases

    def both(ask: Callable[[KindsEngine, KindsState, Rng], Any]) -> tuple[Any, Any]:
        return ask(engine, state, np.random.default_rng(3)), ask(other, other_state, np.random.default_rng(3))

    asked: list[Callable[[KindsEngine, KindsState, Rng], Any]] = [
        lambda e, s, _: e.moments(s, X[0]),
        lambda e, s, _: e.outlook(s, X[0])[0],
        lambda e, s, _: e.moments_many(s, X),
        lambda e, s, _: e.outlook_many(s, X)[0],
    ]
    for ask in asked:
        here, there = both(ask)
        np.testing.assert_allclose(here, there + shift, rtol=1e-9, atol=1e-12)
    here, there = both(lambda e, s, _: e.expected_means(s, X[0]))
    np.testing.assert_allclose(here, there + bases, rtol=1e-9, atol=1e-12)
    here, there = both(lambda e, s, rng: e.draw_means(s, X[0], 20, rng))
    np.testing.assert_allclose(here, there + bases, rtol=1e-9, atol=1e-12)
    for objective in (MEAN, Quantile(0.9), ExpectedShortfall(0.2), ExponentialUtility(0.1)):
        here = engine.draw_objectives(state, X[0], objective, 20, np.random.default_rng(3))
        there = other.draw_objectives(other_state, X[0], objective, 20, np.random.default_rng(3))
        np.testing.assert_allclose(here, there + bases, rtol=1e-9, atol=1e-12, err_msg=str(objective))
    here = engine.draw_objectives(state, X[0], ProbabilityAbove(2.0), 20, np.random.default_rng(3))
    for arm, base in enumerate(bases):
        above = ProbabilityAbove(2.0 - float(base))
        there = other.draw_objectives(other_state, X[0], above, 20, np.random.default_rng(3))
        np.testing.assert_allclose(here[:, arm], there[:, arm], rtol=1e-9, atol=1e-12)
    grid = np.linspace(-3, 30, 40)
    for arm, base in enumerate(bases):
        density = engine.draw_densities(state, X[0], arm, grid, 5, np.random.default_rng(3))
        np.testing.assert_allclose(
            density,
            other.draw_densities(other_state, X[0], arm, grid - base, 5, np.random.default_rng(3)),
            rtol=1e-9,
            atol=1e-12,
        )
        here, there = engine.predictive(state, X[0], arm), other.predictive(other_state, X[0], arm)
        np.testing.assert_allclose(here.cdf(grid), there.cdf(grid - base), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(here.pdf(grid), there.pdf(grid - base), rtol=1e-9, atol=1e-12)
        levels = np.array([0.01, 0.5, 0.93, 0.99])
        np.testing.assert_allclose(here.quantile(levels), there.quantile(levels) + base, rtol=1e-6, atol=1e-6)
        assert here.mean() == pytest.approx(there.mean() + base)
        assert isinstance(here, JumpMixture)
        assert isinstance(there, JumpMixture)
        assert here.probability(float(base)) == there.probability(0.0) > 0.5
        moved = there.sample(50, np.random.default_rng(3)) + base
        np.testing.assert_allclose(here.sample(50, np.random.default_rng(3)), moved, rtol=1e-9, atol=1e-12)
        values, shares = engine.draw_jumps(state, X[0], arm, 5, np.random.default_rng(3))
        others, same = other.draw_jumps(other_state, X[0], arm, 5, np.random.default_rng(3))
        np.testing.assert_allclose(values, others + base, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(shares, same)


@pytest.mark.parametrize("margin", [gamma_margin, price])
def test_what_is_learnt_and_said_is_that_of_rewards_beyond_the_bases(margin: Margins) -> None:
    require_told(margin)


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("counted_from", lambda base, reward, known: counted_from(-base, reward, known)),
        ("drawn_bases", lambda bases, n_draws, rng: np.zeros((n_draws, bases.shape[1]))),
        ("add_to_moments", lambda bases, out: None),
    ],
)
def test_planted_bugs_are_found(monkeypatch: pytest.MonkeyPatch, name: str, bug: Callable[..., Any]) -> None:
    monkeypatch.setattr(kinds_state if name == "counted_from" else kinds, name, bug)
    with pytest.raises(AssertionError):
        require_told(gamma_margin)


def test_draws_and_moments_agree_on_an_arm_whose_base_nobody_knows() -> None:
    engine = engine_of()
    engine, state = engine.with_arm(learnt(engine, profits(200)))
    assert state.bases[SPREAD, 3] == pytest.approx(COSTS.std())
    x = np.array([0.3, -0.2])
    draws = engine.draw_means(state, x, 4000, np.random.default_rng(0))
    bases = (
        draws[:, 3] - engine.draw_means(state._replace(bases=np.zeros((2, 4))), x, 4000, np.random.default_rng(0))[:, 3]
    )
    assert bases.mean() == pytest.approx(-np.median(COSTS), abs=4 * COSTS.std() / 4000**0.5)
    assert bases.std() == pytest.approx(COSTS.std(), rel=0.05)
    without = engine.moments(state._replace(bases=np.zeros((2, 4))), x)
    assert engine.moments(state, x)[1, 3] == pytest.approx(np.hypot(without[1, 3], COSTS.std()))
    state = engine.update(state, x, 3, -0.5, np.random.default_rng(2))
    assert state.bases[:, 3].tolist() == [-0.5, 0.0]


def test_an_arm_that_begins_with_a_sale_gets_its_base_with_the_first_cost() -> None:
    engine = engine_of()
    engine, state = engine.with_arm(learnt(engine, profits(200)))
    rng, x = np.random.default_rng(0), np.array([0.3, -0.2])
    state = engine.update(state, x, 3, 11.5, rng)
    assert state.bases[SPREAD, 3] > 0.0
    state = engine.update(state, x, 3, -0.5, rng)
    assert state.bases[:, 3].tolist() == [-0.5, 0.0]
    state = engine.update(state, x, 3, -1.0, rng)  # which of the two comes again and again is not known yet
    for _ in range(3):
        state = engine.update(state, x, 3, -0.5, rng)
    assert state.bases[:, 3].tolist() == [-0.5, 0.0]


def test_bases_end_where_arms_take_each_others() -> None:
    engine = engine_of()
    state = learnt(engine, profits(60))
    assert has_bases(state.bases)
    rng = np.random.default_rng(4)
    rows = [(rng.standard_normal(2), int(rng.integers(3)), -float(rng.choice(COSTS))) for _ in range(200)]
    state = learnt(engine, rows, 2, state)
    assert not has_bases(state.bases)
    assert set(state.values.tolist()) < set(-COSTS)  # they are kinds of all arms now
    state.require_sound()


@pytest.mark.parametrize("start", [41, 62, 80])
def test_values_that_looked_like_bases_are_shared_to_the_last_digit_when_bases_end(start: int) -> None:
    for seed in range(6):
        rng, engine = np.random.default_rng(seed), engine_of()
        values = np.round(rng.uniform(-2, 2, 3), 2) if seed % 2 else rng.uniform(-2, 2, 3)
        arms = [t if t < start else int(rng.integers(3)) for t in range(start + 60)]
        state = learnt(engine, [(rng.standard_normal(2), t % 3, float(values[a % 3])) for t, a in enumerate(arms)])
        assert not has_bases(state.bases)
        assert sorted(kinds_state.values_seen(state)) == sorted(values), seed


def test_a_unit_that_is_a_power_of_two_changes_nothing() -> None:
    engine, rows = engine_of(n_chains=2), profits(150)
    x, scale = np.array([0.4, 0.1]), 2.0**10
    one = learnt(engine, rows)
    other = learnt(engine, [(each, arm, scale * y) for each, arm, y in rows])
    np.testing.assert_array_equal(scale * one.bases, other.bases)
    np.testing.assert_allclose(scale * engine.moments(one, x), engine.moments(other, x), rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-95, 1e-9, 1e9, 1e95])
def test_profits_of_any_size(unit: float) -> None:
    engine = engine_of()
    state = learnt(engine, [(x, arm, unit * y) for x, arm, y in profits(120)])
    state.require_sound()
    np.testing.assert_allclose(state.bases[BASE], -unit * COSTS, rtol=1e-12)
    assert np.isfinite(engine.moments(state, np.ones(2))).all()
    assert np.isfinite(engine.draw_means(state, np.ones(2), 50, np.random.default_rng(0))).all()
    nothing_yet = learnt(engine, [(x, arm, -unit * COSTS[arm]) for x, arm, _ in profits(40)])
    assert np.isfinite(engine.moments(nothing_yet, np.ones(2))).all()


@pytest.mark.parametrize("options", [{}, {"memory": 12}, {"half_life": 200.0}, {"n_chains": 3}])
def test_a_state_with_bases_is_sound_and_goes_to_a_file_and_back(options: dict[str, Any], tmp_path: Any) -> None:
    engine = engine_of(**options)
    state = learnt(engine, profits(150))
    state.require_sound()
    assert has_bases(state.bases)
    save_state(tmp_path / "state.npz", state, engine)
    read = load_state(tmp_path / "state.npz", engine.init(), engine)
    assert bits(read) == bits(state)


def test_states_with_impossible_bases_are_refused() -> None:
    engine = engine_of()
    state = learnt(engine, profits(60))
    for bases in (np.zeros((2, 2)), np.full((2, 3), np.nan), -np.ones((2, 3))):
        with pytest.raises(InvalidArgument, match=r"state\.bases"):
            engine_of().moments(state._replace(bases=bases), np.zeros(2))
    with pytest.raises(InvalidArgument, match="bases must be True or False"):
        engine_of(bases="no")


def test_without_the_option_nothing_is_counted_from_bases() -> None:
    state = learnt(engine_of(bases=False), profits(100))
    assert not has_bases(state.bases)


@pytest.mark.parametrize("scenario", ["profits", "profits/control"])
def test_profits_are_decided_by_what_they_bring_in(scenario: str) -> None:
    environment, regret = make_scenario(scenario).environment, np.zeros(2)
    for seed in range(6):
        world = sample_world(environment, 600, np.random.default_rng(seed))
        for i, bases in enumerate((True, False)):
            policy = make_policy("nonparametric", environment.n_arms, environment.context_dim, bases=bases)
            arms = play(policy, world, np.random.default_rng(seed)).arms
            regret[i] += (world.means.max(axis=1) - world.means[np.arange(600), arms]).sum()
    assert regret[0] < 0.85 * regret[1], regret
