"""Amounts beside single values: where their model begins and ends, what it changes, and that nothing else does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm.errors import BrokenFile, PolyarmError
from polyarm.inference import KindsEngine, KindsState, RobustEngine, load_state, save_state
from polyarm.inference.amounts import (
    EVEN,
    FAR,
    TRUST,
    are_amounts,
    are_of_many_sizes,
    are_of_several_sizes,
    gamma_slices,
    is_on,
    side_of,
    size_ratio,
)
from polyarm.inference.door import copied
from polyarm.inference.state_file import leaves
from polyarm.kernels import amounts as kernels
from polyarm.kernels.amounts import AMOUNT_UNIT, GAMMA_SHAPE, HIGHEST, OFF, ON, ORIGIN, STATUS, WAITING
from polyarm.models import AmountMixture, JumpMixture, RobustMixture, StudentMixture
from polyarm.models.objectives import MEAN, ProbabilityAbove, Quantile
from polyarm.policies import make_policy
from polyarm.types import Array
from tests.contracts.states import bits
from tests.inference.learning import engine, fed

FILES = Path(__file__).parent / "files"


def purchases(n: int, seed: int = 0, spread: float = 0.6) -> tuple[Array, Array]:
    """Nothing, or an amount whose mean is 8 exp(0.6 x)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    amounts = 8 * np.exp(0.6 * x[:, 0] + spread * rng.standard_normal(n) - 0.5 * spread**2)
    return np.where(rng.random(n) < 0.4, 0.0, amounts), x


def payments(n: int, seed: int = 0, shape: float = 0.3) -> tuple[Array, Array]:
    """Never nothing, but amounts of many sizes whose mean is 2 exp(0.6 x)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    return 2 * np.exp(0.6 * x[:, 0]) * rng.standard_gamma(shape, n) / shape, x


def status(state: KindsState) -> int:
    return int(state.amounts.model.level[STATUS])


def test_the_model_begins_with_the_eighth_amount_and_its_mean_is_on_a_curve() -> None:
    y, x = purchases(800)
    kinds = engine()
    first = int(np.flatnonzero(np.cumsum(y > 0) == 8)[0])
    assert status(fed(kinds, y[:first], x[:first])) == WAITING
    begun = fed(kinds, y[: first + 1], x[: first + 1])
    assert status(begun) == ON
    np.testing.assert_array_equal(begun.amounts.weights, 0.5)
    state = fed(kinds, y, x)
    assert state.amounts.weights[1] > 0.9
    for at in (-1.5, 0.0, 1.5):
        out, wanted = np.zeros((2, 2)), 8 * np.exp(0.6 * at)
        kernels.moments(state.amounts.model, np.array([0.0, 1.0]), np.array([at]), out)
        np.testing.assert_allclose(out[0], wanted, rtol=0.12)
        assert (np.abs(out[0] - wanted) < 3 * out[1]).all()
        mean, sd = kinds.moments(state, np.array([at]))
        assert (np.abs(mean - 0.6 * wanted) < 3 * sd).all()


def test_amounts_on_a_line_are_left_to_the_other_model() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (900, 1))
    y = np.where(rng.random(900) < 0.4, 0.0, 10 + 9 * x[:, 0] + 0.3 * rng.standard_normal(900))
    state = fed(engine(), y, x)
    assert is_on(state.amounts)
    assert state.amounts.weights[0] > 0.9


@pytest.mark.parametrize(
    ("values", "amounts", "wanted"),
    [
        ([0.0], [1.0, 4.0], (0.0, 2.5)),
        ([0.0, 5.0], [1.0, 16.0], (0.0, 8.5)),
        ([-3.0], [-2.0, 1.0], (-3.0, 2.5)),
        ([0.0], [-1.0, -4.0], (0.0, -2.5)),
        ([0.0, -5.0], [-1.0, -9.0], (0.0, -5.0)),
        ([], [1.0, 4.0], (0.0, 2.5)),
        ([], [-1.0, -4.0], (0.0, -2.5)),
        ([0.0], [1.0] * 8 + [1e9], (0.0, (8.0 + FAR * 10.0) / 9.0)),  # their geometric mean is 10
        ([0.0], [-1.0, 4.0], None),
        ([0.0, 9.0], [-1.0, 12.0], None),
        ([0.0], [0.0, 1.0, 4.0, -1e-15], (0.0, 2.5)),
        ([0.0], [0.0, -1.0, -4.0], (0.0, -2.5)),
        ([0.0], [0.0, 0.0], None),
    ],
)
def test_the_side_that_amounts_are_on(
    values: list[float], amounts: list[float], wanted: tuple[float, float] | None
) -> None:
    found = side_of(amounts, np.array(values))
    assert found == (None if wanted is None else pytest.approx(wanted))


def test_a_reward_on_the_other_side_ends_the_model_until_kinds_change() -> None:
    y, x = purchases(100, 2)
    kinds = engine()
    state = fed(kinds, y, x)
    assert status(state) == ON
    state = fed(kinds, np.array([-2.5]), x[:1], 1, state)
    assert status(state) == OFF
    assert all(len(rows) == 0 for rows in state.amounts.data)
    state = fed(kinds, y, x, 2, state)
    assert status(state) == OFF
    np.testing.assert_array_equal(kinds.moments(state, x[0])[0] > 0, True)
    state = fed(kinds, np.where(y == 0, 0.0, 6.5), x, 3, state)  # a second value that comes again and again
    state = fed(kinds, np.full(400, 6.5), np.zeros((400, 1)), 4, state)
    assert 6.5 in state.values
    assert status(state) == WAITING
    assert status(fed(kinds, np.array([3.0]), x[:1], 5, state)) == OFF  # the refund is still remembered


def test_nothing_changes_where_rewards_are_of_few_sizes_and_where_the_rest_is_one_value() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((80, 1))
    for y in (rng.lognormal(0.0, 0.3, 80), rng.integers(2, size=80).astype(float)):
        state = fed(engine(), y, x)
        assert status(state) == WAITING
        assert state.amounts.model.fits.size == 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rewards_of_many_sizes_on_one_side_of_0_are_amounts_without_any_kind(sign: float) -> None:
    y, x = payments(600)
    kinds = engine()
    begun = next(n for n in (8, 16, 32, 64) if are_of_many_sizes(y[:n]))
    assert status(fed(kinds, y[: begun - 1], x[: begun - 1])) == WAITING
    state = fed(kinds, sign * y[:begun], x[:begun])
    assert status(state) == ON
    assert len(state.values) == 0
    assert state.amounts.weights[1] == TRUST
    assert state.amounts.model.sums[:, 0].sum() == begun
    state = fed(kinds, sign * y, x)
    for at in (-1.0, 0.0, 1.5):
        mean, sd = kinds.moments(state, np.array([at]))
        assert (np.abs(mean - sign * 2 * np.exp(0.6 * at)) < 3 * sd).all()
    np.testing.assert_array_equal(kinds.outlook(state, np.zeros(1))[1], 1.0)
    np.testing.assert_array_equal(kinds.outlook_many(state, np.zeros((2, 1)))[1], 1.0)
    state = fed(kinds, np.array([-sign]), x[:1], 1, state)
    assert status(state) == OFF
    assert status(fed(kinds, sign * y, x, 2, state)) == OFF


def test_how_many_sizes_make_amounts() -> None:
    rng = np.random.default_rng(0)
    gamma = rng.standard_gamma(0.3, 64)
    for enough in (are_of_many_sizes, are_of_several_sizes):
        assert enough(gamma)
        assert enough(-1e6 * gamma)
        assert enough(np.append(gamma[:-1], 0.0))
        assert not enough(np.append(gamma[:-1], -1e-9))
        assert not enough(np.zeros(64))
        assert not enough(np.append(gamma[:40], np.zeros(24)))
        assert not enough(10 + gamma)
    for n, enough, least in (
        (8, are_of_many_sizes, 2.2 + 4 / 8**0.5),
        (64, are_of_many_sizes, 2.2 + 4 / 8),
        (32, are_of_several_sizes, 0.8),
        (128, are_of_several_sizes, 0.8),
    ):
        for ratio, wanted in ((1.01 * np.exp(least), True), (0.99 * np.exp(least), False)):
            y = np.repeat([1.0, ratio], n // 2)
            assert size_ratio(-y) == pytest.approx(ratio)
            assert bool(enough(y)) is wanted
    assert not are_of_several_sizes(gamma[:31])
    found = {n: sum(are_of_many_sizes(rng.exponential(size=n)) for _ in range(500)) for n in (8, 16, 32, 64)}
    assert max(found.values()) <= 15  # exponential ones hardly ever are of many sizes
    assert all(are_of_several_sizes(rng.exponential(size=64)) for _ in range(50))
    assert not are_of_several_sizes(5 + rng.standard_normal(1000))


@pytest.mark.parametrize(("scale", "wanted"), [(0.1, [True, True]), (1.0, [False, True])])
def test_counts_and_marks_must_be_of_many_sizes(scale: float, wanted: list[bool]) -> None:
    """While rewards lie on a grid there are other models for them."""
    y = np.random.default_rng(0).standard_gamma(scale, 64)
    assert [are_amounts(y, on_grid) for on_grid in (True, False)] == wanted


def test_several_sizes_begin_with_even_weights_and_many_with_trust() -> None:
    rng = np.random.default_rng(5)
    y, x = rng.lognormal(size=64), rng.uniform(-1, 1, (64, 1))
    for n, wanted in ((31, WAITING), (32, ON)):
        state = fed(engine(), y[:n], x[:n])
        assert status(state) == wanted
    assert state.amounts.weights.tolist() == [1 - EVEN, EVEN]
    counts = fed(engine(), np.floor(20 * y) + 1, x)
    assert (status(counts), len(counts.values)) == (WAITING, 0)


@pytest.mark.parametrize("share", [0.02, 0.15])
def test_amounts_of_nothing_now_and_then_are_amounts(share: float) -> None:
    y, x = payments(900, 15)
    y[np.random.default_rng(0).random(900) < share] = 0.0
    y[3] = 0.0
    kinds = engine()
    state = fed(kinds, y, x)
    assert len(state.values) == 0
    assert status(state) == ON
    assert state.amounts.model.sums[:, 0].sum() == 900
    mean, sd = kinds.moments(state, np.zeros(1))
    assert (np.abs(mean - 2 * (1 - share)) < 3 * sd).all()
    assert (np.abs(mean / 2 - 1 + share) < 0.35).all()
    assert 0.1 < state.amounts.model.level[GAMMA_SHAPE] < 0.5


def test_rewards_whose_kinds_are_gone_are_amounts_only_where_they_are_of_several_sizes() -> None:
    for more, wanted in ((0.0, ON), (10.0, WAITING)):
        y, x = payments(400, 13)
        y[6:] += more
        y[:6] = 0.0
        state = fed(engine(half_life=40.0), y, x)
        assert len(state.values) == 0
        assert status(state) == wanted
    y, x = payments(400, 14)
    for options in ({"memory": 9}, {"half_life": 4.0}, {"half_life": 30.0, "memory": 7}):
        state = fed(engine(**options), y, x)
        state.require_sound()
        assert status(state) == ON


@pytest.mark.parametrize(("scale", "shift"), [(1e6, 0.0), (1e-6, 0.0), (-1.0, 0.0), (2.0, 100.0), (-0.5, -7.0)])
def test_units_origins_and_signs_of_amounts_hardly_matter(scale: float, shift: float) -> None:
    y, x = purchases(500, 4)
    kinds = engine()
    one, two = fed(kinds, y, x), fed(kinds, shift + scale * y, x)
    assert np.sign(two.amounts.model.level[AMOUNT_UNIT]) == np.sign(scale)
    a, b = kinds.expected_means(one, np.array([0.5])), kinds.expected_means(two, np.array([0.5]))
    np.testing.assert_allclose((b - shift) / scale, a, rtol=0.1)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("paid", [purchases, payments])
def test_draws_objectives_and_predictions_agree_with_moments(paid: Any, sign: float) -> None:
    y, x = paid(150, 5)
    kinds, rng, at = engine(), np.random.default_rng(0), np.array([0.5])
    state = fed(kinds, sign * y, x)
    state.amounts.weights[:] = state.amounts.density_weights[:] = 0.3, 0.7
    mean, sd = kinds.moments(state, at)
    draws = kinds.draw_means(state, at, 40_000, rng)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * sd.max() / 200)
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.03)
    np.testing.assert_allclose(kinds.moments_many(state, np.stack([at, at]))[1], [mean, sd])
    worths = kinds.draw_objectives(state, at, MEAN, 4000, rng)
    np.testing.assert_allclose(worths.mean(axis=0), mean, atol=6 * sd.max() / 63)
    found = kinds.predictive(state, at, 1)
    assert isinstance(found, JumpMixture)
    assert isinstance(found.rest, AmountMixture)
    assert found.mean() == pytest.approx(mean[1], rel=1e-6)
    for level in (-10.0, 5.0, 12.0):
        above = kinds.draw_objectives(state, at, ProbabilityAbove(level), 4000, rng)[:, 1].mean()
        assert above == pytest.approx(1 - float(found.cdf(level)), abs=0.03)
    assert (found.sample(4000, rng) == 0.0).mean() == pytest.approx(found.probability(0.0), abs=0.04)
    for grid in (sign * np.linspace(0.2, 200, 8001), -sign * np.linspace(0.2, 200, 8001)):  # at 0 there may be a pole
        step = abs(grid[1] - grid[0])
        smooth = kinds.draw_densities(state, at, 1, grid, 400, rng).mean(axis=0)
        inside = abs(float(found.cdf(grid[-1]) - found.cdf(grid[0])))
        assert smooth.sum() * step == pytest.approx(inside, abs=0.03)
        assert np.abs(smooth - found.pdf(grid)).sum() * step < 0.1


@pytest.mark.parametrize("shape", [0.05, 0.7, 3.0, 1e4])
def test_slices_of_a_gamma_have_its_mean_and_its_quantiles(shape: float) -> None:
    slices = gamma_slices(shape)
    assert (np.diff(slices) >= 0).all()
    assert slices.mean() == pytest.approx(1.0, rel=1e-9)
    median = float(Quantile(0.5).of_mixture(np.full(32, 1 / 32), slices, 0.0))
    draws = np.random.default_rng(0).standard_gamma(shape, 100_000) / shape
    assert (draws <= median).mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("unit", [10.0, -10.0])
def test_the_distribution_of_amounts_is_one(unit: float) -> None:
    base = StudentMixture(np.ones(1), np.array([4.0]), np.array([3.0]), np.array([2.0]))
    law = AmountMixture(base, 0.3, np.array([0.2, 0.5]), np.array([0.5, 2.0]), shape=1.7, origin=1.0, unit=unit)
    rng = np.random.default_rng(0)
    grid = np.linspace(-400, 400, 800_001)
    density = law.pdf(grid)
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=1e-3)
    assert (density * grid).sum() * (grid[1] - grid[0]) == pytest.approx(law.mean(), abs=0.02)
    middle = 0.5 * (grid[1:] + grid[:-1])
    np.testing.assert_allclose(np.diff(law.cdf(grid)), law.pdf(middle) * (grid[1] - grid[0]), atol=2e-7)
    p = np.array([0.001, 0.2, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(law.cdf(law.quantile(p)), p, rtol=1e-9)
    np.testing.assert_array_equal(law.quantile(np.array([0.0, 1.0])), [-np.inf, np.inf])
    assert np.isnan(law.quantile(1.5))
    sample = law.sample(200_000, rng)
    np.testing.assert_allclose((sample[:, None] <= law.quantile(p)).mean(axis=0), p, atol=5e-3)
    assert law.mean() == pytest.approx(0.3 * 3 + 0.7 * 1 + unit * (0.2 * 0.5 + 0.5 * 2.0))


def test_memory_bounds_the_state_and_half_life_forgets() -> None:
    y, x = purchases(400, 6)
    state = fed(engine(memory=12), y, x)
    assert status(state) == ON
    assert all(len(rows) <= 12 for rows in state.amounts.data)
    kinds = engine(half_life=60.0)
    later, _ = purchases(300, 7)
    state = fed(kinds, np.concatenate([y, 5 * later]), np.concatenate([x, x[:300]]))
    assert state.amounts.model.sums[:, 0].sum() < 120
    np.testing.assert_allclose(kinds.expected_means(state, np.zeros(1)), 24.0, rtol=0.6)


@pytest.mark.parametrize("later", [{"memory": 5}, {"memory": 30}, {}])
@pytest.mark.parametrize("options", [{}, {"memory": 20}])
@pytest.mark.parametrize("paid", [purchases, payments])
def test_memory_can_change(paid: Any, options: dict[str, Any], later: dict[str, Any], tmp_path: Path) -> None:
    y, x = paid(100, 8)
    kinds, after = engine(**options), engine(**later)
    state = load_state(save_state(tmp_path / "state", fed(kinds, y, x), kinds), policy=after)
    n = state.amounts.model.sums[:, 0].sum()
    before = after.expected_means(state, x[0])
    state = fed(after, np.array([y[y > 0].mean()]), x[:1], 1, state)
    assert state.amounts.model.sums[:, 0].sum() == n + 1
    np.testing.assert_allclose(after.expected_means(state, x[0]), before, rtol=0.35)
    state = fed(after, y, x, 2, state)
    assert all(len(rows) <= later.get("memory", 1000) for rows in state.amounts.data)
    state.require_sound()


@pytest.mark.parametrize("paid", [purchases, payments])
def test_a_new_arm_starts_from_what_the_arms_share(paid: Any) -> None:
    y, x = paid(300, 9)
    kinds = engine()
    state = fed(kinds, y, x)
    state.amounts.weights[:] = 0.0, 1.0
    wider, grown = kinds.with_arm(state)
    before, after = kinds.moments(state, x[0]), wider.moments(grown, x[0])
    np.testing.assert_allclose(after[:, :2], before, rtol=1e-6)
    assert after[1, 2] > 2 * before[1].max()
    assert 0.3 < after[0, 2] / before[0].mean() < 3
    fed(wider, y, x, 1, grown).require_sound()


def test_a_file_of_a_version_without_amounts_goes_on_with_them() -> None:
    policy: Any = make_policy("nonparametric", 2, 1, memory=16)
    state = load_state(FILES / "kinds-without-amounts.npz", policy=policy)
    assert (state.n_rewards, status(state)) == (60, WAITING)
    x = purchases(2, 10)[1]
    after = fed(policy.engine, np.array([3.0, 9.0]), x, 1, state)
    assert status(after) == ON
    after.require_sound()
    with pytest.raises(BrokenFile):
        load_state(FILES / "kinds-without-amounts.npz", policy=make_policy("nonparametric", 3, 1))


@pytest.mark.parametrize("paid", [purchases, payments])
def test_a_file_continues_bit_for_bit(paid: Any, tmp_path: Path) -> None:
    y, x = paid(80, 11)
    kinds = engine()
    state = fed(kinds, y, x)
    loaded = load_state(save_state(tmp_path / "state", state, kinds), policy=kinds)
    assert bits(loaded) == bits(state)
    assert bits(fed(kinds, y, x, 1, state)) == bits(fed(kinds, y, x, 1, loaded))


BROKEN: dict[str, Any] = {
    "weights": lambda amounts: amounts.weights.__setitem__(0, -0.1),
    "waiting, off or on": lambda amounts: amounts.model.level.__setitem__(STATUS, 3.0),
    "of 0 arms": lambda amounts: amounts.model.level.__setitem__(STATUS, 1.0),
    "unit": lambda amounts: amounts.model.level.__setitem__(AMOUNT_UNIT, 0.0),
    "amounts of arm 0": lambda amounts: amounts.model.level.__setitem__(ORIGIN, 9.0),
    "shape": lambda amounts: amounts.model.level.__setitem__(GAMMA_SHAPE, 0.0),
    "largest": lambda amounts: amounts.model.level.__setitem__(HIGHEST, 0.0),
    "variances": lambda amounts: amounts.model.guess.__setitem__((1, 0), 0.0),
    "diagonals": lambda amounts: amounts.model.fits.__setitem__((0, 0, 0), 0.0),
    "counts of at least 0": lambda amounts: amounts.model.sums.__setitem__((0, 0), -1.0),
    "ROWS": lambda amounts: amounts.model.sizes.__setitem__((0, 0), 10_000),
    "NEXT": lambda amounts: amounts.model.sizes.__setitem__((0, 1), -1),
    "columns": lambda amounts: amounts.model.columns.__setitem__((0, 0), 0.0),
    "finite": lambda amounts: amounts.model.sums.__setitem__((0, 1), np.nan),
}


@pytest.mark.parametrize("named", BROKEN)
def test_broken_states_are_refused_by_name(named: str) -> None:
    kinds = engine()
    y, x = purchases(60, 12)
    state = copied(fed(kinds, y, x))
    BROKEN[named](state.amounts)
    with pytest.raises(PolyarmError, match=named):
        kinds.moments(state, x[0])


@pytest.mark.parametrize("wild", [1e6, -1e6])
def test_wild_contexts_and_amounts_leave_every_number_finite(wild: float) -> None:
    y, x = purchases(300, 13)
    x[60::20] = wild
    y[75::30] = 1e12
    kinds = engine()
    state = fed(kinds, y, x)
    state.require_sound()
    assert np.isfinite(kinds.moments(state, np.array([wild]))).all()
    assert np.isfinite(kinds.predictive(state, np.array([wild]), 0).mean())


def test_states_without_weights_of_densities_begin_with_those_of_means() -> None:
    y, x = payments(100, 21)
    kinds = engine()
    state = fed(kinds, y, x)
    without = copied(state)
    without.amounts.density_weights[:] = 1.0, 0.0  # as a file of an earlier version is read
    state.amounts.density_weights[:] = state.amounts.weights
    one, two = (fed(kinds, y[:1], x[:1], 3, each) for each in (state, without))
    assert one.amounts.density_weights[1] > 0
    np.testing.assert_array_equal(one.amounts.density_weights, two.amounts.density_weights)


def test_each_earlier_version_had_fewer_fields() -> None:
    state = KindsEngine(RobustEngine(RobustMixture(2, 1)), n_chains=2).init()
    names = [{name.removeprefix("state.") for name, _ in leaves(state, earlier=n)} for n in range(8)]
    assert names[0] - names[1] == {"bases"}
    assert names[1] - names[2] == {"limit"}
    assert {name.rpartition(".")[2] for name in names[2] - names[3]} == {"centre_ratio"}
    assert {name.partition(".")[0] for name in names[3] - names[4]} == {"other_chains"}
    assert names[4] - names[5] == {"amounts.density_weights"}
    assert {name.partition(".")[0] for name in names[5] - names[6]} == {"amounts"}
    assert {name.partition(".")[0] for name in names[6] - names[7]} == {"links"}
    assert not any(name.startswith(("amounts", "links", "other_chains")) for name in names[7])


def test_two_humps_are_told_from_one_where_means_are_alike() -> None:
    """The gamma model may be as good for the mean, but no distribution of amounts is taken from it."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((600, 1))
    y = np.where(rng.random(600) < 0.5, 1.0, 9.0) * np.exp(0.1 * rng.standard_normal(600))
    kinds = KindsEngine(RobustEngine(RobustMixture(2, 1)))  # with few moves two humps are found slowly
    state = fed(kinds, y, x)
    assert status(state) == ON
    assert state.amounts.density_weights[0] > 0.99
    law = kinds.predictive(state, np.zeros(1), 0)
    assert float(law.cdf(6.0) - law.cdf(3.0)) < 0.1
    y = rng.standard_gamma(1.0, 600) * np.exp(0.8 * x[:, 0])
    assert fed(kinds, y, x).amounts.density_weights[1] > 0.99
