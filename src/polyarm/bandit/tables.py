"""Many contexts at once: from an array, rows, columns by name, or a table of pandas, Polars, PyArrow or any other that
Narwhals reads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyarm.bandit.features import Cyclic, Number, Schema
from polyarm.errors import InvalidArgument, require, require_extra, shown
from polyarm.types import Array


def codes_of(schema: Schema, contexts: Any) -> Array:
    """Codes of many contexts, (n, n_columns); a number stands for so many contexts without columns."""
    if not schema.names:
        return np.empty((_number_of(contexts), 0))
    if is_table(contexts) or isinstance(contexts, Mapping):
        return _by_column(schema, columns_of(schema, contexts))
    if isinstance(contexts, np.ndarray):
        shape = f"an array of {len(schema.names)} columns"
        require(contexts.ndim == 2 and contexts.shape[1] == len(schema.names), "contexts", shape, contexts)
        return _by_column(schema, {name: contexts[:, i] for i, name in enumerate(schema.names)})
    require(isinstance(contexts, Sequence) and not isinstance(contexts, str), "contexts", "a table or rows", contexts)
    out = np.empty((len(contexts), len(schema.names)))
    for row, context in enumerate(contexts):
        try:
            out[row] = schema.codes(context)
        except InvalidArgument as error:
            raise InvalidArgument(str(error).replace("context", f"contexts[{row}]", 1)) from None
    return out


def is_table(value: Any) -> bool:
    """Whether a value looks like a table of some library."""
    return hasattr(value, "columns") and not isinstance(value, Mapping)


def columns_of(schema: Schema, table: Any) -> dict[str, Any]:
    """The columns of the schema as they are in a table, or in a mapping of names to columns."""
    if isinstance(table, Mapping):
        known, take = set(table), table.__getitem__
    else:
        frame = require_extra("narwhals", "dataframes").from_native(table, eager_only=True)
        known, take = set(frame.columns), frame.get_column
    missing = [name for name in schema.names if name not in known]
    if missing:
        raise InvalidArgument(f"contexts[{missing[0]!r}] must be given, got columns {shown(sorted(known, key=str))}")
    columns = {name: take(name) for name in schema.names}
    lengths = {len(column) for column in columns.values()}
    require(len(lengths) == 1, "contexts", "columns of one length", sorted(lengths))
    return columns


def _number_of(contexts: Any) -> int:
    n = len(contexts) if hasattr(contexts, "__len__") else contexts
    rule = "a number of decisions or rows: this bandit has no context"
    require(hasattr(n, "__index__") and not isinstance(n, bool) and int(n) >= 0, "contexts", rule, contexts)
    return int(n)


def _by_column(schema: Schema, columns: Mapping[str, Any]) -> Array:
    n = len(next(iter(columns.values())))
    out = np.empty((n, len(schema.names)))
    for i, name in enumerate(schema.names):
        out[:, i] = _column(schema, name, columns[name])
    return out


def _column(schema: Schema, name: str, values: Any) -> Array:
    column = schema.columns[name]
    if isinstance(column, (Number, Cyclic)):
        numbers = _numbers(values)
        if numbers is not None and (column.optional or not np.isnan(numbers).any()) and not np.isinf(numbers).any():
            return numbers
    cells = values.tolist() if isinstance(values, np.ndarray) else _listed(values)
    return np.array([schema.code(name, cell, f"contexts[{name!r}][{row}]") for row, cell in enumerate(cells)])


def _listed(values: Any) -> list[Any]:
    return list(values.to_list()) if hasattr(values, "to_list") else list(values)


def _numbers(values: Any) -> Array | None:
    """A column of a numeric type as floats, NaN where it is missing."""
    dtype = getattr(values, "dtype", None)
    if isinstance(values, np.ndarray):
        return values.astype(np.float64) if values.dtype.kind in "iuf" else None
    if dtype is not None and hasattr(dtype, "is_numeric") and dtype.is_numeric():
        narwhals = require_extra("narwhals", "dataframes")
        return np.asarray(values.cast(narwhals.Float64).to_numpy(), dtype=np.float64)
    return None
