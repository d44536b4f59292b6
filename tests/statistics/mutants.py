"""Planted bugs: twins of the sampler with one function replaced, plain or compiled, and states built by hand."""

import types as python_types
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numba.core.caching import NullCache

from polyarm.inference import GibbsEngine
from polyarm.inference.gibbs import GibbsState, with_room_for_component
from polyarm.kernels._compiler import KernelDispatcher
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import component, gibbs
from polyarm.kernels.mixture.hyperparameters import rate_rewards
from polyarm.kernels.mixture.records import Arm, Room, arm_of, room_for
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


def quick_mutant(kernel: Any, replaced: Mapping[str, Any]) -> Callable[..., Any]:
    """The same with every kernel that calls none of the named functions left compiled."""
    return mutant(kernel, {**dict(sound(kernel, replaced)), **replaced})


def compiled_mutant(kernel: Any, replaced: Mapping[str, Any]) -> Callable[..., Any]:
    """The twin itself compiled: a second or two, less than thousands of plain steps take; planted functions too."""
    if not hasattr(kernel, "py_func"):
        return mutant(kernel, replaced)
    options = {"nopython": True, "error_model": "numpy", "forceinline": False, "_nrt": True}
    functions = {name: f for name, f in replaced.items() if isinstance(f, python_types.FunctionType)}
    planted = {name: unkept(function, options) for name, function in functions.items()}
    twin: Callable[..., Any] = compiled_twin(kernel, {**replaced, **planted}, {})
    return twin


def compiled_twin(kernel: Any, planted: Mapping[str, Any], made: dict[Any, Any]) -> Any:
    """A kernel compiled anew, with every kernel beneath it that calls one of the planted functions."""
    source = kernel.py_func
    if source not in made:
        scope = dict(source.__globals__)
        for name in source.__code__.co_names:
            if name in planted:
                scope[name] = planted[name]
            elif is_kernel(scope.get(name)) and reaches(scope[name], planted):
                scope[name] = compiled_twin(scope[name], planted, made)
        twin = python_types.FunctionType(source.__code__, scope, source.__name__, source.__defaults__)
        twin.__qualname__ = f"planted_{source.__qualname__}"  # or the linker may take a kernel read from disk for it
        made[source] = unkept(twin, kernel.targetoptions)
    return made[source]


def unkept(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """A kernel that is not kept on disk, where a twin would be taken for what it is a twin of."""
    compiled: Any = KernelDispatcher(function, targetoptions=dict(options))
    compiled._cache = NullCache()
    return compiled


def sound(kernel: Any, replaced: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and kernels, however deep they are called, beneath which nothing is replaced."""
    source = getattr(kernel, "py_func", kernel)
    for name in source.__code__.co_names:
        callee = source.__globals__.get(name)
        if name in replaced or not is_kernel(callee):
            continue
        if reaches(callee, replaced):
            yield from sound(callee, replaced)
        elif getattr(callee, "targetoptions", {}).get("inline") != "always":  # which only other kernels can call
            yield name, callee


def reaches(kernel: Any, names: Container[str]) -> bool:
    """Whether a kernel calls one of the named functions, however deep."""
    source = getattr(kernel, "py_func", kernel)
    called = source.__code__.co_names
    return any(name in names or (is_kernel(f := source.__globals__.get(name)) and reaches(f, names)) for name in called)


def is_kernel(value: object) -> bool:
    """Whether it is one of our kernels, compiled or, with NUMBA_DISABLE_JIT, not."""
    if hasattr(value, "py_func"):
        return True
    module = value.__module__ if isinstance(value, python_types.FunctionType) else ""
    return module.startswith("polyarm.kernels.") and not module.endswith(("._jit", ".lanes"))


def diagonal_residuals(T: Array, n_used: int, data: Array, r: int, s: Array, e: Array) -> None:
    """The authors' einsum: only the diagonal of V enters x'Vx."""
    d = data.shape[1] - 2
    for k in range(n_used):
        s[k], e[k] = 1.0, data[r, d]
        p = component.MEAN + d
        for j in range(d):
            e[k] -= data[r, j] * T[component.MEAN + j, k]
            for i in range(j + 1):
                s[k] += (data[r, i] * T[p, k]) ** 2
                p += 1


def score_without_discount(arm: Arm, i: int, room: Room) -> None:
    """The new component's weight without its discount: concentration instead of concentration + K discount."""
    gibbs.score(arm, i, room)
    room.logw[arm.size[0]] = np.log(arm.process[2]) + arm.data[i, -1]


def kept_log_weight(arm: Arm, k: int, i: int, spare: int, s: float, e: float) -> float:
    """Weight of a reward for its own component with the reward still in it."""
    T, a = arm.components, arm.process[0] + 0.5 * arm.components[component.COUNT, k]
    return float(component.log_predictive(T[component.COEF, k], a, T[component.SCALE, k], s, e))


def arm_and_room(engine: GibbsEngine, state: GibbsState) -> tuple[Arm, Room]:
    """The first arm as kernels take it, and room for its moves."""
    arm = plain(arm_of)(engine._books(state, 0), 0)
    return arm, plain(room_for)(arm)


def seated(engine: GibbsEngine, X: Array, y: Array, labels: Sequence[int] | IntArray) -> GibbsState:
    """A state in which the rewards of arm 0 have these labels; the engine takes it without a check."""
    n, prior = len(y), engine._prior
    z = np.array(labels, dtype=np.int64)
    data = np.column_stack([X, y, np.zeros(n)])
    rate_rewards(data, n, prior.columns[0], prior.processes[0, 0])
    state = engine.init()
    while z.max() + 3 > state.tables.shape[2]:
        state = with_room_for_component(state, prior.sqrt_information)
    K = int(z.max()) + 1
    state.tables[0, :, :K] = prior.columns[0][:, None]
    state.sizes[0] = K, n, n, n
    engine._door.last = state = state._replace(data=(data, *state.data[1:]), seats=(z, *state.seats[1:]))
    gibbs.rebuild_components(engine._books(state, 0), 0)
    return state


def weights_of_move(state: GibbsState, engine: GibbsEngine, i: int) -> tuple[Array, int, bool]:
    """Log weights that a move of reward i draws from, the slot it sits in, and whether it sits there alone."""
    caught: list[Array] = []

    def catch(logw: Array, size: int, rng: Any) -> int:
        caught.append(logw[:size].copy())
        return int(state.labels[0, 1][state.seats[0][i]])

    arm, room = arm_and_room(engine, state)
    mutant(gibbs.move, {"draw_index": catch})(arm, i, room, np.random.default_rng(0))
    k0 = int(arm.slot[arm.z[i]])
    return caught[0], k0, bool(arm.components[component.COUNT, k0] == 1)
