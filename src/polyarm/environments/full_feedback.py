"""Replay of a table that holds every arm's reward."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyarm.environments.columns import Columns, read_columns
from polyarm.errors import InvalidArgument, require, require_array, require_finite
from polyarm.types import Array, Rng, World


@dataclass(frozen=True, eq=False, repr=False)
class FullFeedback:
    """Rows drawn with replacement from contexts (n, d), rewards (n, A) and means (n, A)."""

    contexts: Array
    rewards: Array
    means: Array

    def __post_init__(self) -> None:
        for name in ("contexts", "rewards", "means"):
            values = require_array(getattr(self, name), name)
            require(values.ndim == 2 and values.size > 0, name, "a table with rows and columns", values.shape)
            require_finite(values, name)
            object.__setattr__(self, name, values)
        shapes = self.contexts.shape, self.rewards.shape, self.means.shape
        same = len(self.contexts) == len(self.rewards) and self.rewards.shape == self.means.shape
        require(same, "contexts, rewards and means", "of matching shapes", shapes)

    def __repr__(self) -> str:
        """Shape and fingerprint, so that results tell which data they came from."""
        digest = hashlib.sha256(b"".join(a.tobytes() for a in (self.contexts, self.rewards, self.means)))
        return f"FullFeedback(rows={len(self.rewards)}, arms={self.n_arms}, sha256={digest.hexdigest()[:16]})"

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return int(self.rewards.shape[1])

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return int(self.contexts.shape[1])

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` rows drawn with replacement."""
        rows = rng.integers(len(self.rewards), size=horizon)
        return World(self.contexts[rows], self.rewards[rows], self.means[rows])


def from_columns(columns: Columns, contexts: Sequence[str], rewards: Sequence[str]) -> FullFeedback:
    """Full feedback whose context and reward columns are given by name; the rewards are their own means."""
    missing = [name for name in (*contexts, *rewards) if name not in columns]
    if missing or not contexts or not rewards:
        raise InvalidArgument(
            f"columns must be present in the table, got {', '.join(missing) or 'none'} missing; "
            f"it has {', '.join(columns)}"
        )
    payoff = np.column_stack([columns[name] for name in rewards])
    return FullFeedback(np.column_stack([columns[name] for name in contexts]), payoff, payoff)


def from_file(
    path: str | Path, contexts: Sequence[str] | None = None, rewards: Sequence[str] | None = None
) -> FullFeedback:
    """Full feedback from a CSV or Parquet file; by default columns `context*` and `reward*` are taken."""
    columns = read_columns(path)
    contexts = contexts or [name for name in columns if name.startswith("context")]
    rewards = rewards or [name for name in columns if name.startswith("reward")]
    return from_columns(columns, contexts, rewards)
