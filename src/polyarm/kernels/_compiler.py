"""How Numba compiles kernels: each once, as a part of whatever Python calls.

Numba by itself makes machine code and a wrapper for Python of every function, and optimises it again inside each of its
callers.  Here a function becomes a `Part`: code in LLVM's language that is linked into its callers as it is.  Only what
Python calls is optimised and made executable.  All parts are compiled under the same flags, because Numba compiles what
they use of its own (a gamma draw, `max`) anew for each set of flags.  `_lowering.py` writes the parts.  The numbers are
the same; the first decision of the default policy takes a third of the time.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from llvmlite.binding import Linkage, create_pass_builder, create_pipeline_tuning_options
from numba.core import config
from numba.core.codegen import JITCodeLibrary, _parse_refprune_flags
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.environment import Environment
from numba.core.ir import Inst, Loc, Var
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typed_passes import DumpParforDiagnostics, InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.types import (  # type: ignore[attr-defined]
    Array,
    BaseTuple,
    Dispatcher,
    float64,
    int64,
    uint64,
    unliteral,
)
from numba.core.typing import make_concrete_template
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FindLiterallyCalls,
    InlineClosureLikes,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    RewriteDynamicRaises,
    RewriteSemanticConstants,
    WithLifting,
)

from polyarm.kernels._cache import KernelCache
from polyarm.kernels._lowering import KernelLowering, call_of_part, calling_parts

# Numba keeps one environment per name: a part's, as kept with a kernel that calls it, lacks what results are made of.
FOR_PYTHON = ".python"
NO_VARIABLES = {Loc, str, int, bool, type(None)}
NEEDLESS = (
    DeadBranchPrune,
    DumpParforDiagnostics,
    FindLiterallyCalls,
    InlineClosureLikes,
    InlineOverloads,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    NopythonRewrites,
    RewriteDynamicRaises,
    RewriteSemanticConstants,
    WithLifting,
)


class Part(JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked into other code: neither optimised nor made executable by itself.

    inline    whether it goes into the middle of what calls it, always
    """

    inline = False
    _whole: Any = None

    def _optimize_functions(self, module: Any) -> None:
        """Leave the functions as they are: they are optimised where they are used."""
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Leave it as it is: what it calls is linked once, where all of it is made executable."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """The part with all that it calls, for functions that are no kernels."""
        if self._whole is None:
            self._whole = self._final_module.clone()
            link(self._whole, all_of(self._linking_libraries))
        return self._whole


class Executable(JITCodeLibrary):  # type: ignore[misc]
    """A part and all that it calls, for Python to call."""

    def finalize(self) -> None:
        """Link everything in, each part once, and make machine code of it."""
        libraries = all_of(self._linking_libraries)
        for library in libraries:
            self._reload_init.update(library._reload_init)
        link(self._final_module, libraries)
        self._linking_libraries.clear()
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise once, where Numba would do it twice, and unroll no loop: ours are short, and no quicker for it."""
        options = create_pipeline_tuning_options(config.OPT)
        options.loop_vectorization, options.slp_vectorization = bool(config.LOOP_VECTORIZE), bool(config.SLP_VECTORIZE)
        options.loop_unrolling = False
        builder = create_pass_builder(self._codegen._tm, options)
        passes = builder.getModulePassManager()
        if config.LLVM_REFPRUNE_PASS:
            passes.add_refprune_pass(_parse_refprune_flags())
        passes.run(self._final_module, builder)


def all_of(libraries: Iterable[Any]) -> list[Any]:
    """Libraries and all that they need, each once."""
    found = dict.fromkeys(libraries)
    waiting = list(found)
    while waiting:
        library = waiting.pop()
        for needed in library._linking_libraries if isinstance(library, Part) else ():
            if needed not in found:
                found[needed] = None
                waiting.append(needed)
    return list(found)


def link(module: Any, libraries: Iterable[Any]) -> None:
    """Link libraries into a module, of a part its own code alone."""
    for library in libraries:
        own = isinstance(library, Part)
        module.link_in(library._final_module if own else library._get_module_for_linking(), preserve=True)


class SharedFlags(Flags):  # type: ignore[misc]
    """Flags that are compared as one value: Numba looks its own functions up by them at every operator it meets."""

    __slots__ = ("_key",)

    def frozen(self) -> "SharedFlags":
        """These flags, to be changed no more."""
        self._key = tuple(sorted(self._values.items(), key=lambda item: item[0]))
        return self

    def copy(self) -> "SharedFlags":
        """The flags themselves."""
        return self

    def __hash__(self) -> int:
        return hash(SharedFlags)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, SharedFlags) and self._key == other._key)


_calls: dict[Any, Any] = {}


@contextmanager
def remembered_calls(context: Any) -> Iterator[Any]:
    """Within it, what a function of Numba's makes of arguments of some types is found out once per process.

    A product of two floats goes through twenty templates, each of which says why it will not do.  Kernels are compiled
    under Numba's lock, so that nobody else meets the context meanwhile.
    """
    inside, find = "resolve_function_type" in vars(context), type(context).resolve_function_type

    def found(function: Any, args: Any, kws: Any) -> Any:
        if kws or isinstance(function, (Dispatcher, str)):
            return find(context, function, args, kws)
        key = function, tuple(args)
        if key not in _calls:
            signature = find(context, function, args, kws)
            if signature is None:
                return None
            _calls[key] = signature
        return _calls[key]

    if not inside:
        context.resolve_function_type = found
    try:
        yield context
    finally:
        if not inside:
            del context.resolve_function_type


@contextmanager
def quick_lists() -> Iterator[None]:
    """Within it, Numba lists the variables of instructions by `variables_in`: 200 000 times for the first decision."""
    usual = Inst._rec_list_vars
    Inst._rec_list_vars = variables_in
    try:
        yield
    finally:
        Inst._rec_list_vars = usual


def variables_in(_instruction: Inst, value: Any) -> list[Var]:
    """The variables in a part of an instruction, in order: what Numba's own finds, with fewer questions."""
    found: list[Var] = []
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,):
        kind = type(each)
        if kind is Var:
            found.append(each)
        elif kind in NO_VARIABLES:
            continue
        elif isinstance(each, Inst):
            found.extend(each.list_vars())
        elif isinstance(each, (dict, list, tuple)):
            found.extend(variables_in(_instruction, each))
    return found


class KernelPasses(CompilerBase):  # type: ignore[misc]
    """Numba's passes less those for what kernels do without: closures, raises, `with`, sums of whole arrays, arguments
    that may be None.
    """

    def define_pipelines(self) -> list[PassManager]:
        """The one pipeline."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (KernelLowering, said) if each is NativeLowering else (each, said)
            for each, said in passes.passes
            if each not in NEEDLESS
        ]
        passes._ENFORCING = False  # each pass leaves the function in order: looking again takes a twentieth of the time
        passes.finalize()
        return [passes]


class Uncounted(KernelPasses):
    """The same without counting references; the flags do not say so, so that no gamma draw is compiled twice."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.state.targetctx.enable_nrt = False  # of this compilation alone


class KernelCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Makes parts of a function, one for each combination of argument types, and executables of parts."""

    def __init__(self, function: Callable[..., Any], target: Any, options: dict[str, Any], inline: bool) -> None:
        pipeline = KernelPasses if options.pop("_nrt") else Uncounted
        super().__init__(function, target, options, {}, pipeline)
        self.inline = inline
        self.parts: dict[tuple[Any, ...], Any] = {}

    def part(self, types: tuple[Any, ...]) -> Any:
        """The part for arguments of these types."""
        if types not in self.parts:
            self.take_in(types, self._compiled_part(types))
        return self.parts[types]

    def take_in(self, types: tuple[Any, ...], made: Any) -> Any:
        """Let other kernels call a part that was compiled or loaded."""
        self.parts[types] = made = made._replace(entry_point=Registered())
        call = call_of_part(made.fndesc, made.library)
        self.targetdescr.target_context._defns[made.entry_point].append(call, call.signature)
        return made

    def _compiled_part(self, types: tuple[Any, ...]) -> Any:
        flags = SharedFlags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.nrt = True
        flags.forceinline = False
        context = self.targetdescr.target_context
        library = Part(context.codegen(), self.py_func.__qualname__)
        library.inline = self.inline
        with quick_lists(), remembered_calls(self.targetdescr.typing_context) as typing_context:
            return compile_extra(
                typing_context,
                context,
                self.py_func,
                args=types,
                return_type=None,
                flags=flags.frozen(),
                locals={},
                library=library,
                pipeline_class=self.pipeline_class,
            )

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        part = self.part(tuple(args))
        context, described = calling_parts(part.target_context, part.signature.return_type), copy(part.fndesc)
        described.env_name += FOR_PYTHON
        environment = Environment.from_fndesc(described)
        library = Executable(context.codegen(), self.py_func.__qualname__)
        library.enable_object_caching()
        library.add_linking_library(part.library)
        context.create_cpython_wrapper(library, described, environment, part.call_helper, release_gil=True)
        function = context.get_executable(library, described, environment)
        return part._replace(library=library, entry_point=function, fndesc=described, environment=environment)


class Registered:
    """Stands for the code of a part, where Numba looks code up by what Python would call."""


def is_plain(kind: Any) -> bool:
    """Whether arguments of this type are numbers of 64 bits, contiguous arrays of such, or tuples of these."""
    if isinstance(kind, BaseTuple):
        return all(is_plain(part) for part in kind)
    if isinstance(kind, Array):
        return kind.layout == "C" and kind.dtype in (int64, uint64, float64)
    return kind in (int64, float64)


class KernelDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A kernel: a part of the kernels that call it, and code of its own, kept on disk, where Python calls it.

    trusted   the code itself where there is one for all callers, else the kernel
    """

    def __init__(self, py_func: Callable[..., Any], locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals, targetoptions)
        options = dict(self.targetoptions)
        self._compiler = KernelCompiler(py_func, self.targetdescr, options, options.pop("forceinline"))
        self._cache = KernelCache(py_func)
        self.trusted: Callable[..., Any] = self

    def add_overload(self, cres: Any) -> None:
        """Take in code that was compiled or loaded."""
        super().add_overload(cres)
        alone = len(self.overloads) == 1 and all(is_plain(kind) for kind in cres.signature.args)
        self.trusted = cres.entry_point if alone else self

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """How another kernel calls this one with arguments of these types."""
        signature, given = self._compiler.fold_argument_types(args, kws)
        types = tuple(unliteral(each) for each in given)  # True and False are no two types
        name = self.py_func.__name__
        template = make_concrete_template(name, key=name, signatures=[self._part(types).signature])
        return template, signature, types, {}

    def get_overload(self, sig: Any) -> Any:
        """What the code for these types is registered by."""
        args, _ = normalize_signature(sig)
        return self._part(tuple(args)).entry_point

    def _part(self, types: tuple[Any, ...]) -> Any:
        loaded = self.overloads.get(types) if types not in self._compiler.parts else None
        if loaded is not None:  # from the disk
            return self._compiler.take_in(types, loaded)
        with global_compiler_lock, self._compiling_counter:
            return self._compiler.part(types)
