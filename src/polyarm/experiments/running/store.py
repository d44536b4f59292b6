"""Results on disk: a folder that an interrupted study leaves in order and the next one continues.

Each finished piece of work is one Parquet file in `pieces/`, written under another name, then renamed.  When
the study is complete they become one file, `results.parquet`.  Each file carries the settings as metadata.
"""

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from polyarm.errors import BrokenFile, InvalidArgument, shown
from polyarm.experiments.running.content import UNREADABLE
from polyarm.experiments.running.records import SCHEMA
from polyarm.files import write_atomically

KEY = b"polyarm"
Done: TypeAlias = set[tuple[str, int]]


def write_table(path: Path, table: pa.Table, metadata: dict[str, Any]) -> None:
    """Write a Parquet file with its metadata, whole or not at all."""
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(metadata).encode()}), sink, compression="zstd")
    write_atomically(path, sink.getvalue().to_pybytes())


def read_metadata(path: Path) -> dict[str, Any]:
    """The metadata polyarm wrote into a Parquet file."""
    try:
        content = (pq.read_schema(path).metadata or {})[KEY]
    except (OSError, KeyError, pa.ArrowException) as error:
        raise BrokenFile(f"{path} must be a Parquet file of polyarm results: {error}; remove it") from None
    return dict(json.loads(content))


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of one study.

    `identity` holds the settings that all its rows must share, `makings` what each policy of the study is made of.
    """

    folder: Path
    identity: dict[str, Any]
    makings: dict[str, dict[str, str]]

    @property
    def file(self) -> Path:
        """The complete results."""
        return self.folder / "results.parquet"

    @property
    def pieces(self) -> Path:
        """Folder of the finished pieces of an incomplete study."""
        return self.folder / "pieces"

    def files(self) -> Iterator[Path]:
        """Every file of rows, the complete one first."""
        yield from filter(Path.exists, [self.file])
        yield from sorted(self.pieces.glob("*.parquet"))

    def load(self) -> pa.Table:
        """All rows so far; a piece whose rows are already in the complete file is skipped."""
        tables: list[pa.Table] = [SCHEMA.empty_table()]
        done: Done = set()
        for path in self.files():
            about = read_metadata(path)
            table = pq.read_table(path).replace_schema_metadata(None)
            runs = runs_of(table)
            self._check(about, {label for label, _ in runs})
            if not runs <= done:
                tables.append(table)
            done |= runs
        return pa.concat_tables(tables)

    def _check(self, about: dict[str, Any], labels: set[str]) -> None:
        """Raise unless the rows of a file are those that this study would give."""
        pairs = [(key, about.get("identity", {}).get(key), value) for key, value in self.identity.items()]
        for label in sorted(labels & self.makings.keys()):
            found, wanted = about.get("makings", {}).get(label, {}), self.makings[label]
            pairs += [(f"{key} of policy {label!r}", found.get(key), value) for key, value in wanted.items()]
        for name, _, value in pairs:
            if str(value).startswith(UNREADABLE):
                raise InvalidArgument(
                    f"{name} must be made of what can be read, to continue the study in {self.folder}, got "
                    f"{str(value).removeprefix(UNREADABLE)}; keep its settings in plain attributes (numbers, words, "
                    "arrays, functions), or choose another folder"
                )
        differences = [f"{name} {told(old, new)}" for name, old, new in pairs if old != new]
        if differences:
            raise InvalidArgument(
                f"out must be a folder of the same study, got one with {', '.join(differences)} "
                f"in {self.folder}; choose another folder or remove it"
            )

    def add(self, table: pa.Table, metadata: dict[str, Any]) -> None:
        """Keep a finished piece of work."""
        self.pieces.mkdir(exist_ok=True)
        label, first = table["policy"][0].as_py(), table["realization"][0].as_py()
        name = f"{re.sub('[^a-z0-9]+', '-', label.lower())}-{zlib.crc32(label.encode()):08x}-{first:06d}.parquet"
        write_table(self.pieces / name, table, self._about({label: self.makings[label]}, metadata))

    def _about(self, makings: dict[str, dict[str, str]], metadata: dict[str, Any]) -> dict[str, Any]:
        return {"identity": self.identity, "makings": makings, **metadata}

    def finish(self, table: pa.Table, metadata: dict[str, Any]) -> None:
        """Put all rows into the one complete file."""
        kept = [read_metadata(path).get("makings", {}) for path in self.files()]
        makings = {label: parts for found in kept for label, parts in found.items()}
        write_table(self.file, table, self._about(makings, metadata))
        for piece in self.pieces.glob("*.parquet"):
            piece.unlink()
        if self.pieces.exists():
            self.pieces.rmdir()


def told(found: object, wanted: object) -> str:
    """How two settings differ, from where they begin to."""
    if found is None:
        return "not recorded, as by an earlier polyarm"
    if not isinstance(found, str) or not isinstance(wanted, str):
        return f"{shown(found)} instead of {shown(wanted)}"
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, wanted, strict=False)))
    start = max(same - 30, 0)
    lead = "..." if start else ""
    return f"{shown(lead + found[start:])} instead of {shown(lead + wanted[start:])}"


def runs_of(table: pa.Table) -> Done:
    """The (policy, realisation) pairs that a table of rows holds."""
    pairs = table.group_by(["policy", "realization"]).aggregate([])
    return set(zip(pairs["policy"].to_pylist(), pairs["realization"].to_pylist(), strict=True))
