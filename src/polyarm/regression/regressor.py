"""The reward model by itself, as a conditional density estimator."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyarm.errors import BrokenFile, InvalidArgument, MissingExtra, require, require_count, require_number
from polyarm.inference import Budget, GibbsEngine, GibbsState, KeptDraws, load_state, save_state
from polyarm.inference.gibbs import prior_of
from polyarm.inference.state_checks import require_components
from polyarm.kernels.mixture.component import n_rows
from polyarm.kernels.mixture.seating import number_by_appearance
from polyarm.models import LinearMixture, NormalInverseGamma, StudentMixture
from polyarm.regression.sklearn_compat import (
    Estimator,
    coefficient_of_determination,
    not_fitted,
    require_contexts,
    require_features,
    require_numbers,
    require_rewards,
    require_samples,
    require_seed,
    require_targets,
)
from polyarm.types import Array, IntArray, Rng

Labels: TypeAlias = NDArray[np.int32]
Seed: TypeAlias = int | np.random.Generator


class Band(NamedTuple):
    """Pointwise credible bounds."""

    lower: Array
    upper: Array


class FitFile(NamedTuple):
    """A fitted regressor as it lies in a file; settings are the bytes of a JSON text."""

    settings: NDArray[np.uint8]
    assignments: Labels
    columns: Array
    starts: IntArray

    def require_sound(self) -> None:
        """Raise unless no column lacks a number; logarithms of no mass are minus infinity."""
        require(not bool(np.isnan(self.columns).any()), "columns", "numbers", self.columns)

    def require_fit(self, n_features: int) -> None:
        """Raise unless every draw's components are columns that there are, as long as the features ask for."""
        rows, n = n_rows(n_features), self.columns.shape[1]
        require(len(self.columns) == rows, "columns", f"of {rows} rows", self.columns.shape)
        require_components(self.columns, n, "columns")
        rising = len(self.starts) > 0 and self.starts[0] == 0 and bool((np.diff(self.starts) >= 0).all())
        require(rising and int(self.starts[-1]) == n - 1, "starts", f"rising from 0 to {n - 1}", self.starts)

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """A file says itself how large everything is: see state_file."""
        return {"settings": (0,), "assignments": (0, 1), "columns": (0, 1), "starts": (0,)}

    @classmethod
    def empty(cls) -> "FitFile":
        """What every such file looks like."""
        nothing = np.empty((0, 0))
        return cls(np.empty(0, np.uint8), nothing.astype(np.int32), nothing, np.empty(0, np.int64))


class MixtureRegressor(Estimator):
    """Pitman-Yor mixture of linear regressions: G ~ PY(discount, concentration, G0), (w, s2) ~ G, y ~ N(x'w, s2).

    G0 is normal-inverse-gamma: w ~ N(prior_mean, s2 prior_covariance), s2 ~ IG(prior_shape, prior_scale); discount 0
    is the Dirichlet process.  A number for `prior_mean` stands for every coefficient, a number for `prior_covariance`
    for a multiple of the identity.  Nothing is hidden: there is no intercept unless X has a column of ones, and
    nothing is standardised.

    In all methods below x is one context (d,) or an array of them (..., d), and what goes with it (y, p) broadcasts
    against x.shape[:-1]: `pdf(x, grid)` is a curve, `pdf(X, y)` one number per row, `pdf(X[:, None], grid)` a curve per
    row.

    After `fit`: `assignments_` (n_sweeps, n) holds the component of every sample after each sweep, numbered 0, 1, ...
    in order of first appearance; `n_components_` (n_sweeps,) their number; `n_features_in_` is d.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(60, 1))
    >>> y = np.where(rng.random(60) < 0.5, 3.0, -3.0) * x[:, 0] + 0.1 * rng.standard_normal(60)
    >>> regressor = MixtureRegressor().fit(x, y, seed=0)
    >>> bool(regressor.predictive(np.array([0.8])).cdf(0.0) > 0.2)  # one hump above zero, one below
    True
    """

    def __init__(
        self,
        concentration: float = 1.0,
        discount: float = 0.0,
        prior_mean: ArrayLike = 0.0,
        prior_covariance: ArrayLike = 1.0,
        prior_shape: float = 1.0,
        prior_scale: float = 1.0,
    ) -> None:
        self.concentration = concentration
        self.discount = discount
        self.prior_mean = prior_mean
        self.prior_covariance = prior_covariance
        self.prior_shape = prior_shape
        self.prior_scale = prior_scale

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        n_sweeps: int = 1000,
        seed: Seed = 0,
        *,
        burn_in: int | None = None,
        progress: bool = False,
    ) -> Self:
        """Seat the samples one by one, then run n_sweeps full Gibbs sweeps (Neal 2000, algorithm 3).

        Predictions leave out the first `burn_in` sweeps (default: a fifth of them); `assignments_` keeps all.
        `progress` shows a bar and needs rich.
        """
        rows = require_samples(X)
        targets = require_targets(y, len(rows), type(self).__name__)
        sweeps = require_count(n_sweeps, "n_sweeps")
        left_out = sweeps // 5 if burn_in is None else require_count(burn_in, "burn_in", at_least=0)
        require(left_out < sweeps, "burn_in", f"less than n_sweeps = {sweeps}", burn_in)
        model = self._model(rows.shape[1])
        steps = tracked(range(sweeps)) if progress else range(sweeps)
        labels, tables = run(GibbsEngine([model], Budget(0)), rows, targets, steps, left_out, require_seed(seed))
        columns = np.column_stack([*tables, prior_of([model]).columns[0]])
        starts = np.cumsum([0] + [table.shape[1] for table in tables])
        return self._keep(labels, KeptDraws(model, len(rows), columns, starts))

    def _model(self, dim: int) -> LinearMixture:
        base = NormalInverseGamma(dim, self.prior_mean, self.prior_covariance, self.prior_shape, self.prior_scale)
        return LinearMixture(base, self.concentration, self.discount)

    def _keep(self, assignments: Labels, draws: KeptDraws) -> Self:
        self.assignments_ = assignments
        self.n_components_: IntArray = assignments.max(axis=1).astype(np.int64) + 1
        self.n_features_in_ = draws.model.base.dim
        self._draws = draws
        self._fitted_with = self.get_params()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "_draws")

    def _fitted(self) -> KeptDraws:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(type(self).__name__)
        return self._draws

    def predictive(self, x: ArrayLike) -> StudentMixture:
        """Posterior predictive distribution of y in one context (d,)."""
        draws = self._fitted()
        return draws.predictive(self._one_context(x))

    def pdf(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Posterior predictive density of y in context x."""
        return self._each(x, y, "y", StudentMixture.pdf)

    def cdf(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Posterior predictive probability of at most y in context x."""
        return self._each(x, y, "y", StudentMixture.cdf)

    def quantile(self, x: ArrayLike, p: ArrayLike) -> Array:
        """Value that y exceeds with posterior predictive probability 1 - p in context x."""
        levels = require_numbers(p, "p")
        require(bool(np.all((levels >= 0) & (levels <= 1))), "p", "from 0 to 1", p)
        return self._each(x, levels, "p", StudentMixture.quantile)

    def mean(self, x: ArrayLike) -> Array:
        """Posterior expectation of y in context x, of shape x.shape[:-1]; it needs prior_shape > 1/2 to exist."""
        draws = self._fitted()
        shape = draws.model.base.shape
        require(shape > 0.5, "prior_shape", "above 1/2 for the mean to exist", shape, "use quantile(x, 0.5)")
        return np.asarray(self._contexts(x) @ draws.coefficients)

    def sample(self, x: ArrayLike, n: int = 1, seed: Seed = 0) -> Array:
        """n draws of y from the posterior predictive distribution in context x, of shape x.shape[:-1] + (n,)."""
        draws = self._fitted()
        contexts = self._contexts(x)
        size, rng = require_count(n, "n"), require_seed(seed)
        rows = contexts.reshape(-1, self.n_features_in_)
        values = [draws.predictive(row).sample(size, rng) for row in rows]
        return np.reshape(values, (*contexts.shape[:-1], size))

    def density_band(self, x: ArrayLike, y: ArrayLike, level: float = 0.95, seed: Seed = 0) -> Band:
        """Pointwise credible band of the density at the points y (m,) in one context (d,).

        Each kept sweep gives one draw of the whole mixing measure G: Dirichlet weights, atoms and a stick-breaking
        tail.  `pdf` is the expectation of these draws.
        """
        draws = self._fitted()
        context = self._one_context(x)
        grid = require_rewards(require_numbers(y, "y"), "y")
        require(grid.ndim == 1, "y", "a vector of points", grid.shape)
        return band_of(draws.draw_densities(context, grid, require_seed(seed)), level)

    def mean_band(self, x: ArrayLike, level: float = 0.95, seed: Seed = 0) -> Band:
        """Credible band of the mean of y in context x, of shape x.shape[:-1]: what Thompson sampling draws from."""
        draws = self._fitted()
        contexts = self._contexts(x)
        rng = require_seed(seed)
        rows = contexts.reshape(-1, self.n_features_in_)
        bounds = [band_of(draws.draw_means(row, rng), level) for row in rows]
        lower, upper = np.array(bounds).reshape(-1, 2).T
        return Band(lower.reshape(contexts.shape[:-1]), upper.reshape(contexts.shape[:-1]))

    def predict(self, X: ArrayLike) -> Array:
        """Posterior expectation of y for every row of X."""
        self._fitted()
        return self.mean(require_features(require_samples(X), self.n_features_in_, type(self).__name__))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Coefficient of determination R^2 of `predict`, as scikit-learn's regressors score themselves."""
        predicted = self.predict(X)
        return coefficient_of_determination(require_targets(y, len(predicted), type(self).__name__), predicted)

    def log_score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Mean log posterior predictive density of the samples: the score of a density estimator."""
        self._fitted()
        rows = require_samples(X)
        return float(np.log(self.pdf(rows, require_targets(y, len(rows), type(self).__name__))).mean())

    def save(self, path: str | Path) -> Path:
        """Write the fitted regressor to one file, without pickle."""
        draws = self._fitted()
        params = {name: np.asarray(value).tolist() for name, value in self._fitted_with.items()}
        text = json.dumps({"params": params, "n_features": self.n_features_in_})
        settings = np.frombuffer(text.encode(), np.uint8)
        return save_state(path, FitFile(settings, self.assignments_, draws.columns, draws.starts))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The regressor that was saved to a file; it predicts the same, bit for bit."""
        file = load_state(path, FitFile.empty())
        try:
            settings = json.loads(file.settings.tobytes())
            regressor = cls(**settings["params"])
            model = regressor._model(settings["n_features"])
            file.require_fit(model.base.dim)
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenFile(f"path must be a fitted regressor, got {path}: {error}") from error
        return regressor._keep(file.assignments, KeptDraws(model, file.assignments.shape[1], file.columns, file.starts))

    def _contexts(self, x: ArrayLike) -> Array:
        contexts = require_numbers(x, "x")
        require(contexts.ndim > 0, "x", f"a vector of {self.n_features_in_} numbers or an array of such", x)
        return require_contexts(require_features(contexts, self.n_features_in_, type(self).__name__, "x"), "x")

    def _one_context(self, x: ArrayLike) -> Array:
        context = self._contexts(x)
        if context.ndim != 1:
            raise InvalidArgument(f"x must be one context ({self.n_features_in_},), got shape {context.shape}")
        return context

    def _each(
        self, x: ArrayLike, values: ArrayLike, name: str, method: Callable[[StudentMixture, Array], Array]
    ) -> Array:
        """Method of the predictive distribution in every context, at the values that broadcasting pairs with it."""
        draws = self._fitted()
        contexts = self._contexts(x)
        points = require_numbers(values, name)
        require(not np.isnan(points).any(), name, "numbers", values)
        leading = contexts.shape[:-1]
        shape = require_broadcast(leading, points.shape, name)
        rows = contexts.reshape(-1, self.n_features_in_)
        which = np.broadcast_to(np.arange(len(rows)).reshape(leading), shape).ravel()
        order = np.argsort(which, kind="stable")
        flat, out = np.broadcast_to(points, shape).ravel(), np.empty(which.size)
        starts = np.searchsorted(which[order], np.arange(len(rows) + 1))
        for row, start, stop in zip(rows, starts, starts[1:], strict=False):
            at = order[start:stop]
            out[at] = method(draws.predictive(row), flat[at])
        return out.reshape(shape)


def require_broadcast(leading: tuple[int, ...], shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The common shape of the contexts and what goes with them."""
    try:
        return np.broadcast_shapes(leading, shape)
    except ValueError:
        raise InvalidArgument(
            f"{name} must be of a shape that broadcasts against the contexts' {leading}, got shape {shape}; "
            "use x[:, None] for every value in every context"
        ) from None


def run(
    engine: GibbsEngine, rows: Array, targets: Array, steps: Iterable[int], burn_in: int, rng: Rng
) -> tuple[Labels, list[Array]]:
    """Labels after every sweep (n_sweeps, n), and the components after every sweep that comes after the burn-in."""
    state = engine.init()
    for x, y in zip(rows, targets, strict=True):
        state = engine.update(state, x, 0, y, rng)
    labels: list[Labels] = []
    tables: list[Array] = []
    for step in steps:
        state = engine.sweep(state, 0, rng)
        labels.append(canonical_labels(engine.assignments(state, 0)))
        if step >= burn_in:
            tables.append(components_of(state))
    return np.array(labels), tables


def canonical_labels(labels: IntArray) -> Labels:
    """The labels renumbered 0, 1, ... in order of first appearance."""
    out = np.empty(len(labels), np.int32)
    number_by_appearance(labels, out, np.empty(labels.max() + 1, np.int64))
    return out


def components_of(state: GibbsState) -> Array:
    """The components in use of the only arm, (rows, K)."""
    return np.array(state.tables[0, :, : state.sizes[0, 0]])


def band_of(draws: Array, level: float) -> Band:
    """Equal-tailed bounds that hold a share `level` of the draws (n_draws, ...)."""
    share = require_number(level, "level", "a number between 0 and 1", lambda v: 0 < v < 1)
    lower, upper = np.quantile(draws, [0.5 - 0.5 * share, 0.5 + 0.5 * share], axis=0)
    return Band(lower, upper)


def tracked(steps: range) -> Iterable[int]:
    """The steps with a progress bar."""
    try:
        from rich.progress import track
    except ImportError:
        raise MissingExtra("progress=True needs rich; pip install 'polyarm[experiments]'") from None
    return track(steps, description="sweeps")
