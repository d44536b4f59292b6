"""Settings and forecasts of the engines, written out slowly number by number."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.errors import InvalidArgument
from polyarm.inference import Budget, GibbsEngine, HierarchicalEngine, ParticleEngine, RobustEngine, VariationalEngine
from polyarm.inference import gibbs as gibbs_engine
from polyarm.inference.robust import hyperprior_of
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture.component import COUNT, MEAN, NOISE, SCALE
from polyarm.kernels.robust import records
from polyarm.kernels.robust import update as robust_update
from polyarm.models import HierarchicalMixture, LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.models.objectives import MEAN as MEAN_REWARD
from polyarm.types import Array
from tests.contracts.engines import ENGINES
from tests.contracts.states import bits, fed, rewards, suited
from tests.inference.learning import Listen

X = np.array([0.8, -0.4])
BASE = NormalInverseGamma(2, [0.3, -0.2], [[2.0, 0.4], [0.4, 1.0]], 1.5, 0.7)
GRID = np.array([-3.0, -0.5, 0.0, 0.4, 2.0, 9.0])


def forecast(column: Array, shape: float) -> Array:
    """Density of one component's next reward at the grid: t(2a, x'U, sqrt(b/a (1 + x'Vx))), a = shape + n/2."""
    factor = np.zeros((2, 2))
    factor.T[np.tril_indices(2)] = column[MEAN + 2 :]
    a = shape + column[COUNT] / 2
    width = math.sqrt(column[SCALE] / a * (1 + float(np.sum((X @ factor) ** 2))))
    return np.asarray(stats.t(2 * a, float(X @ column[MEAN : MEAN + 2]), width).pdf(GRID))


def prior_forecast(base: NormalInverseGamma, scale: float | None = None) -> Array:
    b = base.scale if scale is None else scale
    width = math.sqrt(b / base.shape * (1 + float(X @ base.covariance_matrix @ X)))
    return np.asarray(stats.t(2 * base.shape, float(X @ base.mean_vector), width).pdf(GRID))


@pytest.mark.parametrize("discount", [0.0, 0.3])
@pytest.mark.parametrize("learn_scale", [None, (2.0, 2.0)])
def test_a_seating_forecasts_by_its_masses(discount: float, learn_scale: Any) -> None:
    """(n_k - d) of every component and c + K d of a new one, whose scale is the one that was learnt."""
    engine = GibbsEngine([LinearMixture(BASE, 0.6, discount)] * 2, Budget(8), learn_scale=learn_scale)
    state = fed(engine, rewards(30, 2, 2, seed=0), np.random.default_rng(0))
    assert (state.laws[0, NOISE] != 0.7) == (learn_scale is not None)
    for arm in range(2):
        K = int(state.sizes[arm, 0])
        assert K > 1
        columns = state.tables[arm, :, :K].T
        total = (0.6 + K * discount) * prior_forecast(BASE, float(state.laws[arm, NOISE]))
        total = total + sum((column[COUNT] - discount) * forecast(column, 1.5) for column in columns)
        n = columns[:, COUNT].sum()
        np.testing.assert_allclose(engine.predictive(state, X, arm).pdf(GRID), total / (n + 0.6), rtol=1e-9)


@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_particles_forecast_by_their_weights(discount: float) -> None:
    """The average over particles, by weight, of what each forecasts as a seating."""
    engine = ParticleEngine([LinearMixture(BASE, 0.6, discount)] * 2, 20)
    with np.errstate(over="ignore"):
        state = fed(engine, rewards(30, 2, 2, seed=0), np.random.default_rng(0))
    for arm in range(2):
        cloud, wanted, n = state.clouds[arm], np.zeros(len(GRID)), int(state.clouds[arm].size[2])
        for i in range(int(cloud.size[0])):
            K = int(cloud.lengths[i])
            columns = [cloud.table[:, k] for k in cloud.members[i, :K]]
            assert sum(column[COUNT] for column in columns) == pytest.approx(n)
            seating = (0.6 + K * discount) * prior_forecast(BASE)
            seating = seating + sum((column[COUNT] - discount) * forecast(column, 1.5) for column in columns)
            wanted += cloud.weights[i] * seating / (n + 0.6)
        np.testing.assert_allclose(engine.predictive(state, X, arm).pdf(GRID), wanted, rtol=1e-9)
        best = max(range(int(cloud.size[0])), key=lambda i: float(cloud.weights[i]))
        assert engine.n_components(state)[arm] == cloud.lengths[best]
        assert engine.log_evidence(state, arm) == cloud.log_evidence[0]
    np.testing.assert_allclose(engine.predictive(engine.init(), X, 0).pdf(GRID), prior_forecast(BASE), rtol=1e-9)


def test_soft_seatings_forecast_by_what_has_mass() -> None:
    engine = VariationalEngine([LinearMixture(BASE, 0.6, 0.3)] * 2, max_components=5)
    state = fed(engine, rewards(40, 2, 2, seed=0), np.random.default_rng(0))
    for arm in range(2):
        columns = [column for column in state.seatings[arm].table.T if column[COUNT] > 0.3 + 1e-6]
        total = (0.6 + len(columns) * 0.3) * prior_forecast(BASE)
        total = total + sum((column[COUNT] - 0.3) * forecast(column, 1.5) for column in columns)
        n = sum(column[COUNT] for column in columns)
        np.testing.assert_allclose(engine.predictive(state, X, arm).pdf(GRID), total / (n + 0.6), rtol=1e-9)


@pytest.mark.parametrize("rules", [(0.5, 0.1, 1.0, 0.2), (2.0, 0.0, 0.3, 0.0)])
def test_a_franchise_forecasts_by_tables_and_menu(rules: tuple[float, float, float, float]) -> None:
    """A guest sits at a table of n with mass n - d, else at a new one with c + T d, whose dish is m - d' of the menu's,
    or a new one of mass c' + K d'; an arm without guests has new tables alone."""
    c, d, shared, shared_d = rules
    engine = HierarchicalEngine(HierarchicalMixture(BASE, c, d, shared, shared_d), 3, 20, 2)
    data = [row for row in rewards(60, 2, 3, seed=0) if row[1] != 2]
    state = fed(engine, data, np.random.default_rng(0))
    arms, tables, dishes = engine.seating(state)
    assert len(set(dishes)) > 1
    every = sorted(set(dishes))
    columns = {dish: state.dishes[:, state.labels[1, dish]] for dish in every}
    menu = {dish: len({(a, t) for a, t, z in zip(arms, tables, dishes, strict=True) if z == dish}) for dish in every}
    on_menu = sum(menu.values()) + shared
    new_table = (shared + len(every) * shared_d) / on_menu * prior_forecast(BASE)
    new_table = new_table + sum((menu[dish] - shared_d) / on_menu * forecast(columns[dish], 1.5) for dish in every)
    for arm in range(3):
        mine = [(t, z) for a, t, z in zip(arms, tables, dishes, strict=True) if a == arm]
        held = {(t, z): mine.count((t, z)) for t, z in set(mine)}
        new = c + len(held) * d if held else 1.0
        wanted = new * new_table + sum((n - d) * forecast(columns[z], 1.5) for (_, z), n in held.items())
        wanted = wanted / (len(mine) + c if held else 1.0)
        np.testing.assert_allclose(engine.predictive(state, X, arm).pdf(GRID), wanted, rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("fixed_units", [True, False])
def test_every_setting_of_the_robust_model_has_its_place(intercept: bool, fixed_units: bool) -> None:
    model = RobustMixture(
        3,
        2,
        intercept=intercept,
        arm_shape=(1.1, 1.2),
        arm_scale=(1.3, 1.4),
        part_ratio=(1.5, 1.6),
        part_shape=(1.7, 1.8),
        part_scale=(1.9, 2.1),
        centre_var=2.2,
        noise_shape=2.3,
        noise_rate_shape=2.4,
        noise_rate=2.5,
        wild_share=0.26,
        wild_shape=2.7,
        concentration_prior=(2.8, 2.9),
        place_shape=3.1,
        place_scale=3.2,
        centre_shape=3.3,
        centre_scale=3.4,
        shared_centre=not intercept,
        learned=intercept,
    )
    hyperprior: Any = plain(records.hyperprior_of)(hyperprior_of(model, fixed_units, 12.0))
    for name in ("arm_shape", "arm_scale", "part_shape", "part_scale"):
        assert getattr(hyperprior, name).tolist() == list(getattr(model, name))
    for name in ("noise_shape", "noise_rate_shape", "noise_rate", "centre_var", "wild_share", "wild_shape"):
        assert getattr(hyperprior, name) == getattr(model, name)
    assert (hyperprior.concentration_shape, hyperprior.concentration_rate) == (2.8, 2.9)
    flags = (hyperprior.shared_centre, hyperprior.learned, hyperprior.intercept, hyperprior.fixed_units)
    assert flags == (not intercept, intercept, intercept, fixed_units)
    assert (hyperprior.location_shape, hyperprior.location_scale, hyperprior.window) == (3.1 * intercept, 3.2, 24.0)
    assert hyperprior.centre_shape == 0.0  # nothing is learned, or arms have no centre
    assert hyperprior.centre_scale == 3.4
    assert hyperprior.bulk == pytest.approx(math.gamma(2.3) / math.gamma(2.8))
    assert hyperprior.wild_bulk == pytest.approx(math.gamma(2.3) / math.gamma(2.7))
    kappa: Any = plain(records.hyperprior_of)(hyperprior_of(RobustMixture(2, 2, centre_shape=3.3), False))
    assert kappa.centre_shape == 3.3
    assert RobustEngine(RobustMixture(2, 2, centre_shape=4.0, centre_scale=3.4)).init().centre_ratio.tolist() == [0.85]
    fixed: Any = plain(records.hyperprior_of)(hyperprior_of(RobustMixture(2, 2), False))
    assert (fixed.concentration_shape, fixed.concentration_rate, fixed.window) == (0.0, 0.0, 0.0)

    state, D = RobustEngine(model, fixed_units=fixed_units).init(), 2 + intercept
    shared, features = state.shared, state.features
    assert state.centre_ratio.tolist() == [2.2]
    np.testing.assert_allclose(shared.arm_var, [1.3 / 1.1, 1.4 / 1.2])
    assert shared.part_ratio.tolist() == [1.5, 1.6]
    assert shared.noise_scale == pytest.approx(2.4 / 2.5)
    assert shared.concentration == pytest.approx(2.8 / 2.9)
    assert shared.location_var == pytest.approx(3.2 / 3.1 if intercept else 0.0)
    assert (shared.reward_square, shared.origin, shared.median, shared.n_steps) == (1.0, 0.0, 0.0, 0.0)
    apart = 1e-8 if intercept else 1.0  # without a centre of their own arms have none around the common one
    arm_var = [apart * 1.3 / 1.1] * 2 + [apart * 1.4 / 1.2] * intercept
    np.testing.assert_allclose(features.arm_var, arm_var)
    assert features.unit.tolist() == [1.0] * D
    assert features.precision.tolist() == [float(fixed_units)] * 2 + [0.0] * intercept
    for centre in state.centres:
        np.testing.assert_allclose(centre[:, :D] @ centre[:, :D].T, np.diag(1 / np.array(arm_var)))
        assert not centre[:, D:].any()
    assert state.tables.shape[0] == len(state.data) == len(state.seats) == 3
    constant = RobustMixture(2, 2, concentration=0.9, place_shape=0.0, place_scale=0.4)
    settled = RobustEngine(constant).init().shared
    assert (settled.concentration, settled.location_var) == (0.9, 0.4)


GROWING = [name for name, build in ENGINES.items() if hasattr(build(3, 2), "with_arm") and name != "of the how-to"]


@pytest.mark.parametrize("name", GROWING)
def test_a_new_arm_leaves_the_others_what_they_were_and_is_like_one_without_rewards(name: str) -> None:
    """Its forecast is that of an arm of the same state that was never played."""
    engine: Any = ENGINES[name](3, 2)
    data = [row for row in rewards(60, 2, 3, seed=3) if row[1] != 2]
    with np.errstate(over="ignore"):
        state = fed(engine, data, np.random.default_rng(0))
        before = engine.expected_means(state, X)
        wider, grown = engine.with_arm(state)
        after = wider.expected_means(grown, X)
        assert (wider.n_arms, len(after)) == (4, 4)
        np.testing.assert_allclose(after[:3], before, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(after[3], before[2], rtol=1e-6, atol=1e-9)
        if hasattr(engine, "predictive"):
            unseen, new = engine.predictive(state, X, 2), wider.predictive(grown, X, 3)
            np.testing.assert_allclose(new.cdf(GRID), unseen.cdf(GRID), rtol=1e-6, atol=1e-9)
        one, two = (fed(wider, data[:4], np.random.default_rng(1), each) for each in (grown, None))
        assert bits(one).keys() == bits(two).keys()


def test_what_is_paid_beside_a_robust_model_has_its_shares() -> None:
    """With the mean as objective a draw is the values' shares and the model's own draw, number by number."""
    engine = RobustEngine(RobustMixture(2, 2), 8, 4)
    state = fed(engine, rewards(30, 2, 2, seed=0), np.random.default_rng(0))
    shares = np.random.default_rng(1).dirichlet(np.ones(3), (2, 50))
    own = engine.draw_objectives(state, X, MEAN_REWARD, 50, np.random.default_rng(2))
    values = np.array([4.0, -7.0])
    found = engine.draw_objectives_beside(state, X, MEAN_REWARD, values, shares, np.random.default_rng(2))
    wanted = (shares[:, :, :2] @ values).T + shares[:, :, 2].T * own
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    for wrong in (shares[:1], shares[:, :, :2], np.concatenate([shares, shares])):
        with pytest.raises(InvalidArgument, match="shares must be one of every arm and value"):
            engine.draw_objectives_beside(state, X, MEAN_REWARD, values, wrong, np.random.default_rng(2))


@pytest.mark.parametrize("kind", ["gibbs", "robust"])
def test_every_arm_fades_eight_times_in_a_half_life(listen: Listen, kind: str) -> None:
    models: Any = {
        "gibbs": lambda: GibbsEngine([LinearMixture(BASE)] * 2, Budget(2), half_life=24.0),
        "robust": lambda: RobustEngine(RobustMixture(2, 2), 2, 1, half_life=24.0),
    }
    engine, rng = models[kind](), np.random.default_rng(0)
    calls = listen(gibbs_engine if kind == "gibbs" else robust_update, "forget")
    state = engine.init()
    for n, (x, arm, y) in enumerate(rewards(40, 2, 2, seed=0), 1):
        calls.clear()
        state = engine.update(state, x, arm, y, rng)
        shares = [arguments[-1] for arguments, _ in calls]
        assert shares == [0.5 ** (3 / 24)] * ((2 if kind == "gibbs" else 1) if n % 3 == 0 else 0), n
        if kind == "gibbs" and calls:
            assert [arguments[1] for arguments, _ in calls] == [0, 1]


def rows_in_order(state: Any, name: str, arm: int) -> Array:
    """Contexts and rewards of an arm as its state keeps them, oldest first."""
    rows: Array
    if name == "student":
        rows = state.rows[arm][: state.counts[arm], :3]
    elif name == "variational":
        rows = state.seatings[arm].data[: state.seatings[arm].size[0], :3]
    elif name == "hierarchical":
        n = int(state.size[1])
        rows = state.data[:n, :3][state.arm_of[:n] == arm]
    elif name == "robust, counts":
        rows = state.links.data[arm][: state.links.models.sizes[arm, 0]][:, [0, 1, 3]]
    else:
        rows = state.data[arm][: state.sizes[arm, 1], :3]
    return rows


@pytest.mark.parametrize("name", ["student", "variational", "hierarchical", "dirichlet, budget", "robust, counts"])
def test_all_rewards_are_kept_in_their_order_while_rows_grow(name: str) -> None:
    engine: Any = ENGINES[name](2, 2)
    data = rewards(90, 2, 2, seed=4)
    state = fed(engine, data, np.random.default_rng(0))
    for arm in range(2):
        own = [[*x, suited(engine, y)] for x, a, y in data if a == arm]
        assert len(own) > 32
        np.testing.assert_array_equal(rows_in_order(state, name, arm), own)
