"""Numeric columns of a CSV or Parquet file."""

import csv
from pathlib import Path
from typing import TypeAlias

import numpy as np

from polyarm.errors import BrokenFile, require_extra
from polyarm.types import Array

Columns: TypeAlias = dict[str, Array]


def read_columns(path: str | Path) -> Columns:
    """Columns of the file by name; Parquet if its name ends so, else CSV with a header."""
    file = Path(path)
    columns = _read_parquet(file) if file.suffix == ".parquet" else _read_csv(file)
    if not columns or not len(next(iter(columns.values()))):
        raise BrokenFile(f"{file} must be a table with a header and at least one row")
    return columns


def _read_csv(file: Path) -> Columns:
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            header, *rows = list(csv.reader(lines)) or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BrokenFile(f"{file} must be a readable CSV file: {error}") from None
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise BrokenFile(f"{file} must have {len(header)} values in every line, got {len(row)} in line {number}")
    try:
        values = np.array(rows, dtype=np.float64).reshape(len(rows), len(header))
    except ValueError as error:
        raise BrokenFile(f"{file} must hold numbers only: {error}") from None
    return {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(header)}


def _read_parquet(file: Path) -> Columns:
    arrow, parquet = require_extra("pyarrow", "experiments"), require_extra("pyarrow.parquet", "experiments")
    try:
        table = parquet.read_table(file)
        return {name: np.asarray(table[name], dtype=np.float64) for name in table.column_names}
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise BrokenFile(f"{file} must be a Parquet file of numbers: {error}") from None
