"""Losses of the Bayesian networks against plain NumPy at random parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from polyarm.neural import alpha, variational
from polyarm.neural.alpha import Beliefs, BnnAlpha
from polyarm.neural.data import Data
from polyarm.neural.network import Network, Shape
from polyarm.neural.variational import Belief

D, H, A, B = 3, 50, 4, 32
SIZES = (D + 1, H), (H + 1, A)


def normals(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def random_belief(seed: int) -> Belief:
    means = Network(*(jnp.asarray(0.3 * normals(seed + i, *size)) for i, size in enumerate(SIZES)))
    log_sds = Network(*(jnp.asarray(0.3 * normals(seed + 9 + i, *size) - 2) for i, size in enumerate(SIZES)))
    return Belief(means, log_sds)


def random_batch(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.standard_normal((B, D)), np.ones(B)])
    return Data(jnp.asarray(x), jnp.asarray(rng.integers(A, size=B)), jnp.asarray(rng.standard_normal(B)))


def test_variational_loss_equals_numpy() -> None:
    belief, batch = random_belief(0), random_batch(1)
    noise = variational.Noise(jnp.asarray(normals(2, B, H)), jnp.asarray(normals(3, B)))
    (m1, m2), (s1, s2) = ([np.asarray(w) for w in part] for part in belief)
    x, arms, rewards = (np.asarray(part) for part in batch)
    loss, n = 0.0, 77
    for b in range(B):
        pre = x[b, :D] @ m1[:D] + m1[D]
        pre = pre + np.sqrt(x[b, :D] ** 2 @ np.exp(s1[:D]) ** 2 + 1e-6) * np.asarray(noise.hidden)[b]
        h = np.maximum(pre, 0)
        out = h @ m2[:H, arms[b]] + m2[H, arms[b]]
        out += np.sqrt(h**2 @ np.exp(s2[:H, arms[b]]) ** 2 + 1e-6) * float(noise.played[b])
        loss -= norm.logpdf(rewards[b], out, 0.1) / B
    for m, s, v0 in ((m1[:D], s1[:D], 2 / D), (m2[:H], s2[:H], 2 / H)):
        var = np.exp(s) ** 2
        loss += (m**2 / (2 * v0) + 0.5 * (var / v0 - 1 - np.log(var) + np.log(v0))).sum() / n
    ours = jax.jit(variational.loss, static_argnums=4)(belief, batch, noise, jnp.int64(n), 0.1)
    assert float(ours) == pytest.approx(loss, rel=1e-6)


def published_energy(beliefs: Beliefs, batch: Data, noise: alpha.Noise, n: int, settings: BnnAlpha) -> float:
    """The energy as the Showdown writes it, with log Z_q and the sites phi_k in full."""
    v0 = settings.prior_var
    means = np.concatenate([np.asarray(w).ravel() for w in beliefs.weights.means])
    sds = np.exp(np.concatenate([np.asarray(w).ravel() for w in beliefs.weights.log_sds]))
    x, arms, rewards = (np.asarray(part) for part in batch)
    learnt = np.asarray(beliefs.noise_means) + np.exp(beliefs.noise_log_sds) * np.asarray(noise.noise)
    noise_sd = settings.noise_sd * (np.exp(learnt) if settings.learn_noise else np.ones(A))
    k = len(noise.weights.hidden)
    fits, sites = np.empty((k, B)), np.empty(k)
    for i in range(k):
        xi = np.concatenate([np.asarray(w)[i].ravel() for w in noise.weights])
        w = means + sds * xi
        sites[i] = (w * means / sds**2 + 0.5 * w**2 * (1 / v0 - 1 / sds**2)).sum() / n
        w1, w2 = w[: (D + 1) * H].reshape(D + 1, H), w[(D + 1) * H :].reshape(H + 1, A)
        out = np.maximum(x @ w1, 0) @ w2[:H] + w2[H]
        fits[i] = norm.logpdf(rewards, out[np.arange(B), arms], noise_sd[arms])
    phi = np.repeat(sites[:, None], B, axis=1)
    if settings.sites == "faithful":
        phi = sites[(np.arange(k)[:, None] * B + np.arange(B)) % k]
    log_zq = (means**2 / (2 * sds**2) + 0.5 * np.log(2 * np.pi * sds**2)).sum()
    log_z0 = len(means) * 0.5 * np.log(2 * np.pi * v0)
    return float(log_z0 - log_zq - n / B * (logsumexp(fits - phi, axis=0) - np.log(k)).sum())


@pytest.mark.parametrize(
    "options", [{}, {"sites": "fixed"}, {"prior_var": 2.0}, {"noise_sd": 0.7}, {"noise_sd": 0.7, "learn_noise": False}]
)
def test_alpha_energy_equals_the_published_form(options: dict[str, Any]) -> None:
    settings = BnnAlpha(n_arms=A, context_dim=D, **options)
    beliefs = Beliefs(random_belief(0), jnp.asarray(0.1 * normals(5, A)), jnp.asarray(normals(6, A) - 3))
    weights = Network(*(jnp.asarray(normals(7 + i, 10, *size)) for i, size in enumerate(SIZES)))
    noise, batch = alpha.Noise(weights, jnp.asarray(normals(8, A))), random_batch(1)
    ours = float(jax.jit(alpha.energy, static_argnums=4)(beliefs, batch, noise, jnp.int64(40), settings))
    assert ours == pytest.approx(published_energy(beliefs, batch, noise, 40, settings), rel=1e-4)
    assert ours == pytest.approx(published_energy(beliefs, batch, noise, 40, settings), rel=1e-8)


def test_sites_are_paired_as_the_showdown_code_tiles_them() -> None:
    pairing = np.asarray(alpha.site_pairing(10, 512))
    k, b = np.indices((10, 512))
    assert (pairing == (2 * k + b) % 10).all()


def test_fresh_beliefs() -> None:
    model = jax.jit(BnnAlpha(n_arms=8, context_dim=10).init)(jax.random.key(0))
    assert float(model.beliefs.weights.means.hidden.std()) == pytest.approx(0.05, rel=0.15)
    assert float(model.beliefs.weights.log_sds.hidden.mean()) == pytest.approx(-5, abs=0.02)
    assert float(model.beliefs.noise_log_sds.mean()) == pytest.approx(-5, abs=0.2)


def test_variational_biases_are_plain_numbers() -> None:
    belief = jax.jit(variational.initial_belief, static_argnums=0)(Shape(D, A), jax.random.key(0))
    sampled = jax.jit(variational.sampled_network, static_argnames="biases")
    drawn = sampled(belief, jax.random.key(1), biases=False)
    assert (drawn.hidden[-1] == belief.means.hidden[-1]).all()
    assert (drawn.hidden[:-1] != belief.means.hidden[:-1]).all()
    drawn = sampled(belief, jax.random.key(1), biases=True)
    assert (drawn.heads[-1] != belief.means.heads[-1]).any()
