"""The first look at a log: its arms, categories, size, smallest propensity, and a sample of rows to fit models to."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyarm.errors import BrokenFile, InvalidArgument, require
from polyarm.evaluation.contexts import (
    MAX_CATEGORIES,
    CategoryColumn,
    Encoder,
    NumberColumn,
    as_text,
    is_text,
    is_usable,
    to_numbers,
)
from polyarm.evaluation.ledger import Ledger
from polyarm.evaluation.log import SMALLEST, Log, Names, Rows, open_log
from polyarm.evaluation.sources import Source, TextSource, Unreadable, pyarrow
from polyarm.types import Array, IntArray, Rng

SAMPLE = 20_000  # rows that models are fitted to; a log with fewer is used whole
MAX_ARMS = 10_000


@dataclass(frozen=True)
class Survey:
    """What is known of a log before its rows are used."""

    log: Log
    sample: Rows
    counts: dict[str, int]
    smallest_propensity: float
    reward_range: tuple[float, float]

    @property
    def n_rows(self) -> int:
        """Rows of the log, good or bad."""
        return self.log.n_rows

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds every row that can be used."""
        return self.log.n_rows <= SAMPLE


@dataclass
class Looking:
    """Running record of one reading."""

    n_rows: int = 0
    arms: Counter[str] = field(default_factory=Counter)
    texts: dict[str, set[str]] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    sums: dict[str, float] = field(default_factory=dict)
    smallest: float = np.inf
    lowest: float = np.inf
    highest: float = -np.inf
    keys: Array = field(default_factory=lambda: np.empty(0))
    numbers: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    rows: Any = None

    def look(self, batch: Any, names: Names, numbers: Sequence[str], rng: Rng) -> None:
        """Take a batch in."""
        counted = as_text(batch.column(names.arm)).value_counts().to_pylist()
        self.arms.update({row["values"]: row["counts"] for row in counted if row["values"] is not None})
        require(
            len(self.arms) <= MAX_ARMS, names.arm, f"a column of at most {MAX_ARMS} arms", f"{len(self.arms)} of them"
        )
        for name, found in self.texts.items():
            if len(found) <= MAX_CATEGORIES:
                found.update(t for t in as_text(batch.column(name)).unique().to_pylist() if t is not None)
            self.missing[name] += batch.column(name).null_count
        for name in numbers:
            values = to_numbers(batch.column(name))
            usable = is_usable(values)
            self.missing[name] += len(values) - int(usable.sum())
            self.sums[name] = self.sums.get(name, 0.0) + float(values[usable].sum())
        if names.propensity:
            values = to_numbers(batch.column(names.propensity))
            self.smallest = min(self.smallest, float(values[(values >= SMALLEST) & (values <= 1)].min(initial=np.inf)))
        rewards = to_numbers(batch.column(names.reward))
        rewards = rewards[np.isfinite(rewards)]
        self.lowest = min(self.lowest, float(rewards.min(initial=np.inf)))
        self.highest = max(self.highest, float(rewards.max(initial=-np.inf)))
        self._sample(batch, rng)
        self.n_rows += batch.num_rows

    def number(self, name: str) -> NumberColumn:
        """A column of numbers, its missing entries filled by the mean of the others."""
        known = max(self.n_rows - self.missing[name], 1)
        return NumberColumn(name, self.sums[name] / known, self.missing[name])

    def _sample(self, batch: Any, rng: Rng) -> None:
        """Keep the rows with the smallest of independent uniform keys: a uniform sample, whole while it fits."""
        pa = pyarrow()
        keys = rng.random(batch.num_rows)
        numbers = np.arange(self.n_rows, self.n_rows + batch.num_rows)
        bound = self.keys.max() if len(self.keys) >= SAMPLE else np.inf
        chosen = keys < bound
        fresh = pa.Table.from_batches([batch]).filter(pa.array(chosen))
        self.rows = fresh if self.rows is None else pa.concat_tables([self.rows, fresh])
        self.keys = np.concatenate([self.keys, keys[chosen]])
        self.numbers = np.concatenate([self.numbers, numbers[chosen]])
        if len(self.keys) > SAMPLE:
            keep = np.sort(np.argpartition(self.keys, SAMPLE)[:SAMPLE])
            self.rows = self.rows.take(pa.array(keep)).combine_chunks()
            self.keys, self.numbers = self.keys[keep], self.numbers[keep]


def survey(
    log: Any, names: Names, arms: Sequence[Any] | None, extra: Sequence[str], more_arms: Sequence[str], rng: Rng
) -> Survey:
    """Look at a log once; `extra` are columns that targets read, `more_arms` are arms that targets have."""
    source, found = open_log(log, names)
    for name in extra:
        require(name in source.names, "target", f"a column of the log ({', '.join(source.names)})", name)
    candidates = found.candidates(source.names, extra)
    numbers, texts, left_out = sort_columns(source, candidates, names.context is not None)
    some = [found.arm, found.reward, found.propensity, found.probabilities, found.id]
    wanted = list(dict.fromkeys([*(name for name in some if name), *numbers, *texts, *extra]))
    looking = look_through(source, wanted, found, numbers, texts, rng)
    if not looking.n_rows:
        raise BrokenFile("log must have at least one row, got none")
    columns: list[NumberColumn | CategoryColumn] = [looking.number(name) for name in numbers]
    for name in texts:
        if mostly_numbers(looking.texts[name]):
            columns.append(NumberColumn(name, n_missing=looking.n_rows))  # how many are no numbers was not counted
        elif 1 <= len(looking.texts[name]) <= MAX_CATEGORIES:
            columns.append(CategoryColumn(name, tuple(sorted(looking.texts[name])), looking.missing[name]))
        elif names.context is not None:
            raise InvalidArgument(
                f"context must be columns of numbers or of at most {MAX_CATEGORIES} texts, got {name!r}"
            )
        else:
            left_out.append(name)
    columns.sort(key=lambda column: candidates.index(column.name))
    listed = source.arms if arms is None else None
    known = arms_of(looking.arms, arms if listed is None else listed)
    if arms is None:
        known = (*known, *(arm for arm in (*more_arms, *sorted(looking.arms)) if arm not in known))
        known = tuple(dict.fromkeys(known))
    width = None if listed is not None else len(arms or looking.arms)
    encoder = Encoder(tuple(columns), tuple(left_out))
    opened = Log(source, found, known, encoder, looking.n_rows, tuple(extra), width)
    pa = pyarrow()
    whole = looking.rows.combine_chunks().to_batches()
    batch = whole[0] if whole else pa.RecordBatch.from_pylist([], schema=looking.rows.schema)
    sample = opened.check(batch, looking.numbers, Ledger())
    smallest = looking.smallest
    if found.probabilities and sample.probabilities is not None and len(sample):
        positive = sample.probabilities[sample.probabilities > 0]
        smallest = min(smallest, float(positive.min(initial=np.inf)))
    return Survey(opened, sample, dict(looking.arms), smallest, (looking.lowest, looking.highest))


def look_through(
    source: Source, wanted: list[str], names: Names, numbers: list[str], texts: list[str], rng: Rng
) -> Looking:
    """Read the whole log once; where a text file has a value of another type, again as text."""
    streams = rng.spawn(2)
    for stream in streams:
        looking = Looking(texts={name: set() for name in texts})
        try:
            for batch in source.batches(wanted):
                looking.look(batch, names, numbers, stream)
        except Unreadable:
            if not isinstance(source, TextSource) or stream is streams[1]:
                raise
            source.as_text(wanted)
        else:
            break
    return looking


def sort_columns(source: Source, candidates: Sequence[str], asked: bool) -> tuple[list[str], list[str], list[str]]:
    """Context columns that hold numbers, those that hold text, and those that cannot be used."""
    types = pyarrow().types
    numbers: list[str] = []
    texts: list[str] = []
    left_out: list[str] = []
    for name in candidates:
        kind = source.kind(name)
        kind = kind.value_type if types.is_dictionary(kind) else kind
        unnamed = not asked and (not name or name.startswith(("Unnamed:", "__index_level_")))  # pandas' row numbers
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
            (left_out if unnamed else numbers).append(name)
        elif is_text(kind):
            texts.append(name)
        elif asked:
            raise InvalidArgument(f"context must be columns of numbers, flags or texts, got {name!r} of type {kind}")
        else:
            left_out.append(name)
    return numbers, texts, left_out


def mostly_numbers(texts: set[str]) -> bool:
    """Whether a column of text is one of numbers with a few slips of the pen."""
    values = to_numbers(pyarrow().array(sorted(texts), pyarrow().string()))
    return len(texts) > 10 and float(np.isfinite(values).mean()) >= 0.9


def arms_of(counts: Counter[str], asked: Sequence[Any] | None) -> tuple[str, ...]:
    """The arms in order: as asked for, or all that were played, numbers by size and texts by the alphabet."""
    if asked is not None:
        names = tuple(str(arm) for arm in asked)
        require(len(set(names)) == len(names) > 0, "arms", "names, each once", asked)
        return names
    if not counts:
        raise InvalidArgument("log must have at least one row with an arm, got none")
    try:
        return tuple(sorted(counts, key=float))
    except ValueError:
        return tuple(sorted(counts))
