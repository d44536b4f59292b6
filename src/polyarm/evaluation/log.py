"""A log of decisions: which column means what, and every row checked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyarm.errors import REWARD_LIMIT, require
from polyarm.evaluation.contexts import Encoder, positions, to_numbers
from polyarm.evaluation.ledger import Ledger, Sieve
from polyarm.evaluation.sources import Source, TextSource, open_source, pyarrow
from polyarm.types import Array, IntArray

RESERVED = ("id", "time", "arm", "propensity", "probabilities", "reward", "n_learnt")
SMALLEST = 1e-12
ROUNDING = 1e-6  # a logged vector of probabilities may be written with few digits


@dataclass(frozen=True)
class Names:
    """Names of the columns that play a part; what a log of ours calls them by default."""

    arm: str = "arm"
    reward: str = "reward"
    propensity: str | None = "propensity"
    probabilities: str | None = "probabilities"
    id: str | None = "id"
    time: str | None = "time"
    context: tuple[str, ...] | None = None

    def found_in(self, names: Sequence[str]) -> "Names":
        """The names with what the log does not have left out; what was asked for by another name must be there."""
        for role in ("arm", "reward"):
            name = getattr(self, role)
            require(name in names, role, f"a column of the log ({', '.join(names)})", name, f"name it by {role}=")
        kept: dict[str, Any] = {}
        for role in ("propensity", "probabilities", "id", "time"):
            name = getattr(self, role)
            require(
                name is None or name in names or name == role, role, f"a column of the log ({', '.join(names)})", name
            )
            kept[role] = name if name in names else None
        for name in self.context or ():
            require(name in names, "context", f"columns of the log ({', '.join(names)})", name)
        return replace(self, **kept)

    def candidates(self, names: Sequence[str], also: Sequence[str]) -> list[str]:
        """Columns that may be context: those asked for, or all that play no other part."""
        if self.context is not None:
            return list(self.context)
        taken = {self.arm, self.reward, self.propensity, self.probabilities, self.id, self.time, *also, *RESERVED}
        return [name for name in names if name not in taken]


@dataclass(frozen=True)
class Rows:
    """Checked rows of one batch.

    numbers (n,) places in the log, arms (n,) codes, rewards (n,), propensities (n,), probabilities (n, A) or None where
    the log has the played arm's only, contexts (n, d), and the batch itself for targets that read its columns.
    """

    numbers: IntArray
    arms: IntArray
    rewards: Array
    propensities: Array
    probabilities: Array | None
    contexts: Array
    batch: Any

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class Log:
    """A log whose arms and contexts are known."""

    source: Source
    names: Names
    arms: tuple[str, ...]
    encoder: Encoder
    n_rows: int
    extra: tuple[str, ...] = ()
    n_listed: int | None = None  # entries of a vector of probabilities; None where fewer than arms are all right

    def rows(self, ledger: Ledger) -> Iterator[Rows]:
        """The rows to use, batch by batch; the others go to the ledger."""
        number = 0
        for batch in self.source.batches(self.wanted()):
            ledger.n_rows += batch.num_rows
            yield self.check(batch, np.arange(number, number + batch.num_rows), ledger)
            number += batch.num_rows
        ledger.add_lines(self.source.broken_lines)

    def wanted(self) -> list[str]:
        """Columns that are read."""
        names = self.names
        some = [names.arm, names.reward, names.propensity, names.probabilities, names.id]
        return list(dict.fromkeys([*(name for name in some if name), *self.encoder.names, *self.extra]))

    def check(self, batch: Any, numbers: IntArray, ledger: Ledger) -> Rows:
        """The good rows of a batch."""
        pa = pyarrow()
        names, sieve = self.names, Sieve(ledger, numbers)
        arm_values = batch.column(names.arm)
        sieve.require(~np.asarray(arm_values.is_null()), f"{names.arm} is missing")
        arms = positions(arm_values, self.arms)
        sieve.require(arms >= 0, f"{names.arm} is none of the arms")
        rewards = self._rewards(batch.column(names.reward), sieve)
        probabilities = self._probabilities(batch, sieve)
        propensities = self._propensities(batch, arms, probabilities, sieve)
        contexts = self.encoder.encode(batch)
        if sieve.good.all():
            return Rows(numbers, arms, rewards, propensities, probabilities, contexts, batch)
        good = sieve.good
        whole = None if probabilities is None else probabilities[good]
        kept = batch.filter(pa.array(good))
        return Rows(numbers[good], arms[good], rewards[good], propensities[good], whole, contexts[good], kept)

    def _rewards(self, values: Any, sieve: Sieve) -> Array:
        open_ones = np.asarray(values.is_null())
        sieve.require(~open_ones, f"{self.names.reward} is missing: the decision is still open")
        rewards = to_numbers(values)
        with np.errstate(invalid="ignore"):
            sieve.require(np.abs(rewards) <= REWARD_LIMIT, f"{self.names.reward} is not a finite number of sane size")
        return rewards

    def _propensities(self, batch: Any, arms: IntArray, probabilities: Array | None, sieve: Sieve) -> Array:
        name = self.names.propensity
        if name is None:
            if probabilities is None:
                return np.full(batch.num_rows, np.nan)
            return np.asarray(probabilities[np.arange(len(arms)), np.maximum(arms, 0)])
        values = to_numbers(batch.column(name))
        with np.errstate(invalid="ignore"):
            sieve.require(~np.isnan(values), f"{name} is missing or not a number")
            sieve.require((values > 0) & (values <= 1), f"{name} is not above 0 and at most 1")
            sieve.require(values >= SMALLEST, f"{name} is below {SMALLEST:g}: such a row would decide alone")
        if probabilities is not None:
            said = probabilities[np.arange(len(arms)), np.maximum(arms, 0)]
            reason = f"{name} is not what {self.names.probabilities} says of the played arm"
            sieve.require(np.abs(said - values) <= ROUNDING + 1e-3 * values, reason)
        return values

    def _probabilities(self, batch: Any, sieve: Sieve) -> Array | None:
        name = self.names.probabilities
        if name is None:
            return None
        table, lengths = vectors(batch.column(name), len(self.arms))
        whole = lengths == self.n_listed if self.n_listed is not None else (lengths > 0) & (lengths <= len(self.arms))
        sieve.require(whole, f"{name} is not one probability for each of the {self.n_listed or len(self.arms)} arms")
        with np.errstate(invalid="ignore"):
            sums = np.abs(table.sum(axis=1) - 1) <= len(self.arms) * ROUNDING + 1e-9
            sieve.require((table >= 0).all(axis=1) & sums, f"{name} is not a vector of probabilities that sum to 1")
        return table


def vectors(values: Any, width: int) -> tuple[Array, IntArray]:
    """A column of lists as a matrix (n, width), zeros where a list ends early, and the lengths of the lists.

    What is no list, or too long, has length -1.
    """
    import pyarrow.compute as pc

    types = pyarrow().types
    out = np.zeros((len(values), width))
    if not (types.is_list(values.type) or types.is_large_list(values.type) or types.is_fixed_size_list(values.type)):
        return out, np.full(len(values), -1)
    lengths = np.asarray(pc.list_value_length(values).fill_null(-1), dtype=np.int64)
    lengths = np.where(lengths <= width, lengths, -1)
    flat = to_numbers(pc.list_flatten(values.filter(pyarrow().array(lengths >= 0))))
    inside = np.arange(width) < lengths[:, None]
    out[inside] = flat
    return out, lengths


def open_log(log: Any, names: Names) -> tuple[Source, Names]:
    """The source of a log, and its columns by the part they play."""
    source = open_source(log)
    found = names.found_in(source.names)
    if isinstance(source, TextSource):
        source.as_text([name for name in (found.arm, found.id) if name])
    return source, found
