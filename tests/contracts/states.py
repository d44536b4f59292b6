"""What the contracts do with states: feed them, and look at every bit of them."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from polyarm.errors import PolyarmError
from polyarm.inference.beta import BetaEngine
from polyarm.inference.hurdle import HurdleEngine
from polyarm.inference.state_file import leaves
from polyarm.types import AnyEngine, AnyPolicy, Array, Rng


def bits(state: Any) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Type, shape and bytes of every array and number of a state, by path."""
    arrays = {path: np.asarray(value) for path, value in leaves(state)}
    return {path: (a.dtype.str, a.shape, a.tobytes()) for path, a in arrays.items()}


def position(rng: Rng) -> str:
    """Where a generator stands in its stream."""
    return str(rng.bit_generator.state)


def rewards(n: int, dim: int, n_arms: int, seed: int) -> list[tuple[Array, int, float]]:
    """N contexts, arms and rewards; each arm's rewards lie on two lines."""
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((n, dim))
    arms = rng.integers(n_arms, size=n)
    values = (1 + arms) * contexts[:, 0] * rng.choice([-1.0, 1.0], n) + 0.3 * rng.standard_normal(n)
    return [(x, int(arm), float(y)) for x, arm, y in zip(contexts, arms, values, strict=True)]


def suited(learner: Any, reward: float) -> float:
    """The reward made one of the kind that a specialist takes; any other learner takes it as it is."""
    while hasattr(learner, "engine"):
        learner = learner.engine
    if isinstance(learner, HurdleEngine) and learner.amounts != "normal":
        return max(reward, 0.0)
    family = getattr(learner, "family", "logistic" if isinstance(learner, BetaEngine) else "")
    size = float(np.floor(abs(reward)))
    kinds = {"logistic": float(reward > 0), "ordinal": 1 + min(size, 4.0), "poisson": size, "gamma": abs(reward) + 0.01}
    kinds["windfalls"] = reward + 1000.0 * (reward > 1.5)
    kinds["counts"] = float(np.floor(min(3 * abs(reward), 1e100)))
    return kinds.get(family, reward)


def fed(learner: AnyEngine | AnyPolicy, data: list[tuple[Array, int, float]], rng: Rng, state: Any = None) -> Any:
    """State of an engine or a policy after these rewards."""
    state = learner.init() if state is None else state
    for x, arm, y in data:
        state = learner.update(state, x, arm, suited(learner, y), rng)
    return state


def refusal(act: Callable[[], Any]) -> str:
    """What an act is refused with, empty where it is not; any other failure goes on."""
    try:
        act()
    except PolyarmError as error:
        return str(error)
    return ""


def refuses(learner: AnyEngine | AnyPolicy, state: Any, what: str, calls: dict[str, tuple[Any, Any, Any]]) -> None:
    """Check that updates with these contexts, arms and rewards raise by name and leave state and generator alone."""
    rng = np.random.default_rng(0)
    before = bits(state), position(rng)
    for kind, call in calls.items():
        said = refusal(partial(learner.update, state, *call, rng))
        assert re.search(f"{what} must be .*, got ", said), (kind, said)
        assert (bits(state), position(rng)) == before, kind


BAD_CONTEXTS: dict[str, Any] = {
    "nan": [np.nan, 1.0],
    "infinite": [np.inf, 1.0],
    "array with nan": np.array([1.0, np.nan]),
    "array with infinity": np.array([-np.inf, 1.0]),
    "short": [1.0],
    "long": np.ones(3),
    "matrix": np.ones((1, 2)),
    "number": 1.0,
    "nothing": None,
    "text": ["a", "b"],
    "ragged": [[1.0], [1.0, 2.0]],
    "complex": np.array([1.0 + 1j, 2.0]),
    "huge": np.array([1e9, 0.0]),
    "overflowing": np.array([1e200, 1e200]),
    "masked": np.ma.masked_array([1.0, 2.0], [False, True]),
    "masked entry": [1.0, np.ma.masked],
    "dates": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "a date": [np.datetime64("2020-01-01"), 1.0],
    "durations": np.array([1, 2], dtype="timedelta64[s]"),
    "beyond floats": [10**400, 1],
}
BAD_ARMS: dict[str, Any] = {
    "negative": -1,
    "too large": 3,
    "far too large": 2**70,
    "float": 1.0,
    "numpy float": np.float64(1.0),
    "nothing": None,
    "truth value": True,
    "text": "0",
    "vector": np.array([0, 1]),
    "type": int,
}
BAD_REWARDS: dict[str, Any] = {
    "nan": np.nan,
    "infinite": np.inf,
    "minus infinity": -np.inf,
    "1e300": 1e300,
    "beyond floats": 10**400,
    "nothing": None,
    "text": "high",
    "complex": 1j,
    "vector": np.array([1.0, 2.0]),
    "masked": np.ma.masked,
    "date": np.datetime64("2020-01-01"),
    "duration": np.timedelta64(3, "s"),
}
BAD_GENERATORS: dict[str, Any] = {
    "old generator": np.random.RandomState(0),
    "seed": 7,
    "nothing": None,
    "module": np.random,
    "class": np.random.Generator,
}
