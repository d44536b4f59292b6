"""BNNAlpha: black-box alpha-divergence minimisation, Gaussians over all weights and a learnt noise for every arm.

With w_k = mean + sd xi_k, k = 1..K, one draw for the whole batch, l_kb = log N(r_b; y_kb, s_b^2) and, over the P
weights, D_k = sum [ w_k^2 / (2 v0) - xi_k^2 / 2 - log sd ] - P log(2 pi) / 2, the energy is

    E = log Z0 - n / (B alpha) sum_b log (1/K) sum_k exp alpha (l_kb - D_k / n),

in which the terms mean^2 / sd^2 of the published form have cancelled exactly.  The Showdown code pairs l_kb with the
site of another draw, D_((k B + b) mod K) (quirk Q6): `sites="faithful"`; `sites="fixed"` pairs it with D_k.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from polyarm.neural.data import Data, take
from polyarm.neural.draws import draw_normals, draw_rows
from polyarm.neural.network import Network, outputs, predict, product
from polyarm.neural.schedule import step_table, steps_at
from polyarm.neural.settings import Settings
from polyarm.neural.training import make_optimizer, when_due
from polyarm.neural.variational import Belief, initial_belief, sampled_network


class Beliefs(NamedTuple):
    """Gaussians over the weights and over the logarithm of each arm's noise relative to its start, (A,)."""

    weights: Belief
    noise_means: jax.Array
    noise_log_sds: jax.Array


class AlphaModel(NamedTuple):
    """Beliefs and the state of their optimiser."""

    beliefs: Beliefs
    optimizer: Any


class Noise(NamedTuple):
    """Standard normals of one gradient step: a network of (K, ...) draws, and one number per arm."""

    weights: Network
    noise: jax.Array


def site_terms(belief: Belief, draws: Network, xi: Network, prior_var: float) -> jax.Array:
    """D_k, a one-draw estimate of the divergence from the prior, (K,)."""
    total = jnp.zeros(len(xi.hidden), xi.hidden.dtype)
    for w, x, log_sd in zip(draws, xi, belief.log_sds, strict=True):
        terms = jnp.square(w) / (2 * prior_var) - jnp.square(x) / 2 - log_sd - math.log(2 * math.pi) / 2
        total += jnp.sum(terms, axis=(1, 2))
    return total


def drawn_weights(belief: Belief, xi: Network) -> Network:
    """w_k = mean + sd xi_k for both layers."""
    return Network(*(m + jnp.exp(s) * x for m, s, x in zip(*belief, xi, strict=True)))


def log_likelihoods(draws: Network, batch: Data, log_noise: jax.Array) -> jax.Array:
    """l_kb for every draw and row, (K, B)."""
    share = jax.nn.one_hot(batch.arms, len(log_noise), dtype=log_noise.dtype)
    hidden = jax.vmap(lambda w: jax.nn.relu(product(batch.inputs, w)))(draws.hidden)
    values = jnp.sum(jax.vmap(outputs)(draws, hidden) * share, axis=2)
    log_sd = product(share, log_noise)
    return -jnp.square((batch.rewards - values) / jnp.exp(log_sd)) / 2 - log_sd - math.log(2 * math.pi) / 2


def site_pairing(n_draws: int, n_rows: int) -> jax.Array:
    """Draw whose site the Showdown code pairs with draw k and row b: (k B + b) mod K, (K, B)."""
    return (jnp.arange(n_draws)[:, None] * n_rows + jnp.arange(n_rows)) % n_draws


def energy(beliefs: Beliefs, batch: Data, noise: Noise, n: jax.Array, settings: "BnnAlpha") -> jax.Array:
    """The energy E of the header."""
    draws = drawn_weights(beliefs.weights, noise.weights)
    learnt = beliefs.noise_means + jnp.exp(beliefs.noise_log_sds) * noise.noise
    log_noise = math.log(settings.noise_sd) + (learnt if settings.learn_noise else jnp.zeros_like(learnt))
    fits = log_likelihoods(draws, batch, log_noise)
    count = n.astype(fits.dtype)
    sites = site_terms(beliefs.weights, draws, noise.weights, settings.prior_var)[:, None] / count
    if settings.sites == "faithful":
        sites = sites[:, 0][site_pairing(*fits.shape)]
    evidence = jax.nn.logsumexp(settings.alpha * (fits - sites), axis=0) - math.log(settings.n_draws)
    n_weights = sum(math.prod(m.shape) for m in beliefs.weights.means)
    return n_weights * math.log(2 * math.pi * settings.prior_var) / 2 - count / settings.alpha * jnp.mean(evidence)


@dataclass(frozen=True, slots=True)
class BnnAlpha(Settings):
    """Bayesian network by alpha-divergence; a decision draws all weights once."""

    steps: int = 50
    every: int = 1
    first_steps: int = 100
    n_long_calls: int = 20
    batch_size: int = 512
    n_draws: int = 10  # the Showdown code ignores the 20 it is given (quirk Q5)
    alpha: float = 1.0
    prior_var: float = 0.1
    noise_sd: float = 0.1  # of the start
    learn_noise: bool = True
    learning_rate: float = 0.1
    lr_decay: float = 0.0
    rule: str = "adam"
    sites: str = "faithful"

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimiser."""
        return make_optimizer(self.rule, self.learning_rate, self.lr_decay)

    def init(self, key: jax.Array) -> AlphaModel:
        """Fresh beliefs: noise means ~ N(0, 0.05^2), log sds ~ N(-5, 0.05^2)."""
        weights, means, log_sds = jax.random.split(key, 3)
        start = jnp.float32(0.05) * draw_normals(means, (self.n_arms,))
        beliefs = Beliefs(
            initial_belief(self.shape, weights), start, jnp.float32(0.05) * draw_normals(log_sds, (self.n_arms,)) - 5
        )
        return AlphaModel(beliefs, self.optimizer.init(beliefs))

    def scores(self, model: AlphaModel, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Predicted rewards of one network drawn from the belief."""
        return predict(sampled_network(model.beliefs.weights, key, biases=True), inputs)

    def learn(self, model: AlphaModel, data: Data, n: jax.Array, key: jax.Array) -> AlphaModel:
        """Beliefs after one training call."""
        table = step_table(self.first_steps, self.steps, self.n_long_calls)
        n_steps = steps_at(table, self.steps, n // self.every - 1)

        def train(now: AlphaModel) -> AlphaModel:
            return jax.lax.fori_loop(0, n_steps, lambda i, m: self.step(m, data, n, jax.random.fold_in(key, i)), now)

        return when_due(n, self.every, train, model)

    def noise(self, key: jax.Array) -> Noise:
        """Normals for one gradient step."""
        hidden, heads, noise = jax.random.split(key, 3)
        d, a, h, k = self.context_dim, self.n_arms, self.n_hidden, self.n_draws
        weights = Network(draw_normals(hidden, (k, d + 1, h)), draw_normals(heads, (k, h + 1, a)))
        return Noise(weights, draw_normals(noise, (a,)))

    def step(self, model: AlphaModel, data: Data, n: jax.Array, key: jax.Array) -> AlphaModel:
        """One step of Adam on a minibatch."""
        rows, noise = jax.random.split(key)
        batch = take(data, draw_rows(rows, n, self.batch_size))
        gradient = jax.grad(energy)(model.beliefs, batch, self.noise(noise), n, self)
        change, optimizer = self.optimizer.update(gradient, model.optimizer)
        return AlphaModel(optax.apply_updates(model.beliefs, change), optimizer)

    def workspace(self, capacity: int) -> int:
        """Bytes of one realisation's minibatch under all draws, both passes."""
        per_row = 4 * self.n_hidden + 3 * self.n_arms
        return 4 * self.n_draws * (self.batch_size * per_row + 4 * self.n_hidden * (self.context_dim + self.n_arms))
