"""Learnt concentration, discount and scale: what is asked of the generator, and what is written where."""

import math

import numpy as np
import pytest

from polyarm.inference.gibbs import prior_of
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import hyperparameters
from polyarm.kernels.mixture.component import COEF, COUNT, DISCOUNT, GAMMA, LOO, NOISE, SCALE
from polyarm.kernels.mixture.hyperparameters import MOST, OF_CONCENTRATION, OF_DISCOUNT, OF_SCALE
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array
from tests import reference
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

BELIEFS = np.array([1.5, 0.7, 2.0, 3.0, 1.2, 0.4])
SIZES = np.array([[2], [0], [1]])
SHAPES = [1.5, 1.7, 2.2]  # a0 of the arms


def processes(discount: float) -> Array:
    return np.array([[a0, 0.9, 0.8, discount] for a0 in SHAPES])


def tables() -> Array:
    """Two components of an arm, none of the next, one of the last."""
    T = np.zeros((3, 7, 3))
    T[0, COUNT, :2], T[2, COUNT, 0] = [3.0, 5.0], 4.0
    T[0, SCALE, :2], T[2, SCALE, 0] = [1.9, 2.4], 0.9
    T[1, COUNT] = T[:, COUNT, 2] = 99.0  # not in use
    return T


def assert_cached(T: Array, process: Array, n_used: int) -> None:
    """Raise unless the components' constants are those of their counts and scales."""
    a0, _, _, d = process
    for n, b, whole, own in T[[COUNT, SCALE, COEF, LOO]].T[:n_used]:
        steps = reference.log_gamma_step(np.array([a0 + n / 2, a0 + (n - 1) / 2]))
        assert whole == pytest.approx(math.log(n - d) + steps[0] - 0.5 * math.log(2 * math.pi * b))
        assert own == pytest.approx(
            math.log(n - 1 - d) + steps[1] - 0.5 * math.log(2 * math.pi) - (a0 + n / 2) * math.log(b)
        )


@pytest.mark.parametrize("uniforms", [(0.0, 0.0), (0.95, 0.9), (0.0, 0.9), (0.95, 0.0)])
def test_a_concentration_is_drawn_by_escobar_and_west(uniforms: tuple[float, float]) -> None:
    """eta ~ Beta(c + 1, n), one table less with probability n / (n + c), of every arm that has rewards."""
    eta, c = (0.6, 0.3), 0.8
    script = Script(gammas=[2.5], uniforms=uniforms, betas=eta)
    found = plain(hyperparameters.draw_concentration)(c, 1.5, 0.7, tables(), SIZES, script)
    fewer = sum(u < n / (n + c) for u, n in zip(uniforms, (8.0, 4.0), strict=True))
    assert script.asked == [(1.8, 8.0), (1.8, 4.0), (1.5 + 3 - fewer,)]
    assert found == pytest.approx(2.5 / (0.7 - math.log(0.6) - math.log(0.3)))


def test_a_target_ends_at_its_bounds() -> None:
    for c, d in ((0.0, 0.3), (-1.0, 0.3), (0.8, MOST), (0.8, -0.1)):
        assert plain(hyperparameters.log_target)(c, d, BELIEFS, tables(), SIZES) == -math.inf
    assert plain(hyperparameters.log_target)(0.8, 0.0, BELIEFS, tables(), SIZES) > -math.inf


def moved(u: float, which: int, process: Array, script: Script) -> float:
    return plain(hyperparameters.draw_slice)(u, which, BELIEFS, process, tables(), SIZES, script)


def test_what_is_learnt_is_written_for_every_arm() -> None:
    uniforms = [0.4, 0.3, 0.6, 0.7, 0.2, 0.5, 0.8, 0.35, 0.45, 0.55, 0.15, 0.65] * 9
    for discount, learned in ((0.0, (True, False)), (0.3, (True, False)), (0.3, (False, True)), (0.3, (True, True))):
        T, found = tables(), processes(discount)
        script = Script(gammas=[2.5], uniforms=uniforms, betas=[0.6, 0.3])
        plain(hyperparameters.redraw)(T, SIZES, found, BELIEFS, *learned, script)
        expected, again = processes(discount), Script(gammas=[2.5], uniforms=uniforms, betas=[0.6, 0.3])
        if learned[0]:
            if discount == 0.0:
                given = (0.8, BELIEFS[0], BELIEFS[1], tables(), SIZES)
                expected[:, GAMMA] = plain(hyperparameters.draw_concentration)(*given, again)
            else:
                expected[:, GAMMA] = math.exp(moved(math.log(0.8), OF_CONCENTRATION, expected, again))
        if learned[1]:
            expected[:, DISCOUNT] = 1 / (1 + math.exp(-moved(math.log(0.3 / 0.7), OF_DISCOUNT, expected, again)))
            for arm in (0, 2):
                assert_cached(T[arm], found[arm], SIZES[arm, 0])
        np.testing.assert_allclose(found, expected)
        assert (found != processes(discount)).any(axis=0).tolist() == [False, False, *learned]
        np.testing.assert_array_equal(T[:, [COUNT, SCALE]], tables()[:, [COUNT, SCALE]])


def test_a_new_scale_leaves_what_the_rewards_added() -> None:
    uniforms = [0.4, 0.3, 0.6, 0.7, 0.2, 0.5, 0.8, 0.35, 0.45, 0.55, 0.15, 0.65] * 9
    T, found = tables(), processes(0.3)
    T[0, SCALE, 1] = 0.9 - 1e-12  # rounding: less than the prior's
    before = T.copy()
    plain(hyperparameters.redraw_scale)(T, SIZES, found, BELIEFS, Script(uniforms=uniforms))
    given = (math.log(0.9), OF_SCALE, BELIEFS, processes(0.3), before, SIZES)
    b = math.exp(plain(hyperparameters.draw_slice)(*given, Script(uniforms=uniforms)))
    assert abs(b - 0.9) > 0.05
    np.testing.assert_allclose(found[:, NOISE], b)
    np.testing.assert_allclose(T[0, SCALE, :2], [b + 1.0, b])
    np.testing.assert_allclose(T[2, SCALE, 0], b)
    np.testing.assert_array_equal(T[1], before[1])
    for arm in (0, 2):
        assert_cached(T[arm], found[arm], SIZES[arm, 0])


def test_a_closed_slice_stays_where_it_is() -> None:
    """A point that no draw comes close to: the interval shrinks to nothing and the point is kept."""
    u, spike = math.log(0.8), {"calls": 0}

    def target(at: float, *_: object) -> float:
        spike["calls"] += 1
        return 0.0 if at == u else -1e9

    draw = mutant(hyperparameters.draw_slice, {"target_at": target})
    found = draw(
        u, OF_CONCENTRATION, BELIEFS, processes(0.3), tables(), SIZES, Script(uniforms=[0.5, 0.3, 0.5] + [0.6] * 999)
    )
    assert found == u
    assert spike["calls"] < 200


def test_rewards_are_rated_by_the_prior_of_now() -> None:
    base = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.7)
    prior, rng = prior_of([LinearMixture(base)]), np.random.default_rng(0)
    data = rng.standard_normal((5, 4))
    before = data.copy()
    plain(hyperparameters.rate_rewards)(data, 4, prior.columns[0], base.shape)
    np.testing.assert_array_equal(data[:, :3], before[:, :3])
    expected = [reference.log_evidence(base, data[i : i + 1, :2], data[i : i + 1, 2]) for i in range(4)]
    np.testing.assert_allclose(data[:4, 3], expected)
    assert data[4, 3] == before[4, 3]
