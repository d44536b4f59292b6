"""Planted bugs: plain twins of the sampler with one function replaced, and states built by hand."""

import types as python_types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyarm.inference import GibbsEngine
from polyarm.inference.gibbs import GibbsState, with_room_for_component
from polyarm.kernels import component, gibbs
from polyarm.kernels._jit import plain
from polyarm.types import Array, IntArray


def mutant(kernel: Any, replaced: Mapping[str, Any]) -> Callable[..., Any]:
    """The uncompiled twin of a kernel in which the named functions are replaced, however deep they are called."""
    source = getattr(kernel, "py_func", kernel)
    scope = dict(source.__globals__)
    for name in source.__code__.co_names:
        if name in replaced:
            scope[name] = replaced[name]
        elif is_kernel(scope.get(name)):
            scope[name] = mutant(scope[name], replaced)
    return python_types.FunctionType(source.__code__, scope, source.__name__, source.__defaults__)


def is_kernel(value: object) -> bool:
    """Whether it is one of our kernels, compiled or, with NUMBA_DISABLE_JIT, not."""
    if hasattr(value, "py_func"):
        return True
    module = value.__module__ if isinstance(value, python_types.FunctionType) else ""
    return module.startswith("polyarm.kernels.") and not module.endswith("._jit")


def diagonal_residuals(T: Array, n_places: int, data: Array, r: int, s: Array, e: Array) -> None:
    """The authors' einsum: only the diagonal of V enters x'Vx."""
    d = data.shape[1] - 2
    x = data[r, :d]
    for k in range(n_places):
        M = np.zeros((d, d))
        M.T[np.tril_indices(d)] = T[component.MEAN + d :, k]
        s[k] = 1.0 + x**2 @ np.sum(M**2, axis=1)
    e[:n_places] = data[r, d] - x @ T[component.MEAN : component.MEAN + d, :n_places]


def score_without_discount(
    T: Array, size: IntArray, law: Array, data: Array, i: int, logw: Array, s: Array, e: Array
) -> None:
    """The new table's weight without its discount: concentration instead of concentration + K discount."""
    plain(gibbs.score)(T, size, law, data, i, logw, s, e)
    logw[size[0]] = np.log(law[2]) + data[i, -1]


def kept_log_weight(
    T: Array,
    k: int,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: Array,
    n: int,
    i: int,
    spare: int,
    s: float,
    e: float,
) -> float:
    """Weight of a reward for its own component with the reward still in it."""
    a = law[0] + 0.5 * T[component.COUNT, k]
    return float(plain(component.log_predictive)(T[component.COEF, k], a, T[component.SCALE, k], s, e))


def seated(engine: GibbsEngine, X: Array, y: Array, labels: Sequence[int] | IntArray) -> GibbsState:
    """A state in which the rewards of arm 0 have these labels."""
    n, prior = len(y), engine._prior
    z = np.array(labels, dtype=np.int64)
    data = np.column_stack([X, y, np.zeros(n)])
    for i in range(n):
        data[i, -1] = component.prior_log_predictive(prior.columns[0], prior.laws[0, 0], data, i)
    state = engine.init()
    while z.max() + 3 > state.tables.shape[2]:
        state = with_room_for_component(state, prior.roots)
    for k in range(int(z.max()) + 1):
        gibbs.open_place(state.tables[0], state.labels[0, 0], state.labels[0, 1], state.sizes[0], prior.columns[0])
        component.rebuild(state.tables[0], k, prior.columns[0], prior.roots[0, 0], data, z, n, k, -1)
        component.cache_constants(state.tables[0], k, prior.laws[0, 0], prior.laws[0, 3])
    state.sizes[0, 1:] = n
    return state._replace(data=(data, *state.data[1:]), seats=(z, *state.seats[1:]))


def weights_of_move(state: GibbsState, engine: GibbsEngine, i: int) -> tuple[Array, int, bool]:
    """Log weights that a move of reward i draws from, the place it sits at, and whether it sits there alone."""
    caught: list[Array] = []

    def catch(logw: Array, size: int, rng: Any) -> int:
        caught.append(logw[:size].copy())
        return int(state.labels[0, 1][state.seats[0][i]])

    T, (label, place), size = state.tables[0], state.labels[0], state.sizes[0]
    capacity = T.shape[1]
    scratch = [np.empty(capacity), np.empty(capacity), np.empty(capacity), np.empty(engine.context_dim)]
    prior = engine._prior
    mutant(gibbs.move, {"draw_index": catch})(
        T,
        label,
        place,
        size,
        prior.columns[0],
        prior.roots[0],
        prior.laws[0],
        state.data[0],
        state.seats[0],
        i,
        *scratch,
        np.random.default_rng(0),
    )
    k0 = int(place[state.seats[0][i]])
    return caught[0], k0, bool(T[component.COUNT, k0] == 1)
