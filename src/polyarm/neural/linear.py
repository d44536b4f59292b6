"""NeuralLinear: Bayesian linear regression of each arm's rewards on the hidden units of a network.

z (n, H) hidden units of the stored contexts under the current network, no intercept; per arm, with its rows Z and
rewards y, Lambda = Z'Z + lambda I, mu = Lambda^-1 Z'y, a = a0 + n_a / 2, b = b0 + (y'y - mu' Lambda mu) / 2,
in double precision.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular

from polyarm.neural.data import Data
from polyarm.neural.network import features
from polyarm.neural.rms import plain_gradient
from polyarm.neural.settings import Settings
from polyarm.neural.training import STATED, Trained, Training, when_due


class Regression(NamedTuple):
    """Posterior of every arm: Cholesky factors of Lambda (A, H, H), means (A, H), shapes and rates (A,)."""

    factors: jax.Array
    means: jax.Array
    shapes: jax.Array
    rates: jax.Array


class Hybrid(NamedTuple):
    """A trained network and the regressions on its hidden units."""

    trained: Trained
    regression: Regression


def regress(z: jax.Array, shares: jax.Array, rewards: jax.Array, ridge: float, shape: float, rate: float) -> Regression:
    """Posterior of every arm; shares (A, n) is one where a row belongs to an arm."""
    weighted = shares[:, :, None] * z
    precision = jnp.matmul(jnp.swapaxes(weighted, 1, 2), z) + ridge * jnp.eye(z.shape[1], dtype=z.dtype)
    moments = jnp.matmul(jnp.swapaxes(weighted, 1, 2), rewards)
    factors = jnp.linalg.cholesky(precision)
    means = jax.vmap(lambda factor, moment: cho_solve((factor, True), moment))(factors, moments)
    fit = jnp.sum(means * moments, axis=1)  # mu' Lambda mu
    return Regression(
        factors, means, shape + shares.sum(axis=1) / 2, rate + (jnp.matmul(shares, jnp.square(rewards)) - fit) / 2
    )


@dataclass(frozen=True, slots=True)
class NeuralLinear(Settings):
    """Thompson sampling over linear regressions on learnt features."""

    training: Training = STATED
    posterior_every: int = 1
    prior_shape: float = 6.0
    prior_rate: float = 6.0
    ridge: float = 0.25

    def init(self, key: jax.Array) -> Hybrid:
        """Fresh network and the prior."""
        nothing = [jnp.zeros(size, jnp.float64) for size in ((1, self.n_hidden), (self.n_arms, 1), (1,))]
        return Hybrid(self.training.init(self.shape, key), self.regress(*nothing))

    def regress(self, z: jax.Array, shares: jax.Array, rewards: jax.Array) -> Regression:
        """Posterior under this baseline's prior."""
        return regress(z, shares, rewards, self.ridge, self.prior_shape, self.prior_rate)

    def scores(self, model: Hybrid, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """One posterior draw of every arm's value: N(mu'z, var z' Lambda^-1 z), var ~ InvGamma(a, b)."""
        gammas, normals = jax.random.split(key)
        z = features(model.trained.network, inputs).astype(jnp.float64)
        whitened = jax.vmap(lambda factor: solve_triangular(factor, z, lower=True))(model.regression.factors)
        variance = model.regression.rates / jax.random.gamma(gammas, model.regression.shapes, dtype=jnp.float64)
        sd = jnp.sqrt(variance * jnp.sum(jnp.square(whitened), axis=1))
        return model.regression.means @ z + sd * jax.random.normal(normals, (self.n_arms,), jnp.float64)

    def learn(self, model: Hybrid, data: Data, n: jax.Array, key: jax.Array) -> Hybrid:
        """Model after one training call and regressions on the features as they now are."""
        gradient = plain_gradient(data, n, self.training.batch_size)

        def train(now: Hybrid) -> Hybrid:
            return now._replace(trained=self.training.run(now.trained, gradient, key))

        trained = when_due(n, self.training.every, train, model)
        return when_due(n, self.posterior_every, lambda now: self.refit(now, data, n), trained)

    def refit(self, model: Hybrid, data: Data, n: jax.Array) -> Hybrid:
        """Model with regressions on all stored observations."""
        z = features(model.trained.network, data.inputs).astype(jnp.float64)
        seen = (jnp.arange(len(data.arms)) < n)[None]
        shares = jnp.where(seen, jax.nn.one_hot(data.arms, self.n_arms, dtype=jnp.float64, axis=0), 0)
        return model._replace(regression=self.regress(z, shares, data.rewards.astype(jnp.float64)))

    def workspace(self, capacity: int) -> int:
        """Bytes of the weighted features and the factors, twice over, in double precision."""
        h = self.n_hidden
        return 4 * 512 * 6 * h + 8 * (2 * (self.n_arms + 1) * capacity * h + 4 * self.n_arms * h * h)
