"""Windfalls: what parts them from other rewards, what never does, and what is said of arms that have them."""

from collections.abc import Callable
from itertools import pairwise
from math import comb

import numpy as np
import pytest

from polyarm.environments.presets import make_scenario
from polyarm.errors import InvalidArgument
from polyarm.experiments.running.play import play, sample_world
from polyarm.inference import KindsEngine, KindsState, RobustEngine, load_state, save_state
from polyarm.inference.door import copied
from polyarm.inference.kinds_state import is_parted
from polyarm.inference.windfalls import (
    EVIDENCE,
    EVIDENCE_LEFT,
    FEWEST,
    LOOKS,
    NO_LIMIT,
    Limit,
    Seen,
    are_windfalls,
    evidence,
    find_limit,
    is_opposite,
    is_windfall,
    residuals_of,
    still_parts,
)
from polyarm.kernels import stick_shares
from polyarm.kernels._jit import plain
from polyarm.kernels.robust import component
from polyarm.models import RobustMixture
from polyarm.models.objectives import MEAN, ProbabilityAbove
from polyarm.policies import make_policy
from polyarm.types import Array, Rng
from tests.contracts.states import bits
from tests.inference.learning import engine, fed

SHAPES: dict[str, Callable[[int, Rng], Array]] = {  # noise that is none of windfalls, of one sign or of both
    "normal": lambda n, rng: rng.standard_normal(n),
    "uniform": lambda n, rng: rng.random(n),
    "Laplace": lambda n, rng: rng.laplace(size=n),
    "t(2)": lambda n, rng: rng.standard_t(2, n),
    "Cauchy": lambda n, rng: rng.standard_cauchy(n),
    "exponential": lambda n, rng: rng.standard_exponential(n),
    "log-normal": lambda n, rng: np.exp(rng.standard_normal(n)),
    "two humps": lambda n, rng: rng.choice([-5.0, 5.0], n) + rng.standard_normal(n),
    "an unequal pair": lambda n, rng: rng.choice([0.0, 6.0], n, p=[0.6, 0.4]) + rng.standard_normal(n),
    "a constant": lambda n, rng: np.ones(n),
    "outliers of sd 10": lambda n, rng: rng.standard_normal(n) * np.where(rng.random(n) < 0.1, 10.0, 0.5),
    "outliers of sd 1e4": lambda n, rng: rng.standard_normal(n) * np.where(rng.random(n) < 0.02, 1e4, 0.5),
    "glitches": lambda n, rng: rng.standard_normal(n) + np.where(rng.random(n) < 0.05, rng.choice([-1e3, 1e3], n), 0.0),
}


def with_windfalls(n: int, seed: int = 0, rate: float = 0.08, size: float = 60.0, dim: int = 1) -> tuple[Array, Array]:
    """x'1 / 2 + N(0, 1), and now and then `size` times LogN(0, 0.2^2) more, the more often the higher x."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, dim))
    rates = 1 / (1 + (1 - rate) / rate * np.exp(-0.8 * x[:, 0]))
    sizes = size * np.exp(0.2 * rng.standard_normal(n))
    return 0.5 * x.sum(axis=1) + rng.standard_normal(n) + np.where(rng.random(n) < rates, sizes, 0.0), x


def seen(rewards: Array, residuals: Array | None = None, contexts: Array | None = None) -> Seen:
    """Rewards of one arm."""
    own = rewards - np.median(rewards) if residuals is None else residuals
    x = np.zeros((len(rewards), 1)) if contexts is None else contexts
    return Seen(rewards, own, x, np.zeros(len(rewards), np.int64))


def parted(n: int = 400, **options: float) -> tuple[KindsEngine, KindsState]:
    kinds = engine()
    y, x = with_windfalls(n, **options)  # type: ignore[arg-type]
    state = fed(kinds, y, x)
    assert is_parted(state)
    return kinds, state


@pytest.mark.parametrize("shape", SHAPES)
def test_ordinary_rewards_are_never_parted(shape: str) -> None:
    """Outliers of both signs are taken for windfalls in one run of EVIDENCE at most, however often it is looked."""
    wrong = 0
    for seed in range(100):
        rewards = SHAPES[shape](1000, np.random.default_rng(seed))
        wrong += any(find_limit(seen(rewards[:n])) != NO_LIMIT for n in sorted(LOOKS) if n <= 1000)
    assert wrong <= 3  # of 100 with a chance of 0.5 % each: 0.2 % have more


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize(("rate", "size"), [(0.02, 200.0), (0.05, 50.0), (0.25, 20.0), (0.1, 1e6)])
def test_windfalls_and_losses_are_parted_from_the_bulk(side: float, rate: float, size: float) -> None:
    rng = np.random.default_rng(3)
    far = rng.random(1000) < rate
    rewards = side * (rng.standard_normal(1000) + np.where(far, size * np.exp(0.2 * rng.standard_normal(1000)), 0.0))
    limit = find_limit(seen(rewards))
    assert limit.side == side
    np.testing.assert_array_equal(are_windfalls(limit, rewards), far)
    assert [is_windfall(limit, float(y)) for y in rewards] == far.tolist()
    moved = find_limit(seen(8.0 * rewards + 1024.0))
    np.testing.assert_array_equal(are_windfalls(moved, 8.0 * rewards + 1024.0), far)


def test_windfalls_that_a_line_explains_are_none() -> None:
    """Rewards of a rare group of contexts may be far from all others, residuals are not."""
    rng = np.random.default_rng(4)
    far = rng.random(500) < 0.1
    noise = rng.standard_normal(500)
    assert find_limit(seen(noise + 100.0 * far, noise)) == NO_LIMIT
    assert find_limit(seen(noise + 100.0 * far, noise + 100.0 * far)) != NO_LIMIT
    flag = np.column_stack([rng.standard_normal(500), far])  # the mixture had not learnt its slope
    assert find_limit(seen(noise + 100.0 * far, noise + 100.0 * far, flag)) == NO_LIMIT


def test_rewards_of_an_arm_that_is_far_from_all_others_are_none() -> None:
    """Its largest component is one of outliers: residuals count from the median of the arm."""
    rng = np.random.default_rng(7)
    values = rng.standard_normal(200) + np.where(np.arange(200) % 5 == 2, 60.0, 0.0)
    kinds, contexts = engine(5, 1), rng.standard_normal((200, 1))
    for n in (49, 62, 96, 200):
        state = fed(kinds, values[:n], contexts[:n])
        assert not is_parted(state)
        rest = state.rest._replace(tables=state.rest.tables.copy())
        rest.tables[2, component.MEAN : component.MEAN + 2] = 0.0  # the arm is not known for what it is
        assert np.abs(residuals_of(rest, 2, contexts[2:n:5], values[2:n:5])).max() < 5.0


def test_few_windfalls_and_small_ones_are_none() -> None:
    rng = np.random.default_rng(5)
    rewards = rng.standard_normal(500)
    rewards[: FEWEST - 1] += 100.0
    assert find_limit(seen(rewards)) == NO_LIMIT
    rewards[FEWEST - 1] += 100.0
    assert find_limit(seen(rewards)) != NO_LIMIT
    rewards[:FEWEST] -= 88.0  # 12 standard deviations in 8 of 500 rewards: what they add is noise beside the rest
    assert find_limit(seen(rewards)) == NO_LIMIT
    assert find_limit(seen(rewards[:0], rewards[:0])) == NO_LIMIT


def test_windfalls_end_when_others_come_and_when_they_are_the_rule() -> None:
    rng = np.random.default_rng(6)
    rewards = rng.standard_normal(400)
    rewards[:20] += 100.0
    limit = find_limit(seen(rewards))
    assert still_parts(limit, seen(rewards), 400)
    both = rewards.copy()
    both[20:40] -= 100.0
    assert not still_parts(limit, seen(both), 400)
    between = rewards.copy()
    between[:20], between[20:40] = np.linspace(51.0, 150.0, 20), np.linspace(49.0, 49.9, 20)
    assert not still_parts(Limit(1.0, 50.0), seen(between), 400)
    gone = rewards[20:]
    assert not still_parts(limit, seen(gone), 380)
    assert still_parts(limit, seen(gone), 4000)  # of which these are the last that can move
    rewards[:300] += 100.0
    assert not still_parts(limit, seen(rewards, rewards), 400)


def test_evidence_is_a_martingale_under_a_fair_coin() -> None:
    """So that it ever exceeds a bound with the bound's inverse as probability at most (Ville)."""
    for n in range(1, 12):
        expected = sum(comb(n, k) * 0.5**n * evidence(k, n - k) for k in range(n + 1))
        assert expected == pytest.approx(1.0, rel=1e-12)
    assert evidence(FEWEST, 0) >= EVIDENCE > evidence(FEWEST - 1, 0)
    one_more = 0.5 * (evidence(6, 3) + evidence(5, 4))
    assert one_more == pytest.approx(evidence(5, 3), rel=1e-12)
    assert evidence(FEWEST, 0) > EVIDENCE_LEFT > evidence(FEWEST, 1)


def test_looks_are_about_a_quarter_of_the_rewards_apart() -> None:
    looks = sorted(LOOKS)
    assert looks[0] == 16
    assert all(low < high <= 1.32 * low for low, high in pairwise(looks))


def test_moments_of_two_are_those_of_two_independent_parts() -> None:
    """With p Beta(a, b): E and Var of p B + (1 - p) X in closed form; E[p]^2 in place of E[p^2] is told apart."""
    x = np.zeros((400, 1))
    alone = fed(engine(), with_windfalls(400)[0], x)
    assert is_parted(alone)
    bulk, far = np.array([[1.0, -2.0], [0.3, 0.4]]), np.array([[50.0, 70.0], [5.0, 9.0]])
    out = far.copy()
    plain(stick_shares.moments_of_two)(alone.sticks, x[0], bulk, out)
    compiled = far.copy()
    stick_shares.moments_of_two(alone.sticks, x[0], bulk, compiled)
    np.testing.assert_allclose(out, compiled, rtol=1e-12)
    for arm in range(2):
        n_far = sum(is_windfall(alone.limit, float(y)) for y in alone.data[arm][:200, 2])
        a, b = 201.0 - n_far, 1.0 + n_far
        p, square = a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))
        (m, s), (M, S) = bulk[:, arm], far[:, arm]
        assert out[0, arm] == pytest.approx(p * m + (1 - p) * M)
        wanted = (square - p * p) * (M - m) ** 2 + square * s * s + (1 - 2 * p + square) * S * S
        assert out[1, arm] == pytest.approx(wanted**0.5)
        planted = p * p * s * s + (1 - p) ** 2 * S * S
        assert abs(planted**0.5 / out[1, arm] - 1) > 0.1


@pytest.mark.parametrize("at", [-1.0, 0.0, 1.5])
def test_all_that_is_said_of_an_arm_is_one_distribution(at: float) -> None:
    kinds, state = parted()
    x, rng = np.array([at]), np.random.default_rng(0)
    moments = kinds.moments(state, x)
    draws = kinds.draw_means(state, x, 40_000, rng)
    np.testing.assert_allclose(draws.mean(axis=0), moments[0], atol=0.03 * moments[1].max())
    np.testing.assert_allclose(draws.std(axis=0), moments[1], rtol=0.05)
    np.testing.assert_allclose(kinds.moments_many(state, x[None])[0], moments)
    np.testing.assert_array_equal(kinds.outlook(state, x)[0], moments)
    law = kinds.predictive(state, x, 0)
    assert law.mean() == pytest.approx(moments[0, 0], rel=1e-6)
    sample = law.sample(40_000, rng)
    share = float(kinds.draw_shares(state, x, 0, 40_000, rng)[:, 1].mean())
    assert (sample > state.limit[1]).mean() == pytest.approx(share, abs=0.01)
    points = np.array([-1.0, 0.5, 30.0, 60.0, 90.0])
    np.testing.assert_allclose((sample[:, None] <= points).mean(axis=0), law.cdf(points), atol=0.01)
    assert len(kinds.draw_jumps(state, x, 0, 10, rng)[0]) == 0
    grid = np.linspace(-12.0, 250.0, 4001)
    densities = kinds.draw_densities(state, x, 0, grid, 400, rng)
    assert np.trapezoid(densities.mean(axis=0), grid) == pytest.approx(1.0, abs=0.02)
    np.testing.assert_allclose(
        np.trapezoid(densities[:, grid > 20].mean(axis=0), grid[grid > 20]), 1 - law.cdf(20.0), atol=0.01
    )
    means = kinds.draw_objectives(state, x, MEAN, 20_000, rng)
    np.testing.assert_allclose(means.mean(axis=0), moments[0], atol=0.05 * moments[1].max())
    above = kinds.draw_objectives(state, x, ProbabilityAbove(70.0), 4000, rng)[:, 0]
    assert above.mean() == pytest.approx(1 - float(law.cdf(70.0)), abs=0.01)


def test_what_is_said_is_near_the_truth() -> None:
    kinds = KindsEngine(RobustEngine(RobustMixture(2, 1)))
    y, x = with_windfalls(3000, seed=8)
    state = fed(kinds, y, x)
    for at in (-1.0, 0.0, 1.0):
        wanted = 0.5 * at + 60 * np.exp(0.02) / (1 + 0.92 / 0.08 * np.exp(-0.8 * at))
        mean, sd = kinds.moments(state, np.array([at]))
        assert (np.abs(mean - wanted) < 3.5 * sd).all()
        assert (sd < 0.25 * wanted + 0.5).all()
        without = KindsEngine(kinds.rest, windfalls=False)
        assert (without.moments(fed(without, y[:500], x[:500]), np.array([1.0]))[0] < 6.0).all()  # the truth is 12


def test_nothing_changes_without_windfalls() -> None:
    for name in ("linear-noise", "mixture-b", "student"):
        scenario = make_scenario(name)
        world = sample_world(scenario.environment, 300, np.random.default_rng(1))
        n, d = scenario.environment.n_arms, scenario.environment.context_dim
        runs = [
            play(make_policy("nonparametric", n, d, windfalls=given), world, np.random.default_rng(2)).arms
            for given in (True, False)
        ]
        np.testing.assert_array_equal(runs[0], runs[1])
    with pytest.raises(InvalidArgument, match="windfalls must be True or False"):
        make_policy("nonparametric", 2, 1, windfalls="yes")


@pytest.mark.parametrize("factor", [2.0**-9, 2.0**12, -1.0])
def test_windfalls_have_no_unit(factor: float) -> None:
    y, x = with_windfalls(300, seed=1)
    kinds = engine()
    here, there = fed(kinds, y, x), fed(engine(), factor * y, x)
    assert here.limit[0] * np.sign(factor) == there.limit[0]
    np.testing.assert_allclose(here.limit[1] * factor, there.limit[1], rtol=1e-9)
    if factor > 0:
        one, two = kinds.moments(here, x[0]), engine().moments(there, x[0])
        np.testing.assert_allclose(one * factor, two, rtol=1e-6)


def test_a_state_with_windfalls_goes_on_from_a_file(tmp_path: object) -> None:
    kinds, state = parted()
    path = str(tmp_path) + "/state.npz"
    save_state(path, state)
    loaded = load_state(path, kinds.init())
    assert bits(loaded) == bits(state)
    y, x = with_windfalls(50, seed=9)
    one, two = (fed(kinds, y, x, 1, each) for each in (copied(state), loaded))
    assert bits(one) == bits(two)
    broken = state._replace(limit=np.array([2.0, 10.0]))
    with pytest.raises(InvalidArgument, match=r"side of state\.limit must be -1, 0 or 1"):
        kinds.moments(broken, x[0])
    broken = state._replace(amounts=kinds.init().amounts)
    with pytest.raises(InvalidArgument, match=r"state\.amounts must be on where there is a limit"):
        kinds.moments(broken, x[0])


@pytest.mark.parametrize("options", [{"memory": 60}, {"half_life": 2000.0}])
def test_windfalls_with_a_bounded_past(options: dict[str, float]) -> None:
    kinds = KindsEngine(RobustEngine(RobustMixture(2, 1), 8, 4, **options))  # type: ignore[arg-type]
    y, x = with_windfalls(1200, seed=2)
    state = fed(kinds, y, x)
    assert is_parted(state)
    state.require_sound()
    mean, sd = kinds.moments(state, np.zeros(1))
    assert (np.abs(mean - 4.9) < 4 * sd).all()
    wider, wide = kinds.with_arm(state)
    assert np.isfinite(wider.moments(wide, np.zeros(1))).all()
    fed(wider, y[:60], x[:60], 4, wide).require_sound()
    assert np.isfinite(kinds.moments(kinds.refresh(state, np.random.default_rng(0)), x[0])).all()


def test_a_level_that_changes_for_good_is_learnt_as_the_bulk() -> None:
    rng = np.random.default_rng(0)
    kinds, x = engine(), np.zeros((1500, 1))
    y = np.where(np.arange(1500) % 2 == 0, 0.0, 1.0) + 0.1 * rng.standard_normal(1500)
    y[300:] += 1000.0
    state = fed(kinds, y, x)
    mean, _ = kinds.moments(state, np.zeros(1))
    bulk = kinds.rest.moments(state.rest, np.zeros(1))[0]
    assert not is_parted(state) or state.limit[0] == -1.0
    assert 0.9 < bulk[1] - bulk[0] < 1.1
    assert (mean > 500).all()


def test_an_outlier_on_the_other_side_asks_at_once_whether_there_are_windfalls() -> None:
    rng = np.random.default_rng(0)
    kinds, x = engine(), np.zeros((200, 1))
    y = rng.standard_normal(200)
    y[20:100:10] += 300.0
    state = fed(kinds, y[:97], x[:97])
    assert is_parted(state)
    y[97] = -300.0
    assert not is_parted(fed(kinds, y[97:98], x[97:98], 1, state))
    assert is_opposite(Limit(1.0, 10.0), 2.0, -6.1)
    assert not is_opposite(Limit(1.0, 10.0), 2.0, -5.9)


def test_regret_on_windfalls_is_half_of_what_it_is_without() -> None:
    scenario = make_scenario("windfalls")
    regret = []
    for seed in range(4):
        world = sample_world(scenario.environment, 3000, np.random.default_rng(seed))
        arms = [
            play(make_policy("nonparametric", 4, 3, windfalls=given), world, np.random.default_rng(seed)).arms
            for given in (True, False)
        ]
        regret.append([(world.means.max(axis=1) - world.means[np.arange(3000), a]).sum() for a in arms])
    ours, without = np.mean(regret, axis=0)
    assert ours < 0.6 * without
