"""The density estimator by itself: exact on small cases, coherent with itself, polite to scikit-learn."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import polyarm as pa
from polyarm.errors import BrokenFile, InvalidArgument, PolyarmError
from polyarm.regression.regressor import FitFile
from polyarm.types import Array

# name of a check of scikit-learn -> why a conditional density estimator may fail it; none needs to be excused
EXPECTED_FAILED_CHECKS: dict[str, str] = {}


def two_lines(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Contexts (1, u), and rewards from two crossing lines."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.uniform(-1, 1, n)])
    slope = np.where(rng.random(n) < 0.6, 2.0, -1.0)
    return X, slope * (0.5 + X[:, 1]) + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def fit() -> pa.MixtureRegressor:
    X, y = two_lines(80)
    return pa.MixtureRegressor(prior_shape=2.0).fit(X, y, n_sweeps=60, seed=3)


def partitions(n: int) -> Iterator[list[list[int]]]:
    """Every partition of range(n), as lists of members."""
    if n == 0:
        yield []
        return
    for smaller in partitions(n - 1):
        for k in range(len(smaller)):
            yield [[*group, n - 1] if j == k else group for j, group in enumerate(smaller)]
        yield [*smaller, [n - 1]]


def component(X: Array, y: Array, x: Array, U0: Array, V0: Array, a0: float, b0: float) -> Any:
    """Predictive Student-t of one component, by the textbook's inverses."""
    information = np.linalg.inv(V0) + X.T @ X
    V = np.linalg.inv(information)
    U = V @ (np.linalg.inv(V0) @ U0 + X.T @ y)
    b = b0 + 0.5 * (y @ y + U0 @ np.linalg.inv(V0) @ U0 - U @ information @ U)
    a = a0 + 0.5 * len(y)
    return stats.t(2 * a, x @ U, np.sqrt(b / a * (1 + x @ V @ x)))


def exact_predictive(
    X: Array, y: Array, x: Array, grid: Array, concentration: float, discount: float, prior: tuple[Any, ...]
) -> tuple[Array, Array]:
    """Density on the grid and distribution of the number of components, summed over all partitions."""
    density, share, total = np.zeros_like(grid), np.zeros(len(y) + 1), 0.0
    for groups in partitions(len(y)):
        order = sorted(range(len(y)), key=lambda i: next(k for k, g in enumerate(groups) if i in g))
        weight, sizes = 1.0, [0] * len(groups)
        for n, i in enumerate(order):  # the chain rule: seat and score one reward after the other
            k = next(k for k, g in enumerate(groups) if i in g)
            in_use = sum(size > 0 for size in sizes)
            mass = sizes[k] - discount if sizes[k] else concentration + in_use * discount
            before = [j for j in order[:n] if j in groups[k]]
            weight *= mass / (n + concentration) * component(X[before], y[before], X[i], *prior).pdf(y[i])
            sizes[k] += 1
        inner = (concentration + len(groups) * discount) * component(X[:0], y[:0], x, *prior).pdf(grid)
        for group in groups:
            inner = inner + (len(group) - discount) * component(X[group], y[group], x, *prior).pdf(grid)
        density += weight * inner / (len(y) + concentration)
        share[len(groups)] += weight
        total += weight
    return density / total, share / total


@pytest.mark.parametrize(("concentration", "discount"), [(0.5, 0.0), (1.0, 0.4)])
@pytest.mark.parametrize("n", [1, 5])
def test_posterior_predictive_equals_the_sum_over_all_partitions(n: int, concentration: float, discount: float) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.standard_normal((n, 2)), 2 * rng.standard_normal(n)
    prior = (np.array([0.3, -0.2]), np.array([[1.0, 0.6], [0.6, 2.0]]), 1.5, 0.7)
    x, grid = np.array([0.7, -1.1]), np.linspace(-5, 5, 9)
    exact, share = exact_predictive(X, y, x, grid, concentration, discount, prior)
    n_sweeps = 40_000
    fit = pa.MixtureRegressor(concentration, discount, *prior).fit(X, y, n_sweeps, seed=1, burn_in=100)
    np.testing.assert_allclose(fit.pdf(x, grid), exact, atol=6 * exact.max() / np.sqrt(n_sweeps))
    seen = np.bincount(fit.n_components_, minlength=n + 1) / n_sweeps
    assert 0.5 * np.abs(seen - share).sum() < 0.01


def test_vanishing_concentration_is_bayesian_linear_regression() -> None:
    X, y = two_lines(50)
    fit = pa.MixtureRegressor(concentration=1e-200).fit(X, y, n_sweeps=20)
    assert (fit.n_components_ == 1).all()
    x, grid = np.array([1.0, 0.4]), np.linspace(-3, 3, 11)
    exact = component(X, y, x, np.zeros(2), np.eye(2), 1.0, 1.0)
    np.testing.assert_allclose(fit.pdf(x, grid), exact.pdf(grid), rtol=1e-10)
    np.testing.assert_allclose(fit.cdf(x, grid), exact.cdf(grid), rtol=1e-10)
    np.testing.assert_allclose(fit.quantile(x, [0.1, 0.9]), exact.ppf([0.1, 0.9]), rtol=1e-10)
    np.testing.assert_allclose(fit.mean(x), exact.mean(), rtol=1e-10)


def test_density_integrates_to_one_and_is_the_slope_of_cdf(fit: pa.MixtureRegressor) -> None:
    x = np.array([1.0, 0.7])
    total, _ = integrate.quad(lambda y: float(fit.pdf(x, y)), -np.inf, np.inf, limit=400, points=None)
    assert total == pytest.approx(1, abs=1e-6)
    grid, h = np.linspace(-4, 5, 25), 1e-5
    slope = (fit.cdf(x, grid + h) - fit.cdf(x, grid - h)) / (2 * h)
    np.testing.assert_allclose(slope, fit.pdf(x, grid), rtol=1e-5, atol=1e-9)


def test_mean_is_the_integral_of_y_times_density(fit: pa.MixtureRegressor) -> None:
    x = np.array([1.0, 0.7])
    pieces = [-np.inf, -10, 0, 3, 10, np.inf]
    parts = [
        integrate.quad(lambda y: y * float(fit.pdf(x, y)), low, high, limit=200)[0] for low, high in pairwise(pieces)
    ]
    assert sum(parts) == pytest.approx(float(fit.mean(x)), abs=1e-6)


def test_quantile_inverts_cdf(fit: pa.MixtureRegressor) -> None:
    p = np.array([1e-9, 0.001, 0.2, 0.5, 0.77, 0.999])
    x = np.array([1.0, -0.3])
    np.testing.assert_allclose(fit.cdf(x, fit.quantile(x, p)), p, rtol=1e-10)
    assert fit.quantile(x, [0, 1]).tolist() == [-np.inf, np.inf]


def test_samples_follow_cdf(fit: pa.MixtureRegressor) -> None:
    x = np.array([1.0, 0.9])
    draws = fit.sample(x, 4000, seed=5)
    assert stats.kstest(draws, lambda y: fit.cdf(x, y)).pvalue > 1e-4


def test_bands_come_from_draws_whose_expectation_is_the_curve(fit: pa.MixtureRegressor) -> None:
    x, grid = np.array([1.0, 0.7]), np.linspace(-4, 5, 15)
    draws = np.concatenate([fit._draws.draw_densities(x, grid, np.random.default_rng(s)) for s in range(60)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - fit.pdf(x, grid)) < 4.5 * error).all()
    band = fit.density_band(x, grid, level=0.9)
    assert (band.lower < fit.pdf(x, grid)).all()
    assert (fit.pdf(x, grid) < band.upper * 1.5).all()
    wide = fit.density_band(x, grid, level=0.99)
    assert (wide.lower <= band.lower).all()
    assert (wide.upper >= band.upper).all()


def test_band_of_the_mean_holds_the_mean(fit: pa.MixtureRegressor) -> None:
    X = two_lines(5)[0]
    band = fit.mean_band(X, level=0.99)
    assert band.lower.shape == band.upper.shape == (5,)
    assert (band.lower < fit.mean(X)).all()
    assert (fit.mean(X) < band.upper).all()


def test_contexts_and_values_broadcast(fit: pa.MixtureRegressor) -> None:
    X, y = two_lines(6, seed=9)
    pairs, curves = fit.pdf(X, y), fit.pdf(X[:, None], y)
    assert pairs.shape == (6,)
    assert curves.shape == (6, 6)
    np.testing.assert_array_equal(np.diag(curves), pairs)
    np.testing.assert_array_equal(curves[2], fit.pdf(X[2], y))
    assert fit.pdf(X[0], 0.5).shape == ()
    assert fit.mean(X).shape == (6,)
    assert fit.mean(X[0]).shape == ()
    assert fit.quantile(X[:, None], [0.1, 0.5]).shape == (6, 2)
    assert fit.sample(X, 3).shape == (6, 3)
    assert fit.sample(X[0], 3).shape == (3,)
    assert fit.pdf(np.empty((0, 2)), np.empty(0)).shape == (0,)


def test_one_draw_of_the_labels_per_sweep(fit: pa.MixtureRegressor) -> None:
    assert fit.assignments_.shape == (60, 80)
    assert fit.n_components_.shape == (60,)
    for labels, n_components in zip(fit.assignments_, fit.n_components_, strict=True):
        values, first = np.unique(labels, return_index=True)
        assert values.tolist() == list(range(n_components))
        assert (np.diff(first) > 0).all()


def test_burn_in_leaves_out_draws_from_predictions_only() -> None:
    X, y = two_lines(30)
    every = pa.MixtureRegressor().fit(X, y, n_sweeps=10, burn_in=0)
    last = pa.MixtureRegressor().fit(X, y, n_sweeps=10, burn_in=9)
    np.testing.assert_array_equal(every.assignments_, last.assignments_)
    assert len(last._draws.starts) == 2
    assert last._draws.columns.shape[1] == last.n_components_[-1] + 1
    assert len(pa.MixtureRegressor().fit(X, y, n_sweeps=10)._draws.starts) == 9


def test_a_seed_repeats_a_fit() -> None:
    X, y = two_lines(40)
    one, same, other = (pa.MixtureRegressor().fit(X, y, n_sweeps=20, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.assignments_, same.assignments_)
    np.testing.assert_array_equal(one.pdf(X, y), same.pdf(X, y))
    assert not np.array_equal(one.assignments_, other.assignments_)
    np.testing.assert_array_equal(one.sample(X[0], 5, seed=4), same.sample(X[0], 5, seed=4))


def test_nothing_is_hidden() -> None:
    """No intercept: at x = 0 the mean is 0; no standardisation: only the prior ties the scales."""
    X, y = two_lines(40)
    fit = pa.MixtureRegressor().fit(X, y + 100, n_sweeps=10)
    assert fit.mean(np.zeros(2)) == 0


def test_a_file_predicts_bit_for_bit(fit: pa.MixtureRegressor, tmp_path: Path) -> None:
    loaded = pa.MixtureRegressor.load(fit.save(tmp_path / "fit"))
    X, y = two_lines(7)
    np.testing.assert_array_equal(loaded.pdf(X, y), fit.pdf(X, y))
    np.testing.assert_array_equal(loaded.assignments_, fit.assignments_)
    np.testing.assert_array_equal(loaded.mean_band(X).upper, fit.mean_band(X).upper)
    assert loaded.get_params() == fit.get_params()


def test_settings_changed_after_a_fit_wait_for_the_next(tmp_path: Path) -> None:
    fit = pa.MixtureRegressor(discount=0.2).fit(GOOD_X, GOOD_Y, n_sweeps=5)
    before = fit.pdf(GOOD_X, GOOD_Y)
    fit.set_params(discount=0.6)
    np.testing.assert_array_equal(fit.pdf(GOOD_X, GOOD_Y), before)
    loaded = pa.MixtureRegressor.load(fit.save(tmp_path / "fit"))
    np.testing.assert_array_equal(loaded.pdf(GOOD_X, GOOD_Y), before)
    assert loaded.discount == 0.2


def test_a_file_of_something_else_is_refused(fit: pa.MixtureRegressor, tmp_path: Path) -> None:
    policy = pa.make_policy("linear", 2, 2)
    with pytest.raises(BrokenFile):
        pa.MixtureRegressor.load(pa.save_state(tmp_path / "state", policy.init()))
    with pytest.raises(BrokenFile):
        pa.load_state(fit.save(tmp_path / "fit"), policy.init())
    for text in (b"", b"{}", b'{"params": {"colour": 1}}', b'{"params": {"discount": 2}, "n_features": 2}'):
        empty = FitFile.empty()._replace(settings=np.frombuffer(text, np.uint8))
        with pytest.raises(BrokenFile, match="path must be a fitted regressor"):
            pa.MixtureRegressor.load(pa.save_state(tmp_path / "fit", empty))


GOOD_X, GOOD_Y = two_lines(6)


@pytest.mark.parametrize(
    ("params", "fit_args", "match"),
    [
        ({"concentration": -1}, {}, r"concentration must be a finite number above 0, got -1"),
        ({"concentration": "much"}, {}, r"concentration must be .*, got 'much'"),
        ({"discount": 1.0}, {}, r"discount must be a number below 1, got 1.0"),
        ({"prior_mean": [0, 0, 0]}, {}, r"prior_mean must be a number or a vector of 2, got shape \(3,\)"),
        ({"prior_covariance": [[1, 2], [2, 1]]}, {}, r"prior_covariance must be positive definite"),
        ({"prior_covariance": [[1, 0.5], [0, 1]]}, {}, r"prior_covariance must be symmetric"),
        ({"prior_shape": 0}, {}, r"prior_shape must be a finite number above 0, got 0"),
        ({"prior_scale": np.nan}, {}, r"prior_scale must be a finite number above 0, got nan"),
        ({}, {"n_sweeps": 0}, r"n_sweeps must be an integer of at least 1, got 0"),
        ({}, {"n_sweeps": 2.5}, r"n_sweeps must be an integer of at least 1, got 2.5"),
        ({}, {"n_sweeps": 5, "burn_in": 5}, r"burn_in must be less than n_sweeps = 5, got 5"),
        ({}, {"seed": -1}, r"seed must be a non-negative integer or a Generator, got -1"),
        ({}, {"y": GOOD_Y[:-1]}, r"y must be a vector of 6 numbers, one per row of X, got shape \(5,\)"),
        ({}, {"y": np.full(6, 1e300)}, r"y must be at most 1e\+100 in size, got 1e\+300"),
        ({}, {"y": np.append(GOOD_Y[:-1], np.inf)}, r"y must be finite, got inf at 5"),
        ({}, {"X": np.full((6, 2), np.nan)}, r"X must be finite, got NaN"),
        ({}, {"X": 1e9 * GOOD_X}, r"X must be rows of length at most 1e\+08"),
        ({}, {"X": 1e200 * GOOD_X}, r"X must be rows of length at most 1e\+08, got inf"),
        ({}, {"X": GOOD_X[0]}, r"X must be a matrix \(samples, features\), got shape \(2,\)"),
    ],
)
def test_bad_settings_and_data_are_named(params: dict[str, Any], fit_args: dict[str, Any], match: str) -> None:
    fit = pa.MixtureRegressor(**params)
    arguments: dict[str, Any] = {"X": GOOD_X, "y": GOOD_Y, "n_sweeps": 5} | fit_args
    with pytest.raises(InvalidArgument, match=match):
        fit.fit(**arguments)
    assert not hasattr(fit, "assignments_")


@pytest.mark.parametrize(
    ("method", "args", "match"),
    [
        ("pdf", ([1.0], 0.0), "x must be rows of 2 features, got 1"),
        ("pdf", ([[1.0, 2.0]] * 3, [0.0, 1.0]), "y must be of a shape that broadcasts"),
        ("cdf", ([1.0, np.inf], 0.0), "x must be finite, got inf"),
        ("cdf", ([1.0, 2.0], np.nan), "y must be numbers, got nan"),
        ("quantile", ([1.0, 2.0], 1.5), "p must be from 0 to 1, got 1.5"),
        ("sample", ([1.0, 2.0], 0), "n must be an integer of at least 1, got 0"),
        ("density_band", ([[1.0, 2.0]], [0.0]), r"x must be one context \(2,\)"),
        ("density_band", ([1.0, 2.0], [0.0], 95), "level must be a number between 0 and 1, got 95"),
        ("mean_band", (3.0,), "x must be a vector of 2 numbers"),
    ],
)
def test_bad_questions_are_named(fit: pa.MixtureRegressor, method: str, args: tuple[Any, ...], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        getattr(fit, method)(*args)


def test_a_mean_that_does_not_exist_is_refused() -> None:
    fit = pa.MixtureRegressor(prior_shape=0.5).fit(GOOD_X, GOOD_Y, n_sweeps=5)
    with pytest.raises(InvalidArgument, match="prior_shape must be above 1/2 for the mean to exist"):
        fit.mean(GOOD_X)
    assert np.isfinite(fit.quantile(GOOD_X[0], 0.5))


@pytest.mark.filterwarnings("ignore:Estimator MixtureRegressor does not inherit")
def test_scikit_learns_own_checks() -> None:
    results = check_estimator(
        pa.MixtureRegressor(), expected_failed_checks=EXPECTED_FAILED_CHECKS, on_skip=None, on_fail=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40


def test_it_works_inside_scikit_learn() -> None:
    X, y = two_lines(60)
    fit = pa.MixtureRegressor(concentration=0.3, prior_mean=[1.0, 2.0])
    assert clone(fit).get_params() == fit.get_params()
    assert fit.set_params(concentration=2.0).concentration == 2.0
    with pytest.raises(InvalidArgument, match=r"parameter must be one of concentration, .*, got 'alpha'"):
        fit.set_params(alpha=1)
    with pytest.raises(NotFittedError, match="must be fitted first"):
        fit.predict(X)
    search = GridSearchCV(pa.MixtureRegressor(), {"concentration": [0.1, 1.0]}, cv=2).fit(X, y, n_sweeps=5)
    assert search.best_params_["concentration"] in (0.1, 1.0)
    pipe = make_pipeline(StandardScaler(), pa.MixtureRegressor())
    assert np.isfinite(cross_val_score(pipe, X, y, cv=2)).all()


def test_score_is_that_of_scikit_learn() -> None:
    X, y = two_lines(60)
    fit = pa.MixtureRegressor(concentration=1e-100, prior_covariance=1e8).fit(X, y, n_sweeps=2)
    line = LinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(fit.predict(X), line.predict(X), rtol=1e-6)
    assert fit.score(X, y) == pytest.approx(line.score(X, y), rel=1e-8)
    assert fit.log_score(X, y) == pytest.approx(np.mean([np.log(fit.pdf(x, t)) for x, t in zip(X, y, strict=True)]))


def test_a_mixture_beats_a_line_on_two_lines() -> None:
    X, y = two_lines(200)
    held_X, held_y = two_lines(200, seed=1)
    mixture = pa.MixtureRegressor().fit(X, y, n_sweeps=100)
    line = pa.MixtureRegressor(concentration=1e-100).fit(X, y, n_sweeps=5)
    assert mixture.log_score(held_X, held_y) > line.log_score(held_X, held_y) + 0.3


def test_progress_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fit = pa.MixtureRegressor().fit(GOOD_X, GOOD_Y, n_sweeps=5, progress=True)
    plain = pa.MixtureRegressor().fit(GOOD_X, GOOD_Y, n_sweeps=5)
    np.testing.assert_array_equal(fit.assignments_, plain.assignments_)
    assert "sweeps" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(PolyarmError, match="progress=True needs rich"):
        pa.MixtureRegressor().fit(GOOD_X, GOOD_Y, n_sweeps=5, progress=True)


def test_it_needs_no_scikit_learn() -> None:
    script = (
        "import sys, numpy as np, polyarm as pa\n"
        "fit = pa.MixtureRegressor().fit(np.ones((5, 1)), np.arange(5.0), n_sweeps=3)\n"
        "try: pa.MixtureRegressor().predict(np.ones((1, 1)))\n"
        "except ValueError as error: print(type(error).__mro__[1].__name__)\n"
        "print(any(name.split('.')[0] == 'sklearn' for name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["PolyarmError", "False"]
