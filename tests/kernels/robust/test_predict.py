"""Posterior of an arm's mean reward against dense Gaussian algebra, in three features."""

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import predict
from polyarm.kernels.robust.centre import find_centre
from polyarm.kernels.robust.common_centre import Common, common_of
from polyarm.kernels.robust.predict import View
from polyarm.kernels.robust.records import solver_for
from polyarm.types import Array
from tests.kernels.robust.world import SEATS, D, World, make_world, regression, write
from tests.kernels.script import Script

x = np.array([0.7, -1.1, 1.0])


@pytest.fixture
def world() -> World:
    return make_world()


def dense_centre(world: World, arm: int) -> tuple[Array, Array]:
    """Mean and covariance of w0: information 1/L + sum (Q - Q V Q), which is Q V Sxx / s2."""
    Q = np.diag(1 / world.features.part_var)
    information = np.diag(1 / world.features.arm_var)
    pull = world.features.centre / world.features.arm_var
    for known in world.known[arm]:
        information = information + Q @ known.V @ known.Sxx / known.s2
        pull = pull + Q @ known.V @ known.Sxy / known.s2
    covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
    return covariance @ pull, covariance


def dense_centres(world: World) -> tuple[Array, Array]:
    """Mean and covariance of c and every arm's w0, one after the other, slopes integrated out."""
    features, n = world.features, D * (len(world.known) + 1)
    Q, L = np.diag(1 / features.part_var), np.diag(1 / features.arm_var)
    W = world.centre_ratio[0] * world.shared.reward_square * features.unit
    information, pull = np.zeros((n, n)), np.zeros(n)
    information[:D, :D] = np.diag(1 / W) + len(world.known) * L
    pull[:D] = np.array([0.0, 0.0, world.shared.median]) / W
    for arm, parts in enumerate(world.known):
        here = slice(D * (arm + 1), D * (arm + 2))
        information[here, here] = L + sum((Q @ each.V @ each.Sxx / each.s2 for each in parts), np.zeros((D, D)))
        information[here, :D] = information[:D, here] = -L
        pull[here] = sum((Q @ each.V @ each.Sxy / each.s2 for each in parts), np.zeros(D))
    covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
    return covariance @ pull, covariance


def several(n_arms: int) -> World:
    """A world whose arms are those of `make_world`, over and over, each with noise of its own."""
    world = make_world()
    again = np.arange(n_arms) % len(SEATS)
    known = [[each._replace(s2=each.s2 * (1 + 0.1 * i)) for each in world.known[a]] for i, a in enumerate(again)]
    grown = world._replace(
        tables=world.tables[again], slots=world.slots[again], sizes=world.sizes[again], centres=world.centres[again]
    )
    new = []
    for arm, parts in enumerate(known):
        w0 = grown.centres[arm, :, D + 1]
        found = [regression(k.n, k.s2, k.syy, k.Sxx, k.Sxy, w0, world.features.part_var, k.w) for k in parts]
        for k, each in enumerate(found):
            write(grown.tables[arm], k, each)
        new.append(tuple(found))
    return grown._replace(known=tuple(new))


def loadings_of(world: World, arm: int) -> tuple[Array, Array]:
    """a_k of every component and of the unseen, and what x'w_k is beside a_k'w0."""
    rows = [known.V @ x / world.features.part_var for known in world.known[arm]] + [x]
    beside = [x @ known.V @ known.Sxy / known.s2 for known in world.known[arm]] + [0.0]
    return np.array(rows), np.array(beside)


def common_centre(world: World) -> Common:
    """What all rewards say of c, the arms' centres being found."""
    for arm, known in enumerate(world.known):
        plain(find_centre)(world.tables[arm], len(known), world.centres[arm], world.features, plain(solver_for)(D))
    found: Common = plain(common_of)(world.arms)
    return found


def located(world: World, arm: int) -> View:
    """What `locate` writes for an arm, all centres being found."""
    K, common = len(world.known[arm]), common_centre(world)
    view = plain(predict.blank_view)(K + 1, D, common)
    view.x[:] = x
    plain(predict.locate)(world.tables[arm], K, world.centres[arm], world.features, common, view)
    return without_idle_lanes(view, K + 1)


def without_idle_lanes(view: View, n: int) -> View:
    """The first n components of a view."""
    return view._replace(m=view.m[:n], v=view.v[:n], c=view.c[:n], G=view.G[:, :n])


@pytest.mark.parametrize("arm", range(4))
def test_the_centre_has_its_posterior_with_the_slopes_integrated_out(world: World, arm: int) -> None:
    centre, drawn = world.centres[arm], world.centres[arm, :, D + 1].copy()
    plain(find_centre)(world.tables[arm], len(world.known[arm]), centre, world.features, plain(solver_for)(D))
    mean, covariance = dense_centre(world, arm)
    factor = np.tril(centre[:, :D])
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(covariance))
    np.testing.assert_allclose(centre[:, D], mean)
    np.testing.assert_array_equal(centre[:, D + 1], drawn)


def test_the_common_centre_has_its_posterior_given_all_rewards(world: World) -> None:
    """With every arm's centre and slopes integrated out; the arm without rewards says nothing of it."""
    mean, covariance = dense_centres(world)
    e, C = common_centre(world)
    np.testing.assert_allclose(world.features.centre + e, mean[:D])
    np.testing.assert_allclose(np.tril(C) @ np.tril(C).T, np.linalg.inv(covariance[:D, :D]))


@pytest.mark.parametrize("n_arms", [1, 3, 4, 5, 8, 11])
def test_arms_tell_of_the_common_centre_however_many_they_are(n_arms: int) -> None:
    """Four at a time, and some without rewards among them."""
    world = several(n_arms)
    mean, covariance = dense_centres(world)
    e, C = common_centre(world)
    np.testing.assert_allclose(world.features.centre + e, mean[:D])
    np.testing.assert_allclose(np.tril(C) @ np.tril(C).T, np.linalg.inv(covariance[:D, :D]))
    found = common_of(world.arms)
    np.testing.assert_allclose(found.shift, e, rtol=1e-12)
    np.testing.assert_allclose(np.tril(found.factor), np.tril(C), rtol=1e-12)


@pytest.mark.parametrize("field", ["shared_centre", "learned"])
def test_a_common_centre_that_nobody_draws_is_not_integrated_out(world: World, field: str) -> None:
    setattr(world.prior, field, 0.0)
    e, C = common_centre(world)
    assert e.shape == (0,)
    assert C.shape == (0, 0)


@pytest.mark.parametrize("arm", range(4))
def test_components_in_a_context_are_jointly_gaussian(world: World, arm: int) -> None:
    """x'w_k = x'V (Sxy/s2 + Q w0) + N(0, x'Vx), and x'w0 + N(0, x'Rx) for one that nobody has seen; c is unknown."""
    m, v, _, G, _, _ = located(world, arm)
    mean, covariance = dense_centres(world)
    here = slice(D * (arm + 1), D * (arm + 2))
    A, b = loadings_of(world, arm)
    np.testing.assert_allclose(m, b + A @ mean[here])
    np.testing.assert_allclose(
        v, [x @ known.V @ x for known in world.known[arm]] + [(x**2 * world.features.part_var).sum()]
    )
    np.testing.assert_allclose(G.T @ G, A @ covariance[here, here] @ A.T)
    for other in range(4):
        there = slice(D * (other + 1), D * (other + 2))
        joint = G[D:].T @ located(world, other).G[D:]
        if other != arm:
            np.testing.assert_allclose(joint, A @ covariance[here, there] @ loadings_of(world, other)[0].T)


@pytest.mark.parametrize("arm", range(4))
def test_components_in_a_context_are_jointly_gaussian_given_the_common_centre(world: World, arm: int) -> None:
    world.prior.learned = 0.0
    m, v, _, G, _, _ = located(world, arm)
    mean, covariance = dense_centre(world, arm)
    A, b = loadings_of(world, arm)
    assert G.shape == (D, len(m))
    np.testing.assert_allclose(m, b + A @ mean)
    np.testing.assert_allclose(
        v, [x @ known.V @ x for known in world.known[arm]] + [(x**2 * world.features.part_var).sum()]
    )
    np.testing.assert_allclose(G.T @ G, A @ covariance @ A.T)


def test_moments_are_those_of_dirichlet_weights_and_gaussian_means(world: World) -> None:
    """E and var of sum p_k theta_k with p ~ Dirichlet(c), theta Gaussian, the unseen part a whole Dirichlet process."""
    view = located(world, 0)
    gamma, c = 0.75, np.array([1.3, 0.4, 2.2, 0.6])
    mean, sd = plain(predict.find_moments)(view._replace(c=c), 3, gamma)
    m, v, _, G, _, _ = view
    A = c.sum()
    pairs = (np.outer(c, c) + np.diag(c)) / (A * (A + 1))  # E p p'
    own = np.diag(v / np.array([1.0, 1.0, 1.0, gamma + 1.0]))
    P = c / A
    variance = (pairs * (own + G.T @ G)).sum() + m @ (pairs - np.outer(P, P)) @ m
    assert mean == pytest.approx(P @ m)
    assert sd == pytest.approx(np.sqrt(variance))


def test_a_draw_of_the_mean_uses_every_part_once(world: World) -> None:
    view = located(world, 0)
    m, v, _, G, _, _ = view
    weights, gamma = np.array([0.4, 1.1, 0.2, 0.7]), 0.75
    rng, h = Script(normals=[-1.3], gammas=weights, betas=[0.6, 0.5, 1.0]), np.array([0.4, -0.9, 1.7])
    drawn = plain(predict.draw_mean)(view._replace(c=np.array([1.0, 2.0, 3.0, gamma])), 3, gamma, h, rng)
    assert rng.asked == [(1.0,), (2.0,), (3.0,), (gamma,), *[(1.0, gamma)] * 3]
    p = weights / weights.sum()
    sticks = 0.6**2 + 0.2**2 + 0.2**2
    own = p[:3] ** 2 @ v[:3] + p[3] ** 2 * v[3] * sticks
    assert drawn == pytest.approx(p @ m + h @ G[D:] @ p - 1.3 * np.sqrt(own + ((G[:D] @ p) ** 2).sum()))


def test_draws_of_the_arms_share_what_they_have_in_common(world: World) -> None:
    """One h for all arms of a draw, another for the next."""
    common, n = common_centre(world), 2
    normals, gammas = np.linspace(-1.5, 1.1, 60), np.linspace(0.4, 2.0, 60)
    out, betas = np.empty((n, 4)), [1.0] * 60
    plain(predict.draw_means)(world.books, x[:2], out, Script(normals, gammas, betas=betas))
    rest = Script(normals[n * D :], gammas, betas=betas)
    h = normals[: n * D].reshape(n, D)
    for arm in range(4):
        view = plain(predict.view_of)(world.arms, arm, common, x[:2])
        for draw in range(n):
            found = plain(predict.draw_mean)(view, len(world.known[arm]), world.shared.concentration, h[draw], rest)
            assert out[draw, arm] == pytest.approx(world.shared.origin + found)


def test_an_arm_whose_every_weight_vanishes_is_drawn_as_unseen(world: World) -> None:
    view = located(world, 1)
    m, v, _, G, _, _ = view
    rng, h = Script(normals=[0.9], gammas=[0.0], betas=[1.0]), np.array([0.4, -0.9, 1.7])
    drawn = plain(predict.draw_mean)(view._replace(c=np.array([1e-300])), 0, 1e-300, h, rng)
    assert drawn == pytest.approx(m[0] + h @ G[D:, 0] + 0.9 * np.sqrt(v[0] + (G[:D, 0] ** 2).sum()))


def test_squared_sticks_stop_where_little_is_left() -> None:
    rng = Script(betas=[0.8] * 9)
    total = plain(predict.draw_squared_sticks)(2.0, rng)
    assert total == pytest.approx(sum((0.8 * 0.2**i) ** 2 for i in range(5)) + 0.2**10)
    assert rng.asked == [(1.0, 2.0)] * 5
    rng = Script(betas=[0.999, 0.9995])
    assert plain(predict.draw_squared_sticks)(2.0, rng) == pytest.approx(0.999**2 + (0.001 * 0.9995) ** 2 + 5e-7**2)


def test_every_arm_is_told_from_its_origin_in_its_own_columns(world: World) -> None:
    world.features.base[:2] = 0.2, -0.4
    context = x[:2] + world.features.base[:2]
    common_centre(world)
    out = np.empty((2, 4))
    plain(predict.moments)(world.books, context, out)
    world.shared.tied_sd = 0.0
    for arm in range(4):
        parts = np.empty((3, len(world.known[arm]) + 1))
        plain(predict.describe_components)(world.books, context, arm, parts)
        view = located(world, arm)
        m, v, _, G, _, _ = view
        np.testing.assert_allclose(parts[1:], [m, v + (G**2).sum(0)])
        mean, sd = plain(predict.find_moments)(view._replace(c=parts[0]), len(m) - 1, world.shared.concentration)
        np.testing.assert_allclose(out[:, arm], [world.shared.origin + mean, sd])


def test_tied_rewards_are_distrusted_by_the_number_of_rewards(world: World) -> None:
    moments = np.array([[1.0, 2.0, 3.0, 4.0], [0.1, 0.1, 9.0, 0.1]])
    plain(predict.inflate_sd_for_ties)(world.arms, moments)
    np.testing.assert_array_equal(moments[1], [0.1, 0.1, 9.0, 0.1])
    world.shared.tied_sd = 2.0
    plain(predict.inflate_sd_for_ties)(world.arms, moments)
    np.testing.assert_allclose(moments, [[1, 2, 3, 4], [2.8 / np.sqrt(8), 2.8, 9.0, 2.8 / np.sqrt(3)]])


@pytest.mark.parametrize("n", [1, predict.ABREAST - 1, predict.ABREAST, 2 * predict.ABREAST + 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("learned", [0.0, 1.0])
def test_many_contexts_have_the_moments_of_each(world: World, n: int, intercept: bool, learned: float) -> None:
    world.prior.learned = learned
    common_centre(world)
    contexts = np.random.default_rng(n).standard_normal((n, D - intercept))
    many, one = np.empty((n, 2, len(world.known))), np.empty((2, len(world.known)))
    predict.moments_many(world.books, contexts, many)
    for context, found in zip(contexts, many, strict=True):
        predict.moments(world.books, context, one)
        np.testing.assert_array_equal(found, one)
