"""scikit-learn's manners, without scikit-learn: parameters, tags, and the checks of a training set.

The errors say what polyarm's always say, and then the words that scikit-learn's own checks look for.
"""

import inspect
import sys
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from polyarm.errors import (
    CONTEXT_LIMIT,
    REWARD_LIMIT,
    InvalidArgument,
    PolyarmError,
    require_finite,
    require_no_mask,
    shown,
)
from polyarm.types import Array


class InvalidType(InvalidArgument, TypeError):
    """An argument is not of a type that holds numbers."""


class NotFitted(PolyarmError, ValueError, AttributeError):
    """The estimator has not seen data yet."""


class Estimator:
    """An object whose constructor's arguments are its settings, kept as given and under their own names."""

    @classmethod
    def _param_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        return {name: getattr(self, name) for name in self._param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change settings; they are checked when the estimator is fitted."""
        known = self._param_names()
        for name in params:
            if name not in known:
                raise InvalidArgument(f"parameter must be one of {', '.join(known)}, got {name!r}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={shown(value)}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({settings})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know of a regressor; only scikit-learn calls this."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(),
        )


def not_fitted(name: str) -> NotFitted:
    """The error of an unfitted estimator; where scikit-learn is in use it is its NotFittedError too."""
    message = f"this {name} must be fitted first; call fit(X, y)"
    known = sys.modules.get("sklearn.exceptions")
    if known is None:
        return NotFitted(message)
    both: type[NotFitted] = type("NotFitted", (NotFitted, known.NotFittedError), {})
    return both(message)


def require_numbers(value: ArrayLike, name: str) -> Array:
    """Value as a float array; complex numbers, sparse matrices, text and objects are refused."""
    if hasattr(value, "toarray"):
        raise InvalidType(f"{name} must be a dense array, got a sparse {type(value).__name__}; use its toarray()")
    require_no_mask(value, name)
    try:
        raw = np.asarray(value)
    except ValueError:
        raise InvalidArgument(f"{name} must be an array of numbers, got {shown(value)}") from None
    if raw.dtype.kind == "c":
        raise InvalidArgument(f"{name} must be real, got {raw.dtype}: Complex data not supported")
    if raw.dtype.kind in "mM":
        raise InvalidType(f"{name} must be an array of numbers, got {raw.dtype}")
    try:
        return np.ascontiguousarray(raw, dtype=np.float64).reshape(raw.shape)
    except (TypeError, ValueError) as error:
        raise InvalidType(f"{name} must be an array of numbers, got {shown(value)}: {error}") from None


def require_samples(X: ArrayLike, name: str = "X") -> Array:
    """X as a finite float matrix of at least one sample and one feature."""
    rows = require_numbers(X, name)
    if rows.ndim != 2:
        raise InvalidArgument(
            f"{name} must be a matrix (samples, features), got shape {rows.shape}: Expected 2D array, got "
            f"{'scalar' if rows.ndim == 0 else f'{rows.ndim}D'} array instead. Reshape your data"
        )
    for count, what in zip(rows.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise InvalidArgument(
                f"{name} must be at least one {what}, got 0 {what}(s) (shape={rows.shape}) "
                "while a minimum of 1 is required."
            )
    return require_contexts(rows, name)


def require_contexts(contexts: Array, name: str) -> Array:
    """Contexts (..., d), if they are finite and of sane size."""
    if np.isnan(contexts).any():
        raise InvalidArgument(f"{name} must be finite, got NaN")
    require_finite(contexts, name)
    with np.errstate(over="ignore"):
        longest = float(np.sqrt((contexts * contexts).sum(axis=-1).max(initial=0.0)))
    if longest > CONTEXT_LIMIT:
        raise InvalidArgument(f"{name} must be rows of length at most {CONTEXT_LIMIT:g}, got {longest:g}; rescale it")
    return contexts


def require_features(contexts: Array, n_features: int, owner: str, name: str = "X") -> Array:
    """Contexts (..., d), if d is what the estimator was fitted with."""
    if contexts.shape[-1] != n_features:
        raise InvalidArgument(
            f"{name} must be rows of {n_features} features, got {contexts.shape[-1]}: "
            f"{name} has {contexts.shape[-1]} features, but {owner} is expecting {n_features} features as input"
        )
    return contexts


def require_targets(y: ArrayLike | None, n_samples: int, owner: str) -> Array:
    """y as a vector of n_samples finite numbers; a column is taken as a vector, with a warning."""
    if y is None:
        raise InvalidArgument(
            f"y must be a vector of {n_samples} numbers, got None: "
            f"{owner} requires y to be passed, but the target y is None"
        )
    targets = require_numbers(y, "y")
    if targets.shape == (n_samples, 1):
        message = "A column-vector y was passed when a 1d array was expected"
        warnings.warn(message, conversion_warning(), stacklevel=3)
        targets = targets[:, 0].copy()
    if targets.shape != (n_samples,):
        raise InvalidArgument(f"y must be a vector of {n_samples} numbers, one per row of X, got shape {targets.shape}")
    return require_rewards(targets, "y")


def require_rewards(values: Array, name: str) -> Array:
    """Values, if they are finite and of sane size."""
    if np.isnan(values).any():
        raise InvalidArgument(f"{name} must be finite, got NaN")
    require_finite(values, name)
    largest = float(np.abs(values).max(initial=0.0))
    if largest > REWARD_LIMIT:
        raise InvalidArgument(f"{name} must be at most {REWARD_LIMIT:g} in size, got {largest:g}")
    return values


def conversion_warning() -> type[Warning]:
    """Category of the warning about a column passed as a vector: scikit-learn's, where that is in use."""
    known = sys.modules.get("sklearn.exceptions")
    category: type[Warning] = known.DataConversionWarning if known else UserWarning
    return category


def require_seed(seed: Any) -> np.random.Generator:
    """The generator that a seed stands for; a generator stands for itself."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InvalidArgument(f"seed must be a non-negative integer or a Generator, got {shown(seed)}") from None


def coefficient_of_determination(y: Array, predicted: Array) -> float:
    """R^2 = 1 - sum (y - predicted)^2 / sum (y - mean y)^2; not a number for fewer than two values."""
    if len(y) < 2:
        return float("nan")
    left = float(((y - predicted) ** 2).sum())
    total = float(((y - y.mean()) ** 2).sum())
    if total == 0.0:
        return 1.0 if left == 0.0 else 0.0
    return 1.0 - left / total
