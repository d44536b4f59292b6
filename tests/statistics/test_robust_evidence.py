"""Scales drawn with slopes and centres integrated out, against dense algebra and quadrature, with planted bugs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.inference import RobustEngine, RobustState
from polyarm.kernels._jit import RngHandle, kernel, plain, rng_from, rng_handle
from polyarm.kernels.robust import evidence
from polyarm.kernels.robust.component import COUNT, VAR
from polyarm.kernels.robust.evidence import LAM, NOISE, RHO, propose_scales
from polyarm.kernels.robust.records import Arms, Books, Solver, arms_of, hyperprior_of, room_for, solver_for
from polyarm.kernels.robust.shared import set_variances
from polyarm.models import RobustMixture
from polyarm.types import Array
from tests.inference.test_robust import played
from tests.statistics.mutants import quick_mutant


def arms_in(engine: RobustEngine, state: RobustState) -> Arms:
    """The state as kernels have it."""
    return plain(arms_of)(engine._books(state))


def set_prior_variances(engine: RobustEngine, state: RobustState) -> None:
    plain(set_variances)(state.shared, state.features, plain(hyperprior_of)(engine._hyperprior))


@kernel
def propose(books: Books, which: int, seen: Array, handle: RngHandle) -> None:
    """Rounds of proposals of one scale, whose value after each is put into `seen`."""
    arms, rng = arms_of(books), rng_from(handle)
    room = room_for(arms)
    for i in range(seen.shape[0]):
        propose_scales(arms, which, which + 1, room, rng)
        seen[i] = books.shared[which]


def dense_evidence(engine: RobustEngine, state: RobustState) -> float:
    """Log density of all rewards given seating, noise variances and shared values, from the definition."""
    total, D = 0.0, state.features.unit.shape[0]
    L, R, c = state.features.arm_var, state.features.part_var, state.features.centre
    for arm in range(engine.n_arms):
        n, z = state.sizes[arm, 1], engine.assignments(state, arm)
        F, y = state.data[arm][:n, :D], state.data[arm][:n, D]
        together = (F * L) @ F.T + (z[:, None] == z) * ((F * R) @ F.T)
        covariance = together + np.diag(state.tables[arm, VAR, z])
        total += float(stats.multivariate_normal.logpdf(y, F @ c, covariance))
    return total


@pytest.mark.parametrize("dim", [1, 4, 24])
def test_the_evidence_is_the_density_of_all_rewards(dim: int) -> None:
    engine = RobustEngine(RobustMixture(3, dim))
    state = played(engine, 90)
    arms, found = arms_in(engine, state), []
    solver = plain(solver_for)(dim + 1)
    for factor in (1.0, 30.0, 1e-3):
        state.shared.part_ratio[0] *= factor
        set_prior_variances(engine, state)
        ours = sum(
            plain(evidence.arm_evidence)(arms.components[a], arms.sizes[a, 0], arms.centres[a], arms.features, solver)
            for a in range(3)
        )
        found.append(ours - dense_evidence(engine, state))
    np.testing.assert_allclose(found, 0.5 * 90 * np.log(2 * np.pi), rtol=1e-6)


def density_of_log(engine: RobustEngine, state: RobustState, which: int, log_values: Array) -> Array:
    """Posterior density of the logarithm of one scale, the others as they are, on a grid."""
    hyperprior, before = plain(hyperprior_of)(engine._hyperprior), state.hyper[which]
    logs = []
    for value in np.exp(log_values):
        change = value / state.hyper[which]
        state.hyper[which] = value
        if which == NOISE:  # b ~ Gamma(shape, rate), s2 / b as they are
            state.tables[:, VAR] *= change
            prior = stats.gamma.logpdf(value, engine.model.noise_rate_shape, scale=1 / engine.model.noise_rate)
        elif which < RHO:
            prior = stats.invgamma.logpdf(value, hyperprior.arm_shape[which], scale=hyperprior.arm_scale[which])
            if which == LAM:  # the spread of the common centre is thought to be about as large
                scale = hyperprior.centre_scale * value
                prior += stats.invgamma.logpdf(state.centre_ratio[0], hyperprior.centre_shape, scale=scale)
        else:
            prior = stats.invgamma.logpdf(
                value, hyperprior.part_shape[which - RHO], scale=hyperprior.part_scale[which - RHO]
            )
        set_prior_variances(engine, state)
        logs.append(dense_evidence(engine, state) + prior + np.log(value))
    if which == NOISE:
        state.tables[:, VAR] *= before / state.hyper[which]
    state.hyper[which] = before
    set_prior_variances(engine, state)
    p = np.exp(np.array(logs) - max(logs))
    return np.asarray(p / p.sum())


def error_of_draws(which: int, propose: Callable[..., Any], n: int, handle: RngHandle) -> Array:
    """Mean and mean square of the logarithm of a scale over many draws, minus the exact ones, in standard errors."""
    model = RobustMixture(2, 2, noise_rate_shape=2.0, part_shape=(2.0, 2.0))
    engine = RobustEngine(model, fixed_units=True)
    state = played(engine, 24, scale=0.3)
    assert state.shared.reward_square == 1
    assert (state.tables[:, COUNT].max(axis=1) > 2).all()
    grid = np.linspace(-12, 12, 241)
    p = density_of_log(engine, state, which, grid)
    seen = np.empty(n)
    propose(engine._books(state), which, seen, handle)
    seen = np.log(seen)
    batches = np.stack([seen, seen**2]).reshape(2, 40, -1).mean(axis=2)
    exact = np.array([p @ grid, p @ grid**2])
    return np.asarray((batches.mean(axis=1) - exact) / (batches.std(axis=1, ddof=1) / np.sqrt(40)))


@pytest.mark.parametrize("which", [LAM, LAM + 1, RHO, RHO + 1, NOISE])
def test_draws_without_slopes_have_the_posterior_of_quadrature(which: int) -> None:
    assert np.abs(error_of_draws(which, propose, 20_000, rng_handle(np.random.default_rng(3)))).max() < 4


def wide_prior(value: float, shape: float, scale: float) -> float:
    """Planted: the density of the value taken for that of its logarithm."""
    return -(shape + 1) * float(np.log(value)) - scale / value


def evidence_without_volume(T: Array, k: int, n: int, at: Array, solver: Solver) -> float:
    """Planted: the determinant, which is what holds a prior's width back, is forgotten."""
    volume = np.log(np.einsum("iil->il", solver.factors)[:, :n]).sum()
    return float(evidence.evidence_of_some(T, k, n, at, solver) + volume)


@pytest.mark.parametrize(
    ("name", "bug"), [("log_inverse_gamma", wide_prior), ("evidence_of_some", evidence_without_volume)]
)
def test_wrong_priors_and_wrong_evidence_are_noticed(name: str, bug: Callable[..., Any]) -> None:
    wrong = quick_mutant(propose, {name: bug})
    assert np.abs(error_of_draws(RHO, wrong, 640, np.random.default_rng(3))).max() > 6


def test_noise_and_slopes_that_fell_come_back() -> None:
    """After a common noise scale of 1e-5 and slopes that interpolate, a hundred rounds restore the truth."""
    engine, rng = RobustEngine(RobustMixture(3, 4)), np.random.default_rng(1)
    state, noise = engine.init(), np.random.default_rng(2)
    for t in range(60):
        x = noise.standard_normal(4)
        state = engine.update(state, x, t % 3, float(x.sum() + 0.5 * noise.standard_normal()), rng)
    state.shared.noise_scale = 1e-5
    state.tables[:, VAR] = 1e-5
    state.shared.arm_var[:] *= 1e4
    for _ in range(100):
        state = engine.refresh(state, rng)
    assert 0.02 < state.shared.noise_scale < 3
    assert state.shared.arm_var[0] < 50
