"""Contexts of several shapes, and linear predictors that are drawn anew in every world."""

from typing import Literal

import numpy as np

from polyarm.environments.generative import normal_contexts
from polyarm.types import Array, Rng

Columns = Literal["normal", "correlated", "one-hot"]
COLUMNS = ("normal", "correlated", "one-hot")
CORRELATION = 0.9  # between neighbouring columns


def correlated_contexts(horizon: int, context_dim: int, rng: Rng) -> Array:
    """Standard normal columns, neighbours with correlation 0.9, those j apart with 0.9^j."""
    contexts = rng.standard_normal((horizon, context_dim))
    contexts[:, 1:] *= np.sqrt(1 - CORRELATION**2)
    for j in range(1, context_dim):
        contexts[:, j] += CORRELATION * contexts[:, j - 1]
    return contexts


def one_hot_contexts(horizon: int, context_dim: int, rng: Rng) -> Array:
    """Two categories, with half of the columns each: level k of a category has a frequency proportional to 1 / k."""
    contexts = np.zeros((horizon, context_dim))
    first = 0
    for n_levels in (context_dim // 2, context_dim - context_dim // 2):
        if n_levels:
            shares = 1 / np.arange(1, n_levels + 1)
            levels = rng.choice(n_levels, horizon, p=shares / shares.sum())
            contexts[np.arange(horizon), first + levels] = 1.0
        first += n_levels
    return contexts


def sample_contexts(columns: Columns, horizon: int, context_dim: int, rng: Rng) -> Array:
    """Contexts whose columns are of that kind."""
    kinds = {"normal": normal_contexts, "correlated": correlated_contexts, "one-hot": one_hot_contexts}
    return kinds[columns](horizon, context_dim, rng)


def sample_predictor(
    contexts: Array, n_arms: int, centre: float, intercept_sd: float, slope_sd: float, rng: Rng
) -> Array:
    """One linear predictor per arm, (T, n_arms): intercept N(centre, intercept_sd^2), slopes N(0, slope_sd^2)."""
    intercepts = centre + intercept_sd * rng.standard_normal(n_arms)
    slopes = slope_sd * rng.standard_normal((contexts.shape[1], n_arms))
    return np.asarray(contexts @ slopes + intercepts)
