"""Every kind of reward through every engine and policy: finite answers and a finite state, or NumericalFailure."""

import os
from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument, NumericalFailure
from polyarm.inference.door import require_sound
from polyarm.types import AnyEngine, AnyPolicy
from tests.contracts.engines import ENGINES
from tests.contracts.policies import POLICIES
from tests.contracts.states import bits, suited
from tests.contracts.streams import STREAMS

HORIZON = int(os.environ.get("POLYARM_STREAM_STEPS", "40"))  # `make test-long` goes on for 1000
EXTREME = {
    name for name in STREAMS if any(size in name for size in ("1e100", "1e-200", "smallest", "denormal", "1e-170"))
}


def told(learner: AnyEngine | AnyPolicy, state: Any, x: Any, arm: int, y: float, rng: Any, allowed: bool) -> Any:
    """The state after a reward, or the same one, as it was, where the reward cannot be learnt."""
    before = bits(state) if allowed else None
    try:
        return learner.update(state, x, arm, suited(learner, y), rng)
    except NumericalFailure:
        assert allowed, "an ordinary reward was not learnt"
        assert bits(state) == before
        return state


@pytest.mark.parametrize("name", ENGINES)
def test_engines_stay_finite(name: str) -> None:
    for kind, stream in STREAMS.items():
        engine, rng = ENGINES[name](2, 2), np.random.default_rng(1)
        X, y = stream(HORIZON, 2, np.random.default_rng(2))
        state = engine.init()
        for t in range(HORIZON):
            state = told(engine, state, X[t], t % 2, float(y[t]), rng, kind in EXTREME)
        require_sound(state)
        for x in (X[0], X[-1], np.array([0.3, -0.2])):
            assert np.isfinite(engine.draw_means(state, x, 5, rng)).all(), kind
            assert np.isfinite(engine.expected_means(state, x)).all(), kind


@pytest.mark.parametrize("name", POLICIES)
def test_policies_stay_finite(name: str) -> None:
    for kind, stream in STREAMS.items():
        policy, rng = POLICIES[name](2, 2), np.random.default_rng(1)
        X, y = stream(HORIZON, 2, np.random.default_rng(2))
        state = policy.init()
        for t in range(HORIZON):
            choice = policy.choose(state, X[t], rng)
            assert np.isfinite(choice.scores).all(), kind
            state = told(policy, state, X[t], choice.arm, float(y[t]), rng, kind in EXTREME)
        require_sound(state)


@pytest.mark.parametrize("name", POLICIES)
def test_columns_beyond_the_limit_are_refused(name: str) -> None:
    """An offset of 1e9 in a column leaves too few digits: it is refused by name, and nothing changes."""
    policy, rng = POLICIES[name](2, 2), np.random.default_rng(0)
    state = policy.update(policy.init(), np.ones(2), 0, 1.0, rng)
    before = bits(state)
    with pytest.raises(InvalidArgument, match="context must be of length at most 1e"):
        policy.update(state, np.array([1e9, 1.0]), 0, 1.0, rng)
    with pytest.raises(InvalidArgument, match="context must be of length at most 1e"):
        policy.choose(state, np.array([1e9, 1.0]), rng)
    assert bits(state) == before
