"""Ids that occur more than once, counted in constant memory.

Every id is hashed; only hashes below a bound are remembered, and the bound is halved whenever too many are.  Copies
share their hash, so a remembered id is caught each time it comes back: exact up to `CAPACITY` ids, beyond that an
unbiased estimate from a uniform sample of the ids (Wegman's adaptive sampling, Flajolet 1990).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyarm.evaluation.contexts import as_text
from polyarm.evaluation.sources import pyarrow
from polyarm.types import Codes, IntArray

CAPACITY = 1 << 20
WORDS = np.random.default_rng(0x1D5).integers(0, 1 << 64, 4096, dtype=np.uint64, endpoint=False) | np.uint64(1)


def hashes(ids: Any) -> Codes:
    """A 64-bit hash of every id, (n,): whole numbers as they are, texts by a sum over their bytes; mixed."""
    types = pyarrow().types
    if types.is_integer(ids.type) and not ids.null_count:
        return mixed(ids.to_numpy(zero_copy_only=False).astype(np.uint64))
    texts = np.array(as_text(ids).fill_null("").to_pylist(), dtype=np.str_)
    raw = np.strings.encode(texts, "utf-8")
    width = max(raw.dtype.itemsize, 1)
    letters = raw.view(np.uint8).reshape(len(raw), width) if len(raw) else np.zeros((0, width), np.uint8)
    out = np.zeros(len(raw), np.uint64)
    for j in range(width):
        out += letters[:, j].astype(np.uint64) * WORDS[j % len(WORDS)]
    return mixed(out)


def mixed(codes: Codes) -> Codes:
    """Codes whose every bit depends on all bits of the given ones (the finaliser of SplitMix64)."""
    codes = (codes ^ (codes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    codes = (codes ^ (codes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return codes ^ (codes >> np.uint64(31))


@dataclass
class Duplicates:
    """Running count of rows whose id was seen before."""

    level: int = 0
    seen: Codes = field(default_factory=lambda: np.empty(0, np.uint64))
    times: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    examples: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether every id was remembered."""
        return self.level == 0

    @property
    def count(self) -> int:
        """Rows whose id was seen before; an estimate where not every id was remembered."""
        return int((self.times - 1).sum()) << self.level

    def add(self, ids: Any) -> None:
        """Take in a column of ids."""
        codes = hashes(ids)
        inside = np.flatnonzero(self._is_kept(codes))
        fresh, first, counts = np.unique(codes[inside], return_index=True, return_counts=True)
        known = np.isin(fresh, self.seen, assume_unique=True)
        if len(self.examples) < 3:
            again = np.ones(len(inside), bool)
            again[first[~known]] = False
            self.examples += [str(ids[int(inside[k])]) for k in np.flatnonzero(again)[: 3 - len(self.examples)]]
        self.times[np.searchsorted(self.seen, fresh[known])] += counts[known]
        places = np.searchsorted(self.seen, fresh[~known])
        self.seen = np.insert(self.seen, places, fresh[~known])
        self.times = np.insert(self.times, places, counts[~known])
        while len(self.seen) > CAPACITY:
            self.level += 1
            kept = self._is_kept(self.seen)
            self.seen, self.times = self.seen[kept], self.times[kept]

    def _is_kept(self, codes: Codes) -> np.ndarray:
        return np.asarray(codes <= np.uint64((1 << (64 - self.level)) - 1))
