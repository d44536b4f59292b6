"""What a target would have done in the rows of a log."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from polyarm.errors import InvalidArgument, require, shown
from polyarm.evaluation.log import Rows
from polyarm.types import Array

SUM_ROUNDING = 1e-6


class Outlook(NamedTuple):
    """Probability of the played arm (n,), of every arm (n, A) where known, and the rows that a learner accepted."""

    played: Array
    whole: Array | None
    kept: np.ndarray | None = None


class Target(Protocol):
    """A policy whose value is asked for."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def outlook(self, rows: Rows) -> Outlook:
        """What it would have done in these rows, which come in the log's order."""
        ...


def whole_outlook(probabilities: Array, rows: Rows) -> Outlook:
    """Outlook of a target that knows all its probabilities."""
    return Outlook(probabilities[np.arange(len(rows)), rows.arms], probabilities)


def require_probabilities(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Probabilities of that shape, whose last axis sums to 1."""
    try:
        p = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"target {name} must be probabilities, got {shown(values)}") from None
    require(p.shape == shape, f"target {name}", f"probabilities of shape {shape}", p.shape)
    wrong = ~np.isfinite(p).all(axis=-1) | (p < 0).any(axis=-1) | (np.abs(p.sum(axis=-1) - 1) > SUM_ROUNDING)
    if wrong.any():
        raise InvalidArgument(f"target {name} must be probabilities that sum to 1, got {shown(p[wrong][0].tolist())}")
    return p
