"""What every policy promises, whatever its rule."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.inference import load_state, save_state
from polyarm.types import AnyPolicy
from tests.contracts.policies import POLICIES, SHARING
from tests.contracts.states import (
    BAD_ARMS,
    BAD_CONTEXTS,
    BAD_GENERATORS,
    BAD_REWARDS,
    bits,
    fed,
    refusal,
    refuses,
    rewards,
    suited,
)

X = np.array([0.2, -0.1])


@pytest.fixture(params=POLICIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def policy(name: str) -> AnyPolicy:
    return POLICIES[name](3, 2)


def learnt(policy: AnyPolicy, n: int = 40, seed: int = 0) -> Any:
    return fed(policy, rewards(n, 2, 3, seed), np.random.default_rng(seed))


def played(policy: AnyPolicy, state: Any, n: int, seed: int) -> tuple[list[int], Any]:
    """The arms of n interactions, and the state after them."""
    rng, arms = np.random.default_rng(seed), []
    for x, _, y in rewards(n, 2, 3, seed):
        arms.append(policy.choose(state, x, rng).arm)
        state = policy.update(state, x, arms[-1], suited(policy, y), rng)
    return arms, state


@pytest.mark.parametrize("n_arms", [1, 4])
@pytest.mark.parametrize("dim", [1, 2, 10])
def test_choices_are_arms_with_scores(name: str, n_arms: int, dim: int) -> None:
    policy, rng = POLICIES[name](n_arms, dim), np.random.default_rng(0)
    state = policy.init()
    for x, _, y in rewards(20, dim, n_arms, seed=1):
        choice = policy.choose(state, x, rng)
        assert type(choice.arm) is int
        assert 0 <= choice.arm < n_arms
        assert choice.scores.shape == (n_arms,)
        assert np.isfinite(choice.scores).all()
        assert choice.scores[choice.arm] == choice.scores.max()
        state = policy.update(state, x, choice.arm, suited(policy, y), rng)


def test_a_seed_fixes_the_future(policy: AnyPolicy) -> None:
    one, same = (played(policy, policy.init(), 30, seed=1) for _ in range(2))
    assert one[0] == same[0]
    assert bits(one[1]) == bits(same[1])


def test_choosing_leaves_the_state_alone(policy: AnyPolicy) -> None:
    state = learnt(policy)
    before = bits(state)
    policy.choose(state, X, np.random.default_rng(0))
    assert bits(state) == before


@pytest.mark.parametrize("n", [0, 3, 50])
def test_a_file_continues_bit_for_bit(policy: AnyPolicy, n: int, tmp_path: Path) -> None:
    state = learnt(policy, n)
    loaded = load_state(save_state(tmp_path / "state", state), policy.init())
    assert bits(loaded) == bits(state)
    one, other = (played(policy, s, 30, seed=2) for s in (state, loaded))
    assert one[0] == other[0]
    assert bits(one[1]) == bits(other[1])


def test_numbering_of_arms_is_free(name: str, policy: AnyPolicy) -> None:
    """Renumbered arms are chosen as often; initial pulls, which go by number, are over by then."""
    new_number = np.array([2, 0, 1])
    data = rewards(20, 2, 3, seed=3)
    renumbered = [(x, int(new_number[arm]), y) for x, arm, y in data]
    counts = []
    for i, d in enumerate((data, renumbered)):
        rng = np.random.default_rng(5 + i)
        if name in SHARING:  # one choice in each of many states
            states = [fed(policy, d, rng) for _ in range(200)]
        else:
            states = [fed(policy, d, np.random.default_rng(4))] * 1000
        counts.append(np.bincount([policy.choose(state, X, rng).arm for state in states], minlength=3))
    table = np.array([counts[0], counts[1][new_number]])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] == 1 or stats.chi2_contingency(table).pvalue > 1e-4


def test_bad_contexts(policy: AnyPolicy) -> None:
    refuses(policy, learnt(policy, 16), "context", {kind: (context, 0, 1.0) for kind, context in BAD_CONTEXTS.items()})
    state = learnt(policy, 5)
    before = bits(state)
    for kind, context in BAD_CONTEXTS.items():
        assert "context must be" in refusal(partial(policy.choose, state, context, np.random.default_rng(0))), kind
        assert bits(state) == before, kind


def test_bad_arms(policy: AnyPolicy) -> None:
    refuses(policy, learnt(policy, 16), "arm", {kind: (X, arm, 1.0) for kind, arm in BAD_ARMS.items()})


def test_bad_rewards(policy: AnyPolicy) -> None:
    refuses(policy, learnt(policy, 16), "reward", {kind: (X, 0, reward) for kind, reward in BAD_REWARDS.items()})


def test_bad_generators(policy: AnyPolicy) -> None:
    """They are refused by name, or not needed."""
    for kind, rng in BAD_GENERATORS.items():
        state = learnt(policy, 16)
        before = bits(state)
        for act in (partial(policy.choose, state, X, rng), partial(policy.update, state, X, 0, 1.0, rng)):
            said = refusal(act)
            assert not said or said.startswith("rng must be a numpy.random.Generator, got "), (kind, said)
            assert not said or bits(state) == before, kind


@pytest.mark.parametrize("n", [0, 4, 40])
def test_an_added_arm_is_played_and_learnt_from(policy: AnyPolicy, n: int) -> None:
    wider, state = policy.with_arm(learnt(policy, n))
    rng = np.random.default_rng(2)
    assert policy_shapes(wider.init()) == policy_shapes(policy.with_arm(policy.init())[1])
    choice = wider.choose(state, X, rng)
    assert choice.scores.shape == (4,)
    for _ in range(60):
        arm = wider.choose(state, X, rng).arm
        state = wider.update(state, X, arm, suited(wider, 100.0 if arm == 3 else 0.0), rng)
    assert wider.probabilities(state, X, rng).shape == (4,)
    only = np.arange(4) == 3
    assert wider.choose(state, X, rng, only).arm == 3


def policy_shapes(state: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(path, shape) for path, (_, shape, _) in bits(state).items()]
