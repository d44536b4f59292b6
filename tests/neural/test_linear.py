import jax
import jax.numpy as jnp
import numpy as np

from polyarm.neural.data import Data
from polyarm.neural.linear import Hybrid, NeuralLinear, regress
from polyarm.neural.network import features
from polyarm.neural.training import Training


def closed_form(z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    precision = z.T @ z + 0.25 * np.eye(z.shape[1])
    mean = np.linalg.solve(precision, z.T @ y)
    return precision, mean, 6 + len(y) / 2, 6 + (y @ y - mean @ precision @ mean) / 2


def test_posterior_equals_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    z, arms, y = rng.standard_normal((30, 6)), rng.integers(3, size=30), rng.standard_normal(30)
    shares = (arms == np.arange(4)[:, None]).astype(float)  # the last arm was never played
    ours = jax.jit(regress)(jnp.asarray(z), jnp.asarray(shares), jnp.asarray(y), 0.25, 6.0, 6.0)
    for arm in range(4):
        precision, mean, shape, rate = closed_form(z[arms == arm], y[arms == arm])
        factor = np.asarray(ours.factors[arm])
        np.testing.assert_allclose(factor @ factor.T, precision, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(ours.means[arm], mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose([ours.shapes[arm], ours.rates[arm]], [shape, rate], rtol=1e-10)


def some_data(n: int, capacity: int) -> Data:
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.standard_normal((capacity, 3)), np.ones(capacity)])
    arms = jnp.asarray(rng.integers(2, size=capacity), jnp.int32)
    return Data(jnp.asarray(x, jnp.float32), arms, jnp.asarray(rng.standard_normal(capacity), jnp.float32))


def test_regressions_use_the_features_as_they_are_after_training() -> None:
    """The closed form in double precision on the very features, in single precision, that the regressions read.

    Features computed in another program may be rounded differently, which a precision matrix of rank 10 in 50
    dimensions turns into 1e-5 of the means; here one program computes them for both.
    """
    learner = NeuralLinear(n_arms=2, context_dim=3, training=Training(steps=3))
    data = some_data(20, 32)

    @jax.jit
    def learn(before: Hybrid) -> tuple[Hybrid, jax.Array, jax.Array]:
        after = learner.learn(before, data, jnp.int64(20), jax.random.key(1))
        return after, features(after.trained.network, data.inputs), features(before.trained.network, data.inputs)

    model, read, stale = learn(jax.jit(learner.init)(jax.random.key(0)))
    arms, y = np.asarray(data.arms)[:20], np.asarray(data.rewards, np.float64)[:20]
    for arm in range(2):
        rows = arms == arm
        _, mean, shape, rate = closed_form(np.asarray(read, np.float64)[:20][rows], y[rows])
        np.testing.assert_allclose(model.regression.means[arm], mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.regression.rates[arm], rate, rtol=1e-9)
        assert float(model.regression.shapes[arm]) == shape
        _, old_mean, _, _ = closed_form(np.asarray(stale, np.float64)[:20][rows], y[rows])
        assert np.abs(old_mean - mean).max() > 1e-2  # features from before the training would be noticed


def test_draws_have_the_moments_of_the_posterior() -> None:
    learner = NeuralLinear(n_arms=2, context_dim=3, training=Training(steps=3))
    data = some_data(20, 20)
    model = jax.jit(learner.learn)(jax.jit(learner.init)(jax.random.key(0)), data, jnp.int64(20), jax.random.key(1))
    x = data.inputs[0]
    keys = jax.random.split(jax.random.key(7), 40_000)
    draws = np.asarray(jax.jit(jax.vmap(lambda k: learner.scores(model, data, jnp.int64(20), x, k)))(keys))
    z = np.asarray(features(model.trained.network, x), np.float64)
    for arm in range(2):
        factor = np.asarray(model.regression.factors[arm])
        variance = float(model.regression.rates[arm] / (model.regression.shapes[arm] - 1))
        spread = variance * np.square(np.linalg.solve(factor, z)).sum()
        assert abs(draws[:, arm].mean() - model.regression.means[arm] @ z) < 5 * (spread / 40_000) ** 0.5
        np.testing.assert_allclose(draws[:, arm].var(), spread, rtol=0.06)
