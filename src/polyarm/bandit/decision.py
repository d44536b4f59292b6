"""A decision, and many of them made at once."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from polyarm.bandit.features import Schema
from polyarm.tables import Table, to_html
from polyarm.types import Array, IntArray


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and with which probability.

    id             names it; its reward is learnt by this name
    arm            the arm to play
    propensity     the exact probability with which it was drawn
    probabilities  of every arm, 0 for those that were not eligible
    means          expected reward of every arm at that time; None where the policy has no model of them
    n_learnt       rewards learnt before it
    context        the context by column; None without one

    >>> from polyarm import Bandit
    >>> decision = Bandit(["red", "blue"], policy="uniform", seed=7).choose(id="visit-1")
    >>> decision.id, decision.propensity, sorted(decision.probabilities)
    ('visit-1', 0.5, ['blue', 'red'])
    """

    id: str
    arm: str
    propensity: float
    probabilities: Mapping[str, float]
    means: Mapping[str, float] | None
    n_learnt: int
    context: Mapping[str, Any] | None

    def _repr_html_(self) -> str:
        means = self.means or {}
        rows = [
            (f"{arm} (played)" if arm == self.arm else arm, share, means.get(arm))
            for arm, share in self.probabilities.items()
        ]
        table = to_html(Table("", ("arm", "probability", "expected reward"), tuple(rows)))
        seen = ", ".join(f"{name} = {value}" for name, value in (self.context or {}).items())
        about = f"{self.id}: {self.arm} with probability {self.propensity:.4g}" + (f", at {seen}" if seen else "")
        return f"<p>{html.escape(about)}</p>{table}"


@dataclass(frozen=True, eq=False)
class Decisions(Sequence[Decision]):
    """Decisions of one batch, all made in the same state; columns come as lists and arrays, rows as `Decision`."""

    ids: Sequence[str]
    propensities: Array
    probabilities: Array
    means: Array | None
    n_learnt: int
    _places: IntArray
    _names: tuple[str, ...]
    _schema: Schema
    _codes: Array

    @property
    def arms(self) -> list[str]:
        """Arm of every decision."""
        return [self._names[arm] for arm in self._places]

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Decision: ...
    @overload
    def __getitem__(self, index: slice) -> list[Decision]: ...

    def __getitem__(self, index: int | slice) -> Decision | list[Decision]:
        """One decision, or a list of some."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return Decision(
            self.ids[index],
            self._names[self._places[index]],
            float(self.propensities[index]),
            dict(zip(self._names, self.probabilities[index].tolist(), strict=True)),
            None if self.means is None else dict(zip(self._names, self.means[index].tolist(), strict=True)),
            self.n_learnt,
            self._schema.context(self._codes[index]),
        )
