"""Random sequences of choosing, learning, saving, loading and mistakes leave every policy in order."""

import functools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyarm.errors import PolyarmError, require_reward
from polyarm.inference import ConjugateState, GibbsEngine, GibbsState, load_state, save_state
from polyarm.kernels.mixture.component import COUNT, LOG_DET, MEAN, SCALE
from polyarm.models import NormalInverseGamma
from polyarm.policies import InitialPullsState, engine_of
from polyarm.policies.ucb import BayesUCBState
from polyarm.types import AnyPolicy, Array
from tests.contracts.policies import POLICIES
from tests.contracts.states import BAD_ARMS, BAD_CONTEXTS, BAD_REWARDS, bits, position, suited

N_ARMS, DIM = 3, 2
DRIVEN = [name for name in POLICIES if name != "uniform"]

numbers = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-3, 30.0]) | st.floats(-3, 3)
values = st.sampled_from([0.0, 2.0, -1e6, 1e9]) | st.floats(-100, 100)


class Learn(NamedTuple):
    """A reward of an arm, chosen by the policy where arm is None."""

    context: tuple[float, float]
    arm: int | None
    reward: float
    times: int


class Reload(NamedTuple):
    """Save and load."""


class Mistake(NamedTuple):
    """A call that must be refused."""

    context: Any
    arm: Any
    reward: Any


learn = st.builds(
    Learn, st.tuples(numbers, numbers), st.none() | st.integers(0, N_ARMS - 1), values, st.sampled_from([1, 1, 1, 20])
)
mistake = (
    st.builds(Mistake, st.sampled_from(list(BAD_CONTEXTS.values())), st.just(0), st.just(1.0))
    | st.builds(Mistake, st.just((1.0, 1.0)), st.sampled_from(list(BAD_ARMS.values())), st.just(1.0))
    | st.builds(Mistake, st.just((1.0, 1.0)), st.just(0), st.sampled_from(list(BAD_REWARDS.values())))
)
sequences = st.lists(learn | learn | st.builds(Reload) | mistake, max_size=30)


def follow(policy: AnyPolicy, sequence: list[Any], disturbed: bool) -> tuple[Any, list[tuple[int, float]], Any]:
    """State, learnt (arm, reward) pairs and generator after a sequence; mistakes and files only where disturbed."""
    state, rng = policy.init(), np.random.default_rng(11)
    learnt: list[tuple[int, float]] = []
    for step in sequence:
        if isinstance(step, Learn):
            for t in range(step.times):
                x = np.array(step.context)
                arm = policy.choose(state, x, rng).arm if step.arm is None else step.arm
                state = policy.update(state, x, arm, suited(policy, step.reward + t % 3), rng)
                learnt.append((arm, require_reward(step.reward + t % 3)))
        elif disturbed and isinstance(step, Reload):
            state = reloaded(policy, state)
        elif disturbed:
            refused(policy, state, step, rng)
    return state, learnt, rng


@functools.cache
def scratch() -> "tempfile.TemporaryDirectory[str]":
    """One folder for all files: making and removing thousands takes seconds."""
    return tempfile.TemporaryDirectory()


def reloaded(policy: AnyPolicy, state: Any) -> Any:
    return load_state(save_state(Path(scratch().name) / "state", state), policy.init())


def refused(policy: AnyPolicy, state: Any, step: Mistake, rng: np.random.Generator) -> None:
    before = bits(state), position(rng)
    with pytest.raises(PolyarmError):
        policy.update(state, step.context, step.arm, step.reward, rng)
    assert (bits(state), position(rng)) == before


def check_gibbs(engine: GibbsEngine, state: GibbsState, learnt: list[tuple[int, float]]) -> None:
    capacity = state.tables.shape[2]
    for arm in range(N_ARMS):
        K, n = (int(v) for v in state.sizes[arm, :2])
        label, place = state.labels[arm]
        assert sorted(label) == list(range(capacity))
        assert (place[label] == np.arange(capacity)).all()
        assert n == sum(a == arm for a, _ in learnt)
        data = state.data[arm][:n]
        assert data[:, -2].tolist() == [y for a, y in learnt if a == arm]
        seats = place[state.seats[arm][:n]]
        counts = np.bincount(seats, minlength=K)
        assert len(counts) == K
        assert (counts > 0).all()
        assert state.tables[arm][COUNT, :K].tolist() == counts.tolist()
        limit = engine.arms[arm].n_components
        assert limit is None or limit >= K
        for k in range(K):
            base = replace(engine.arms[arm].base, scale=float(state.laws[arm, 1]))  # which may be learned
            check_component(base, state.tables[arm][:, k], data[seats == k])


def check_component(base: NormalInverseGamma, column: Array, data: Array) -> None:
    """A component's parameters against a fresh computation by Householder's QR."""
    d = base.dim
    stacked = np.vstack([base.sqrt_information[:-1], data[:, :-1]])
    R: Array = np.asarray(np.linalg.qr(stacked, mode="r"))
    inverse = np.linalg.inv(R[:d, :d])
    mean, V = inverse @ R[:d, d], inverse @ inverse.T
    scale = base.scale + 0.5 * R[d, d] ** 2
    M = np.zeros((d, d))
    M[np.tril_indices(d)] = column[MEAN + d :]
    spread = np.sqrt(np.diag(V) * scale)
    np.testing.assert_allclose(column[SCALE], scale, rtol=1e-8)
    np.testing.assert_allclose(M.T @ M, V, rtol=1e-8, atol=1e-8 * np.abs(V).max())
    assert (np.abs(column[MEAN : MEAN + d] - mean) <= 1e-8 * (spread + np.abs(mean))).all()
    np.testing.assert_allclose(column[LOG_DET], np.linalg.slogdet(V)[1], rtol=1e-8, atol=1e-8)


def check_counts(state: ConjugateState, learnt: list[tuple[int, float]]) -> None:
    assert state.counts.tolist() == [sum(a == arm for a, _ in learnt) for arm in range(N_ARMS)]
    assert np.isfinite(state.roots).all()
    assert (np.tril(state.roots, -1) == 0).all()


@pytest.mark.parametrize("name", DRIVEN)
@settings(derandomize=True, deadline=None, database=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(sequence=sequences)
def test_sequences_leave_a_policy_in_order(name: str, sequence: list[Any]) -> None:
    policy = POLICIES[name](N_ARMS, DIM)
    state, learnt, rng = follow(policy, sequence, disturbed=True)
    calm, same, other_rng = follow(policy, sequence, disturbed=False)
    assert learnt == same
    assert bits(state) == bits(calm)
    assert position(rng) == position(other_rng)
    if isinstance(state, (InitialPullsState, BayesUCBState)):
        assert state.n_rewards == len(learnt)
    if hasattr(policy, "engine"):
        outer, inner = engine_of(policy, state)
        engine: Any = getattr(outer, "engine", outer)  # behind features of the context
        if isinstance(inner, GibbsState) and engine.memory is None and engine.half_life is None:
            check_gibbs(engine, inner, learnt)  # else rewards are absorbed: see test_memory
        elif isinstance(inner, ConjugateState):
            check_counts(inner, learnt)
    elif isinstance(state, ConjugateState):
        check_counts(state, learnt)
    after = [
        policy.choose(s, np.array([0.3, -0.7]), np.random.default_rng(1)) for s in (state, reloaded(policy, state))
    ]
    assert after[0].arm == after[1].arm
    assert after[0].scores.tolist() == after[1].scores.tolist()
