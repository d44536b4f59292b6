"""The one place that compiles.

`kernel` compiles a function and keeps it on disk (`_cache.py`).  `plain` gives the uncompiled twin of a kernel.
`rng_handle` hands a NumPy generator to kernels by the addresses of its C functions: Numba's own unboxing of a Generator
takes 9 microseconds, this takes 0.1, and the numbers drawn are the same, compiled or not.
"""

import ctypes
import types as python_types
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic, lower_builtin, overload, type_callable
from numpy.typing import NDArray

from polyarm.errors import require_generator
from polyarm.kernels._compiler import KernelDispatcher
from polyarm.types import Rng

Function = TypeVar("Function", bound=Callable[..., Any])

HANDLES_KEPT = 256


def kernel(function: Function) -> Function:
    """Compile a top-level function on first call and cache it on disk."""
    return _compiled(function, forceinline=False, _nrt=True)


def inlined(function: Function) -> Function:
    """A kernel for the inside of a hot loop: copied into its caller, without reference counts: it must neither allocate
    nor return arrays.

    Counting references of a dozen arrays took 200 of the 380 ns of a Gibbs move.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def no_refcount(function: Function) -> Function:
    """The hot loop itself: as `inlined`, but a function of its own."""
    return _compiled(function, forceinline=False, _nrt=False)


def expanded(function: Function) -> Function:
    """Written out in every kernel that calls it: it may return what a function cannot, records within records."""
    return _compiled(function, forceinline=False, _nrt=True, inline="always")


def _compiled(function: Function, **options: bool | str) -> Function:
    if numba.config.DISABLE_JIT:
        return function
    compiled: Any = KernelDispatcher(function, targetoptions={"nopython": True, "error_model": "numpy", **options})
    return compiled


def trusted(compiled: Function) -> Function:
    """The kernel, to be called without a look at the types of its arguments, which takes 8 microseconds where they are
    records of a dozen arrays.

    For arguments that were checked, a float always being a float: the first call settles their types, and an array of
    another type would be read as if it were of that one.
    """
    return getattr(compiled, "trusted", compiled)


_twins: dict[int, Callable[..., Any]] = {}


def plain(compiled: Function) -> Function:
    """The uncompiled twin of a kernel; the kernels it calls are uncompiled too."""
    source = getattr(compiled, "py_func", None)
    if source is None:
        return compiled
    if id(compiled) not in _twins:
        scope = dict(source.__globals__)
        twin = python_types.FunctionType(source.__code__, scope, source.__name__, source.__defaults__)
        _twins[id(compiled)] = twin
        for name in source.__code__.co_names:
            if hasattr(scope.get(name), "py_func"):
                scope[name] = plain(scope[name])
    return _twins[id(compiled)]  # type: ignore[return-value]


RngHandle = NDArray[np.uintp] | Rng
_handles: dict[int, tuple[Any, NDArray[np.uintp]]] = {}
_latest: tuple[Any, Any] = object(), None  # a generator and its handle


def rng_handle(rng: Rng) -> RngHandle:
    """The generator as kernels take it: addresses of its state and of its C functions."""
    global _latest
    latest, handle = _latest
    if latest is not rng:
        handle = _handle_of(rng)
        _latest = rng, handle
    return handle


def _handle_of(rng: Rng) -> RngHandle:
    bits = (rng if type(rng) is np.random.Generator else require_generator(rng)).bit_generator
    known = _handles.get(id(bits))
    if known is not None and known[0] is bits:
        return known[1]
    if numba.config.DISABLE_JIT:
        return rng
    interface: Any = bits.ctypes
    address = np.array(
        [interface.state_address]
        + [
            ctypes.cast(function, ctypes.c_void_p).value
            for function in (interface.next_uint64, interface.next_uint32, interface.next_double)
        ],
        dtype=np.uintp,
    )
    while len(_handles) >= HANDLES_KEPT:  # again while other threads dropped the same one
        _handles.pop(list(_handles)[0], None)  # noqa: RUF015  one step each, so that threads cannot come between
    _handles[id(bits)] = (bits, address)  # holding `bits` keeps its address from being used again
    return address


def rng_from(handle: RngHandle) -> Rng:
    """Inside a kernel: the generator behind a handle."""
    return handle  # type: ignore[return-value]


_BIT_GENERATOR = types.NumPyRandomBitGeneratorType("bit_generator")
_GENERATOR = types.NumPyRandomGeneratorType("rng")


@intrinsic  # type: ignore[untyped-decorator]
def _generator_at(typing: Any, state: Any, next_uint64: Any, next_uint32: Any, next_double: Any) -> Any:
    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = cgutils.create_struct_proxy(_BIT_GENERATOR)(context, builder)
        bits.state_address = bits.state = arguments[0]
        bits.fnptr_next_uint64, bits.fnptr_next_uint32, bits.fnptr_next_double = arguments[1:]
        rng = cgutils.create_struct_proxy(_GENERATOR)(context, builder)
        rng.bit_generator = bits._getvalue()
        return rng._getvalue()

    return _GENERATOR(*[types.uintp] * 4), code


@overload(rng_from)  # type: ignore[untyped-decorator]
def _compiled_rng_from(handle: Any) -> Any:
    def opened(handle: Any) -> Any:
        return _generator_at(handle[0], handle[1], handle[2], handle[3])

    def given(handle: Any) -> Any:
        return handle

    return opened if isinstance(handle, types.Array) else given


def record_at(values: NDArray[np.float64], layout: np.dtype[Any]) -> Any:
    """The numbers of an array by the names of a layout: what is written there is written to the array."""
    return values.view(layout)[0]


@type_callable(record_at)  # type: ignore[untyped-decorator]
def _type_of_record(_context: Any) -> Any:
    return lambda _values, layout: layout.dtype


@lower_builtin(record_at, types.Array, types.DType)  # type: ignore[untyped-decorator]
def _pointer_to_record(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    values = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(values.data, context.get_value_type(signature.return_type))
