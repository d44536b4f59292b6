"""What a value is made of, as text: two values with the same text stand for the same settings.

Numbers and short words stand in it as they are, arrays and long ones as a hash, a class or function of the user's own
as a hash of its bytecode and of what that refers to.  What Python, installed packages and polyarm define goes by name.
"""

import dis
import functools
import hashlib
import inspect
import pickle
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from polyarm.errors import shown
from polyarm.experiments.running.sources import hash_sources

SHORT = 80  # letters of a word that stands as it is
LONG = 4000  # letters of a whole text
UNREADABLE = "unreadable: "
LOOKS = {"__repr__", "__str__", "__eq__", "__hash__", "__doc__", "__module__", "__qualname__"}  # change no result
INSTALLED = tuple(str(Path(sysconfig.get_path(kind)).resolve()) for kind in ("stdlib", "platlib", "purelib"))


class Unreadable(Exception):
    """Some part of a value keeps its content to itself."""


def content(value: object) -> str:
    """What the value is made of; raises `Unreadable` where some part of it cannot be told."""
    try:
        text = Reader().read(value)
    except RecursionError:
        raise Unreadable(f"{shown(value)} is nested too deeply") from None
    return text if len(text) <= LONG else f"{text[:SHORT]}...{mark(text)}"


def readable(value: object) -> str:
    """The same for a record of results: where the content cannot be told, why not."""
    try:
        return content(value)
    except Unreadable as reason:
        return f"{UNREADABLE}{reason}"


def mark(text: str | bytes) -> str:
    """Short hash of a text."""
    return "#" + hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:12]


def is_installed(module: str | None) -> bool:
    """Whether a module belongs to Python, to an installed package or to polyarm."""
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names or top == "polyarm":
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    return file is not None and str(Path(file).resolve()).startswith(INSTALLED)


class Reader:
    """One reading: it remembers classes and functions, and what it is inside of, for things that hold themselves."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[object, str]] = {}
        self.open: set[int] = set()

    def read(self, value: Any) -> str:
        """Text of any value."""
        if value is None or value is ... or type(value) in (bool, int, float, complex):
            return repr(value)
        if type(value) in (str, bytes):
            return repr(value) if len(value) <= SHORT else mark(value)
        if isinstance(value, np.dtype | np.generic):
            return repr(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return f"{value.dtype}{value.shape}{mark(np.ascontiguousarray(value).tobytes())}"
        if isinstance(value, PurePath):
            return f"{value}{self._file(Path(value))}"
        if isinstance(value, CodeType):
            return mark(self._code(value))
        if isinstance(value, ModuleType):
            return self._module(value)
        if id(value) in self.known:
            return self.known[id(value)][1]
        if id(value) in self.open:
            return "(itself)"
        self.open.add(id(value))
        try:
            return self._compound(value)
        finally:
            self.open.discard(id(value))

    def _compound(self, value: Any) -> str:
        if isinstance(value, type):
            return self._remember(value, self._class(value))
        source = getattr(value, "py_func", None) or inspect.unwrap(value) if callable(value) else value
        if isinstance(source, FunctionType):
            return self._remember(value, self._function(source))
        if isinstance(value, MethodType | BuiltinFunctionType | BuiltinMethodType):
            owner = value.__self__
            name = value.__name__
            return f"{value.__module__}.{name}" if isinstance(owner, ModuleType) else f"{self.read(owner)}.{name}"
        if isinstance(value, staticmethod | classmethod):
            return self.read(value.__func__)
        if isinstance(value, property):
            return self._list([value.fget, value.fset])
        if isinstance(value, functools.cached_property):
            return self.read(value.func)
        return self._container(value)

    def _container(self, value: Any) -> str:
        kind = type(value)
        if kind in (list, tuple):
            return self._list(value)
        if kind in (set, frozenset):
            return self._list(value, sort=True)
        if kind is dict:
            return "{" + ", ".join(f"{self.read(key)}: {self.read(part)}" for key, part in value.items()) + "}"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._named(kind, zip(value._fields, value, strict=True))
        if is_dataclass(value):
            parts = {field.name: getattr(value, field.name) for field in fields(value)}
            return self._named(kind, self._lasting(kind, {**getattr(value, "__dict__", {}), **parts}).items())
        return self._reduced(value)

    def _reduced(self, value: Any) -> str:
        """Text of what pickle would keep."""
        try:
            kept = value.__reduce_ex__(4)
        except (TypeError, ValueError, AttributeError, NotImplementedError, pickle.PicklingError):
            raise Unreadable(f"{type(value).__qualname__} {shown(value)} cannot be read") from None
        if isinstance(kept, str):
            return f"{self.read(type(value))}:{kept}"
        maker, given, state, items, pairs = (*kept, None, None, None)[:5]
        if given == (type(value),) and isinstance(state, dict) and items is None and pairs is None:
            return self._named(type(value), self._lasting(type(value), state).items())
        rest = [state, list(items) if items else None, list(pairs) if pairs else None]
        return f"{self.read(maker)}{self._list(given)}{self._list(rest)}"

    def _lasting(self, kind: type, state: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes but for those that are computed from the others when first asked for."""
        cached = functools.cached_property
        return {name: part for name, part in state.items() if not isinstance(getattr(kind, name, None), cached)}

    def _named(self, kind: type, parts: Iterable[tuple[str, Any]]) -> str:
        return f"{self.read(kind)}({', '.join(f'{name}={self.read(part)}' for name, part in parts)})"

    def _list(self, parts: Iterable[Any], sort: bool = False) -> str:
        texts = [self.read(part) for part in parts]
        return f"({', '.join(sorted(texts) if sort else texts)})"

    def _remember(self, value: object, text: str) -> str:
        self.known[id(value)] = (value, text)  # holding the value keeps its address from being used again
        return text

    def _class(self, kind: type) -> str:
        if is_installed(kind.__module__):
            return kind.__qualname__
        parts = [self.read(base) for base in kind.__bases__]
        for name, part in sorted(vars(kind).items()):
            written = isinstance(part, FunctionType | property | staticmethod | classmethod | functools.cached_property)
            generated = isinstance(part, FunctionType) and "__create_fn__" in part.__code__.co_qualname
            plain = not name.startswith(("__", "_abc_")) and not inspect.isdatadescriptor(part)
            if name not in LOOKS and not generated and (written or plain):
                parts.append(f"{name}={self.read(part)}")
        return kind.__qualname__ + mark(" ".join(parts))

    def _function(self, function: FunctionType) -> str:
        if is_installed(function.__module__):
            return f"{function.__module__}.{function.__qualname__}"
        code = function.__code__
        scope = function.__globals__
        used = [f"{name}={self.read(scope[name])}" for name in sorted(globals_of(code)) if name in scope]
        free = dict(zip(code.co_freevars, map(cell_content, function.__closure__ or ()), strict=True))
        parameters = inspect.signature(function).parameters.items()
        defaults = {name: part.default for name, part in parameters if part.default is not part.empty}
        settings = ", ".join(f"{name}={self.read(part)}" for name, part in {**free, **defaults}.items())
        return f"{function.__qualname__}{mark(self._code(code, function.__doc__) + ' '.join(used))}[{settings}]"

    def _code(self, code: CodeType, doc: str | None = None) -> str:
        consts = code.co_consts[1:] if doc is not None and code.co_consts[:1] == (doc,) else code.co_consts
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        return f"{code.co_code.hex()} {names} {counts} {code.co_exceptiontable.hex()} {self._list(consts)}"

    def _module(self, module: ModuleType) -> str:
        if is_installed(module.__name__):
            return module.__name__
        file = getattr(module, "__file__", None)
        if file is None:
            raise Unreadable(f"module {module.__name__} has no file")
        path = Path(file)
        return module.__name__ + "#" + hash_sources([path.parent if path.name == "__init__.py" else path])

    def _file(self, path: Path) -> str:
        try:
            return mark(path.read_bytes()) if path.is_file() else ""
        except OSError as error:
            raise Unreadable(f"file {path} cannot be read: {error.strerror}") from None


def globals_of(code: CodeType) -> set[str]:
    """Names of the globals that a function, or one inside it, asks for."""
    asked = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (globals_of(part) for part in code.co_consts if isinstance(part, CodeType))
    return cast("set[str]", asked).union(*inner)


def cell_content(cell: Any) -> Any:
    """What a closure's cell holds."""
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return ...
