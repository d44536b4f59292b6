"""The log of a bandit: one row per decision, as an Arrow table or as Parquet files in a folder.

id, time, arm, propensity, probabilities (one per arm, in the order of the arms), reward (null while open), the columns
of the context, n_learnt.  The schema's metadata names the arms.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyarm.bandit.features import Category, Flag, Schema
from polyarm.bandit.ledger import LEARNT, LOGGED, OPEN, Ledger
from polyarm.errors import require, require_extra
from polyarm.files import require_folder, write_atomically
from polyarm.types import Array, IntArray

NAMES = ("id", "time", "arm", "propensity", "probabilities", "reward", "n_learnt")
FLUSH = 1000  # closed decisions in one file of a folder, unless the bandit is saved before


def require_loggable(schema: Schema) -> None:
    """Raise if a column of the context has a name that the log needs itself."""
    taken = [name for name in schema.names if name in NAMES]
    require(not taken, "context", f"columns with other names than {', '.join(NAMES)}", taken)


def table_of(ledger: Ledger, schema: Schema, arms: Sequence[str], rows: IntArray | None = None) -> Any:
    """Decisions as an Arrow table; all of them, or those rows."""
    pa = require_extra("pyarrow", "dataframes")
    if rows is None:
        rows = np.flatnonzero(ledger.column("states") != LOGGED)
    columns = {name: ledger.column(name)[rows] for name in ledger.COLUMNS}
    played, n = columns["arms"], len(rows)
    propensities = columns["probabilities"][np.arange(n), played]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(columns["probabilities"].ravel()), len(arms))
    fields = {
        "id": pa.array([ledger.ids[row] for row in rows], pa.string()),
        "time": pa.array(columns["times"] // 1000, pa.timestamp("us", tz="UTC")),
        "arm": pa.array([arms[arm] for arm in played], pa.string()),
        "propensity": pa.array(propensities, pa.float64()),
        "probabilities": vectors.cast(pa.list_(pa.float64())),
        "reward": pa.array(columns["rewards"], pa.float64(), mask=columns["states"] != LEARNT),
        "n_learnt": pa.array(columns["seen"], pa.int64()),
    }
    for i, (name, column) in enumerate(schema.columns.items()):
        fields[name] = _values(pa, column, columns["codes"][:, i])
    table = pa.table(fields)
    return table.replace_schema_metadata({"polyarm": json.dumps({"arms": list(arms)})})


def _values(pa: Any, column: Any, codes: Array) -> Any:
    missing: NDArray[np.bool_] = np.isnan(codes)
    if isinstance(column, Flag):
        return pa.array(np.where(missing, 0, codes).astype(bool), pa.bool_(), mask=missing)
    if isinstance(column, Category):
        cells = [None if gone else column.levels[int(code)] for gone, code in zip(missing, codes, strict=True)]
        return pa.array(cells)
    return pa.array(codes, pa.float64(), mask=missing)


class LogFolder:
    """A folder of Parquet files to which decisions are added once their reward has come or they were dropped."""

    def __init__(self, folder: str | Path) -> None:
        require_extra("pyarrow", "dataframes")
        self.folder = require_folder(folder, "log")
        self._waiting: list[str] = []

    def add(self, ledger: Ledger, schema: Schema, arms: Sequence[str], ids: Sequence[str]) -> None:
        """Note closed decisions, and write a file when there are enough."""
        self._waiting.extend(ids)
        if len(self._waiting) >= FLUSH:
            self.flush(ledger, schema, arms)

    def flush(self, ledger: Ledger, schema: Schema, arms: Sequence[str]) -> None:
        """Write what waits to a file of its own, named after the first decision in it."""
        rows = np.array([ledger.place[name] for name in self._waiting], np.int64)
        rows = rows[ledger.column("states")[rows] != OPEN]
        if len(rows):
            parquet = require_extra("pyarrow.parquet", "dataframes")
            sink = require_extra("pyarrow", "dataframes").BufferOutputStream()
            parquet.write_table(table_of(ledger, schema, arms, rows), sink)
            stamp = int(ledger.column("times")[rows[0]])
            write_atomically(
                self.folder / f"decisions-{stamp:019d}-{rows[0]:09d}.parquet", sink.getvalue().to_pybytes()
            )
        self._waiting = []
