"""Worlds of baselines.md section 14, batched, for tests that should not depend on the scenarios."""

import numpy as np

from polyarm.types import World


def linear_worlds(n_worlds: int, horizon: int, context_dim: int = 10, n_arms: int = 8, seed: int = 0) -> World:
    """The Showdown's linear bandit: unit slopes, normal contexts, noise 0.01 (a + 1)."""
    rng = np.random.default_rng(seed)
    slopes = rng.uniform(-1, 1, (n_worlds, context_dim, n_arms))
    slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)
    contexts = rng.standard_normal((n_worlds, horizon, context_dim))
    means = np.einsum("rtd,rda->rta", contexts, slopes)
    return World(contexts, means + 0.01 * (1 + np.arange(n_arms)) * rng.standard_normal(means.shape), means)


def observed_regret(worlds: World, arms: np.ndarray) -> np.ndarray:
    """Cumulative best expected minus observed reward, (R, T)."""
    received = np.take_along_axis(worlds.rewards, arms[..., None], axis=2)[..., 0]
    return np.cumsum(worlds.means.max(axis=2) - received, axis=1)
