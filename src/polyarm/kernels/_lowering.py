"""How a kernel becomes LLVM's language, in fewer words than Numba needs.

Numba takes every record apart into its numbers where it is handed to a function, and puts it together again there: a
third of all that it wrote.  Parts lend each other records: a part is told where a record is, and reads the fields it
needs.  An element of an array is read and written by its place alone, which counts from the front: no kernel may count
from the end of an array by a number that it computes.
"""

from typing import Any

from llvmlite import ir
from llvmlite.ir.values import ArgumentAttributes
from numba.core import cgutils, config
from numba.core.callconv import RETCODE_OK, CPUCallConv, errcode_t, excinfo_ptr_t
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.imputils import impl_ret_new_ref
from numba.core.ir import UNDEFINED, Expr
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering
from numba.core.types import (  # type: ignore[attr-defined]
    Array,
    BaseTuple,
    Integer,
    IntegerLiteral,
    NamedTupleClass,
    NoneType,
    Omitted,
    Optional,
    Pair,
    RangeIteratorType,
    RangeType,
    float64,
    int64,
    uint64,
)

DATA, SHAPE = 4, 5  # fields of Numba's arrays
NOT_KEPT = next(word for word in ("captures(none)", "nocapture") if word in ArgumentAttributes._known)  # newer, older
GIVING = ("call", "binop", "inplace_binop", "unary")
FIELDS = ("getattr", "static_getitem")
LOOPS = ("getiter", "iternext", "pair_first", "pair_second")


class PartConv(CPUCallConv):  # type: ignore[misc]
    """How parts are called: as Numba's functions are, with arrays as one argument each and records by their place."""

    def get_function_type(self, restype: Any, argtypes: Any) -> Any:
        """LLVM's type of a part."""
        given = [self._type_of(kind) for kind in argtypes if not isinstance(kind, Omitted)]
        return ir.FunctionType(errcode_t, [self.get_return_type(restype), ir.PointerType(excinfo_ptr_t), *given])

    def _type_of(self, kind: Any) -> Any:
        """LLVM's type of an argument."""
        plain = self.context.get_value_type(kind)
        return ir.PointerType(plain) if is_lent(kind) else plain

    def decode_arguments(self, builder: Any, argtypes: Any, func: Any) -> list[Any]:
        """The values of the arguments within a part."""
        given = iter(self.get_arguments(func))
        return [None if isinstance(kind, Omitted) else self._opened(builder, kind, next(given)) for kind in argtypes]

    def _opened(self, builder: Any, kind: Any, given: Any) -> Any:
        """The value of an argument."""
        return builder.load(given) if is_lent(kind) else given

    def _get_arg_packer(self, argtypes: Any) -> "Whole":
        return Whole(argtypes)

    def declare(self, module: Any, described: Any) -> Any:
        """The part in a module that calls it or defines it."""
        kind = self.get_function_type(described.restype, described.argtypes)
        function = cgutils.get_or_insert_function(module, kind, described.mangled_name)
        self.decorate_function(function, described.args, described.argtypes)
        given = [kind for kind in described.argtypes if not isinstance(kind, Omitted)]
        for argument, kind in zip(self.get_arguments(function), given, strict=True):
            if is_lent(kind):
                argument.attributes.update(("noalias", "readonly", NOT_KEPT))  # `add` refuses what it does not know
        return function


class PartContext(CPUContext):  # type: ignore[misc]
    """Where Python's way into a part is written."""

    @property
    def call_conv(self) -> PartConv:
        """How parts are called."""
        return PartConv(self)


def calling_parts(context: CPUContext, returned: Any) -> PartContext:
    """The same context, but what is called is a part; where it returns no array, it borrows those it is given."""
    made = context.subtarget()
    made.__class__ = PartContext
    made.enable_nrt = is_counted(context, returned)
    return made


class Whole:
    """Arguments as they are, records by their place."""

    def __init__(self, argtypes: Any) -> None:
        self.argtypes = argtypes

    def as_arguments(self, builder: Any, values: Any) -> list[Any]:
        """Those that were given; a record that is nowhere yet is written down."""
        given = [
            (value, is_lent(kind))
            for value, kind in zip(values, self.argtypes, strict=True)
            if not isinstance(kind, Omitted)
        ]
        places = [place_of(builder, value) if lent else value for value, lent in given]
        for at, (value, _) in enumerate(given):
            if places[at] is None:
                places[at] = cgutils.alloca_once(builder, value.type)
                builder.store(value, places[at])
        return places

    def assign_names(self, _arguments: Any, _names: Any) -> None:
        """None are needed."""


def is_lent(kind: Any) -> bool:
    """Whether an argument of this type is handed over by its place."""
    return isinstance(kind, BaseTuple)


def place_of(builder: Any, value: Any) -> Any:
    """Where a value was read from, if nothing was written since."""
    if not isinstance(value, ir.LoadInstr):
        return None
    for instruction in reversed(builder.block.instructions):
        if instruction is value:
            return value.operands[0]
        if isinstance(instruction, (ir.StoreInstr, ir.CallInstr)):
            break
    return None


def call_of_part(described: Any, library: Any) -> Any:
    """What other functions do to call a part."""
    if isinstance(described.restype, Optional):
        raise TypeError(f"the kernel {described.qualname} must always return a value, or never")

    def call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention = PartConv(context)
        part = convention.declare(builder.module, described)
        nothing = isinstance(described.restype, NoneType)
        result = cgutils.alloca_once(builder, convention.get_return_type(described.restype).pointee)
        failure = convention._get_excinfo_argument(builder.function)
        given = Whole(described.argtypes).as_arguments(builder, values)
        code = builder.call(part, [result, failure, *given])
        with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, RETCODE_OK)):
            builder.ret(code)
        if nothing:
            return context.get_dummy_value()
        returned = context.get_returned_value(builder, described.restype, builder.load(result))
        return impl_ret_new_ref(context, builder, described.restype, returned)

    call.signature = described.argtypes  # type: ignore[attr-defined]
    call.libs = (library,)  # type: ignore[attr-defined]
    return call


class KernelLower(Lower):  # type: ignore[misc]
    """Numba's own, with parts that take whole records and plain ways to elements of arrays."""

    @property
    def call_conv(self) -> PartConv:
        """How this part is called."""
        return PartConv(self.context)

    def setup_function(self, fndesc: Any) -> None:
        """Begin the part."""
        self.function = self.call_conv.declare(self.module, fndesc)
        if self.library.inline:
            self.function.attributes.add("alwaysinline")
        self.entry_block = self.function.append_basic_block("entry")
        self.builder = ir.IRBuilder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """An element of an array, or whatever else is asked for."""
        place = self._place(value.name, index.name)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        kind = self.typeof(value.name).dtype
        return self.context.cast(self.builder, self.builder.load(place), kind, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Write an element of an array, or whatever else is asked for."""
        place = self._place(target_var.name, index_var.name)
        if place is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        kind = self.typeof(target_var.name).dtype
        value = self.context.cast(self.builder, self.loadvar(value_var.name), self.typeof(value_var.name), kind)
        return self.builder.store(value, place)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """A sum, a product, a comparison: Numba would look for what it does among all meanings of the operator."""
        if expr.static_lhs is not UNDEFINED or expr.static_rhs is not UNDEFINED:
            return super().lower_binop(resty, expr, op)
        typing, wanted = self.context.typing_context, self.fndesc.calltypes[expr]
        function = typing.resolve_value_type(op)
        values = [
            self.context.cast(self.builder, self.loadvar(side.name), self.typeof(side.name), kind)
            for side, kind in zip((expr.lhs, expr.rhs), wanted.args, strict=True)
        ]
        meant = self.context.get_function(function, typing.resolve_function_type(function, wanted.args, {}))
        return self.context.cast(self.builder, meant(self.builder, values), wanted.return_type, resty)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """The value of an expression; a field of a record and a loop that counts up by one take a few words."""
        kind = self.typeof(expr.value.name) if expr.op in (*LOOPS, *FIELDS) else None
        if isinstance(kind, BaseTuple) and expr.op in FIELDS and not self._is_counted(expr.value.name):
            field = kind.fields.index(expr.attr) if expr.op == "getattr" else expr.index
            if isinstance(field, int) and field >= 0:
                return self.context.cast(self.builder, self._field(expr.value.name, field), kind[field], resty)
        if isinstance(kind, RangeType) and self._counts_by_one(expr.value):
            return self._counter(kind, resty, self.loadvar(expr.value.name))
        if isinstance(kind, RangeIteratorType):
            return self._counted(resty, self.loadvar(expr.value.name))
        if isinstance(kind, Pair):
            return self.builder.extract_value(self.loadvar(expr.value.name), int(expr.op == "pair_second"))
        return super().lower_expr(resty, expr)

    def _counts_by_one(self, variable: Any) -> bool:
        """Whether the range was made of a start and an end alone."""
        made = self.func_ir._definitions[variable.name]
        return len(made) == 1 and isinstance(made[0], Expr) and made[0].op == "call" and len(made[0].args) < 3

    def _counter(self, kind: Any, counting: Any, span: Any) -> Any:
        """Begin to count: Numba's iterator, which holds where it keeps the number and how many are left."""
        builder = self.builder
        start, stop, step = (builder.extract_value(span, field) for field in range(3))
        number, left = (cgutils.alloca_once(builder, start.type) for _ in range(2))
        size = builder.sub(stop, start)
        nothing = ir.Constant(size.type, 0)
        builder.store(start, number)
        builder.store(builder.select(builder.icmp_signed(">", size, nothing), size, nothing), left)
        return self._filled(counting, (number, stop, step, left))

    def _counted(self, pair: Any, counting: Any) -> Any:
        """The next number, and whether there was one."""
        builder = self.builder
        at, step, left_at = (builder.extract_value(counting, field) for field in (0, 2, 3))
        number, left = builder.load(at), builder.load(left_at)
        more = builder.icmp_signed(">", left, ir.Constant(left.type, 0))
        builder.store(builder.add(number, step), at)
        builder.store(builder.sub(left, ir.Constant(left.type, 1), flags=["nsw"]), left_at)
        return self._filled(pair, (number, more))

    def _filled(self, kind: Any, values: Any) -> Any:
        """A structure of these values."""
        made = ir.Constant(self.context.get_value_type(kind), ir.Undefined)
        for field, value in enumerate(values):
            made = self.builder.insert_value(made, value, field)
        return made

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Set a variable; the old value of a number needs no farewell."""
        if self._is_borrowed(value, name, argidx):
            self._singly_assigned_vars.discard(name)
            self.varmap[name] = value.operands[0]
            return
        if self._is_counted(name):
            super().storevar(value, name, argidx)
            return
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars and not self._disable_sroa_like_opt:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Room for a variable; Numba would also find out its size, for debuggers."""
        return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)

    def _is_borrowed(self, value: Any, name: str, argidx: Any) -> bool:
        """Whether a variable is an argument as it was handed over, and stays so."""
        return (
            argidx is not None
            and isinstance(value, ir.LoadInstr)
            and len(self.func_ir._definitions[name]) == 1
            and not self._is_counted(name)
        )

    def delvar(self, name: str) -> None:
        """Leave a variable; a number is merely forgotten."""
        if self._is_counted(name):
            super().delvar(name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)

    def _is_counted(self, name: str) -> bool:
        """Whether references to what a variable holds are counted."""
        return bool(self.context.enable_nrt) and is_counted(self.context, self.typeof(name))

    def _field(self, name: str, *path: int) -> Any:
        """A field of a variable, read by itself where the variable is kept in memory."""
        if name in self._blk_local_varmap:
            return self.builder.extract_value(self._blk_local_varmap[name], path)
        steps = [ir.Constant(ir.IntType(32), step) for step in (0, *path)]
        return self.builder.load(self.builder.gep(self.getvar(name), steps, inbounds=True))

    def _place(self, array: str, index: str) -> Any:
        """Where an element is, if one is meant."""
        kind, at = self.typeof(array), self.typeof(index)
        ats = tuple(at) if isinstance(at, BaseTuple) else (at,)
        if not is_plain_array(kind) or len(ats) != kind.ndim or not all(map(is_place, ats)):
            return None
        builder, given = self.builder, self.loadvar(index)
        values = cgutils.unpack_tuple(builder, given) if isinstance(at, BaseTuple) else [given]
        places = [self.context.cast(builder, value, one, int64) for value, one in zip(values, ats, strict=True)]
        if config.BOUNDSCHECK:
            self._require_front(places)
            return None  # Numba looks at the other end
        place = places[0]
        for axis in range(1, kind.ndim):
            size = self._field(array, SHAPE, axis)
            place = builder.add(builder.mul(place, size), places[axis])
        return builder.gep(self._field(array, DATA), [place])

    def _require_front(self, places: Any) -> None:
        """Raise in a kernel that counts from the end."""
        for place in places:
            below = self.builder.icmp_signed("<", place, ir.Constant(place.type, 0))
            with cgutils.if_unlikely(self.builder, below):
                self.call_conv.return_user_exc(self.builder, IndexError, ("a place below 0",))


def is_plain_array(kind: Any) -> bool:
    """Whether it is a contiguous array of numbers of 64 bits."""
    return isinstance(kind, Array) and kind.layout == "C" and kind.dtype in (float64, int64, uint64)


def is_place(kind: Any) -> bool:
    """Whether it is a number that counts from the front."""
    return isinstance(kind, Integer) and not (isinstance(kind, IntegerLiteral) and kind.literal_value < 0)


def is_counted(context: CPUContext, kind: Any) -> bool:
    """Whether references to values of a type are counted: arrays, and what holds them."""
    return bool(context.data_model_manager[kind].contains_nrt_meminfo())


def may_own(state: Any) -> bool:
    """Whether a function returns an array, or is given one by what it calls."""
    given = (
        signature.return_type
        for expr, signature in state.calltypes.items()
        if isinstance(expr, Expr) and expr.op in GIVING and signature is not None
        if not (expr.op == "call" and isinstance(state.typemap[expr.func.name], NamedTupleClass))
    )
    return any(is_counted(state.targetctx, kind) for kind in (state.return_type, *given))


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(BaseNativeLowering):  # type: ignore[misc]
    """The pass that writes LLVM's language."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        """Write a part; where it neither makes nor returns arrays, without counting references to them."""
        if state.targetctx.enable_nrt and not may_own(state):
            state.targetctx.enable_nrt = False  # of this compilation alone
        return bool(super().run_pass(state))

    @property
    def lowering_class(self) -> type[KernelLower]:
        """What it writes with."""
        return KernelLower
