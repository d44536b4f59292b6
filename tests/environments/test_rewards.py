"""The scenarios of every kind of reward have the marginals that they promise; means are tested with all others."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from polyarm.environments import (
    Clicks,
    Counts,
    Durations,
    LinearLaplace,
    Profits,
    Purchases,
    Rates,
    Ratings,
    Refunds,
    Rounded,
    Shifted,
    UnequalNoise,
    WildStart,
    make_scenario,
)
from polyarm.environments.predictors import correlated_contexts, one_hot_contexts
from polyarm.errors import PolyarmError
from polyarm.types import Array, Environment, World

N = 40_000


def world_of(environment: Environment, seed: int, horizon: int = N) -> World:
    return environment.sample(horizon, np.random.default_rng(seed))


def z_scores(gaps: Array) -> Array:
    """Columns' means in units of their standard errors."""
    return np.asarray(gaps.mean(axis=0) / (gaps.std(axis=0) / len(gaps) ** 0.5))


@pytest.mark.parametrize("name", ["rates", "rates/rare", "rates/common", "rates/wide", "clicks", "clicks/one-hot"])
def test_clicks_are_zeros_and_ones_with_the_variance_of_a_coin(name: str) -> None:
    world = world_of(make_scenario(name).environment, 1)
    assert set(np.unique(world.rewards)) == {0.0, 1.0}
    assert np.abs(z_scores(world.rewards - world.means)).max() < 4.5
    assert (world.means > 0).all()
    assert (world.means < 1).all()


def test_rates_fill_their_range_and_differ_between_worlds() -> None:
    rates = np.concatenate([world_of(Rates(0.005, 0.4), seed, 1).means[0] for seed in range(300)])
    assert stats.kstest(np.log(rates), "uniform", (np.log(0.005), np.log(80))).pvalue > 1e-4


@pytest.mark.parametrize(("name", "rate"), [("clicks/rare", 0.02), ("clicks", 0.15), ("clicks/frequent", 0.4)])
def test_the_middle_of_the_rates_is_the_one_asked_for(name: str, rate: float) -> None:
    worlds = [world_of(make_scenario(name).environment, seed, 200) for seed in range(100)]
    assert np.median(np.concatenate([world.means for world in worlds])) == pytest.approx(rate, rel=0.15)


def test_columns_are_correlated_or_one_hot() -> None:
    correlated = correlated_contexts(N, 4, np.random.default_rng(2))
    distance = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    assert np.cov(correlated.T) == pytest.approx(0.9**distance, abs=0.03)
    one_hot = one_hot_contexts(N, 5, np.random.default_rng(3))
    assert (one_hot[:, :2].sum(axis=1) == 1).all()
    assert (one_hot[:, 2:].sum(axis=1) == 1).all()
    shares = np.array([2 / 3, 1 / 3, 6 / 11, 3 / 11, 2 / 11])
    assert one_hot.mean(axis=0) == pytest.approx(shares, abs=0.012)
    assert (one_hot_contexts(5, 1, np.random.default_rng(4)) == 1).all()


def residuals(world: World, arm: int) -> Array:
    """What the logarithm of positive rewards leaves when it is regressed on the context."""
    keep = world.rewards[:, arm] > 0
    design = np.column_stack([np.ones(len(keep)), world.contexts])[keep]
    target = np.log(world.rewards[keep, arm])
    return np.asarray(target - design @ np.linalg.lstsq(design, target, rcond=None)[0])


def test_amounts_follow_their_law() -> None:
    normal, gamma = (world_of(Purchases(amounts=law, rate=0.5), 5) for law in ("log-normal", "gamma"))
    log_gamma = np.log(np.random.default_rng(6).standard_gamma(2.0, N))
    for arm in range(4):
        left = residuals(normal, arm)
        assert left.std() == pytest.approx(0.8, abs=0.025)
        assert stats.kstest(left / left.std(), "norm").pvalue > 1e-4
        left = residuals(gamma, arm)
        assert stats.ks_2samp(left, log_gamma - log_gamma.mean()).pvalue > 1e-4
        assert stats.kstest(left / left.std(), "norm").pvalue < 1e-4  # the two laws can be told apart


def test_a_zero_is_no_purchase_and_the_fee_is_paid_again_and_again() -> None:
    world = world_of(Purchases(), 7)
    share = (world.rewards == 0).mean(axis=0)
    assert ((share > 0.5) & (share < 0.98)).all()
    fee = world_of(Purchases(rate=0.4, fee=5.0), 8)
    kinds = [(fee.rewards == 0).mean(), (fee.rewards == 5).mean()]
    assert min(*kinds, 1 - sum(kinds)) > 0.1
    rest = fee.rewards[(fee.rewards != 0) & (fee.rewards != 5)]
    assert len(np.unique(rest)) == len(rest)


def test_refunds_have_both_signs_and_the_cost_asked_for() -> None:
    world = world_of(Refunds(cost=6.0), 9)
    negative = world.rewards[world.rewards < 0]
    assert negative.mean() == pytest.approx(-6.0, abs=0.15)
    assert stats.kstest(-negative, "gamma", (2.0, 0.0, 3.0)).pvalue > 1e-4
    assert min((world.rewards == 0).mean(), (world.rewards > 0).mean(), (world.rewards < 0).mean()) > 0.05


def test_profits_are_margins_less_what_every_arm_costs() -> None:
    world = world_of(Profits(rate=0.3), 11)
    costs = -world.rewards.min(axis=0)
    assert ((costs >= 0) & (costs <= 2) & (np.abs(100 * costs - np.round(100 * costs)) < 1e-9)).all()
    assert len(np.unique(costs)) == 4
    assert ((world.rewards == -costs).mean(axis=0) > 0.3).all()
    price = world_of(Profits(margins="price", price=5.0), 12)
    for arm in range(4):
        low, high = np.unique(price.rewards[:, arm])
        assert high - low == pytest.approx(5.0)
    control = world_of(Profits(control=True), 13)
    assert (control.rewards[:, 0] == 0).all()
    assert (control.means[:, 0] == 0).all()
    assert (np.abs(control.means[:, 1:]) > 0).all()


def test_durations_have_their_means_and_laws() -> None:
    laws = {
        "gamma": ("gamma", (0.3, 0.0, 1 / 0.3)),
        "weibull": ("weibull_min", (0.5, 0.0, 0.5)),
        "log-normal": ("lognorm", (2.0, 0.0, np.exp(-2.0))),
        "exponential": ("expon", (0.0, 1.0)),
        "erlang": ("gamma", (3.0, 0.0, 1 / 3)),
    }
    for seed, (law, (name, options)) in enumerate(laws.items(), start=20):
        world = world_of(Durations(law=law), seed)  # type: ignore[arg-type]
        assert (world.rewards > 0).all()
        assert getattr(stats, name)(*options).mean() == pytest.approx(1.0)
        for arm in range(4):
            assert stats.kstest(world.rewards[:, arm] / world.means[:, arm], name, options).pvalue > 1e-4


@pytest.mark.parametrize("dispersion", [0.0, 0.5])
def test_counts_are_whole_with_their_variance(dispersion: float) -> None:
    world = world_of(Counts(dispersion=dispersion), 10)
    assert (world.rewards == np.round(world.rewards)).all()
    assert (world.rewards >= 0).all()
    m = world.means
    assert np.abs(z_scores(((world.rewards - m) ** 2 - m - dispersion * m**2) / (m + m**2))).max() < 4.5


def test_marks_have_the_ordinal_probabilities() -> None:
    bandit = Ratings()
    world = world_of(bandit, 11)
    assert set(np.unique(world.rewards)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    grid = np.linspace(-12, 12, 20_001)
    latent = np.interp(world.means, 1 + expit(grid[:, None] - np.array(bandit.cuts)).sum(axis=1), grid)
    for k, cut in enumerate(bandit.cuts, start=1):
        assert np.abs(z_scores((world.rewards > k) - expit(latent - cut))).max() < 4.5


def test_laplace_and_unequal_noise() -> None:
    laplace = world_of(LinearLaplace(6), 12)
    noise = laplace.rewards - laplace.means
    assert stats.kstest(noise[:, 0], "laplace", (0, 0.5**0.5)).pvalue > 1e-4
    assert [make_scenario(f"laplace/{n}-arms").environment.n_arms for n in (6, 20)] == [6, 20]
    unequal = world_of(UnequalNoise(), 13)
    spread = (unequal.rewards - unequal.means).std(axis=0)
    assert spread == pytest.approx(np.geomspace(0.05, 20, 6), rel=0.02)


@pytest.mark.parametrize("name", ["heavy-tailed", "linear-noise"])
def test_disguises_keep_the_world(name: str) -> None:
    plain, rounded, shifted, wild = (
        world_of(make_scenario(f"{name}/{guise}".rstrip("/")).environment, 14, 300)
        for guise in ("", "rounded", "shifted", "wild-start")
    )
    assert np.abs(rounded.rewards - plain.rewards).max() <= 0.005 + 1e-12
    assert len(np.unique(np.round(rounded.rewards, 6))) < rounded.rewards.size
    gap = shifted.contexts - plain.contexts
    assert gap == pytest.approx(np.full_like(gap, gap[0, 0]))
    spread = 12**-0.5 if name == "heavy-tailed" else 1.0  # of a U(0, 1) and of a standard normal column
    assert gap[0, 0] == pytest.approx(100 * spread)
    assert (np.abs(wild.rewards[0] - plain.rewards[0]) > 9e4).all()
    assert np.array_equal(wild.rewards[1:], plain.rewards[1:])
    for other in (rounded, shifted, wild):
        assert np.array_equal(other.means, plain.means)


@pytest.mark.parametrize("sd", [30, 10_000])
def test_outliers_of_any_size(sd: int) -> None:
    world = world_of(make_scenario(f"linear-outliers/sd-{sd}").environment, 15)
    gaps = np.abs(world.rewards - world.means)
    assert (gaps > sd).mean() == pytest.approx(0.1 * 0.3173, abs=0.003)  # P(|N(0, 1)| > 1)


def test_impossible_settings_are_told() -> None:
    for build, message in (
        (lambda: Rates(0.4, 0.1), "lowest and highest must be"),
        (lambda: Clicks(rate=1.0), "rate must be"),
        (lambda: Clicks(columns="sparse"), "columns must be one of"),  # type: ignore[arg-type]
        (lambda: Purchases(amounts="pareto"), "amounts must be one of"),  # type: ignore[arg-type]
        (lambda: Purchases(fee=-1.0), "fee must be"),
        (lambda: Refunds(cost=0.0), "cost must be"),
        (lambda: Profits(margins="pareto"), "margins must be one of"),  # type: ignore[arg-type]
        (lambda: Profits(cost=-1.0), "cost must be"),
        (lambda: Profits(price=0.0), "price must be"),
        (lambda: Profits(control=1), "control must be"),  # type: ignore[arg-type]
        (lambda: Durations(law="pareto"), "law must be one of"),  # type: ignore[arg-type]
        (lambda: Counts(dispersion=-1.0), "dispersion must be"),
        (lambda: Ratings(cuts=(1.0, 0.0)), "cuts must be"),
        (lambda: LinearLaplace(noise_sd=0.0), "noise_sd must be"),
        (lambda: UnequalNoise(lowest_sd=30.0), "lowest_sd and highest_sd must be"),
        (lambda: Rounded(Rates(0.1, 0.2), 0.0), "grid must be"),
        (lambda: Shifted(Rates(0.1, 0.2), np.nan), "shift must be"),
        (lambda: WildStart(Rates(0.1, 0.2), 0.0), "size must be"),
    ):
        with pytest.raises(PolyarmError, match=message):
            build()
