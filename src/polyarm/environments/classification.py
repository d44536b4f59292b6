"""Classification tables as bandits: an arm per class, reward 1 for the right one."""

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyarm.errors import BrokenFile, require, require_array, require_extra, require_finite
from polyarm.types import Array, IntArray, Rng, World

LABEL = "class"
PACKAGED = {"digits": "load_digits", "breast-cancer": "load_breast_cancer", "wine": "load_wine"}


@dataclass(frozen=True, eq=False, repr=False)
class ClassificationBandit:
    """Rows of a table in random order, one pass after the other: arm a pays 1 where the row's class is a, else 0.

    Given its row a reward is certain: the means are the rewards themselves.
    """

    contexts: Array
    classes: IntArray

    def __post_init__(self) -> None:
        contexts = require_array(self.contexts, "contexts")
        require(contexts.ndim == 2 and contexts.size > 0, "contexts", "a table with rows and columns", contexts.shape)
        require_finite(contexts, "contexts")
        classes = np.asarray(self.classes, dtype=np.int64)
        require(classes.shape == (len(contexts),), "classes", "one per row", classes.shape)
        known = np.unique(classes)
        counted = len(known) >= 2 and bool((known == np.arange(len(known))).all())
        require(counted, "classes", "at least two, numbered 0, 1, ... without gaps", known)
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "classes", classes)

    def __repr__(self) -> str:
        """Shape and fingerprint, so that results tell which data they came from."""
        digest = hashlib.sha256(self.contexts.tobytes() + self.classes.tobytes()).hexdigest()
        return f"ClassificationBandit(rows={len(self.classes)}, arms={self.n_arms}, sha256={digest[:16]})"

    @property
    def n_arms(self) -> int:
        """Number of arms: the classes."""
        return int(self.classes.max()) + 1

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return int(self.contexts.shape[1])

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` rows; no row comes again before all have come."""
        passes = [rng.permutation(len(self.classes)) for _ in range(-(-horizon // len(self.classes)))]
        rows = np.concatenate([*passes, np.empty(0, np.int64)])[:horizon]
        rewards = np.eye(self.n_arms)[self.classes[rows]]
        return World(self.contexts[rows], rewards, rewards.copy())


def standardized(columns: Array) -> Array:
    """Every column with mean 0 and standard deviation 1; one that is constant becomes 0."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    constant = spread <= 1e-12 * np.abs(columns).max(axis=0)
    return np.asarray(np.where(constant, 0.0, centred / np.where(constant, 1.0, spread)))


def principal(columns: Array, n: int) -> Array:
    """The first n principal components of the columns; the largest loading of each is positive."""
    centred = columns - columns.mean(axis=0)
    _, _, loadings = np.linalg.svd(centred, full_matrices=False)
    chosen = loadings[:n]
    largest = np.abs(chosen).argmax(axis=1)
    return np.asarray(centred @ (chosen * np.sign(chosen[np.arange(n), largest])[:, None]).T)


def packaged(name: str, n_columns: int | None = None) -> ClassificationBandit:
    """A table that scikit-learn brings, standardised; reduced to so many principal components, if asked."""
    datasets = require_extra("sklearn.datasets", "datasets")
    table: Any = getattr(datasets, PACKAGED[name])()
    columns = np.asarray(table.data, dtype=np.float64)
    if n_columns is not None:
        columns = principal(columns, n_columns)
    return ClassificationBandit(standardized(columns), np.asarray(table.target))


def from_classes(path: str | Path) -> ClassificationBandit:
    """The bandit of a CSV file with a header: `class` is the class, every other column numbers or categories.

    Numbers are standardised; each category of a column with anything but numbers becomes a column of zeros and ones.
    """
    header, rows = _read(Path(path))
    if LABEL not in header or len(header) < 2:
        raise BrokenFile(f"{path} must have a column named {LABEL} and at least one more, got {', '.join(header)}")
    table = {name: [row[j] for row in rows] for j, name in enumerate(header)}
    labels = np.unique(table.pop(LABEL), return_inverse=True)[1]
    return ClassificationBandit(np.column_stack([_column(values) for values in table.values()]), labels)


def _read(file: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            header, *rows = list(csv.reader(lines)) or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BrokenFile(f"{file} must be a readable CSV file: {error}") from None
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise BrokenFile(f"{file} must have {len(header)} values in every line, got {len(row)} in line {number}")
    if not rows:
        raise BrokenFile(f"{file} must be a table with a header and at least one row")
    return header, rows


def _column(values: list[str]) -> Array:
    try:
        return standardized(np.array(values, dtype=np.float64)[:, None])
    except ValueError:
        levels, level = np.unique(values, return_inverse=True)
        return np.eye(len(levels))[level]
