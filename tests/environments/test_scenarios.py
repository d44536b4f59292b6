import numpy as np
import pytest
from scipy.integrate import quad

from polyarm.environments import (
    Component,
    Drift,
    ExponentialBandit,
    GenerativeBandit,
    LinearGaussian,
    LinearOutliers,
    LinearStudent,
    MixtureBandit,
    RandomLinear,
    Revenue,
    SmoothBandit,
    StaticGaussian,
    make_scenario,
    normal_contexts,
    scenario_names,
)
from polyarm.environments.presets import REAL
from polyarm.errors import InvalidArgument, UnknownName
from polyarm.types import Array, Rng

SIMULATED = [name for name in scenario_names() if name.partition("/")[0] not in REAL]


@pytest.mark.parametrize("name", SIMULATED)
def test_world_has_the_right_shape(name: str) -> None:
    environment = make_scenario(name).environment
    world = environment.sample(7, np.random.default_rng(1))
    assert world.contexts.shape == (7, environment.context_dim)
    assert world.rewards.shape == world.means.shape == (7, environment.n_arms)
    assert all(part.dtype == np.float64 and np.isfinite(part).all() for part in world)


@pytest.mark.parametrize("name", SIMULATED)
def test_means_are_the_averages_of_rewards(name: str) -> None:
    world = make_scenario(name).environment.sample(40_000, np.random.default_rng(2))
    scale = world.means if name == "exponential" else np.ones_like(world.means)
    gaps = (world.rewards - world.means) / scale  # the exponential's spread is its mean
    z = gaps.mean(axis=0) / (gaps.std(axis=0) / 200 + 1e-12)
    assert np.abs(z).max() < 4.5
    slope = (gaps * (world.contexts[:, :1] - world.contexts[:, :1].mean())).mean(axis=0)
    assert np.abs(slope / (gaps.std(axis=0) * world.contexts[:, 0].std() / 200 + 1e-12)).max() < 4.5


@pytest.mark.parametrize("name", SIMULATED)
def test_same_seed_same_world(name: str) -> None:
    environment = make_scenario(name).environment
    first, second = (environment.sample(20, np.random.default_rng(3)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    "name", ["gaussian/0.1", "linear-gaussian/a4-1", "mixture-b", "heavy-tailed", "exponential", "bimodal/both"]
)
def test_density_integrates_to_one_and_to_the_mean(name: str) -> None:
    environment = make_scenario(name).environment
    world = environment.sample(1, np.random.default_rng(4))
    density = environment.density  # type: ignore[attr-defined]
    low, high = (0, 100) if name == "exponential" else (-80, 80)
    for arm in range(environment.n_arms):

        def weighted(y: float, power: int, arm: int = arm) -> float:
            return float(y**power * density(world.contexts[0], arm, np.array(y)))

        nodes = [float(world.means[0, arm])]
        assert quad(weighted, low, high, args=(0,), points=nodes, limit=200)[0] == pytest.approx(1, abs=1e-6)
        mean = quad(weighted, low, high, args=(1,), points=nodes, limit=200)[0]
        assert mean == pytest.approx(world.means[0, arm], abs=1e-5)


def test_settings_as_published() -> None:
    assert make_scenario("sparse-linear").environment.n_arms == 7
    assert make_scenario("sparse-linear/8-arms").environment.n_arms == 8
    heavy, mild = (make_scenario(name).environment for name in ("heavy-tailed", "heavy-tailed/variance-10"))
    assert isinstance(heavy, MixtureBandit)
    assert isinstance(mild, MixtureBandit)
    assert heavy.arms[0][1].noise_sd == 10
    assert mild.arms[0][1].noise_sd == pytest.approx(10**0.5)
    assert [make_scenario(n).horizon for n in ("linear", "mixture-a", "gaussian", "linear-gaussian")] == [
        1500,
        1000,
        1500,
        500,
    ]
    assert make_scenario("mixture-b").n_components == (1, 2, 3)
    assert make_scenario("exponential").n_components is None
    assert len([name for name in scenario_names() if name.startswith("linear-gaussian/")]) == 12


def test_bare_name_means_a_setting() -> None:
    assert make_scenario("gaussian").name == "gaussian/0.5"
    assert make_scenario("linear-gaussian").name == "linear-gaussian/a2-0.5"


def test_random_slopes_are_sparse_and_of_length_one() -> None:
    slopes = RandomLinear(7, n_nonzero=3).sample_slopes(np.random.default_rng(5))
    assert ((slopes != 0).sum(axis=1) == 3).all()
    assert np.linalg.norm(slopes, axis=1) == pytest.approx(np.ones(7))


@pytest.mark.parametrize("name", ["", "mixture", "mixture-a/x", "gaussian/7", "linear-gaussian/a9-1", "sparse-linear/"])
def test_unknown_names_are_told(name: str) -> None:
    if name == "sparse-linear/":
        assert make_scenario(name).name == "sparse-linear"
        return
    with pytest.raises(UnknownName, match="scenario must be one of"):
        make_scenario(name)


def test_impossible_settings_are_told() -> None:
    with pytest.raises(InvalidArgument, match="noise_sd must be"):
        StaticGaussian((0.0, 1.0), noise_sd=0)
    with pytest.raises(InvalidArgument, match="weights must be above 0 with sum 1"):
        MixtureBandit(((Component(0.5, (1.0,)),),))
    with pytest.raises(InvalidArgument, match="slopes must be of one length"):
        MixtureBandit(((Component(1.0, (1.0,)),), (Component(1.0, (1.0, 2.0)),)))
    with pytest.raises(InvalidArgument, match="n_nonzero must be"):
        RandomLinear(3, context_dim=2, n_nonzero=5)
    with pytest.raises(InvalidArgument, match="rates must be"):
        ExponentialBandit(((0.0, 1.0),))
    with pytest.raises(InvalidArgument, match="slopes must be"):
        LinearGaussian((1.0, 2.0))  # type: ignore[arg-type]


class Coin:
    """A reward model: a biased coin whose bias is drawn once per world."""

    def sample_params(self, rng: Rng) -> float:
        return float(rng.random())

    def mean_reward(self, params: float, context: Array) -> float:
        return params

    def sample_reward(self, params: float, context: Array, rng: Rng) -> float:
        return float(rng.random() < params)


def test_environment_from_generative_models() -> None:
    bandit = GenerativeBandit((Coin(), Coin()), context_dim=3, sample_contexts=normal_contexts)
    world = bandit.sample(4000, np.random.default_rng(6))
    assert world.contexts.shape == (4000, 3)
    assert np.abs(world.rewards.mean(axis=0) - world.means[0]).max() < 0.04
    assert (world.means == world.means[0]).all()


def test_new_scenarios_as_described() -> None:
    outliers, noise = (make_scenario(f"linear-{kind}") for kind in ("outliers", "noise"))
    assert (outliers.environment.n_arms, outliers.environment.context_dim, outliers.horizon) == (8, 10, 1500)
    assert (outliers.n_components, noise.n_components) == ((2,) * 8, (1,) * 8)
    gaps = [
        world.rewards - world.means
        for world in (s.environment.sample(20_000, np.random.default_rng(7)) for s in (outliers, noise))
    ]
    assert (np.abs(gaps[0]) > 3).mean() == pytest.approx(0.1 * 0.764, abs=0.003)  # P(|N(0, 10^2)| > 3) = 0.764
    assert gaps[1].std() == pytest.approx(0.5, abs=0.003)
    assert make_scenario("bimodal").name == "bimodal/best"
    assert [make_scenario(f"bimodal/{case}").n_components for case in ("best", "both")] == [(2, 1), (2, 2)]
    assert [make_scenario(name).n_components for name in ("student", "revenue", "nonlinear", "drift")] == [None] * 4


def test_outliers_and_student_slopes_are_of_length_one() -> None:
    for name in ("linear-outliers", "linear-noise", "student"):
        world = make_scenario(name).environment.sample(50, np.random.default_rng(8))
        slopes = np.linalg.lstsq(world.contexts, world.means, rcond=None)[0]
        assert np.linalg.norm(slopes, axis=0) == pytest.approx(np.ones(8))


def test_revenue_is_zero_unless_bought_and_every_offer_is_best_for_someone() -> None:
    environment = make_scenario("revenue").environment
    assert isinstance(environment, Revenue)
    world = environment.sample(40_000, np.random.default_rng(9))
    bought = environment.conversion(world.contexts)
    error = np.sqrt((bought * (1 - bought)).mean(axis=0) / 40_000)
    assert (np.abs((world.rewards > 0).mean(axis=0) - bought.mean(axis=0)) < 4.5 * error).all()
    assert (np.bincount(world.means.argmax(axis=1), minlength=3) > 4000).all()
    assert (world.contexts[:, 0] == 1).all()


def test_drift_is_stationary_and_forgets_at_its_half_life() -> None:
    slopes = Drift(20, 5, half_life=50.0).sample_slopes(8000, np.random.default_rng(10)).reshape(8000, -1)
    assert slopes.var() == pytest.approx(1.0, abs=0.08)
    assert slopes[0].std() == pytest.approx(1.0, abs=0.25)
    assert (slopes[50:] * slopes[:-50]).mean() / slopes.var() == pytest.approx(0.5, abs=0.05)
    abrupt = Drift(3, 2, half_life=50.0, abrupt=True).sample_slopes(200, np.random.default_rng(11))
    changes = np.flatnonzero((np.diff(abrupt, axis=0) != 0).any(axis=(1, 2))) + 1
    assert changes.tolist() == [50, 100, 150]


def test_the_best_arm_of_a_drifting_world_changes() -> None:
    for name in ("drift", "drift/abrupt"):
        world = make_scenario(name).environment.sample(2000, np.random.default_rng(12))
        assert (np.bincount(world.means.argmax(axis=1), minlength=4) > 50).sum() >= 3


def test_nonlinear_means_are_smooth_of_unit_variance_and_not_linear() -> None:
    worlds = [SmoothBandit().sample(300, np.random.default_rng(seed)) for seed in range(60)]
    assert np.concatenate([w.means for w in worlds]).std() == pytest.approx(1.0, abs=0.15)
    design = [np.column_stack([np.ones(300), w.contexts]) for w in worlds]
    left = [np.linalg.lstsq(x, w.means, rcond=None)[1] / w.means.size * 4 for x, w in zip(design, worlds, strict=True)]
    assert np.mean(left) > 0.2  # a linear fit leaves a good part of the variance


def test_impossible_new_settings_are_told() -> None:
    with pytest.raises(InvalidArgument, match="outlier_share must be"):
        LinearOutliers(outlier_share=1.5)
    with pytest.raises(InvalidArgument, match="dof must be"):
        LinearStudent(dof=1.0)
    with pytest.raises(InvalidArgument, match="half_life must be"):
        Drift(half_life=0.0)
    with pytest.raises(InvalidArgument, match="length_scale must be"):
        SmoothBandit(length_scale=-1.0)
