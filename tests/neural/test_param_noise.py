from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polyarm.neural.data import Data
from polyarm.neural.param_noise import NeuralParamNoise, decision_divergence, divergence_limit
from polyarm.neural.training import Training


def some_data(n: int = 60) -> Data:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.standard_normal((n, 2)), np.ones(n)])
    return Data(jnp.asarray(x, jnp.float32), jnp.zeros(n, jnp.int32), jnp.ones(n, jnp.float32))


def test_divergence_limit() -> None:
    assert float(divergence_limit(jnp.float64(0.1), 8)) == pytest.approx(-np.log(0.9125))
    assert float(divergence_limit(jnp.float64(0.1), 8)) == pytest.approx(0.0916, abs=1e-4)


def test_divergence_of_decisions() -> None:
    rng = np.random.default_rng(1)
    f, g = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    p, q = (np.exp(v) / np.exp(v).sum(axis=1, keepdims=True) for v in (f, g))
    expected = (p * np.log(p / q)).sum(axis=1).mean()
    assert float(decision_divergence(jnp.asarray(f), jnp.asarray(g))) == pytest.approx(expected)
    assert float(decision_divergence(jnp.asarray(f), jnp.full((5, 3), jnp.nan))) == 0


def test_noise_grows_or_shrinks_by_one_percent() -> None:
    learner = NeuralParamNoise(n_arms=3, context_dim=2)
    model = jax.jit(learner.init)(jax.random.key(0))
    key, adapt = jax.random.key(1), jax.jit(learner.adapt)
    small = adapt(model._replace(noise_sd=jnp.float32(1e-4)), some_data(), jnp.int64(60), key)
    large = adapt(model._replace(noise_sd=jnp.float32(30.0)), some_data(), jnp.int64(60), key)
    assert float(small.noise_sd) == pytest.approx(1.01e-4)
    assert float(large.noise_sd) == pytest.approx(30 / 1.01)
    assert float(small.eps) == pytest.approx(0.099)
    kept = jax.jit(replace(learner, eps_decay=1.0).adapt)(model, some_data(), jnp.int64(60), key)
    assert float(kept.eps) == pytest.approx(0.1)


@pytest.mark.parametrize(("adaptation", "n_adaptations"), [("faithful", 60), ("fixed", 1)])
def test_how_often_the_noise_adapts(adaptation: str, n_adaptations: int) -> None:
    learner = NeuralParamNoise(n_arms=3, context_dim=2, training=Training(steps=1), adaptation=adaptation)
    model, data = jax.jit(learner.init)(jax.random.key(0)), some_data()
    learn = jax.jit(learner.learn)
    for n in range(1, 61):
        model = learn(model, data, jnp.int64(n), jax.random.key(n))
    assert float(model.eps) == pytest.approx(0.1 * 0.99**n_adaptations, rel=1e-4)
