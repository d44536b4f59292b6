"""Four numbers at a time: what processors work on as one.

Components stand side by side in their tables, so that a row holds one number of each: `load` takes those of four at
once.  Sums, products, quotients and roots are rounded in each lane as if it were alone: a loop over lanes
gives what a loop over numbers gives, to the last bit.  Uncompiled, lanes are arrays of four.

Lanes that stand for no component hold anything, even no number at all: `within` keeps them out of what is written.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model
from numpy.typing import NDArray

from polyarm.kernels._jit import kernel
from polyarm.types import Array

LANES = 4
Lanes = NDArray[np.float64]
Bits = NDArray[np.int64]


@kernel
def whole(n: int) -> int:
    """The next multiple of LANES."""
    return (n + LANES - 1) // LANES * LANES


def splat(x: float) -> Lanes:
    """The same number in every lane."""
    return np.full(LANES, x)


def load(numbers: Array, *at: int) -> Lanes:
    """Four numbers from a place on, or the four of a place whose last index is left out."""
    return _from(numbers, at).copy()


def store(x: Lanes, numbers: Array, *at: int) -> None:
    """Write four numbers from a place on, as `load` reads them."""
    _from(numbers, at)[:] = x


def _from(numbers: Array, at: tuple[int, ...]) -> Array:
    if len(at) < numbers.ndim:
        return numbers[at]
    return numbers[at[:-1]][at[-1] : at[-1] + LANES]


def within(first: int, last: int, numbers: Lanes | float, others: Lanes | float) -> Lanes:
    """The numbers in lanes first to last - 1, the others in the rest."""
    lane = np.arange(LANES)
    return np.where((first <= lane) & (lane < last), numbers, others)


def where_less(a: Lanes | float, b: Lanes | float, numbers: Lanes | float, others: Lanes | float) -> Lanes:
    """The numbers in the lanes where a < b, the others in the rest."""
    return np.where(np.less(a, b), numbers, others)


def multiply_add(a: Lanes, b: Lanes | float, c: Lanes | float) -> Lanes:
    """The sums a b + c, rounded once where the processor can and twice where it cannot."""
    return a * b + c


def sqrt(x: Lanes) -> Lanes:
    """Square roots."""
    return np.sqrt(x)


def sum_of(x: Lanes) -> float:
    """Sum over the lanes, the first two first."""
    return float(((x[0] + x[1]) + x[2]) + x[3])


def bits_of(x: Lanes) -> Bits:
    """The bits of the numbers, as integers."""
    return x.view(np.int64)


def float_of(bits: Bits) -> Lanes:
    """The numbers of these bits."""
    return bits.view(np.float64)


class LanesType(types.Type):
    """Lanes as the compiler knows them: of floats, or of integers."""

    def __init__(self, dtype: Any, word: Any) -> None:
        super().__init__(name=f"Lanes({dtype})")
        self.dtype, self.vector = dtype, ir.VectorType(word, LANES)


FLOATS, INTEGERS = LanesType(types.float64, ir.DoubleType()), LanesType(types.int64, ir.IntType(64))
INDEX = ir.IntType(32)


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """A vector of the processor."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


def _spread(context: Any, builder: Any, value: Any, kind: Any, target: Any) -> Any:
    """The value as lanes, if it is a number."""
    if isinstance(kind, LanesType):
        return value
    blank = ir.Constant(target.vector, ir.Undefined)
    first = builder.insert_element(blank, context.cast(builder, value, kind, target.dtype), INDEX(0))
    return builder.shuffle_vector(first, blank, ir.Constant(ir.VectorType(INDEX, LANES), [0] * LANES))


def _register_operation(operation: Any, of_floats: str, of_integers: str) -> None:
    """Teach the compiler an operation on lanes, or on lanes and a number."""

    def generic(_template: Any, args: Any, _kws: Any) -> Any:
        lanes = [each for each in args if isinstance(each, LanesType)]
        fits = lanes and all(each == lanes[0] or isinstance(each, types.Number) for each in args)
        return signature(lanes[0], *args) if fits else None

    def code(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
        kind = signed.return_type
        a, b = (_spread(context, builder, v, t, kind) for v, t in zip(arguments, signed.args, strict=True))
        return getattr(builder, of_floats if kind == FLOATS else of_integers)(a, b)

    infer_global(operation)(type("OnLanes", (AbstractTemplate,), {"key": operation, "generic": generic}))
    for kinds in ((LanesType, LanesType), (LanesType, types.Number), (types.Number, LanesType)):
        lower_builtin(operation, *kinds)(code)


for _operations, _of_floats, _of_integers in (
    ((operator.add, operator.iadd), "fadd", "add"),
    ((operator.sub, operator.isub), "fsub", "sub"),
    ((operator.mul, operator.imul), "fmul", "mul"),
    ((operator.truediv, operator.itruediv), "fdiv", ""),
    ((operator.and_,), "", "and_"),
    ((operator.rshift,), "", "lshr"),  # of what is not negative: not every processor shifts the others
    ((operator.lshift,), "", "shl"),
):
    for _operation in _operations:
        _register_operation(_operation, _of_floats, _of_integers)


def _compiled(function: Any, result: Any) -> Callable[[Any], Any]:
    """Register the code of a function with the compiler."""

    def generic(_template: Any, args: Any, _kws: Any) -> Any:
        return signature(result, *args)

    infer_global(function)(type("OfLanes", (AbstractTemplate,), {"key": function, "generic": generic}))
    register: Callable[[Any], Any] = lower_builtin(function, types.VarArg(types.Any))  # type: ignore[attr-defined]
    return register


def _address(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
    """Where four numbers begin; the last index may be left out."""
    if kinds[0].layout != "C":
        raise TypeError("lanes need numbers that lie side by side")
    array = context.make_array(kinds[0])(context, builder, arguments[0])
    shape = cgutils.unpack_tuple(builder, array.shape)
    indices = [context.cast(builder, v, t, types.intp) for v, t in zip(arguments[1:], kinds[1:], strict=True)]
    at = indices[0]
    for axis in range(1, kinds[0].ndim):
        at = builder.mul(at, shape[axis] if axis < len(indices) else context.get_constant(types.intp, LANES))
        at = builder.add(at, indices[axis]) if axis < len(indices) else at
    if context.enable_boundscheck:  # as for single numbers, where Numba is asked to
        last = builder.sub(array.nitems, context.get_constant(types.intp, LANES))
        beyond = builder.or_(builder.icmp_signed("<", at, at.type(0)), builder.icmp_signed(">", at, last))
        with builder.if_then(beyond, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("lanes must lie within the array",))
    return builder.bitcast(builder.gep(array.data, [at]), FLOATS.vector.as_pointer())


@_compiled(load, FLOATS)
def _load(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
    return builder.load(_address(context, builder, signed.args, arguments), align=8)


@_compiled(store, types.none)
def _store(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
    x = _spread(context, builder, arguments[0], signed.args[0], FLOATS)
    builder.store(x, _address(context, builder, signed.args[1:], arguments[1:]), align=8)
    return context.get_dummy_value()


@_compiled(splat, FLOATS)
def _splat(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
    return _spread(context, builder, arguments[0], signed.args[0], FLOATS)


@_compiled(within, FLOATS)
def _within(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
    kinds = (INTEGERS, INTEGERS, FLOATS, FLOATS)
    parts = zip(arguments, signed.args, kinds, strict=True)
    first, last, numbers, others = (_spread(context, builder, *part) for part in parts)
    lane = ir.Constant(INTEGERS.vector, list(range(LANES)))
    inside = builder.and_(builder.icmp_signed("<=", first, lane), builder.icmp_signed("<", lane, last))
    return builder.select(inside, numbers, others)


@_compiled(where_less, FLOATS)
def _where_less(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
    parts = zip(arguments, signed.args, strict=True)
    a, b, numbers, others = (_spread(context, builder, value, kind, FLOATS) for value, kind in parts)
    return builder.select(builder.fcmp_ordered("<", a, b), numbers, others)


@_compiled(multiply_add, FLOATS)
def _multiply_add(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
    factors = [_spread(context, builder, v, t, FLOATS) for v, t in zip(arguments, signed.args, strict=True)]
    kind = ir.FunctionType(FLOATS.vector, [FLOATS.vector] * 3)
    return builder.call(builder.module.declare_intrinsic("llvm.fmuladd.v4f64", (), kind), factors)


@_compiled(sqrt, FLOATS)
def _sqrt(_context: Any, builder: Any, _signed: Any, arguments: Any) -> Any:
    root = builder.module.declare_intrinsic("llvm.sqrt.v4f64", (), ir.FunctionType(FLOATS.vector, [FLOATS.vector]))
    return builder.call(root, arguments)


@_compiled(sum_of, types.float64)
def _sum_of(_context: Any, builder: Any, _signed: Any, arguments: Any) -> Any:
    first, *others = (builder.extract_element(arguments[0], INDEX(lane)) for lane in range(LANES))
    for other in others:
        first = builder.fadd(first, other)
    return first


@_compiled(bits_of, INTEGERS)
def _bits_of(_context: Any, builder: Any, _signed: Any, arguments: Any) -> Any:
    return builder.bitcast(arguments[0], INTEGERS.vector)


@_compiled(float_of, FLOATS)
def _float_of(_context: Any, builder: Any, _signed: Any, arguments: Any) -> Any:
    return builder.bitcast(arguments[0], FLOATS.vector)
