"""The mix of information-directed sampling."""

import numpy as np
import pytest
from scipy.stats import norm

from polyarm.kernels import information
from polyarm.kernels._jit import plain, rng_handle
from tests.kernels.script import Script


@pytest.mark.parametrize("power", [1.2, 1.5, 2.0, 4.0])
def test_the_mix_is_the_best_on_a_grid_of_all_mixes_of_three_arms(power: float) -> None:
    rng = np.random.default_rng(1)
    grid = np.array([(i, j, 40 - i - j) for i in range(41) for j in range(41 - i)]) / 40
    for _ in range(200):
        D, G, q = rng.random(3), rng.random(3) * rng.integers(0, 2, 3), np.empty(3)
        information.find_mix(D, G, power, q)
        assert q.sum() == pytest.approx(1)
        assert q.min() >= 0
        if G.any():
            ours = (q @ D) ** power / (q @ G)
            with np.errstate(divide="ignore"):
                assert ours <= ((grid @ D) ** power / (grid @ G)).min() * (1 + 1e-12)
        else:
            assert q.argmax() == D.argmin()


def test_regret_and_information_of_two_arms_are_the_known_ones() -> None:
    """For two arms the difference is normal: closed forms with its density and distribution function."""
    mean, sd = np.array([0.0, 0.5]), np.array([1.0, 2.0])
    D, G = np.empty(2), np.empty(2)
    information.regret_and_information(mean, sd, 400_000, D, G, np.random.default_rng(0))
    s = np.hypot(*sd)
    z = (mean[0] - mean[1]) / s
    top = mean[0] * norm.cdf(z) + mean[1] * norm.cdf(-z) + s * norm.pdf(z)
    np.testing.assert_allclose(D, top - mean, atol=0.01)
    tilt = sd**2 / s * norm.pdf(z)  # |E[mu_a; arm 0 is best] - mean_a P(arm 0 is best)|
    np.testing.assert_allclose(G, tilt**2 / (norm.cdf(z) * norm.cdf(-z)), rtol=0.02)


def test_an_arm_that_is_surely_best_is_played() -> None:
    shares, moments = np.empty(3), np.array([[0.0, 9.0, 1.0], [0.1, 0.1, 0.1]])
    information.find_shares(moments, np.ones(moments.shape[1]), 50, 2.0, shares, rng_handle(np.random.default_rng(0)))
    np.testing.assert_array_equal(shares, [0, 1, 0])
    assert (
        information.choose(
            moments, np.ones(moments.shape[1]), 50, 2.0, shares, np.empty(3), rng_handle(np.random.default_rng(0))
        )
        == 1
    )


def test_an_arm_far_worse_but_rich_in_information_gets_the_share_of_the_power() -> None:
    D, G, q = np.array([0.01, 2.0]), np.array([0.0, 1.0]), np.empty(2)
    for power in (1.25, 1.5, 2.0, 3.0):
        information.find_mix(D, G, power, q)
        assert q[1] == pytest.approx(0.01 / 1.99 / (power - 1.0))


def test_arms_are_drawn_with_their_shares() -> None:
    moments, mix, rng = np.array([[0.3, 0.0], [0.1, 0.4]]), np.empty(2), np.random.default_rng(5)
    arms = [
        information.choose(moments, np.ones(moments.shape[1]), 50, 2.0, mix, np.empty(2), rng_handle(rng))
        for _ in range(20_000)
    ]
    shares = np.empty((20_000, 2))
    for row in shares:
        information.find_shares(moments, np.ones(moments.shape[1]), 50, 2.0, row, rng_handle(rng))
    assert 0.01 < shares[:, 0].mean() < 0.99
    assert np.mean(arms) == pytest.approx(shares[:, 1].mean(), abs=0.02)


def test_compiled_equals_plain() -> None:
    moments = np.array([[0.0, 0.3, 0.1, -0.4], [1.0, 0.2, 0.5, 2.0]])
    noise, a, b = np.array([1.0, 9.0, 0.2, 1.5]), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(20):
        quick, readable = np.empty((2, 4)), np.empty((2, 4))
        one = information.choose(moments, noise, 30, 1.5, quick[0], quick[1], rng_handle(a))
        assert one == plain(information.choose)(moments, noise, 30, 1.5, readable[0], readable[1], b)
        assert quick[1, one] == quick[1].max()
        np.testing.assert_allclose(quick, readable, rtol=1e-12)
        many, slowly = np.empty((2, 4)), np.empty((2, 4))
        information.find_many(np.stack([moments, moments]), noise, 30, 3, 1.5, many, rng_handle(a))
        plain(information.find_many)(np.stack([moments, moments]), noise, 30, 3, 1.5, slowly, b)
        np.testing.assert_allclose(many, slowly, rtol=1e-12)


def test_regret_and_information_of_many_arms_are_those_of_dense_integration() -> None:
    """Five arms, the best ones last: every arm must be compared with the best so far, not with the first."""
    mean, sd = np.array([0.1, -0.4, 0.3, 0.6, 0.5]), np.array([0.5, 0.9, 0.3, 0.4, 0.7])
    D, G = np.empty(5), np.empty(5)
    information.regret_and_information(mean, sd, 400_000, D, G, np.random.default_rng(0))
    t = np.linspace(-8, 8, 20_001)
    density = np.exp(-0.5 * ((t - mean[:, None]) / sd[:, None]) ** 2) / (sd[:, None] * np.sqrt(2 * np.pi))
    below = norm.cdf((t - mean[:, None]) / sd[:, None])
    step = t[1] - t[0]
    top, gain = 0.0, np.zeros(5)
    for b in range(5):
        others = np.prod(np.delete(below, b, axis=0), axis=0)
        share = (density[b] * others).sum() * step
        top += (t * density[b] * others).sum() * step
        for a in range(5):
            if a == b:
                known = ((t - mean[a]) * density[b] * others).sum() * step
            else:  # E[mu_a; mu_a < t] - mean_a P(mu_a < t) = -sd^2 density(t)
                rest = np.prod(np.delete(below, [a, b], axis=0), axis=0)
                known = (-(sd[a] ** 2) * density[a] * density[b] * rest).sum() * step
            gain[a] += known**2 / share
    np.testing.assert_allclose(D, top - mean, atol=0.01)
    np.testing.assert_allclose(G, gain, rtol=0.03)


def test_regret_and_information_follow_their_definition_draw_by_draw() -> None:
    normals = np.random.default_rng(2).standard_normal((40, 4))
    mean, sd = np.array([0.0, 0.9, 0.5, 0.3]), np.array([0.6, 1.4, 0.7, 1.1])
    D, G = np.empty(4), np.empty(4)
    plain(information.regret_and_information)(mean, sd, 40, D, G, Script(normals=normals.ravel()))
    draws = mean + sd * normals
    best = draws.argmax(axis=1)
    assert len(set(best)) == 4
    assert any(row[3] > row[0] and row.argmax() != 3 for row in draws)  # better than the first is not yet the best
    np.testing.assert_allclose(D, np.maximum(draws.max(axis=1).mean() - mean, 0.0))
    wanted = sum((best == b).mean() * (draws[best == b].mean(axis=0) - mean) ** 2 for b in set(best))
    np.testing.assert_allclose(G, wanted)


@pytest.mark.parametrize("power", [1.5, 2.0])
def test_the_best_share_of_two_arms_is_best_on_a_grid(power: float) -> None:
    share, ratio, grid = plain(information.best_share), plain(information.ratio), np.linspace(0, 1, 2001)
    for D1, D2, G1, G2 in ((0.3, 0.5, 0.2, 0.9), (0.5, 0.3, 0.9, 0.2), (0.4, 0.4, 0.1, 0.2), (0.2, 0.4, 0.3, 0.3)):
        q = share(D1, D2, G1, G2, power)
        values = [(g * D1 + (1 - g) * D2) ** power / (g * G1 + (1 - g) * G2) for g in grid]
        assert ratio(q, D1, D2, G1, G2, power) <= min(values) * (1 + 1e-9)
    assert ratio(0.3, 0.5, 0.2, 0.0, 0.0, power) == np.inf
    assert (share(0.4, 0.4, 0.2, 0.1, power), share(0.4, 0.4, 0.1, 0.2, power)) == (1.0, 0.0)
    assert (share(0.2, 0.4, 0.3, 0.3, power), share(0.4, 0.2, 0.3, 0.3, power)) == (1.0, 0.0)


def test_many_shares_are_means_over_rounds_of_fresh_draws() -> None:
    rng = np.random.default_rng(6)
    moments = np.stack([rng.standard_normal((3, 4)), 0.2 + rng.random((3, 4))], axis=1)
    noise = np.array([0.5, 1.0, 2.0, 30.0])
    normals, out = rng.standard_normal(3 * 2 * 15 * 4), np.full((3, 4), 9.0)
    plain(information.find_many)(moments, noise, 15, 2, 1.5, out, Script(normals))
    script, mix = Script(normals), np.empty(4)
    for i in range(3):
        wanted = np.zeros(4)
        for _ in range(2):
            plain(information.find_shares)(moments[i], noise, 15, 1.5, mix, script)
            wanted += mix / 2
        np.testing.assert_allclose(out[i], wanted)


@pytest.mark.parametrize("power", [1.5, 2.0])
def test_the_mix_of_drawn_rows_is_that_of_their_regret_and_information(power: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        rows = np.array([0.0, 0.9, 0.5, 0.8]) + np.array([0.6, 1.4, 0.7, 1.1]) * rng.standard_normal((30, 4))
        best, mean = rows.argmax(axis=1), rows.mean(axis=0)
        D = rows.max(axis=1).mean() - mean
        G = sum((best == b).mean() * (rows[best == b].mean(axis=0) - mean) ** 2 for b in set(best))
        found, wanted = np.full(4, 9.0), np.empty(4)
        plain(information.find_mix_of_rows)(rows, power, found)
        plain(information.find_mix)(D, np.asarray(G), power, wanted)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_the_highest_share_over_an_exponential_wins() -> None:
    scores = np.full(3, 9.0)
    arm = plain(information.race)(np.array([0.5, 0.0, 0.3]), scores, Script(exponentials=[2.0, 0.4]))
    np.testing.assert_allclose(scores, [0.25, 0.0, 0.75])
    assert arm == 2


def test_information_counts_by_what_one_reward_tells() -> None:
    """Shares with noise are those of the same draws with every arm's information over its noise."""
    rng = np.random.default_rng(7)
    mean, sd, noise = np.array([0.3, 0.0, 0.1]), np.array([0.1, 0.5, 0.6]), np.array([1.0, 1.0, 400.0])
    normals = rng.standard_normal(60 * 3)
    D, G, wanted, found = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    plain(information.regret_and_information)(mean, sd, 60, D, G, Script(normals))
    information.find_mix(D, G / noise, 2.0, wanted)
    plain(information.find_shares)(np.stack([mean, sd]), noise, 60, 2.0, found, Script(normals))
    np.testing.assert_allclose(found, wanted)
    plain(information.find_shares)(np.stack([mean, sd]), np.ones(3), 60, 2.0, found, Script(normals))
    assert found[2] > wanted[2]  # the noisy arm is the one to learn about where noise does not count
