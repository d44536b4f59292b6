"""The log as Parquet, in the columns that `polyarm evaluate` reads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from polyarm.errors import require_extra
from polyarm.files import drafted
from polyarm.service.catalog import get_experiment
from polyarm.service.schema import decisions, outcomes

ROWS = 20_000  # of one piece in memory


def export_log(connection: Connection, experiment: str, path: Path) -> int:
    """Write an experiment's decisions with their outcomes; returns how many there are.

    A shadow decision was played by another system, so its propensity is unknown: null.
    """
    pa: Any = require_extra("pyarrow", "experiments")
    pq: Any = require_extra("pyarrow.parquet", "experiments")
    found = get_experiment(connection, experiment)
    kinds = {"number": pa.float64(), "flag": pa.bool_(), "category": pa.string(), "cyclic": pa.float64()}
    columns = {column.name: kinds[column.kind] for column in found.settings.context}
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("time", pa.timestamp("us", tz="UTC")),
            ("arm", pa.string()),
            ("propensity", pa.float64()),
            ("probabilities", pa.list_(pa.float64())),
            ("reward", pa.float64()),
            ("stream", pa.string()),
            ("snapshot", pa.int64()),
            *((_free(name), kind) for name, kind in columns.items()),
        ],
        metadata={"arms": msgspec.json.encode(list(found.arms))},
    )
    count = 0
    with drafted(path) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for piece in _pieces(connection, experiment, list(found.arms), columns):
            writer.write_table(pa.Table.from_pylist(piece, schema))
            count += len(piece)
    return count


def _free(name: str) -> str:
    taken = {"id", "time", "arm", "propensity", "probabilities", "reward", "stream", "snapshot"}
    return f"context.{name}" if name in taken else name


def _pieces(
    connection: Connection, experiment: str, arms: list[str], columns: dict[str, Any]
) -> Iterator[list[dict[str, Any]]]:
    after = ""
    while True:
        query = (
            select(decisions, outcomes.c.value)
            .join(outcomes, outcomes.c.decision == decisions.c.id, isouter=True)
            .where(decisions.c.experiment == experiment, decisions.c.id > after)
            .order_by(decisions.c.id)
            .limit(ROWS)
        )
        rows = connection.execute(query).mappings().all()
        if not rows:
            return
        after = rows[-1]["id"]
        yield [_row(row, arms, columns) for row in rows]


def _row(row: Any, arms: list[str], columns: dict[str, Any]) -> dict[str, Any]:
    shares = msgspec.json.decode(row["probabilities"], type=dict[str, float])
    context = msgspec.json.decode(row["context"])
    return {
        "id": row["id"],
        "time": row["time"],
        "arm": row["arm"],
        "propensity": None if row["stream"] == "shadow" else row["propensity"],
        "probabilities": [shares.get(arm, 0.0) for arm in arms],
        "reward": row["value"],
        "stream": row["stream"],
        "snapshot": row["snapshot"],
        **{_free(name): context.get(name) for name in columns},
    }
