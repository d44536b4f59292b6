"""What every learned policy must do, live and batched."""

import itertools
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polyarm.errors import InvalidArgument, UnknownArm, UnknownName
from polyarm.inference.state_file import load_state, save_state
from polyarm.neural import presets
from polyarm.neural.policy import LiveState
from polyarm.neural.simulate import Runs, advance, simulate, start_runs
from polyarm.neural.stepping import with_one
from polyarm.policies import make_policy
from polyarm.types import World
from tests.neural.worlds import linear_worlds

T, D, A = 24, 3, 4
WORLDS = linear_worlds(3, T, D, A, seed=4)
SEEDS = np.array([11, 2**40 + 1, 5])


def small(name: str) -> dict[str, Any]:
    """Options that make a policy quick.

    At its usual rate of 0.1 the alpha network amplifies the last bit of a float into another decision within a hundred
    steps, and live it rounds in another order than in a batch; at 0.01 it does not get that far here.
    Its usual rate has a test of its own, round by round from the same state.
    """
    bayesian = {"initial_training_steps": 3} if name.startswith("bnn") else {}
    return {"training_steps": 3, **bayesian, **({"learning_rate": 0.01} if name == "bnn-alpha" else {})}


def play(policy: Any, world: World, rng: np.random.Generator, horizon: int = T) -> tuple[list[int], Any]:
    state, arms = policy.init(), []
    for x, rewards in itertools.islice(zip(world.contexts, world.rewards, strict=True), horizon):
        arm = policy.choose(state, x, rng).arm
        state = policy.update(state, x, arm, float(rewards[arm]), rng)
        arms.append(arm)
    return arms, state


def world_of(realisation: int) -> World:
    return World(*(field[realisation] for field in WORLDS))


@pytest.mark.parametrize("name", presets.NAMES)
def test_live_equals_batched(name: str) -> None:
    """Action by action, with no tolerance: so a realisation does not depend on its batch either."""
    arms, seconds = simulate(name, WORLDS, SEEDS, **small(name))
    assert arms.shape == (3, T)
    assert arms.dtype == np.int64
    assert seconds > 0
    assert arms[:, : 2 * A].tolist() == [[0, 1, 2, 3, 0, 1, 2, 3]] * 3
    for realisation in (0, 1):
        policy = presets.make_policy(name, A, D, horizon=T, seed=int(SEEDS[realisation]), **small(name))
        live, _ = play(policy, world_of(realisation), np.random.default_rng(0))
        assert live == arms[realisation].tolist()


def test_alpha_at_its_usual_rate_learns_alike_live_and_batched() -> None:
    """From the very same state, round by round: beliefs to 1e-4 (seen: 5e-6) after six steps at rate 0.1, same arm."""
    options = {"training_steps": 6, "initial_training_steps": 6}
    learner = presets.make_learner("bnn-alpha", A, D, **options)
    assert learner == presets.make_learner("bnn-alpha", A, D, **options, learning_rate=0.1)
    inputs, rewards = with_one(jnp.asarray(WORLDS.contexts), learner.dtype), jnp.asarray(WORLDS.rewards, learner.dtype)
    realisation, world = 1, world_of(1)
    policy = presets.make_policy("bnn-alpha", A, D, horizon=T, seed=int(SEEDS[realisation]), **options)

    def copied(runs: Runs) -> Runs:
        return jax.tree.map(lambda leaf: np.array(leaf[realisation]), runs._replace(keys=runs.arms))

    runs = start_runs(learner, jnp.asarray(SEEDS.astype(np.uint64)), T)
    runs = advance(learner, None, runs, inputs, rewards, 0, 1)
    for n in range(1, T // 2):
        before = copied(runs)
        runs = advance(learner, None, runs, inputs, rewards, n, n + 1)
        after, rng, arm = copied(runs), np.random.default_rng(0), int(before.arms[n - 1])
        untold = LiveState(np.int64(n - 1), before.data, before.models)
        state = policy.update(untold, world.contexts[n - 1], arm, float(world.rewards[n - 1, arm]), rng)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=0, atol=1e-4), state.model.beliefs, after.models.beliefs)
        assert policy.choose(state, world.contexts[n], rng).arm == after.arms[n]


@pytest.mark.parametrize("name", presets.NAMES)
def test_state_survives_its_file_and_continues_bit_for_bit(name: str, tmp_path: Path) -> None:
    policy = presets.make_policy(name, A, D, horizon=T, **small(name))
    _, state = play(policy, world_of(0), np.random.default_rng(1), horizon=10)
    back = load_state(save_state(tmp_path / "state.zip", state), policy.init())
    x, arm = WORLDS.contexts[0, 10], 2
    for ours, loaded in zip(jax.tree.leaves(state), jax.tree.leaves(back), strict=True):
        np.testing.assert_array_equal(ours, loaded)
    ends = [policy.update(s, x, arm, 0.5, np.random.default_rng(3)) for s in (state, back)]
    for ours, loaded in zip(*(jax.tree.leaves(end) for end in ends), strict=True):
        np.testing.assert_array_equal(ours, loaded)


@pytest.mark.parametrize("name", presets.NAMES)
def test_bad_input_leaves_the_state_as_it_was(name: str) -> None:
    policy, rng = presets.make_policy(name, A, D, horizon=T, **small(name)), np.random.default_rng(0)
    _, state = play(policy, world_of(0), rng, horizon=3)
    before = [np.array(leaf) for leaf in jax.tree.leaves(state)]
    x = np.zeros(D)
    for context, arm, reward, error in (
        (np.zeros(D + 1), 0, 1.0, InvalidArgument),
        (np.array([0, np.nan, 0]), 0, 1.0, InvalidArgument),
        (x, A, 1.0, UnknownArm),
        (x, 0, np.nan, InvalidArgument),
    ):
        with pytest.raises(error):
            policy.update(state, context, arm, reward, rng)
    for old, new in zip(before, jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("name", ["neural-bootstrapped", "neural-dropout", "bnn-alpha", "multitask-gp"])
def test_choice_without_a_seed_follows_the_generator(name: str) -> None:
    policy = presets.make_policy(name, A, D, horizon=T, **small(name))
    _, state = play(policy, world_of(0), np.random.default_rng(0), horizon=2 * A)
    scores = [policy.choose(state, np.array([0.3, -1.0, 0.5]), np.random.default_rng(s)).scores for s in (0, 0, 1)]
    assert scores[0].shape == (A,)
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (scores[0] != scores[2]).any()


def test_buffers_grow_without_changing_decisions() -> None:
    name, rng = "neural-bootstrapped", np.random.default_rng(0)
    live = [presets.make_policy(name, A, D, horizon=size, seed=3, **small(name)) for size in (16, T)]
    assert play(live[0], world_of(0), rng)[0] == play(live[1], world_of(0), rng)[0]


def test_batches_are_split_to_fit_the_memory_and_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    name = "neural-rms"
    whole, _ = simulate(name, WORLDS, SEEDS, **small(name))
    split, _ = simulate(
        name, WORLDS, SEEDS, memory_gb=1e-6, device="cpu", progress=lambda *now: told.append(now), **small(name)
    )
    assert whole.tolist() == split.tolist()
    assert told == [(2 * T, 3 * T), (3 * T, 3 * T)]


@pytest.mark.parametrize("name", ["neural-linear", "multitask-gp"])
def test_training_every_few_rounds(name: str) -> None:
    policy = presets.make_policy(name, A, D, horizon=T, seed=11, training_freq=7, **small(name))
    arms, _ = simulate(name, WORLDS, SEEDS, training_freq=7, **small(name))
    assert play(policy, world_of(0), np.random.default_rng(0))[0] == arms[0].tolist()


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("neural-rms", "lr_reset"),
        ("neural-linear", "lr_reset"),
        ("neural-param-noise", "adaptation"),
        ("bnn-alpha", "site_pairing"),
        ("multitask-gp", "sampling_root"),
        ("multitask-gp", "unplayed_zeros"),
        ("multitask-gp", "bootstrap"),
    ],
)
def test_each_quirk_can_be_fixed(name: str, option: str) -> None:
    faithful = presets.make_learner(name, A, D, **{option: "faithful"})
    fixed = presets.make_learner(name, A, D, **{option: "fixed"})
    assert faithful == presets.make_learner(name, A, D)
    assert fixed != faithful
    with pytest.raises(UnknownName, match=f"{option} must be one of faithful, fixed"):
        presets.make_learner(name, A, D, **{option: "mended"})


def test_bad_settings() -> None:
    with pytest.raises(UnknownName, match="policy must be one of"):
        presets.make_policy("neural-magic", A, D)
    with pytest.raises(UnknownName, match="option of neural-rms must be one of"):
        presets.make_policy("neural-rms", A, D, sampling_root="fixed")
    with pytest.raises(InvalidArgument, match="training_steps must be"):
        presets.make_policy("neural-rms", A, D, training_steps=0)
    with pytest.raises(InvalidArgument, match="lr_decay must be at least 0"):
        presets.make_policy("bnn-alpha", A, D, lr_decay=-0.5)
    with pytest.raises(InvalidArgument, match="learn_noise must be True or False, got 1"):
        presets.make_policy("bnn-alpha", A, D, learn_noise=1)
    with pytest.raises(UnknownName, match="optimizer must be one of adam, rms"):
        presets.make_policy("bnn-variational", A, D, optimizer="sgd")
    with pytest.raises(InvalidArgument, match="seeds must be one non-negative integer per realisation"):
        simulate("neural-rms", WORLDS, [1, 2])
    with pytest.raises(InvalidArgument, match="device must be one that JAX finds here"):
        simulate("neural-rms", WORLDS, SEEDS, device="abacus")
    with pytest.raises(InvalidArgument, match="worlds must be"):
        simulate("neural-rms", world_of(0), SEEDS)


def test_options_reach_the_baseline() -> None:
    noisy: Any = presets.make_learner("neural-param-noise", A, D, noise_sd=0.2, eps=0.3, eps_decay=1.0)
    assert (noisy.noise_sd, noisy.eps, noisy.eps_decay) == (0.2, 0.3, 1.0)
    linear: Any = presets.make_learner("neural-linear", A, D, posterior_freq=3, prior_shape=1, prior_rate=2, ridge=0.5)
    assert (linear.posterior_every, linear.prior_shape, linear.prior_rate, linear.ridge) == (3, 1, 2, 0.5)
    alpha: Any = presets.make_learner("bnn-alpha", A, D, n_draws=20, n_long_calls=10, lr_decay=0.5, optimizer="rms")
    assert (alpha.n_draws, alpha.n_long_calls, alpha.lr_decay, alpha.rule) == (20, 10, 0.5, "rms")
    wide: Any = presets.make_learner("bnn-alpha", A, D, prior_var=2.0, noise_sd=0.5, learn_noise=False)
    assert (wide.prior_var, wide.noise_sd, wide.learn_noise) == (2.0, 0.5, False)


@pytest.mark.parametrize("name", presets.NAMES)
def test_options_are_documented_and_default_to_the_paper(name: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "baselines.md").read_text(encoding="utf-8")
    assert [option for option in presets.options_of(name) if f"`{option}`" not in text] == []
    assert presets.make_learner(name, A, D) == presets.make_learner(name, A, D, **presets.stated_options(name))


@pytest.mark.parametrize("name", presets.RMS_NAMES)
def test_start_weights_scale(name: str) -> None:
    """Weights start uniform in (-init_scale, init_scale); all else in the state starts the same."""
    learners = [presets.make_learner(name, A, D, init_scale=scale) for scale in (0.3, 1.0)]
    usual, wide = map(
        jax.tree.leaves, jax.jit(lambda key: [learner.init(key) for learner in learners])(jax.random.key(0))
    )
    moved = [(u, w) for u, w in zip(usual, wide, strict=True) if not np.array_equal(u, w)]
    assert len(moved) == 2  # the weights of both layers
    for u, w in moved:
        np.testing.assert_allclose(u / 0.3, w, rtol=1e-6)
        assert 0.9 < np.abs(w).max() < 1


def test_published_options() -> None:
    assert presets.published_options("neural-rms", "linear") == {"training_steps": 100, "training_freq": 1}
    assert presets.published_options("multitask-gp", "sparse-linear/8-arms")["training_freq"] == 50
    assert presets.published_options("multitask-gp", "mixture-a") == {"training_steps": 50, "training_freq": 1}
    for name in presets.NAMES:
        presets.make_learner(name, A, D, **presets.published_options(name, "linear"))


def test_users_jax_settings_stay_as_they_are() -> None:
    code = (
        "import sys, numpy as np\n"
        "import polyarm.neural.presets as p\n"
        "assert 'jax' not in sys.modules and 'numba' not in sys.modules\n"
        "import jax, jax.numpy as jnp\n"
        "policy = p.make_policy('neural-rms', 2, 1, training_steps=1)\n"
        "policy.update(policy.init(), np.ones(1), 0, 1.0, np.random.default_rng(0))\n"
        "assert jnp.zeros(1).dtype == jnp.float32 and 'numba' not in sys.modules\n"
    )
    quick = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # as in the other tests
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | quick)


@pytest.mark.parametrize("name", ["neural-dropout", "bnn-variational", "multitask-gp"])
def test_choices_follow_the_distribution(name: str) -> None:
    policy: Any = make_policy(name, A, D, horizon=T, **small(name))
    rng = np.random.default_rng(0)
    state, x, mask = policy.init(), np.zeros(D), np.arange(A) > 0
    assert policy.probabilities(state, x, rng).tolist() == [1.0] + [0.0] * (A - 1)
    for n in range(2 * A):
        state = policy.update(state, rng.standard_normal(D), n % A, float(rng.standard_normal()), rng)
    for eligible in (None, mask):
        p = policy.probabilities(state, x, rng, eligible)
        arms = [policy.choose(state, x, rng, eligible).arm for _ in range(300)]
        played = np.bincount(arms, minlength=A) / 300
        assert np.abs(played - p).max() < 0.13  # 4 standard errors of their difference
    seeded: Any = make_policy(name, A, D, horizon=T, seed=1, **small(name))
    assert seeded.probabilities(state, x, rng).max() == 1.0
