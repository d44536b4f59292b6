import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polyarm.neural.data import Data
from polyarm.neural.draws import draw_mask, draw_normals, draw_rows, draw_uniforms
from polyarm.neural.network import (
    Network,
    Shape,
    predict,
    squared_error,
    squared_error_gradient,
    uniform_network,
)
from polyarm.neural.schedule import step_table, steps_at
from polyarm.neural.training import Trained, Training, make_optimizer


def random_batch(seed: int, n_rows: int = 64, context_dim: int = 3, n_arms: int = 4) -> Data:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.standard_normal((n_rows, context_dim)), np.ones(n_rows)])
    return Data(
        jnp.asarray(x, jnp.float32),
        jnp.asarray(rng.integers(n_arms, size=n_rows), jnp.int32),
        jnp.asarray(rng.standard_normal(n_rows), jnp.float32),
    )


def random_network(seed: int, context_dim: int = 3, n_arms: int = 4) -> Network:
    rng = np.random.default_rng(seed)
    sizes = (context_dim + 1, 50), (51, n_arms)
    return Network(*(jnp.asarray(0.5 * rng.standard_normal(size), jnp.float32) for size in sizes))


def test_first_rmsprop_step_starts_from_one() -> None:
    g = jnp.asarray([[0.3, -2.0], [1.0, 0.5]], jnp.float32)
    training = Training()
    network = Network(jnp.zeros((2, 2), jnp.float32), jnp.zeros((2, 2), jnp.float32))
    fresh = training.init(Shape(1, 2, 1), jax.random.key(0))
    start = Trained(network, jax.tree.map(jnp.ones_like, fresh.optimizer), fresh.n_steps)
    start = start._replace(optimizer=jax.tree.map(lambda v: jnp.ones((2, 2), jnp.float32), start.optimizer))
    moved = training.step(start, Network(g, 0 * g)).network.hidden
    np.testing.assert_allclose(moved, -0.1 * g / np.sqrt(0.9 + 0.1 * np.square(g) + 1e-10), rtol=1e-6)


def test_accumulator_of_a_fresh_network_is_one() -> None:
    leaves = jax.tree.leaves(Training().init(Shape(3, 4), jax.random.key(0)).optimizer)
    assert [leaf.shape for leaf in leaves] == [(4, 50), (51, 4)]
    assert all((leaf == 1).all() for leaf in leaves)


def test_learning_rate_decays_over_the_whole_life() -> None:
    training = Training()
    assert float(training.rate(jnp.int32(0))) == pytest.approx(0.1)
    assert float(training.rate(jnp.int32(50))) == pytest.approx(0.003846, abs=1e-6)


@pytest.mark.parametrize("name", ["adam", "rms"])
def test_rate_of_the_bayesian_networks_can_decay(name: str) -> None:
    """A gradient of one moves either rule by its rate."""
    optimizer = make_optimizer(name, 0.1, 0.5)
    g = jnp.ones((), jnp.float32)
    state, moves = optimizer.init(g), []
    for _ in range(4):
        move, state = optimizer.update(g, state)
        moves.append(float(move))
    np.testing.assert_allclose(moves, [-0.1 / (1 + 0.5 * step) for step in range(4)], rtol=1e-5)


@pytest.mark.parametrize(("lr_reset", "expected"), [("faithful", 12), ("fixed", 6)])
def test_reset_of_the_learning_rate(lr_reset: str, expected: int) -> None:
    training = Training(steps=6, lr_reset=lr_reset)
    batch = random_batch(0)
    now, key = training.init(Shape(3, 4), jax.random.key(0)), jax.random.key(1)
    for _ in range(2):
        now = jax.jit(lambda t, k: training.run(t, lambda net, _: squared_error_gradient(net, batch), k))(now, key)
    assert int(now.n_steps) == expected


def test_training_equals_a_plain_numpy_rmsprop() -> None:
    training, batch = Training(steps=20), random_batch(3)
    start = training.init(Shape(3, 4), jax.random.key(2))
    weights = [np.asarray(w, np.float64) for w in start.network]
    squares, slope = [np.ones_like(w) for w in weights], jax.jit(jax.grad(squared_error))
    for step in range(20):
        gradient = slope(Network(*(jnp.asarray(w, jnp.float32) for w in weights)), batch)
        g = [np.asarray(part, np.float64) for part in gradient]
        norm = np.sqrt(sum(np.square(part).sum() for part in g))
        g = [part * 5 / max(norm, 5.0) for part in g]
        squares = [0.9 * v + 0.1 * part**2 for v, part in zip(squares, g, strict=True)]
        rate = 0.1 / (1 + 0.5 * step)
        weights = [w - rate * part / np.sqrt(v + 1e-10) for w, part, v in zip(weights, g, squares, strict=True)]
    end = training.run(start, lambda network, key: squared_error_gradient(network, batch), jax.random.key(1))
    for ours, reference in zip(end.network, weights, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=2e-4, atol=2e-5)


def test_adam_of_optax_is_the_rule_of_the_specification() -> None:
    adam, w = optax.adam(0.1), jnp.asarray([1.0, -2.0])
    state, m, v, reference = adam.init(w), 0.0, 0.0, np.array([1.0, -2.0])
    for step in range(1, 6):
        g = np.sin(step + reference)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        reference = reference - 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        change, state = adam.update(jnp.sin(step + w), state)
        w = optax.apply_updates(w, change)
    np.testing.assert_allclose(w, reference, rtol=1e-10)


@pytest.mark.parametrize("context_dim", [2, 10])
@pytest.mark.parametrize("gated", [False, True])
def test_gradient_by_hand_equals_automatic(context_dim: int, gated: bool) -> None:
    network, batch = random_network(0, context_dim), random_batch(1, context_dim=context_dim)
    gate = draw_mask(jax.random.key(5), 0.8, (64, 50)).astype(jnp.float32) / 0.8 if gated else None
    for ours, automatic in zip(
        jax.jit(squared_error_gradient)(network, batch, gate),
        jax.jit(jax.grad(squared_error))(network, batch, gate),
        strict=True,
    ):
        np.testing.assert_allclose(ours, automatic, rtol=2e-4, atol=2e-5)


def test_network_predicts_as_numpy_does() -> None:
    network, batch = random_network(4), random_batch(5)
    w, v = (np.asarray(part, np.float64) for part in network)
    hidden = np.maximum(np.asarray(batch.inputs, np.float64) @ w, 0)
    np.testing.assert_allclose(predict(network, batch.inputs), hidden @ v[:-1] + v[-1], rtol=1e-4, atol=1e-5)


def test_fresh_network() -> None:
    network = uniform_network(Shape(10, 8), 0.3, jax.random.key(0))
    assert float(jnp.abs(network.hidden[:-1]).max()) <= 0.3
    assert float(network.hidden[:-1].std()) == pytest.approx(0.3 / 3**0.5, rel=0.1)
    assert not network.hidden[-1].any()
    assert not network.heads[-1].any()


def test_steps_of_the_bayesian_networks() -> None:
    assert step_table(100, 50, 10) == (100, 94, 88, 83, 77, 72, 66, 61, 55, 50)
    assert set(step_table(100, 100, 10)) == {100}
    steps = [int(steps_at((100, 75, 50), 50, jnp.int32(call))) for call in range(5)]
    assert steps == [100, 75, 50, 50, 50]


def test_draws_have_their_distributions() -> None:
    keys = jax.random.split(jax.random.key(3), 4)
    normals = np.asarray(draw_normals(keys[0], (400_000,)), np.float64)
    assert abs(normals.mean()) < 5 / 400_000**0.5
    assert normals.var() == pytest.approx(1, abs=0.015)
    assert (normals**4).mean() == pytest.approx(3, abs=0.1)
    assert np.corrcoef(normals[::2], normals[1::2])[0, 1] == pytest.approx(0, abs=0.012)
    assert float(draw_mask(keys[1], 0.8, (400_000,)).mean()) == pytest.approx(0.8, abs=0.004)
    uniforms = np.asarray(draw_uniforms(keys[2], (400_000,)))
    assert uniforms.min() >= 0
    assert uniforms.max() < 1
    counts = np.bincount(np.asarray(draw_rows(keys[3], jnp.int64(7), 70_000)), minlength=7)
    assert len(counts) == 7
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 30


def test_rows_come_from_the_stored_observations_only() -> None:
    for n in (1, 2, 1500):
        rows = draw_rows(jax.random.key(n), jnp.int64(n), 512)
        assert 0 <= int(rows.min()) <= int(rows.max()) < n
