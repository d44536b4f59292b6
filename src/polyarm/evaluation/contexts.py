"""Columns of a log as numbers that a model can use."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyarm.errors import CONTEXT_LIMIT
from polyarm.evaluation.sources import pyarrow
from polyarm.types import Array

MAX_CATEGORIES = 100  # a column with more different texts is a name, not a category


class NumberColumn(NamedTuple):
    """A number or a flag, as it is; where some are missing, they stand at `fill` and a second entry marks them."""

    name: str
    fill: float = 0.0
    n_missing: int = 0

    @property
    def width(self) -> int:
        """Entries of the context."""
        return 1 + (self.n_missing > 0)

    def encode(self, values: Any, out: Array) -> None:
        """Write the column's entries."""
        numbers = to_numbers(values)
        known = is_usable(numbers)
        out[:, 0] = np.where(known, numbers, self.fill)
        if self.n_missing:
            out[:, 1] = ~known


class CategoryColumn(NamedTuple):
    """A text; one entry of 0 or 1 for every category but the first, and one for missing ones where there are any."""

    name: str
    categories: tuple[str, ...]
    n_missing: int = 0

    @property
    def width(self) -> int:
        """Entries of the context."""
        return len(self.categories) - 1 + (self.n_missing > 0)

    def encode(self, values: Any, out: Array) -> None:
        """Write the column's entries."""
        codes = positions(values, self.categories)
        known = len(self.categories) - 1
        out[:, :known] = codes[:, None] == np.arange(1, len(self.categories))
        if self.n_missing:
            out[:, known] = codes < 0


def is_usable(numbers: Array) -> np.ndarray:
    """Which numbers are finite and of sane size."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(numbers) <= CONTEXT_LIMIT)


@dataclass(frozen=True)
class Encoder:
    """The context columns of a log, and the scales that make them comparable."""

    columns: tuple[NumberColumn | CategoryColumn, ...]
    left_out: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns in use."""
        return [column.name for column in self.columns]

    @property
    def width(self) -> int:
        """Entries of a context."""
        return sum(column.width for column in self.columns)

    def encode(self, batch: Any) -> Array:
        """Contexts of a batch, (n, width)."""
        out = np.empty((batch.num_rows, self.width))
        start = 0
        for column in self.columns:
            column.encode(batch.column(column.name), out[:, start : start + column.width])
            start += column.width
        return out


def to_numbers(values: Any) -> Array:
    """An Arrow column as floats: flags are 0 and 1, what is missing or no number is NaN."""
    pa = pyarrow()
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.dictionary_decode()
        kind = values.type
    if is_text(kind):
        number = pc.match_substring_regex(values, r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$")
        values = pc.utf8_trim_whitespace(pc.if_else(number, values, pa.scalar(None, kind)))
    if pa.types.is_decimal(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind) or is_text(kind):
        values = values.cast(pa.float64())
    if values.null_count:
        values = values.cast(pa.float64()).fill_null(float("nan"))
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds text."""
    types = pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def as_text(values: Any) -> Any:
    """An Arrow column as text; whole numbers without a decimal point."""
    pa = pyarrow()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        numbers = to_numbers(values)
        if (numbers[~np.isnan(numbers)] % 1 == 0).all():
            values = values.cast(pa.int64())
    return values.cast(pa.string())


def positions(values: Any, names: tuple[str, ...]) -> np.ndarray:
    """Position of every text among the names, -1 where it is none of them."""
    pa = pyarrow()
    import pyarrow.compute as pc

    found = pc.index_in(as_text(values), value_set=pa.array(names, pa.string()))
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
