"""MultitaskGP: one Gaussian process over contexts and arms, tuned by Adam on its marginal likelihood.

A bootstrap of n observations is a list of m distinct ones with multiplicities c.  Copies of an observation carry the
same target, so conditioning on all n rows equals conditioning on the m distinct ones with noise tau / c, and
log|K_n| = log|K_m + tau / c| + sum [ (c - 1) log tau + log c ]: exact, and a quarter of the work.

Quirks of the Showdown code, each with a `fixed` setting: `root` (Q11: samples with the covariance where its square root
is meant), `spread` (Q8: an arm's scale counts rows that played other arms as zeros), `resampling` (Q10: conditions on a
bootstrap).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from polyarm.neural.data import Data, take
from polyarm.neural.gp_kernel import Hyper, covariance, initial_hyper, noise_variance
from polyarm.neural.inverse import invert, padded
from polyarm.neural.training import when_due

WINDOWS = (64, 128, 256, 384, 512, 640, 768, 896)  # a step costs the square of these, a new one a compilation
DUMMY_ROWS = 512  # all-ones contexts of arm 0 with target 0, which the Showdown process holds before its first training


class Batch(NamedTuple):
    """Distinct observations of a training batch.

    x (m, d), one-hot arms (m, A), rewards (m,) and multiplicities (m,), zero for padding.
    """

    x: jax.Array
    arms: jax.Array
    rewards: jax.Array
    counts: jax.Array


class Process(NamedTuple):
    """Hyper-parameters now and before the last step, optimiser, and the random bits of the last training batch."""

    hyper: Hyper
    previous: Hyper
    optimizer: Any
    batch_key: jax.Array


Moments = tuple[jax.Array, jax.Array, jax.Array]


class Fit(NamedTuple):
    """K^-1, log|K|, K^-1 y and y of a batch."""

    inverse: jax.Array
    log_det: jax.Array
    weights: jax.Array
    targets: jax.Array


def arm_scales(batch: Batch, spread: str) -> jax.Array:
    """Divisors of the rewards, s_a^2 = 1e-4 + [sum (r - mean_a)^2 + (n - n_a) mean_a^2] / n_a."""
    weight = batch.arms * batch.counts[:, None]
    n_played = jnp.maximum(weight.sum(axis=0), 1)
    means = (weight.T @ batch.rewards) / n_played
    scatter = jnp.sum(weight * jnp.square(batch.rewards[:, None] - means), axis=0)
    zeros = jnp.sum(batch.counts) - weight.sum(axis=0) if spread == "faithful" else 0.0
    return jnp.sqrt(1e-4 + (scatter + zeros * jnp.square(means)) / n_played)


def targets(means: jax.Array, scales: jax.Array, batch: Batch) -> jax.Array:
    """(r - m_a) / s_a, zero for padding."""
    return jnp.where(batch.counts > 0, (batch.rewards - batch.arms @ means) / (batch.arms @ scales), 0)


def gram(hyper: Hyper, batch: Batch) -> jax.Array:
    """Covariance of the distinct rows with noise tau / c; the identity where there is padding."""
    real = batch.counts > 0
    signal = jnp.where(real[:, None] & real, covariance(hyper, batch.x, batch.arms, batch.x, batch.arms), 0)
    return signal + jnp.diag(jnp.where(real, noise_variance(hyper) / jnp.maximum(batch.counts, 1), 1.0))


def fit(hyper: Hyper, scales: jax.Array, batch: Batch, n_blocks: jax.Array | int) -> Fit:
    """What conditioning on a batch needs."""
    inverse, log_det = invert(gram(hyper, batch), n_blocks)
    y = targets(hyper.means, scales, batch)
    return Fit(inverse, log_det, inverse @ y, y)


def log_prior(hyper: Hyper) -> jax.Array:
    """Standard normal log-densities of the two free variances and of exp(noise)."""
    squares = jnp.square(hyper.matern_variance) + jnp.square(hyper.linear_variance) + jnp.exp(2 * hyper.noise)
    return -squares / 2 - 1.5 * math.log(2 * math.pi)


def task_log_prior(hyper: Hyper) -> jax.Array:
    """Log-density of the task vectors under N(0, 10^2)."""
    return jnp.sum(-jnp.square(hyper.tasks) / 200 - math.log(10) - math.log(2 * math.pi) / 2)


def copies_log_det(hyper: Hyper, batch: Batch) -> jax.Array:
    """What repeated rows add to the log-determinant: sum [ (c - 1) log tau + log c ]."""
    c = jnp.maximum(batch.counts, 1)
    return jnp.sum((c - 1) * jnp.log(noise_variance(hyper)) + jnp.log(c))


def objective(hyper: Hyper, scales: jax.Array, batch: Batch, n_blocks: jax.Array | int) -> jax.Array:
    """J = P (-log marginal likelihood - log prior) - log prior of the task vectors, P = 5 A (quirk Q9)."""
    now = fit(hyper, scales, batch, n_blocks)
    log_det = now.log_det + copies_log_det(hyper, batch)
    evidence = (now.targets @ now.weights + log_det + jnp.sum(batch.counts) * math.log(2 * math.pi)) / 2
    return hyper.tasks.size * (evidence - log_prior(hyper)) - task_log_prior(hyper)


def objective_gradient(hyper: Hyper, scales: jax.Array, batch: Batch, n_blocks: jax.Array | int) -> Hyper:
    """Gradient of J from one inverse: dJ/dK = (K^-1 - alpha alpha') / 2 and dJ/dy = alpha, alpha = K^-1 y."""
    now = fit(hyper, scales, batch, n_blocks)
    slope = (now.inverse - now.weights[:, None] * now.weights) / 2

    def tangent(h: Hyper) -> jax.Array:
        change = jnp.sum(slope * gram(h, batch)) + now.weights @ targets(h.means, scales, batch)
        evidence = change + copies_log_det(h, batch) / 2
        return h.tasks.size * (evidence - log_prior(h)) - task_log_prior(h)

    return jax.grad(tangent)(hyper)


def spectral(covariance_matrix: jax.Array, root: str) -> jax.Array:
    """V |D| V' of a symmetric V D V' (what the Showdown code calls its root), or the true root V |D|^(1/2) V'."""
    values, vectors = jnp.linalg.eigh(covariance_matrix)
    sizes = jnp.abs(values) if root == "faithful" else jnp.sqrt(jnp.abs(values))
    return (vectors * sizes) @ vectors.T


def n_distinct(n: jax.Array | int, sqrt_n: jax.Array | float) -> jax.Array | float:
    """Number of distinct rows that a bootstrap of n does not exceed, seven standard deviations above its mean."""
    return n * (1 - math.exp(-1)) + 7 * math.sqrt(math.exp(-1) - 2 * math.exp(-2)) * sqrt_n + 1


@dataclass(frozen=True, slots=True)
class MultitaskGp:
    """Thompson sampling over a Gaussian process that shares strength between arms."""

    n_arms: int
    context_dim: int
    initial_pulls: int = 2
    steps: int = 50
    every: int = 1
    n_latent: int = 5
    max_points: int = 1000
    learning_rate: float = 0.01
    root: str = "faithful"
    spread: str = "faithful"
    resampling: str = "faithful"

    @property
    def dtype(self) -> Any:
        """The process works in double precision."""
        return jnp.float64

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimiser."""
        return optax.adam(self.learning_rate)

    def window(self, n: int) -> int:
        """Rows that hold what the process reads: all of them up to the first `max_points`."""
        sizes = [size for size in (*WINDOWS, self.max_points - 1) if size < self.max_points]
        return min((size for size in sizes if size >= n), default=self.max_points)

    def init(self, key: jax.Array) -> Process:
        """Fresh hyper-parameters and no data."""
        hyper = initial_hyper(self.context_dim, self.n_arms, self.n_latent, key)
        return Process(hyper, hyper, self.optimizer.init(hyper), jnp.zeros(2, jnp.uint32))

    def resampled(self, n: int) -> bool:
        """Whether a batch of this capacity is a bootstrap for certain, so that it holds few distinct rows."""
        return self.resampling == "faithful" and n < self.max_points

    def batch_capacity(self, capacity: int) -> int:
        """Rows kept for the distinct observations of a batch."""
        most = float(n_distinct(capacity, math.sqrt(capacity))) if self.resampled(capacity) else capacity
        return padded(min(capacity, math.ceil(most)))

    def n_blocks(self, n: jax.Array, capacity: int) -> jax.Array:
        """Blocks that hold the distinct rows of a batch of n."""
        most = n_distinct(n, jnp.sqrt(n)) if self.resampled(capacity) else n.astype(jnp.float64)
        return jnp.minimum(jnp.ceil(most / 64).astype(jnp.int32), self.batch_capacity(capacity) // 64)

    def counts(self, n: jax.Array, capacity: int, key: jax.Array) -> jax.Array:
        """Multiplicity of every observation: a bootstrap of n; from max_points on the first max_points once each."""
        place = jnp.arange(capacity)
        once = (place < jnp.minimum(n, self.max_points)).astype(jnp.float64)
        if self.resampling == "fixed":
            return once
        drawn = jnp.floor(jax.random.uniform(key, (capacity,), jnp.float64) * n).astype(jnp.int32)
        bootstrap = jnp.zeros(capacity).at[jnp.where(place < n, drawn, capacity)].add(1.0, mode="drop")
        return jnp.where(n < self.max_points, bootstrap, once)

    def batch(self, data: Data, n: jax.Array, key: jax.Array) -> Batch:
        """Distinct observations of a fresh training batch."""
        capacity = len(data.arms)
        counts = self.counts(n, capacity, key)
        size = self.batch_capacity(capacity)
        target = jnp.where(counts > 0, jnp.cumsum(counts > 0) - 1, size)
        rows = jnp.zeros(size, jnp.int32).at[target].set(jnp.arange(capacity, dtype=jnp.int32), mode="drop")
        real = jnp.arange(size) < jnp.sum(counts > 0)
        chosen = take(data, rows)
        arms = jax.nn.one_hot(chosen.arms, self.n_arms, dtype=jnp.float64)
        return Batch(chosen.inputs[:, :-1], arms, chosen.rewards, jnp.where(real, counts[rows], 0))

    def learn(self, model: Process, data: Data, n: jax.Array, key: jax.Array) -> Process:
        """Process after one training call."""

        def train(now: Process) -> Process:
            return jax.lax.fori_loop(0, self.steps, lambda i, m: self.step(m, data, n, jax.random.fold_in(key, i)), now)

        return when_due(n, self.every, train, model)

    def step(self, model: Process, data: Data, n: jax.Array, key: jax.Array) -> Process:
        """One step of Adam on a fresh batch."""
        batch = self.batch(data, n, key)
        blocks = self.n_blocks(n, len(data.arms))
        gradient = objective_gradient(model.hyper, arm_scales(batch, self.spread), batch, blocks)
        change, optimizer = self.optimizer.update(gradient, model.optimizer)
        hyper = optax.apply_updates(model.hyper, change)
        return Process(hyper, model.hyper, optimizer, jax.random.key_data(key))

    def posterior(self, model: Process, data: Data, n: jax.Array, x: jax.Array) -> Moments:
        """Means and covariance of all arms' standardised values at one context, and the arms' scales.

        The batch of the last training call, at the last multiple of `every`, is drawn again from its key.
        """
        batch_n = n - n % self.every
        batch = self.batch(data, batch_n, jax.random.wrap_key_data(model.batch_key, impl="threefry2x32"))
        scales = arm_scales(batch, self.spread)
        now = fit(model.previous, scales, batch, self.n_blocks(batch_n, len(data.arms)))
        contexts, arms = jnp.broadcast_to(x, (self.n_arms, len(x))), jnp.eye(self.n_arms, dtype=x.dtype)
        cross = jnp.where(batch.counts > 0, covariance(model.hyper, contexts, arms, batch.x, batch.arms), 0)
        prior = covariance(model.hyper, contexts, arms, contexts, arms)
        return cross @ now.weights, prior - cross @ now.inverse @ cross.T, scales

    def prior(self, model: Process, x: jax.Array) -> Moments:
        """The same before the first training: 512 all-ones contexts of arm 0, zero targets, K^-1 = I."""
        contexts, arms = jnp.broadcast_to(x, (self.n_arms, len(x))), jnp.eye(self.n_arms, dtype=x.dtype)
        cross = covariance(model.hyper, contexts, arms, jnp.ones((1, len(x)), x.dtype), arms[:1])
        prior = covariance(model.hyper, contexts, arms, contexts, arms)
        return jnp.zeros(self.n_arms), prior - DUMMY_ROWS * cross @ cross.T, jnp.ones(self.n_arms)

    def scores(self, model: Process, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """One joint draw of all arms' values."""
        x = inputs[:-1]
        mean, cov, scales = jax.lax.cond(
            n < self.every, lambda: self.prior(model, x), lambda: self.posterior(model, data, n, x)
        )
        draw = mean + spectral(cov, self.root) @ jax.random.normal(key, (self.n_arms,), jnp.float64)
        return draw * scales + model.hyper.means

    def workspace(self, capacity: int) -> int:
        """Bytes of about ten matrices over the batch."""
        size = self.batch_capacity(min(capacity, self.max_points))
        return 8 * 10 * size * size
