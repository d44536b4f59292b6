"""Particles: words, thresholds, resampling and the pool, each by its definition; exact while every seating fits."""

from collections.abc import Iterator

import numpy as np
import pytest

from polyarm.inference import ParticleEngine
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import particles, variational
from polyarm.kernels.mixture.component import COUNT, SCALE
from polyarm.kernels.mixture.means import draw_exact, located
from polyarm.kernels.mixture.particles import Children
from polyarm.models import LinearMixture, NormalInverseGamma
from tests.kernels.script import Script
from tests.statistics.exact import log_joints

WORD = 2**64


@pytest.fixture(autouse=True)
def words_wrap() -> Iterator[None]:
    """Compiled kernels do not warn where words wrap around."""
    with np.errstate(over="ignore"):
        yield


def scattered(word: int) -> int:
    """splitmix64 in whole numbers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB % WORD
    return word ^ word >> 31


def test_keys_are_scattered_words() -> None:
    odd = 0x9E3779B97F4A7C15
    words = np.array([0.7, -1.3, 2.5]).view(np.uint64)
    expected = odd
    for word in words:
        assert int(plain(particles.mixed)(word)) == scattered(int(word))
        expected = (scattered(expected ^ int(word)) + odd) % WORD
    assert int(plain(particles.key_of)(words)) == expected


@pytest.mark.parametrize("N", [2, 4, 6])
def test_the_threshold_keeps_so_many(N: int) -> None:
    w = np.array([0.4, 0.02, 0.05, 0.3, 0.01, 0.12, 0.1])
    c = plain(particles.threshold)(w, 7, N)
    assert np.minimum(w / c, 1.0).sum() == pytest.approx(N)
    assert plain(particles.threshold)(np.append(w, 99.0), 7, N) == c  # what lies beyond is not there


@pytest.mark.parametrize("u", [0.0, 0.3, 0.99])
def test_resampling_keeps_heavy_children_and_strata_of_light_ones(u: float) -> None:
    w = np.array([0.4, 0.02, 0.05, 0.3, 0.01, 0.12, 0.1])
    c = plain(particles.threshold)(w, 7, 4)
    children = Children(np.arange(7), np.arange(7) + 10, w.copy(), np.arange(7, dtype=np.uint64))
    parent, slot, found, born = children
    kept = plain(particles.resample)(children, 7, 4, Script(uniforms=[u]))
    assert kept == 4
    light = [m for m in range(7) if w[m] < c]
    ends = np.cumsum(w[light])
    chosen = {light[int(np.searchsorted(ends, u * c + k * c, side="right"))] for k in range(round(ends[-1] / c))}
    expected = [m for m in range(7) if w[m] >= c or m in chosen]
    assert parent[:kept].tolist() == expected
    assert slot[:kept].tolist() == [m + 10 for m in expected]
    assert born[:kept].tolist() == expected
    np.testing.assert_allclose(found[:kept], [max(w[m], c) for m in expected])
    assert plain(particles.resample)(children, 3, 4, Script()) == 3


def test_children_with_the_same_seating_are_one() -> None:
    parent, slot = np.arange(6), np.arange(6) + 10
    w, born = np.array([0.1, 0.2, 0.0, 0.3, 0.15, 0.25]), np.array([8, 3, 5, 8, 16, 3], np.uint64)
    assert plain(particles.merge_equal)(Children(parent, slot, w, born), 6) == 3
    assert parent[:3].tolist() == [0, 1, 4]
    assert slot[:3].tolist() == [10, 11, 14]
    assert born[:3].tolist() == [8, 3, 16]
    np.testing.assert_allclose(w[:3], [0.4, 0.45, 0.15])


def test_every_seating_has_its_posterior_weight_while_all_fit() -> None:
    """Four rewards, fifteen seatings: weights, evidence and pool from marginal densities of every block."""
    base, c, d = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.7), 0.8, 0.3
    engine, rng = ParticleEngine([LinearMixture(base, c, d)], 20), np.random.default_rng(1)
    X, y = rng.standard_normal((4, 2)), 2 * rng.standard_normal(4)
    state = engine.init()
    for t in range(4):
        state = engine.update(state, X[t], 0, float(y[t]), rng)
    cloud = state.clouds[0]
    assert cloud.size[0] == 15
    logs = np.array(list(log_joints(X, y, engine.arms[0]).values()))
    evidence = np.logaddexp.reduce(logs)
    assert cloud.log_evidence[0] == pytest.approx(evidence)
    np.testing.assert_allclose(np.sort(cloud.weights[:15]), np.sort(np.exp(logs - evidence)), rtol=1e-9)
    pool = int(cloud.size[1])
    assert pool == 15  # every block of every seating, once
    for i in range(15):
        held = cloud.members[i, : cloud.lengths[i]]
        assert cloud.table[COUNT, held].sum() == 4


def test_a_soft_seating_is_drawn_as_a_seating_of_its_components() -> None:
    rng, process = np.random.default_rng(2), np.array([1.5, 0.7, 0.8, 0.3])
    T = np.abs(rng.standard_normal((11, 4))) + 0.5
    T[COUNT] = [2.2, 0.3 + 1e-7, 0.0, 4.1]  # the second has hardly any mass beyond the discount
    prior, x = np.abs(rng.standard_normal(11)) + 0.5, np.array([0.7, -1.3])
    out = np.empty(2)
    normals, gammas, betas = np.linspace(-1, 2, 40), np.linspace(0.5, 2, 40), [0.9999] * 9
    plain(variational.draw_means)(T, prior, process, x, out, Script(normals, gammas, betas=betas))
    held = np.ascontiguousarray(T[:, [0, 3]])
    at = plain(located)(held, 2, prior, x)
    script = Script(normals, gammas, betas=betas)
    for draw in range(2):
        expected = plain(draw_exact)(held, 2, process, at, True, script)
        assert out[draw] == pytest.approx(expected)
    mean = plain(variational.expected_mean)(T, prior, process, x)
    masses = np.array([1.9, 3.8, 0.8 + 2 * 0.3])
    assert mean == pytest.approx(masses @ at.m / masses.sum())
    assert T[SCALE].min() > 0
