"""Where a log comes from: files, frames, Arrow, a saved bandit; always read as record batches."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from polyarm.errors import BrokenFile, InvalidArgument, require_extra, shown

BATCH_ROWS = 32_768
TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


class Source(Protocol):
    """A table that can be read again and again, a batch at a time."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        ...

    def kind(self, name: str) -> Any:
        """Arrow type that a column was found to have."""
        ...

    @property
    def arms(self) -> tuple[str, ...] | None:
        """The arms in the order of the logged probabilities, where the log says so itself."""
        ...

    @property
    def broken_lines(self) -> int:
        """Lines of a text file with another number of values than its header; counted by the latest reading."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows in order, as record batches of these columns."""
        ...


def pyarrow() -> Any:
    """The library that reads logs."""
    return require_extra("pyarrow", "evaluation")


def open_source(log: Any) -> Source:
    """The log as a source: a path, an Arrow table or dataset, a pandas or Polars frame, columns by name, a bandit."""
    pa = pyarrow()
    if isinstance(log, (str, Path)):
        return open_path(Path(log))
    dataset = sys.modules.get("pyarrow.dataset")
    if dataset is not None and isinstance(log, dataset.Dataset):
        return DatasetSource(log)
    if is_bandit(log):
        log = log.log()
    try:
        if isinstance(log, Mapping):
            return TableSource(pa.table({str(name): pa.array(values) for name, values in log.items()}))
        return TableSource(without_views(pa.table(log)))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidArgument(
            f"log must be a path, a table, a frame or columns of equal length by name, got {shown(log)}: {error}"
        ) from None


def without_views(table: Any) -> Any:
    """The table with texts in a layout that can be filtered; Polars hands out one that cannot."""
    pa = pyarrow()
    kinds = [pa.string() if pa.types.is_string_view(field.type) else field.type for field in table.schema]
    fields = [field.with_type(kind) for field, kind in zip(table.schema, kinds, strict=True)]
    return table.cast(pa.schema(fields, metadata=table.schema.metadata))


def open_path(path: Path) -> Source:
    """The file, or the folder of Parquet files, as a source."""
    if not path.exists():
        raise BrokenFile(f"log must be a file or folder that exists, got {path}")
    if path.suffix == ".polyarm":
        return open_source(load_bandit(path))
    if path.name.endswith(TEXT_ENDINGS):
        return TextSource(path)
    pa = pyarrow()
    try:
        if path.is_dir() and any(part.is_dir() for part in path.iterdir()):  # partitions, which a dataset knows about
            return DatasetSource(require_extra("pyarrow.dataset", "evaluation").dataset(path, format="parquet"))
        return ParquetSource.of(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BrokenFile(f"log must be a CSV file, a Parquet file or a folder of such, got {path}: {error}") from None


def arms_in(metadata: Any) -> tuple[str, ...] | None:
    """The arms that a bandit wrote into its log's metadata."""
    try:
        return tuple(json.loads((metadata or {})[b"polyarm"])["arms"])
    except (KeyError, TypeError, ValueError):
        return None


def load_bandit(path: Path) -> Any:
    """The bandit that was saved to a file."""
    from polyarm.bandit import Bandit

    return Bandit.load(path)


def is_bandit(value: Any) -> bool:
    """Whether this is a bandit of ours; nobody can have one who has not loaded the module."""
    module = sys.modules.get("polyarm.bandit")
    return module is not None and isinstance(value, module.Bandit)


@dataclass(frozen=True)
class TableSource:
    """A table in memory."""

    table: Any
    broken_lines: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.table.column_names)

    def kind(self, name: str) -> Any:
        """Arrow type of a column."""
        return self.table.schema.field(name).type

    @property
    def arms(self) -> tuple[str, ...] | None:
        """The arms that the table's metadata names."""
        return arms_in(self.table.schema.metadata)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows in order, as record batches of these columns."""
        yield from self.table.select(list(columns)).to_batches(max_chunksize=BATCH_ROWS)


@dataclass(frozen=True)
class ParquetSource:
    """Parquet files one after another, in the order of their names, a batch at a time."""

    files: tuple[Path, ...]
    schema: Any
    arms: tuple[str, ...] | None
    broken_lines: int = 0

    @staticmethod
    def of(path: Path) -> "ParquetSource":
        """A file, or all Parquet files of a folder; arms are only ever added, so the longest list holds all."""
        parquet = require_extra("pyarrow.parquet", "evaluation")
        files = tuple(sorted(path.glob("*.parquet"))) if path.is_dir() else (path,)
        if not files:
            raise BrokenFile(f"log must be a folder with Parquet files, got {path}")
        schemas = [parquet.read_schema(file) for file in files]
        listed = [names for names in (arms_in(schema.metadata) for schema in schemas) if names]
        return ParquetSource(files, schemas[0], max(listed, key=len, default=None))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.schema.names)

    def kind(self, name: str) -> Any:
        """Arrow type of a column."""
        return self.schema.field(name).type

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows in order, as record batches of these columns."""
        pa, parquet = pyarrow(), require_extra("pyarrow.parquet", "evaluation")
        for path in self.files:
            try:
                with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 18) as file:
                    yield from file.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=False)
            except (OSError, ValueError, KeyError, pa.ArrowException) as error:
                raise BrokenFile(f"log must be readable to its end, got {path}: {error}") from None


@dataclass(frozen=True)
class DatasetSource:
    """Any dataset of pyarrow's, read a little ahead and never whole."""

    dataset: Any
    broken_lines: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.dataset.schema.names)

    def kind(self, name: str) -> Any:
        """Arrow type of a column."""
        return self.dataset.schema.field(name).type

    @property
    def arms(self) -> tuple[str, ...] | None:
        """The arms that the files' metadata name: arms are only ever added, so the longest list holds all."""
        found = [arms_in(fragment.physical_schema.metadata) for fragment in self.dataset.get_fragments()]
        return max((names for names in found if names), key=len, default=None)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows in order, as record batches of these columns."""
        pa = pyarrow()
        options = {"batch_size": BATCH_ROWS, "batch_readahead": 1, "fragment_readahead": 1}
        try:
            yield from self.dataset.to_batches(columns=list(columns), **options)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise BrokenFile(f"log must be readable to its end: {error}") from None


@dataclass
class TextSource:
    """Comma- or tab-separated values with a header, plain or gzipped.

    Numbers are read as such where the whole column holds numbers; where it does not, as text, and every row is judged
    by itself.
    """

    path: Path
    broken_lines: int = 0
    _kinds: dict[str, Any] = field(default_factory=dict)
    _types: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pa, csv = pyarrow(), require_extra("pyarrow.csv", "evaluation")
        try:
            with csv.open_csv(self.path, parse_options=self._layout()) as reader:
                schema = reader.schema
        except (OSError, ValueError, pa.ArrowException) as error:
            raise BrokenFile(f"log must be a readable CSV file, got {self.path}: {error}") from None
        if len(set(schema.names)) < len(schema.names):
            raise BrokenFile(f"log must have every column once, got {', '.join(schema.names)} in {self.path}")
        for name, kind in zip(schema.names, schema.types, strict=True):
            # the reader looked at the first rows only: what was whole may have a fraction later
            kept = pa.float64() if pa.types.is_integer(kind) else pa.string() if kind == pa.null() else kind
            self._kinds[name] = self._types[name] = kept

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._types)

    def kind(self, name: str) -> Any:
        """Arrow type that the column's first rows have."""
        return self._kinds[name]

    @property
    def arms(self) -> tuple[str, ...] | None:
        """A text file names no arms."""
        return None

    def _layout(self) -> Any:
        csv = require_extra("pyarrow.csv", "evaluation")
        tabs = self.path.name.removesuffix(".gz").endswith(".tsv")
        return csv.ParseOptions(delimiter="\t" if tabs else ",", invalid_row_handler=self._count)

    def _count(self, row: Any) -> str:
        self.broken_lines += 1
        return "skip"

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows in order, as record batches of these columns."""
        pa, csv = pyarrow(), require_extra("pyarrow.csv", "evaluation")
        self.broken_lines = 0
        wanted = {name: self._types[name] for name in columns}
        convert = csv.ConvertOptions(include_columns=list(columns), column_types=wanted, strings_can_be_null=True)
        read = csv.ReadOptions(block_size=1 << 22, use_threads=False)
        try:
            with csv.open_csv(self.path, read, self._layout(), convert) as reader:
                yield from reader
        except (OSError, ValueError, pa.ArrowException) as error:
            raise Unreadable(f"log must be readable to its end, got {self.path}: {error}") from None

    def as_text(self, columns: Sequence[str]) -> None:
        """From now on read these columns as text, whatever kind they were found to have."""
        pa = pyarrow()
        self._types.update({name: pa.string() for name in columns})


class Unreadable(BrokenFile):
    """A text file has a value that its column's type does not allow."""
