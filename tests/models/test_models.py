"""Reward models told forwards: their draws follow the distributions they are named after."""

import numpy as np
import pytest
from scipy import stats

from polyarm.errors import InvalidArgument
from polyarm.models import LinearGaussian, LinearMixture, MixtureParams, NormalInverseGamma

CORRELATED = NormalInverseGamma(2, [1.0, -2.0], [[2.0, 0.9], [0.9, 1.0]], 3.0, 1.5)
NOT_REJECTED = 1e-4


def test_base_measure_draws_are_normal_inverse_gamma() -> None:
    weights, variance = CORRELATED.sample(20_000, np.random.default_rng(0))
    assert stats.kstest(variance, stats.invgamma(3.0, scale=1.5).cdf).pvalue > NOT_REJECTED
    marginal = stats.t(6, 1.0, np.sqrt(1.5 / 3.0 * 2.0))
    assert stats.kstest(weights[:, 0], marginal.cdf).pvalue > NOT_REJECTED
    standard = (weights - CORRELATED.mean_vector) / np.sqrt(variance)[:, None]
    np.testing.assert_allclose(np.cov(standard.T), CORRELATED.covariance_matrix, atol=0.05)
    assert np.corrcoef(standard[:, 0] ** 2, variance)[0, 1] == pytest.approx(0, abs=0.03)


def test_numbers_stand_for_vectors_and_matrices() -> None:
    base = NormalInverseGamma(3, 2.0, 0.5)
    np.testing.assert_array_equal(base.mean_vector, [2, 2, 2])
    np.testing.assert_array_equal(base.covariance_matrix, 0.5 * np.eye(3))
    np.testing.assert_array_equal(NormalInverseGamma(2, 0.0, [1.0, 4.0]).covariance_matrix, np.diag([1.0, 4.0]))


def test_settings_do_not_follow_the_arrays_they_came_from() -> None:
    mean, covariance = np.zeros(2), np.eye(2)
    base = NormalInverseGamma(2, mean, covariance)
    mean[:], covariance[:] = 7.0, 7.0
    np.testing.assert_array_equal(base.mean_vector, [0, 0])
    np.testing.assert_array_equal(base.covariance_matrix, np.eye(2))


def test_root_is_the_square_root_information() -> None:
    sqrt_information = CORRELATED.sqrt_information
    information = sqrt_information.T @ sqrt_information
    np.testing.assert_allclose(np.linalg.inv(information[:2, :2]), CORRELATED.covariance_matrix, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.solve(information[:2, :2], information[:2, 2]), [1.0, -2.0], rtol=1e-12)
    assert sqrt_information[2, 2] == 0


def test_prior_predictive_of_a_line_is_a_student_t() -> None:
    model, rng, x = LinearGaussian(CORRELATED), np.random.default_rng(1), np.array([0.5, 1.5])
    rewards = [model.sample_reward(model.sample_params(rng), x, rng) for _ in range(5000)]
    scale = np.sqrt(1.5 / 3.0 * (1 + x @ CORRELATED.covariance_matrix @ x))
    assert stats.kstest(rewards, stats.t(6, x @ [1.0, -2.0], scale).cdf).pvalue > NOT_REJECTED


def test_a_known_noise_variance_is_kept() -> None:
    model, rng, x = LinearGaussian(CORRELATED, noise_var=0.25), np.random.default_rng(2), np.array([0.5, 1.5])
    params = [model.sample_params(rng) for _ in range(5000)]
    assert {p.noise_var for p in params} == {0.25}
    means = [model.mean_reward(p, x) for p in params]
    scale = np.sqrt(0.25 * x @ CORRELATED.covariance_matrix @ x)
    assert stats.kstest(means, stats.norm(x @ [1.0, -2.0], scale).cdf).pvalue > NOT_REJECTED


@pytest.mark.parametrize(("concentration", "discount"), [(0.7, 0.0), (2.0, 0.0), (0.5, 0.3)])
def test_stick_breaking_weights(concentration: float, discount: float) -> None:
    """E sum w^2 = (1 - d)/(1 + c), and the first stick is Beta(1 - d, c + d)."""
    model, rng = LinearMixture(CORRELATED, concentration, discount), np.random.default_rng(3)
    weights = [model.sample_weights(rng) for _ in range(1000)]
    assert all(w.sum() == pytest.approx(1) for w in weights)
    concentrated = np.array([(w**2).sum() for w in weights])
    error = concentrated.std() / np.sqrt(len(weights))
    assert abs(concentrated.mean() - (1 - discount) / (1 + concentration)) < 4.5 * error
    first = [w[0] for w in weights]
    assert stats.kstest(first, stats.beta(1 - discount, concentration + discount).cdf).pvalue > NOT_REJECTED


def test_finite_mixture_has_dirichlet_weights() -> None:
    model = LinearMixture.finite(CORRELATED, 3, weight_prior=0.5)
    assert model.n_components == 3
    assert LinearMixture(CORRELATED).n_components is None
    rng = np.random.default_rng(4)
    weights = np.array([model.sample_weights(rng) for _ in range(3000)])
    assert weights.shape == (3000, 3)
    assert stats.kstest(weights[:, 1], stats.beta(0.5, 1.0).cdf).pvalue > NOT_REJECTED


def test_mixture_rewards_follow_their_parameters() -> None:
    model, rng, x = LinearMixture(CORRELATED), np.random.default_rng(5), np.array([1.0, 2.0])
    params = MixtureParams(np.array([0.3, 0.7]), np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([0.25, 4.0]))
    rewards = [model.sample_reward(params, x, rng) for _ in range(5000)]
    assert model.mean_reward(params, x) == pytest.approx(0.3 * 2 + 0.7 * 0)

    def cdf(y: float) -> float:
        return float(0.3 * stats.norm.cdf(y, 2, 0.5) + 0.7 * stats.norm.cdf(y, 0, 2))

    assert stats.kstest(rewards, np.vectorize(cdf)).pvalue > NOT_REJECTED


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"concentration": 0.0}, "concentration must be a finite number above 0, got 0.0"),
        ({"concentration": -0.5, "discount": 0.5}, "concentration must be .* above minus the discount, got -0.5"),
        ({"concentration": np.inf}, "concentration must be .*, got inf"),
        ({"discount": 1.0}, "discount must be a number below 1, got 1.0"),
        ({"discount": np.nan}, "discount must be a number below 1, got nan"),
        ({"concentration": 1.0, "discount": -0.3}, "concentration must be a multiple of -discount"),
    ],
)
def test_impossible_mixtures_are_refused(settings: dict[str, float], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        LinearMixture(CORRELATED, **settings)


def test_negative_concentration_is_allowed_above_minus_the_discount() -> None:
    assert LinearMixture(CORRELATED, -0.4, 0.5).concentration == -0.4
