"""Ways to break a state, and what an engine must do with the result: refuse it, or go on with finite numbers."""

from typing import Any

import numpy as np

from polyarm.errors import PolyarmError
from polyarm.inference.door import copied, named
from polyarm.inference.state_file import leaves
from polyarm.types import AnyEngine, Array, Rng
from tests.contracts.states import suited

BAD_FLOATS = (np.nan, np.inf, -np.inf, 1e300, -1e300, -1.0, 0.0, 1e-300, 1e30, 0.5)
BAD_INTS = (-1, -2, 1, 2, 3, 4, 15, 16, 17, 31, 32, 33, 64, 1000, -(2**62), 2**62, 2**31)


def replaced(state: Any, path: list[str], value: Any) -> Any:
    """The state with another value at a path."""
    if not path:
        return value
    if hasattr(state, "_fields"):
        return state._replace(**{path[0]: replaced(getattr(state, path[0]), path[1:], value)})
    at = int(path[0])
    return type(state)([*state[:at], replaced(state[at], path[1:], value), *state[at + 1 :]])


def broken_array(array: Array, rng: Rng) -> Any:
    """An array with something wrong: an entry, its kind of numbers, its length, or the way it lies in memory."""
    way = rng.integers(10)
    if way == 0:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(["float32", "int32", "complex128", "uint8", "object"]))
    if way == 1:
        return array[:-1].copy()
    if way == 2:
        return np.concatenate([array, array])
    if way == 3 and array.ndim > 1:
        return np.asfortranarray(array)
    if way == 4:
        return None
    if array.size:
        array = array.copy()
        bad = BAD_FLOATS if array.dtype.kind == "f" else BAD_INTS
        for _ in range(rng.integers(1, 3)):
            value = np.array(bad[rng.integers(len(bad))])
            array.flat[rng.integers(array.size)] = value.astype(array.dtype) if array.dtype.kind == "u" else value
    return array


def corrupted(state: Any, rng: Rng) -> Any:
    """A copy of a state with one of its arrays or numbers broken."""
    state = copied(state)
    paths = [path for path, _ in leaves(state)]
    path = paths[rng.integers(len(paths))].split(".")[1:]
    value = state
    for name in path:
        value = dict(named(value))[name]
    if isinstance(value, np.ndarray):
        return replaced(state, path, broken_array(value, rng))
    return replaced(state, path, rng.choice(np.array([-1, -(2**40), np.nan, np.inf])))


def survives(engine: AnyEngine, state: Any, rng: Rng) -> bool:
    """Whether an engine takes the state; if it does, everything that it answers must be finite."""
    x = rng.standard_normal(engine.context_dim)
    try:
        draws = engine.draw_means(state, x, 3, rng)
        means = engine.expected_means(state, x)
        for _ in range(8):
            reward = suited(engine, float(rng.standard_normal()))
            state = engine.update(state, x, int(rng.integers(engine.n_arms)), reward, rng)
        later = engine.draw_means(state, x, 3, rng)
    except PolyarmError:
        return False
    assert all(np.isfinite(values).all() for values in (draws, means, later)), "a broken state was taken"
    return True
