"""Columns of a log as numbers that a model can use."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyarm.errors import CONTEXT_LIMIT
from polyarm.evaluation.ledger import Sieve
from polyarm.evaluation.sources import pyarrow
from polyarm.types import Array

MAX_CATEGORIES = 100  # a column with more different texts is a name, not a category


class NumberColumn(NamedTuple):
    """A number or a flag, as it is."""

    name: str

    @property
    def width(self) -> int:
        """Entries of the context."""
        return 1

    def encode(self, values: Any, out: Array, sieve: Sieve) -> None:
        """Write the column's entries."""
        out[:, 0] = to_numbers(values)
        with np.errstate(invalid="ignore"):
            sieve.require(np.abs(out[:, 0]) <= CONTEXT_LIMIT, f"{self.name} is missing, not finite or too large")
        np.nan_to_num(out, copy=False, posinf=0.0, neginf=0.0)


class CategoryColumn(NamedTuple):
    """A text; one entry of 0 or 1 for every category but the first."""

    name: str
    categories: tuple[str, ...]

    @property
    def width(self) -> int:
        """Entries of the context."""
        return len(self.categories) - 1

    def encode(self, values: Any, out: Array, sieve: Sieve) -> None:
        """Write the column's entries."""
        codes = positions(values, self.categories)
        sieve.require(codes >= 0, f"{self.name} is missing")
        out[:] = codes[:, None] == np.arange(1, len(self.categories))


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

    def encode(self, batch: Any, sieve: Sieve) -> Array:
        """Contexts of a batch, (n, width); rows that cannot be used are set aside."""
        out = np.empty((batch.num_rows, self.width))
        start = 0
        for column in self.columns:
            column.encode(batch.column(column.name), out[:, start : start + column.width], sieve)
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
