"""The door of an engine: a state that it did not make itself is looked at once, and fits or is refused.

The token is the state itself.  A door remembers the last state that passed or that its engine returned, and a state is
an immutable tuple, so `state is door.last` settles it in 30 nanoseconds; any other state is checked whole.  Only one is
remembered: an update changes arrays that older states share, so none of those may pass unseen.  Hence an engine that
serves many states in turn checks each at every change of hands; give each its own engine where that matters.

A new engine takes part like this:

    class MyState(NamedTuple):
        sizes: IntArray
        made_with: str = ""                     # last: the settings that the numbers owe their meaning to

        def require_sound(self) -> None:        # kinds of numbers that no kernel can bear: see state_checks
            require_range(self.sizes, 0, 10, "state.sizes")

    @dataclass(frozen=True, eq=False)
    class MyEngine:
        _door: Door = field(init=False, repr=False, default_factory=Door)

        def init(self):                         # MyState(..., made_with=self._door.settings(self))
        def draw_means(self, state, ...):       # as every method that reads a state
            if state is not self._door.last:
                self._door.check(self, state)
        def update(self, state, ...):           # as every method that changes one
            if state is not self._door.last:
                state = self._door.admit(self, state)
            self._door.last = NOTHING              # until its arrays agree again
            ...
            self._door.last = state

and adds a line to ENGINES in tests/contracts.  An engine with a method `require_fit(state)` can say more about its own
states, one with `must_migrate(state)` and `migrated(state)` takes in states of other `memory` or `half_life`.
"""

import dataclasses
import functools
import hashlib
import json
from typing import Any

import numpy as np

from polyarm.errors import InvalidArgument, shown
from polyarm.inference.shapes import MADE_WITH, kind_of, shape_of
from polyarm.renaming import NEW_NAMES

KEEPING = ("memory", "half_life")  # how much of the past is kept: a state migrates from one to another
WORK = (  # how hard the engine works and how it draws: the numbers mean the same
    *("rule", "moves", "other_arm_moves", "table_moves", "n_sweeps", "refreshes", "open_threshold"),
    *("draws", "n_draws", "width", "bound", "noise_sd", "norm_bound", "failure"),
)
NOTHING: Any = object()  # no state is this one
LONG = 8  # arrays with more entries are described by a hash


class Door:
    """What an engine remembers of the states that it trusts."""

    __slots__ = ("books", "fresh", "last", "shape", "steady", "text")

    def __init__(self) -> None:
        self.last: Any = NOTHING
        self.steady: Any = NOTHING  # the last state, where the engine has found that nothing about it needs a look
        self.books: tuple[Any, Any] = NOTHING, None  # a state, and its arrays as the engine's kernels take them
        self.fresh: Any = None
        self.shape: Any = None
        self.text: str | None = None

    def __reduce__(self) -> tuple[type["Door"], tuple[()]]:
        return Door, ()  # neither a copy nor a pickle of an engine trusts anything yet

    def settings(self, engine: Any) -> str:
        """Settings of the engine that give its numbers their meaning, as its states carry them."""
        if self.text is None:
            self.text = json.dumps(described(engine, (*KEEPING, *WORK)), sort_keys=True)
        return self.text

    def admit(self, engine: Any, state: Any) -> Any:
        """The state that an update may change: checked, and migrated where its rewards are kept in another way."""
        self.check(engine, state)
        if self.last is not state:
            state = engine.migrated(state)
        return state

    def check(self, engine: Any, state: Any) -> None:
        """Raise an error that names the difference unless the state fits the engine."""
        with np.errstate(all="ignore"):  # what overflows is refused by name
            self._check(engine, state)

    def _check(self, engine: Any, state: Any) -> None:
        if self.shape is None:
            self.fresh = engine.init()
            self.shape = type(self.fresh), shape_of(self.fresh)
        kind, shape = self.shape
        if type(state) is not kind:
            raise InvalidArgument(f"state must be a {kind.__name__}, got {shown(type(state).__name__)}")
        require_settings(getattr(state, MADE_WITH, ""), self.settings(engine), "state")
        require_shape(state, shape)
        require_sound(state)
        if hasattr(engine, "require_fit"):
            engine.require_fit(state)
        if hasattr(engine, "draw_means") and not equal(state, self.fresh):
            self._try_out(engine, state)
        if not (hasattr(engine, "must_migrate") and engine.must_migrate(state)):
            self.last = state

    def _try_out(self, engine: Any, state: Any) -> None:
        """Raise unless the engine can answer from the state: numbers may be finite and still overflow together."""
        x = np.ones(engine.context_dim)
        self.last = state
        try:
            means = engine.expected_means(state, x)
            finite = bool(np.isfinite(means).all())  # first: a draw with a shape that is no number would never end
            finite = finite and bool(np.isfinite(engine.draw_means(state, x, 4, np.random.default_rng(0))).all())
        finally:
            self.last = NOTHING
        if not finite:
            raise InvalidArgument(f"state must be one whose mean rewards are finite, got {shown(means)}")


def described(value: Any, leave_out: tuple[str, ...] = ()) -> Any:
    """Settings of an engine, policy or model as JSON takes them: names, numbers, and hashes of long arrays.

    Those that a class names as `added_settings` are left out, so that files of versions without them are read; the
    shape of the state must tell them.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        left_out = (*leave_out, *getattr(value, "added_settings", ()))
        names = [f.name for f in dataclasses.fields(value) if not f.name.startswith("_") and f.name not in left_out]
        kind, saved = getattr(value, "saved_as", type(value).__name__), getattr(value, "saved_names", {})
        return {"kind": kind, **{saved.get(n, n): described(getattr(value, n), leave_out) for n in names}}
    if isinstance(value, (list, tuple)):
        parts = [described(part, leave_out) for part in value]
        same = len(parts) > 1 and all(part == parts[0] for part in parts)
        return {"count": len(parts), "each": parts[0]} if same and isinstance(parts[0], dict) else parts
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.size > LONG:
            return f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
        return array.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    options = getattr(value, "__dict__", None)
    if options is not None and not callable(value):
        return {"kind": type(value).__name__, **{n: described(v, leave_out) for n, v in sorted(options.items())}}
    return getattr(value, "__qualname__", type(value).__name__)


def difference(ours: Any, theirs: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The first setting that differs: its name, ours and theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys(), key=lambda name: (name != "kind", name)):
            called = NEW_NAMES.get((ours.get("kind", ""), name), name)
            found = difference(ours.get(name), theirs.get(name), f"{path}.{called}" if path else called)
            if found:
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return next((d for i, (a, b) in pairs if (d := difference(a, b, f"{path}[{i}]"))), None)
    return None if ours == theirs else (path, ours, theirs)


@functools.lru_cache(maxsize=64)
def settings_differ(theirs: str, ours: str) -> tuple[str, Any, Any] | None:
    """The first setting that differs between two descriptions."""
    try:
        return difference(json.loads(ours), json.loads(theirs))
    except ValueError:
        return ("settings", "a description of settings", theirs)


def require_settings(theirs: str, ours: str, name: str) -> None:
    """Raise unless both descriptions say the same; a state without one says nothing."""
    if theirs and theirs != ours:
        found = settings_differ(theirs, ours)
        if found:
            raise InvalidArgument(
                f"{name} must be made with {found[0]} = {shown(found[1])}, got one made with {shown(found[2])}"
            )


def require_shape(state: Any, expected: Any, path: str = "state") -> None:
    """Raise unless the state has the expected nesting, kinds of numbers and fixed axes."""
    if len(expected) == 2:
        kind, parts = expected
        if type(state).__name__ != kind or not isinstance(state, (tuple, list)) or len(named(state)) != len(parts):
            raise InvalidArgument(f"{path} must be a {kind} of {len(parts)}, got {shown(state)}")
        for (name, value), part in zip(named(state), parts, strict=True):
            require_shape(value, part, f"{path}.{name}")
        return
    kind, dtype, axes = expected
    array = np.asarray(state) if isinstance(state, (np.ndarray, np.generic, int, float, str)) else np.empty(0, object)
    fits = len(array.shape) == len(axes) and all(a is None or a == n for a, n in zip(axes, array.shape, strict=True))
    if type(state).__name__ != kind or kind_of(array.dtype) != dtype or not fits:
        wanted = tuple("any" if a is None else a for a in axes)
        raise InvalidArgument(
            f"{path} must be {dtype} of shape {wanted}, got {type(state).__name__} {array.dtype} of {array.shape}"
        )
    if isinstance(state, np.ndarray) and not (state.flags.carray or state.size == 0):
        raise InvalidArgument(f"{path} must be contiguous and writable, got {shown(state.flags)}")


def named(state: Any) -> list[tuple[str, Any]]:
    """Parts of a state that hold its numbers, with their names."""
    names = getattr(state, "_fields", range(len(state)))
    return [(str(n), v) for n, v in zip(names, state, strict=True) if n != MADE_WITH]


def require_sound(state: Any, path: str = "state") -> None:
    """Raise unless the state's own check passes or, where it has none, all its numbers are finite."""
    if hasattr(state, "require_sound"):
        state.require_sound()
    elif isinstance(state, (tuple, list)):
        for name, value in named(state):
            require_sound(value, f"{path}.{name}")
    elif isinstance(state, np.ndarray):
        if state.dtype.kind == "f" and not np.isfinite(state).all():
            raise InvalidArgument(f"{path} must be finite, got {shown(state[~np.isfinite(state)].flat[0])}")
    elif isinstance(state, float) and state != state:
        raise InvalidArgument(f"{path} must be a number, got {state}")


def equal(one: Any, other: Any) -> bool:
    """Whether two states of one kind hold the same numbers."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


def copied(state: Any) -> Any:
    """The state with arrays of its own."""
    if isinstance(state, tuple):
        parts = [copied(part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state.copy() if isinstance(state, np.ndarray) else state
