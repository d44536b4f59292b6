"""The covariance of the multitask Gaussian process: (Matern-3/2 + linear) in the context, exponential in the arms.

x (n, d) contexts, a (n,) arms; every positive quantity is the softplus of a free number.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Hyper(NamedTuple):
    """Free numbers: variances (2), length-scales (d each), noise, means (A,) and task vectors (A, 5)."""

    matern_variance: jax.Array
    linear_variance: jax.Array
    matern_lengths: jax.Array
    linear_lengths: jax.Array
    noise: jax.Array
    means: jax.Array
    tasks: jax.Array


def initial_hyper(context_dim: int, n_arms: int, n_latent: int, key: jax.Array) -> Hyper:
    """Start values: variances softplus(1), lengths and noise softplus(0), means 0, task vectors ~ N(0, I)."""
    one, zeros = jnp.ones((), jnp.float64), jnp.zeros(context_dim, jnp.float64)
    tasks = jax.random.normal(key, (n_arms, n_latent), jnp.float64)
    return Hyper(one, one, zeros, zeros, 0 * one, jnp.zeros(n_arms, jnp.float64), tasks)


def lengths(free: jax.Array) -> jax.Array:
    """Length-scales softplus(clip(free, -5, 5))."""
    return jax.nn.softplus(jnp.clip(free, -5, 5))


def noise_variance(hyper: Hyper) -> jax.Array:
    """Variance of the observation noise."""
    return jax.nn.softplus(hyper.noise) + 1e-6


def matern(squared_distance: jax.Array) -> jax.Array:
    """(1 + s) exp(-s) with s = sqrt(3 rho)."""
    s = jnp.sqrt(3 * jnp.clip(squared_distance, 0, 1e8) + 1e-16)
    return (1 + s) * jnp.exp(-s)


def squared_distances(x: jax.Array, y: jax.Array) -> jax.Array:
    """Squared Euclidean distances between rows."""
    return jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1) - 2 * x @ y.T


def context_covariance(hyper: Hyper, x: jax.Array, y: jax.Array) -> jax.Array:
    """c_m M(rho) + c_l sum_d x_d y_d / l_d^2."""
    near, flat = lengths(hyper.matern_lengths), lengths(hyper.linear_lengths)
    stationary = jax.nn.softplus(hyper.matern_variance) * matern(squared_distances(x / near, y / near))
    return stationary + jax.nn.softplus(hyper.linear_variance) * ((x / flat) @ (y / flat).T)


def task_covariance(hyper: Hyper) -> jax.Array:
    """exp(-|v_a - v_b|^2), (A, A)."""
    gaps = hyper.tasks[:, None] - hyper.tasks
    return jnp.exp(-jnp.sum(gaps * gaps, axis=2))


def covariance(hyper: Hyper, x: jax.Array, a: jax.Array, y: jax.Array, b: jax.Array) -> jax.Array:
    """Covariance of the noiseless values at (x, a) and (y, b); arms as one-hot rows."""
    return context_covariance(hyper, x, y) * (a @ task_covariance(hyper) @ b.T)
