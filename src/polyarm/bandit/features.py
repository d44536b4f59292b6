"""Columns of a context as people have them, and the features that a model sees of them.

A context is kept as one code per column: the number itself, 0 or 1 for a flag, the place of a category among its
levels, NaN where an optional value is missing.  Features are computed from codes:

number    (x - origin) / scale, from the first value seen: neither the unit nor the zero of a column matters
flag      0 or 1
category  one column per level; two levels share one, -1 or 1
cyclic    sine and cosine of the turn
optional  its features are 0 where it is missing, and one more column says so
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np

from polyarm.errors import InvalidArgument, require, require_count, require_positive, shown
from polyarm.types import Array

MISSING = math.nan
NUMBER = np.dtype(np.float64)
FLAGS = {False: 0.0, True: 1.0}  # 0 and 1 are equal to these, and their hashes too


class Refused(Exception):
    """A value breaks the rule of its column."""


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or the missing value of a table library."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA refuses to be true or false
        return True
    except ValueError:  # an array: whatever it is, it is there
        return False


def require_finite_number(value: Any) -> float:
    """Value as a float, or refused."""
    if not isinstance(value, (Real, np.number)) or isinstance(value, (bool, np.bool_)):
        raise Refused("a number")
    if not math.isfinite(value):
        raise Refused("finite")
    return float(value)


@dataclass(frozen=True)
class Number:
    """A number of any unit; `optional` allows it to be missing.

    >>> from polyarm import Bandit
    >>> bandit = Bandit(["red", "blue"], {"age": Number(optional=True)}, seed=7)
    >>> bandit.choose({"age": None}).context
    {'age': None}
    """

    optional: bool = False
    kind: ClassVar[str] = "number"
    n_features: ClassVar[int] = 1

    def code(self, value: Any) -> float:
        """The number."""
        return require_finite_number(value)

    def features(self, code: float, origin: float, scale: float) -> tuple[float, ...]:
        """The distance from the first value seen."""
        return ((code - origin) / scale,)

    def value(self, code: float) -> Any:
        """The number again."""
        return code


@dataclass(frozen=True)
class Flag:
    """True or false.

    >>> from polyarm import Bandit
    >>> bandit = Bandit(["red", "blue"], {"member": Flag(optional=True)}, seed=7)
    >>> bandit.choose({"member": None}).context
    {'member': None}
    """

    optional: bool = False
    kind: ClassVar[str] = "flag"
    n_features: ClassVar[int] = 1

    def code(self, value: Any) -> float:
        """0 or 1."""
        try:
            return FLAGS[value]
        except (KeyError, TypeError):
            raise Refused("True or False") from None

    def features(self, code: float, origin: float, scale: float) -> tuple[float, ...]:
        """0 or 1."""
        return (code,)

    def value(self, code: float) -> Any:
        """True or False again."""
        return bool(code)


@dataclass(frozen=True)
class Category:
    """One of a fixed set of levels.

    >>> Category(["phone", "tablet", "desktop"]).n_features
    3
    """

    levels: Sequence[str | int]
    optional: bool = False
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        levels = tuple(self.levels)
        plain = all(isinstance(level, (str, int)) and not isinstance(level, bool) for level in levels)
        rule = "two or more different texts or integers"
        require(plain and len(levels) > 1 and len(set(levels)) == len(levels), "levels", rule, levels)
        object.__setattr__(self, "levels", levels)

    @cached_property
    def places(self) -> dict[Any, float]:
        """Place of every level."""
        return {level: float(place) for place, level in enumerate(self.levels)}

    @property
    def n_features(self) -> int:
        """One per level; two levels share one."""
        return len(self.levels) if len(self.levels) > 2 else 1

    def code(self, value: Any) -> float:
        """Place of the level."""
        try:
            return self.places[value]
        except (KeyError, TypeError):
            raise Refused(f"one of {', '.join(map(repr, self.levels))}") from None

    def features(self, code: float, origin: float, scale: float) -> tuple[float, ...]:
        """A one in the level's place."""
        if len(self.levels) == 2:
            return (2.0 * code - 1.0,)
        return tuple(float(code == place) for place in range(len(self.levels)))

    def value(self, code: float) -> Any:
        """The level again."""
        return self.levels[int(code)]


@dataclass(frozen=True)
class Cyclic:
    """A number on a circle, such as the hour of the day: `Cyclic(24)`.

    >>> from polyarm import Bandit
    >>> bandit = Bandit(["red", "blue"], {"hour": Cyclic(24)}, seed=7)
    >>> bandit.choose({"hour": 23.5}).context
    {'hour': 23.5}
    """

    period: float
    optional: bool = False
    kind: ClassVar[str] = "cyclic"
    n_features: ClassVar[int] = 2

    def __post_init__(self) -> None:
        require_positive(self.period, "period")

    def code(self, value: Any) -> float:
        """The number."""
        return require_finite_number(value)

    def features(self, code: float, origin: float, scale: float) -> tuple[float, ...]:
        """Sine and cosine of the turn."""
        turn = 2.0 * math.pi * math.fmod(code, self.period) / self.period
        return math.sin(turn), math.cos(turn)

    def value(self, code: float) -> Any:
        """The number again."""
        return code


Column: TypeAlias = Number | Flag | Category | Cyclic
KINDS: dict[str, Any] = {"number": Number, "flag": Flag, "category": Category, "cyclic": Cyclic}


def as_column(name: str, given: Any) -> Column:
    """Column from float, int, bool, a list of levels, or a column itself."""
    if isinstance(given, (Number, Flag, Category, Cyclic)):
        return given
    if given in (float, int):
        return Number()
    if given is bool:
        return Flag()
    if isinstance(given, (list, tuple)):
        return Category(given)
    rule = "float, bool, a list of levels, Number, Flag, Category or Cyclic"
    raise InvalidArgument(f"context[{name!r}] must be {rule}, got {shown(given)}")


def column_names(given: Iterable[str]) -> tuple[str, ...]:
    """Names of columns, if they can be."""
    names = tuple(given)
    good = all(isinstance(name, str) and name and name.isprintable() for name in names)
    require(good and len(set(names)) == len(names), "context", "different names of columns", names)
    return names


@dataclass(frozen=True)
class Schema:
    """The columns of a context, and whether the model wants a constant beside them."""

    columns: Mapping[str, Column]
    constant: bool = False

    @classmethod
    def of(cls, given: Any, constant: bool = False) -> "Schema":
        """Schema from None, a number of columns, names of columns, or columns by name."""
        if given is None:
            return cls({}, constant)
        if isinstance(given, Schema):
            return cls(given.columns, constant)
        if isinstance(given, Mapping):
            return cls({name: as_column(name, given[name]) for name in column_names(given)}, constant)
        if isinstance(given, (list, tuple)):
            return cls(dict.fromkeys(column_names(given), Number()), constant)
        rule = "None, a number of columns, a list of names or columns by name"
        require(hasattr(given, "__index__") and not isinstance(given, bool), "context", rule, given)
        n = require_count(given, "context")
        return cls({f"x{i}": Number() for i in range(n)}, constant)

    @classmethod
    def from_json(cls, given: Any) -> "Schema":
        """Schema as `to_json` wrote it."""
        columns = {}
        for name, settings in given["columns"]:
            fields = dict(settings)
            columns[str(name)] = KINDS[fields.pop("kind")](**fields)
        return cls(columns, bool(given["constant"]))

    def to_json(self) -> Any:
        """Plain values that say all about the schema."""
        columns = [[name, {"kind": c.kind, **vars_of(c)}] for name, c in self.columns.items()]
        return {"columns": columns, "constant": self.constant}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in order."""
        return tuple(self.columns)

    @cached_property
    def numeric(self) -> bool:
        """Whether every column is a number that is never missing."""
        return all(isinstance(c, Number) and not c.optional for c in self.columns.values())

    @cached_property
    def n_features(self) -> int:
        """Length of a context as the model sees it; without columns it is a one."""
        n = sum(c.n_features + c.optional for c in self.columns.values())
        return max(n + self.constant, 1)

    def codes(self, context: Any) -> Array:
        """Codes of one context, (n_columns,)."""
        if (
            self.numeric
            and isinstance(context, np.ndarray)
            and context.dtype is NUMBER
            and context.shape == (len(self.columns),)
            and context.dot(context) < math.inf  # a huge number may fail too: it is looked at by itself
        ):
            return context.copy()
        values = self._values(context)
        out = np.empty(len(values))
        for i, (name, value) in enumerate(zip(self.names, values, strict=True)):
            out[i] = self.code(name, value, f"context[{name!r}]")
        return out

    def code(self, name: str, value: Any, place: str) -> float:
        """Code of one value; `place` is what an error calls it."""
        column = self.columns[name]
        if is_missing(value):
            if column.optional:
                return MISSING
            raise InvalidArgument(f"{place} must be given, got {shown(value)}; `optional=True` allows it to be missing")
        try:
            return column.code(value)
        except Refused as rule:
            raise InvalidArgument(f"{place} must be {rule}, got {shown(value)}") from None

    def _values(self, context: Any) -> Sequence[Any]:
        if context is None:
            require(not self.names, "context", f"given: {', '.join(self.names)}", None)
            return ()
        if hasattr(context, "keys"):
            known = set(self.names)
            if isinstance(context, Mapping) and (strange := [name for name in context if name not in known]):
                rule = f"the columns {', '.join(self.names)}" if known else "None: there is no context"
                raise InvalidArgument(f"context must be {rule}, got {shown(strange[0])} too")
            return [self._entry(context, name) for name in self.names]
        try:
            values = list(context)
        except TypeError:
            values = [context]
        rule = f"{len(self.names)} values: {', '.join(self.names)}" if self.names else "None: there is no context"
        require(len(values) == len(self.names), "context", rule, context)
        return values

    def _entry(self, context: Any, name: str) -> Any:
        try:
            return context[name]
        except KeyError:
            if self.columns[name].optional:
                return None
            known = shown(list(context.keys()))
            raise InvalidArgument(f"context[{name!r}] must be given, got columns {known}") from None

    def context(self, codes: Array) -> dict[str, Any] | None:
        """The context again, by column; None where there is none."""
        if not self.names:
            return None
        if self.numeric:
            return dict(zip(self.names, codes.tolist(), strict=True))
        pairs = zip(self.columns.items(), codes.tolist(), strict=True)
        return {name: None if code != code else column.value(code) for (name, column), code in pairs}

    def scales(self, origins: Array) -> Array:
        """What the distances of numbers from these origins are divided by, (n_columns,)."""
        return np.array([scale_at(origin) for origin in origins.tolist()])

    def features(self, codes: Array, origins: Array, scales: Array | None = None) -> Array:
        """What the model sees of one context, (n_features,); `scales` saves the time of finding them."""
        if self.numeric:
            x = codes - origins
            x /= self.scales(origins) if scales is None else scales
            return x if len(x) and not self.constant else np.append(x, 1.0)
        out: list[float] = []
        pairs = zip(self.columns.values(), codes.tolist(), origins.tolist(), strict=True)
        for column, code, origin in pairs:
            if code != code:
                out += [0.0] * column.n_features
            else:
                out += column.features(code, origin, scale_at(origin))
            if column.optional:
                out.append(float(code != code))
        if self.constant or not out:
            out.append(1.0)
        return np.array(out)

    def features_many(self, codes: Array, origins: Array) -> Array:
        """What the model sees of many contexts, (n, n_features)."""
        parts = []
        for i, column in enumerate(self.columns.values()):
            code = codes[:, i]
            missing = np.isnan(code)
            parts += [np.where(missing, 0.0, part) for part in _many(column, code, float(origins[i]))]
            if column.optional:
                parts.append(missing.astype(np.float64))
        if self.constant or not parts:
            parts.append(np.ones(len(codes)))
        return np.column_stack(parts)

    def origins_after(self, origins: Array, codes: Array) -> Array:
        """Origins of the numbers once contexts (n, n_columns) were seen: the first value of each."""
        if math.isfinite(origins.sum()):
            return origins
        out = origins.copy()
        for i in np.flatnonzero(np.isnan(origins)):
            seen = codes[~np.isnan(codes[:, i]), i]
            if len(seen):
                out[i] = seen[0]
        return out


@lru_cache(maxsize=1024)
def scale_at(origin: float) -> float:
    """A power of two that keeps columns far from zero, such as seconds since 1970, within what a model can hold."""
    return 2.0 ** max(math.frexp(origin)[1] - 10, 0) if origin == origin else 1.0


def _many(column: Column, code: Array, origin: float) -> list[Array]:
    if isinstance(column, Number):
        return [(code - origin) / scale_at(origin)]
    if isinstance(column, Cyclic):
        turn = 2.0 * math.pi * np.fmod(code, column.period) / column.period
        return [np.sin(turn), np.cos(turn)]
    if isinstance(column, Category):
        if len(column.levels) == 2:
            return [2.0 * code - 1.0]
        return [(code == place).astype(np.float64) for place in range(len(column.levels))]
    return [code]


def vars_of(column: Column) -> dict[str, Any]:
    """Settings of a column as plain values."""
    settings: dict[str, Any] = {"optional": column.optional}
    if isinstance(column, Category):
        settings["levels"] = list(column.levels)
    if isinstance(column, Cyclic):
        settings["period"] = float(column.period)
    return settings
