"""A decision, and many of them made at once."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from polyarm.bandit.features import Schema
from polyarm.tables import Table, to_html
from polyarm.types import Array, IntArray

Told = tuple[str, tuple[str, ...], int, Array, Array | None, int, Schema, Array]
"""Id, names of the arms, number of the arm, probabilities, means, rewards learnt before, schema and codes."""


class Decision:
    """What was decided, and with which probability; `Bandit.choose` makes it.

    >>> from polyarm import Bandit
    >>> decision = Bandit(["red", "blue"], policy="uniform", seed=7).choose(id="visit-1")
    >>> decision.id, decision.propensity, sorted(decision.probabilities)
    ('visit-1', 0.5, ['blue', 'red'])
    """

    __slots__ = ("_told",)  # dictionaries are made when somebody asks: most decisions are just played and learnt
    _told: Told

    def __init__(self, told: Told) -> None:
        object.__setattr__(self, "_told", told)

    @property
    def id(self) -> str:
        """Names the decision; its reward is learnt by this name."""
        return self._told[0]

    @property
    def arm(self) -> str:
        """The arm to play."""
        return self._told[1][self._told[2]]

    @property
    def propensity(self) -> float:
        """The exact probability with which the arm was drawn."""
        return float(self._told[3][self._told[2]])

    @property
    def probabilities(self) -> dict[str, float]:
        """Probability of every arm, 0 for those that were not eligible."""
        return dict(zip(self._told[1], self._told[3].tolist(), strict=True))

    @property
    def means(self) -> dict[str, float] | None:
        """Expected reward of every arm at that time; None where the policy has no model of them."""
        means = self._told[4]
        return None if means is None else dict(zip(self._told[1], means.tolist(), strict=True))

    @property
    def n_learnt(self) -> int:
        """Rewards learnt before the decision."""
        return self._told[5]

    @property
    def context(self) -> dict[str, Any] | None:
        """The context by column; None without one."""
        return self._told[6].context(self._told[7])

    def _fields(self) -> dict[str, Any]:
        names = ("id", "arm", "propensity", "probabilities", "means", "n_learnt", "context")
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Decision) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Decision({', '.join(f'{name}={value!r}' for name, value in self._fields().items())})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} of a decision cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} of a decision cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return Decision, (self._told,)

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
        means = None if self.means is None else self.means[index]
        arm, codes = int(self._places[index]), self._codes[index]
        shares = self.probabilities[index]
        return Decision((self.ids[index], self._names, arm, shares, means, self.n_learnt, self._schema, codes))
