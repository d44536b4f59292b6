"""Counts and marks beside the default model: where they begin and end, what they change, and that nothing else does."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm.errors import BrokenFile, PolyarmError
from polyarm.inference import load_state, save_state
from polyarm.inference.door import copied
from polyarm.inference.links import LinkModels, LinkState, Reward, is_on
from polyarm.inference.links_grid import OFF, WATCHED, place
from polyarm.kernels import links as kernels
from polyarm.kernels.links import ALIVE, COUNTS, FAMILIES, HIGHEST, LOWEST, MARKS, STATUS, STEP
from polyarm.models import JumpMixture
from polyarm.models.objectives import MEAN, ProbabilityAbove
from polyarm.policies import make_policy
from polyarm.types import Array
from tests.contracts.states import bits, position
from tests.inference.learning import engine, fed

FILES = Path(__file__).parent / "files"


def counts(n: int, seed: int = 0, level: float = 3.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    return rng.poisson(level * np.exp(0.5 * x[:, 0])).astype(float), x


def stars(n: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    latent = 1.5 * x[:, 0] + rng.logistic(size=n)
    return 1.0 + (latent[:, None] > [-2.5, -1.0, 0.5, 2.0]).sum(axis=1), x


def grid_of(values: list[float]) -> Array:
    grid = np.zeros(ALIVE + FAMILIES)
    for value in values:
        if grid[STATUS] == WATCHED:
            place(grid, value)
    return grid


GRIDS: dict[str, tuple[list[float], float | None]] = {
    "counts": ([3, 0, 1, 7, 2], 1.0),
    "even counts": ([2, 0, 8, 4], 2.0),
    "a step found late": ([0, 6, 9, 3, 5], 1.0),
    "stars": ([4, 5, 1, 3], 1.0),
    "percentages": ([25, 100, 0, 50, 75], 25.0),
    "half stars": ([3.5, 4.0, 1.0, 2.5], 0.5),
    "tenths": ([0.1 * k for k in (3, 7, 1, 12, 6)], 0.1),
    "dimes around a million": ([1e6 + 0.1 * k for k in (3, 7, 1, 12, 6)], 0.1),
    "units of 1e12": ([1e12 * k for k in (3, 1, 5, 0)], 1e12),
    "units of 1e-12": ([1e-12 * k for k in (3, 1, 5, 0)], 1e-12),
    "two values": ([0, 1, 0, 1], 1.0),
    "one value": ([5, 5, 5], 0.0),
    "continuous": ([0.3217, 1.9911, 0.7303], None),
    "zeros and amounts": ([0, 0, 12.371, 0, 3.1159], None),
    "cents": ([9.99, 120.0, 0.0, 45.5, 19.99], None),
    "a wild one": ([3, 0, 1, 7, 2, 50_000], None),
    "beyond what is rounded": ([1e15, 1e15 + 1, 1e15 + 3], None),
}


@pytest.mark.parametrize("case", GRIDS)
def test_the_grid_of_rewards_is_found(case: str) -> None:
    values, step = GRIDS[case]
    grid = grid_of([float(v) for v in values])
    if step is None:
        assert grid[STATUS] == OFF
    else:
        assert grid[STATUS] == WATCHED
        assert grid[STEP] == pytest.approx(step, rel=1e-3 if max(values) == 1e6 + 1.2 else 1e-9)
        assert (grid[LOWEST], grid[HIGHEST]) == (min(values), max(values))


def test_a_random_sequence_is_on_no_grid() -> None:
    for seed in range(200):
        assert grid_of(np.random.default_rng(seed).standard_normal(4).tolist())[STATUS] == OFF


@pytest.mark.parametrize("leaves", [0.5, -1.0, 1e6])
def test_the_first_reward_off_the_grid_ends_it_for_good(leaves: float) -> None:
    kinds = engine()
    y, x = counts(120, 1, level=20.0)
    state = fed(kinds, y, x)
    assert is_on(state.links)
    off = fed(kinds, np.array([0.25 if leaves == 0.5 else leaves, 3.141592653]), x[:2], 1, copied(state))
    assert off.links.models.grid[STATUS] == OFF
    assert not is_on(off.links)
    assert sum(rows.size for rows in off.links.data) == 0
    on = fed(kinds, y, x, 2, off)
    assert not is_on(on.links)
    np.testing.assert_array_equal(kinds.moments(on, x[0]), kinds.rest.moments(on.rest, x[0]))


def test_the_other_model_learns_as_if_there_were_no_links() -> None:
    """Links draw no random number and leave the rest as it is, bit for bit."""
    kinds = engine(3, 1)
    y, x = counts(150, 2, level=20.0)
    one, two = np.random.default_rng(0), np.random.default_rng(0)
    state, rest = kinds.init(), kinds.rest.init()
    for i in range(150):
        state = kinds.update(state, x[i], i % 3, y[i], one)
        rest = kinds.rest.update(rest, x[i], i % 3, y[i], two)
    assert is_on(state.links)
    assert len(state.values) == 0
    assert bits(state.rest) == bits(rest)
    assert position(one) == position(two)


def test_counts_are_found_and_their_mean_is_on_a_curve() -> None:
    y, x = counts(800)
    kinds = engine()
    state = fed(kinds, y, x)
    assert state.links.weights[1 + COUNTS] > 0.95
    for at in (-2.0, 0.0, 2.0):
        mean, sd = kinds.moments(state, np.array([at]))
        np.testing.assert_allclose(mean, 3 * np.exp(0.5 * at), rtol=0.12)
        assert (np.abs(mean - 3 * np.exp(0.5 * at)) < 4 * sd).all()


def test_overdispersed_counts_are_told_from_others() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((800, 1))
    mean = 3 * np.exp(0.5 * x[:, 0])
    wide = rng.poisson(mean * 0.5 * rng.standard_gamma(2.0, 800)).astype(float)
    kinds = engine()
    spread = {}
    for name, values in (("wide", wide), ("plain", rng.poisson(mean).astype(float))):
        state = fed(kinds, values, x)
        spread[name] = float(state.links.models.level[0])
        if name == "wide":
            assert state.links.weights[1 + COUNTS] > 0.9
    assert spread["wide"] == pytest.approx(0.5, abs=0.2)
    assert spread["plain"] < 0.06


def test_stars_are_found() -> None:
    y, x = stars(800)
    kinds = engine()
    state = fed(kinds, y, x)
    assert state.links.weights[1 + MARKS] > 0.95
    latent = np.random.default_rng(0).logistic(size=100_000)
    for at in (-1.5, 0.0, 1.5):
        true = 1 + np.mean((1.5 * at + latent)[:, None] > [-2.5, -1.0, 0.5, 2.0], axis=0).sum()
        np.testing.assert_allclose(kinds.expected_means(state, np.array([at])), true, atol=0.25)
    np.testing.assert_allclose(state.links.models.cuts, [-2.5, -1.0, 0.5, 2.0], atol=0.6)


def test_a_line_with_noise_on_a_grid_is_no_count() -> None:
    """Rounded rewards whose noise does not grow with the mean: the other model predicts better."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((600, 1))
    y = np.maximum(np.round(60 + 15 * x[:, 0] + 2 * rng.standard_normal(600)), 0)
    state = fed(engine(), y, x)
    assert is_on(state.links)
    assert state.links.weights[0] > 0.9


def models_fed(scale: float, shift: float, values: Array, x: Array) -> tuple[LinkModels, LinkState]:
    models = LinkModels(2, x.shape[1])
    state = models.init()
    rewards = [Reward(i % 2, row, shift + scale * value) for i, (row, value) in enumerate(zip(x, values, strict=True))]
    for n, reward in enumerate(rewards, start=1):
        if is_on(state):
            models.judge(state, reward, 0.1)
        many = len({r.value for r in rewards[:n]}) > 3
        state = models.learnt(state, reward, n, many, partial(list, rewards[:n]))
    return models, state


@pytest.mark.parametrize(("scale", "shift"), [(2.5, 0.0), (1e9, 0.0), (1e-9, 0.0), (0.1, 0.0)])
def test_rescaled_counts_are_the_same_counts(scale: float, shift: float) -> None:
    y, x = counts(200, 5)
    (models, one), (_, two) = models_fed(1.0, 0.0, y, x), models_fed(scale, shift, y, x)
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-6)
    a, b = np.zeros((2, 2)), np.zeros((2, 2))
    for state, out in ((one, a), (two, b)):
        state.weights[0] = 0.0
        moments_of(models, state, out)
    np.testing.assert_allclose(b, scale * a, rtol=1e-6)


def moments_of(models: LinkModels, state: LinkState, out: Array) -> None:
    kernels.moments(state.models, state.weights / state.weights.sum(), np.array([0.4] * models.context_dim), out)


@pytest.mark.parametrize(("scale", "shift"), [(25.0, -25.0), (1.0, 100.0), (0.5, 0.0), (1e9, -1e9)])
def test_rescaled_and_shifted_stars_are_the_same_stars(scale: float, shift: float) -> None:
    y, x = stars(200, 6)
    (_, one), (_, two) = models_fed(1.0, 0.0, y, x), models_fed(scale, shift, y, x)
    np.testing.assert_allclose(one.models.cuts, two.models.cuts, rtol=1e-6)
    np.testing.assert_allclose(one.models.fits[:, MARKS], two.models.fits[:, MARKS], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("scale", "shift"), [(1e3, 0.0), (1e-3, 0.0), (1.0, 50.0)])
def test_units_and_origins_of_columns_hardly_matter(scale: float, shift: float) -> None:
    y, x = counts(300, 7)
    kinds = engine()
    one, two = fed(kinds, y, x), fed(kinds, y, shift + scale * x)
    a = kinds.expected_means(one, np.array([0.5]))
    b = kinds.expected_means(two, np.array([shift + scale * 0.5]))
    np.testing.assert_allclose(a, b, rtol=0.08)


@pytest.mark.parametrize("kind", ["counts", "stars"])
def test_draws_objectives_and_predictions_agree_with_moments(kind: str) -> None:
    y, x = (counts if kind == "counts" else stars)(150, 8)
    kinds, rng, at = engine(), np.random.default_rng(0), np.array([0.5])
    state = fed(kinds, y, x)
    state.links.weights[:] = (0.3, 0.4, 0.3) if kind == "stars" else (0.3, 0.7, 0.0)
    mean, sd = kinds.moments(state, at)
    draws = kinds.draw_means(state, at, 40_000, rng)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * sd.max() / 200)
    assert (draws.std(axis=0) <= 1.02 * sd).all()  # where rewards are equal, moments are wider than draws
    np.testing.assert_allclose(kinds.moments_many(state, np.stack([at, at]))[1], [mean, sd])
    worths = kinds.draw_objectives(state, at, MEAN, 4000, rng)
    np.testing.assert_allclose(worths.mean(axis=0), mean, atol=6 * sd.max() / 63)
    found = kinds.predictive(state, at, 1)
    assert isinstance(found, JumpMixture)
    assert found.mean() == pytest.approx(mean[1], rel=1e-3)
    above = kinds.draw_objectives(state, at, ProbabilityAbove(3.0), 4000, rng)[:, 1].mean()
    assert above == pytest.approx(1 - float(found.cdf(3.0)), abs=0.02)
    assert (found.sample(2000, rng) == 3.0).mean() == pytest.approx(found.probability(3.0), abs=0.05)
    grid = np.linspace(-10, 30, 2000)
    smooth = kinds.draw_densities(state, at, 1, grid, 200, rng).mean(axis=0).sum() * (grid[1] - grid[0])
    assert smooth == pytest.approx(found.continuous_weight, abs=0.03)


@pytest.mark.parametrize("level", [0.3, 1.2, 3.0, 30.0])
def test_a_cell_of_the_grid_has_the_probability_of_the_predictive(level: float) -> None:
    """With and without kinds, with few rewards and many."""
    kinds = engine()
    y, x = counts(120, 18, level)
    for n in (10, 30, 120):
        state = fed(kinds, y[:n], x[:n])
        if is_on(state.links):
            for arm, value in ((0, 0.0), (1, 1.0), (0, 2.0), (1, 40.0)):
                hyperprior = kinds._own_predictive(state, x[0], arm)
                wanted = float(hyperprior.cdf(value + 0.5) - hyperprior.cdf(value - 0.5))
                found = kinds._probability(state, Reward(arm, x[0], value))
                assert found == pytest.approx(wanted, rel=1e-6, abs=1e-12)


def test_values_of_the_predictive_are_rewards_to_the_last_bit() -> None:
    y, x = counts(150, 9)
    kinds = engine()
    state = fed(kinds, 0.1 * y, x)
    found = kinds.predictive(state, np.zeros(1), 0)
    assert isinstance(found, JumpMixture)
    assert found.probability(0.1 * 3.0) > 0.1  # 0.30000000000000004
    assert sum(found.weights) == pytest.approx(1 - state.links.weights[0], abs=1e-9)


@pytest.mark.parametrize("n_marks", [5, 10])
def test_values_of_marks_are_the_marks_to_the_last_bit(n_marks: int) -> None:
    rng, marks = np.random.default_rng(n_marks), np.arange(1.0, n_marks + 1)
    x = rng.standard_normal((120, 1))
    y = np.clip(np.round(0.6 * n_marks + 1.5 * x[:, 0] + rng.standard_normal(120)), 1, n_marks)
    kinds = engine()
    state = fed(kinds, y, x)
    assert state.links.weights[2] > 0.1
    for at in rng.standard_normal((50, 1)):
        for arm in range(kinds.n_arms):
            found = kinds.predictive(state, at, arm)
            assert isinstance(found, JumpMixture)
            assert set(marks) <= set(found.values)
            assert np.diff(np.sort(found.values)).min() == 1.0


def test_counts_are_drawn_as_a_density_of_all_that_is_nearest() -> None:
    y, x = counts(150, 9)
    kinds = engine()
    found = kinds.predictive(fed(kinds, y, x), np.zeros(1), 0)
    assert isinstance(found, JumpMixture)
    grid = np.linspace(-20, 60, 80_001)
    assert found.spread_pdf(grid).sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=2e-3)
    assert float(found.spread_pdf(2.2)) == pytest.approx(found.probability(2.0) + float(found.pdf(2.2)), rel=1e-9)
    few = JumpMixture(np.array([0.0]), np.array([1.0]))
    np.testing.assert_array_equal(few.spread_pdf(grid), 0.0)


def test_a_scale_that_becomes_longer_keeps_its_cut_points() -> None:
    y, x = stars(300, 10)
    kinds = engine()
    state = fed(kinds, np.clip(y, 1, 4), x)
    before = state.links.models.cuts.copy()
    longer = fed(kinds, np.array([5.0]), x[:1], 1, copied(state)).links.models.cuts
    assert len(longer) == len(before) + 1
    np.testing.assert_allclose(longer[:-1], before, atol=0.3)
    shorter = fed(kinds, np.array([0.0]), x[:1], 1, copied(state)).links.models.cuts
    np.testing.assert_allclose(shorter[1:], before, atol=0.3)
    long = fed(kinds, np.array([14.0]), x[:1], 1, copied(state))
    assert long.links.weights[1 + MARKS] == 0
    assert long.links.weights.sum() == pytest.approx(1.0)


def test_memory_bounds_the_state_and_half_life_forgets() -> None:
    y, x = counts(400, 11)
    state = fed(engine(memory=12), y, x)
    assert all(len(rows) <= 12 for rows in state.links.data)
    assert state.links.weights[1 + COUNTS] > 0.9
    kinds = engine(half_life=40.0)
    later, _ = counts(200, 12, level=12.0)
    state = fed(kinds, np.concatenate([y, later]), np.concatenate([x, x[:200]]))
    np.testing.assert_allclose(kinds.expected_means(state, np.zeros(1)), 12.0, rtol=0.25)
    assert state.links.models.sums[:, COUNTS, 0].sum() < 120


@pytest.mark.parametrize("later", [{"memory": 5}, {"memory": 30}, {}])
@pytest.mark.parametrize("options", [{}, {"memory": 20}])
def test_memory_can_change(options: dict[str, Any], later: dict[str, Any], tmp_path: Path) -> None:
    y, x = counts(100, 13)
    kinds, after = engine(**options), engine(**later)
    state = load_state(save_state(tmp_path / "state", fed(kinds, y, x), kinds), policy=after)
    n = state.links.models.sums[:, :, 0].sum()
    means = after.expected_means(state, x[0])
    state = fed(after, y[:1], x[:1], 1, state)
    assert state.links.models.sums[:, :, 0].sum() == n + 2
    np.testing.assert_allclose(after.expected_means(state, x[0]), means, rtol=0.25)
    state = fed(after, y, x, 2, state)
    assert all(len(rows) <= later.get("memory", 1000) for rows in state.links.data)
    state.require_sound()


def test_a_new_arm_starts_from_what_the_arms_share() -> None:
    y, x = counts(200, 14)
    kinds = engine()
    state = fed(kinds, y, x)
    wider, grown = kinds.with_arm(state)
    before, after = kinds.moments(state, x[0]), wider.moments(grown, x[0])
    np.testing.assert_allclose(after[:, :2], before, rtol=1e-6)
    assert after[1, 2] > 2 * before[1].max()
    assert 0.3 < after[0, 2] / before[0].mean() < 3
    grown = fed(wider, y, x, 1, grown)
    grown.require_sound()


def test_a_file_of_a_version_without_links_goes_on_without_them() -> None:
    policy: Any = make_policy("nonparametric", 2, 1, memory=8)
    state = load_state(FILES / "kinds-without-links.npz", policy=policy)
    assert state.n_rewards == 40
    y, x = counts(60, 15)
    after = fed(policy.engine, y, x, 1, state)
    assert after.n_rewards == 100
    assert not is_on(after.links)
    assert after.links.models.grid[STATUS] == OFF
    with pytest.raises(BrokenFile):
        load_state(FILES / "kinds-without-links.npz", policy=make_policy("nonparametric", 3, 1))


BROKEN: dict[str, Any] = {
    "weights": lambda links: links.weights.__setitem__(0, -0.1),
    "dispersions": lambda links: links.dispersions.__setitem__(0, 0.7),
    "grid": lambda links: links.models.grid.__setitem__(STEP, 0.0),
    "cells": lambda links: links.models.grid.__setitem__(STEP, 1e-6),
    "models alive": lambda links: links.models.grid.__setitem__(ALIVE + MARKS, -1e300),
    "rising": lambda links: links.models.cuts.__setitem__(0, 40.0),
    "variances": lambda links: links.models.guess.__setitem__((0, 1, 0), 0.0),
    "diagonals": lambda links: links.models.fits.__setitem__((0, 0, 0, 0), 0.0),
    "counts of at least 0": lambda links: links.models.sums.__setitem__((0, 0, 0), -1.0),
    "dispersion must": lambda links: links.models.level.__setitem__(0, -1.0),
    "level": lambda links: links.models.level.__setitem__(1, 1e3),
    "ROWS": lambda links: links.models.sizes.__setitem__((0, 0), 10_000),
    "NEXT": lambda links: links.models.sizes.__setitem__((0, 1), -1),
    "finite": lambda links: links.models.sums.__setitem__((0, 0, 1), np.nan),
}


@pytest.mark.parametrize("named", BROKEN)
def test_broken_states_are_refused_by_name(named: str) -> None:
    kinds = engine()
    y, x = stars(60, 16)
    state = copied(fed(kinds, y, x))
    BROKEN[named](state.links)
    with pytest.raises(PolyarmError, match=named):
        kinds.moments(state, x[0])


@pytest.mark.parametrize("wild", [1e6, -1e6])
def test_wild_contexts_leave_every_number_finite(wild: float) -> None:
    y, x = counts(200, 17)
    x[60::20] = wild
    kinds = engine()
    state = fed(kinds, y, x)
    state.require_sound()
    assert np.isfinite(kinds.moments(state, np.array([wild]))).all()
    assert np.isfinite(kinds.predictive(state, np.array([wild]), 0).mean())
