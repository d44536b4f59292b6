"""Targets: whom to evaluate.  A target says how likely it would have played each arm in each row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyarm.errors import InvalidArgument, UnknownName, require, shown
from polyarm.evaluation.contexts import is_text, positions, to_numbers
from polyarm.evaluation.log import Rows, vectors
from polyarm.evaluation.outlook import Outlook, Target, require_probabilities, whole_outlook
from polyarm.evaluation.sources import is_bandit, load_bandit
from polyarm.evaluation.survey import Survey
from polyarm.types import Array, Rng


@dataclass(frozen=True)
class Constant:
    """The same probabilities in every context."""

    name: str
    probabilities: Array

    def outlook(self, rows: Rows) -> Outlook:
        """What it would have done in these rows."""
        return whole_outlook(np.broadcast_to(self.probabilities, (len(rows), len(self.probabilities))), rows)


@dataclass(frozen=True)
class Column:
    """A column of the log: the target's arm, its probability of the played arm, or all its probabilities."""

    name: str
    column: str
    arms: tuple[str, ...]

    def outlook(self, rows: Rows) -> Outlook:
        """What the column says."""
        values = rows.batch.column(self.column)
        if hasattr(values.type, "value_type") and not hasattr(values.type, "index_type"):
            table, lengths = vectors(values, len(self.arms))
            right = bool((lengths == len(self.arms)).all())
            require(right, f"target {self.name}", f"lists of {len(self.arms)} probabilities", lengths.tolist())
            return whole_outlook(require_probabilities(table, (len(rows), len(self.arms)), self.name), rows)
        if is_text(getattr(values.type, "value_type", values.type)):
            return self._chosen(positions(values, self.arms), rows)
        numbers = to_numbers(values)
        wrong = ~((numbers >= 0) & (numbers <= 1))
        if wrong.any():
            raise InvalidArgument(
                f"target {self.name} must be probabilities from 0 to 1, or names of arms, got {numbers[wrong][0]} "
                f"in row {rows.numbers[wrong][0]}"
            )
        return Outlook(numbers, None)

    def _chosen(self, codes: np.ndarray, rows: Rows) -> Outlook:
        if (codes < 0).any():
            raise InvalidArgument(
                f"target {self.name} must be one of the arms ({', '.join(self.arms[:20])}), got something else "
                f"in row {rows.numbers[codes < 0][0]}; list more arms by arms="
            )
        return whole_outlook(np.eye(len(self.arms))[codes], rows)


@dataclass(frozen=True)
class Function:
    """A function of one context, a dict of the log's columns, that gives probabilities in the arms' order or by arm."""

    name: str
    function: Callable[[dict[str, Any]], Any]
    columns: tuple[str, ...]
    arms: tuple[str, ...]

    def outlook(self, rows: Rows) -> Outlook:
        """What it would have done in these rows."""
        contexts = rows.batch.select(list(self.columns)).to_pylist() if self.columns else [{} for _ in range(len(rows))]
        out = np.empty((len(rows), len(self.arms)))
        for i, context in enumerate(contexts):
            out[i] = self._one(self.function(context))
        return whole_outlook(require_probabilities(out, out.shape, self.name), rows)

    def _one(self, given: Any) -> Any:
        if isinstance(given, Mapping):
            by_name = {str(arm): p for arm, p in given.items()}
            unknown = [arm for arm in by_name if arm not in self.arms]
            require(
                not unknown, f"target {self.name}", f"probabilities of the arms {', '.join(self.arms[:20])}", unknown
            )
            return [by_name.get(arm, 0.0) for arm in self.arms]
        return require_probabilities(given, (len(self.arms),), self.name)


@dataclass(frozen=True)
class Vectorised:
    """A function of many contexts: columns by name, each an array (n,), in; probabilities (n, A), out."""

    function: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class VectorisedFunction:
    """A vectorised function as a target."""

    name: str
    function: Callable[[dict[str, Any]], Any]
    columns: tuple[str, ...]
    arms: tuple[str, ...]

    def outlook(self, rows: Rows) -> Outlook:
        """What it would have done in these rows."""
        columns = {name: rows.batch.column(name).to_numpy(zero_copy_only=False) for name in self.columns}
        shape = (len(rows), len(self.arms))
        return whole_outlook(require_probabilities(self.function(columns), shape, self.name), rows)


def named_targets(asked: Any) -> dict[str, Any]:
    """Targets by name, from one, several, or a dict of them."""
    if isinstance(asked, Mapping):
        return {str(name): target for name, target in asked.items()}
    several = list(asked) if isinstance(asked, Sequence) and not isinstance(asked, (str, Path)) else [asked]
    out: dict[str, Any] = {}
    for target in several:
        name = label(target)
        while name in out:
            name += "'"
        out[name] = target
    require(bool(out), "target", "at least one target", asked)
    return out


def label(target: Any) -> str:
    """A target's name where none was given."""
    if isinstance(target, (str, Path)):
        return str(target)
    inner = target.function if isinstance(target, Vectorised) else target
    return str(getattr(inner, "__name__", type(target).__name__))


def loaded(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The targets, with files of bandits loaded."""
    return {name: load_bandit(Path(target)) if is_file(target) else target for name, target in asked.items()}


def is_file(target: Any) -> bool:
    """Whether the target is the file of a bandit."""
    return isinstance(target, Path) or (isinstance(target, str) and target.endswith(".polyarm"))


def columns_of(asked: Mapping[str, Any]) -> list[str]:
    """Columns of the log that the targets read and that are no context of the log."""
    return [t.removeprefix("column:") for t in asked.values() if isinstance(t, str) and t.startswith("column:")]


def arms_of_bandits(asked: Mapping[str, Any]) -> list[str]:
    """Arms that targets play, whether or not the log knows them."""
    return [arm for target in asked.values() if is_bandit(target) for arm in target.arms]


def make_target(name: str, asked: Any, survey: Survey, rng: Rng) -> Target:
    """The target that was asked for."""
    log = survey.log
    arms, columns = log.arms, tuple(log.encoder.names)
    if isinstance(asked, Vectorised):
        return VectorisedFunction(name, asked.function, columns, arms)
    if is_bandit(asked):
        return make_learner(name, asked, survey, rng)
    if callable(asked):
        return Function(name, asked, columns, arms)
    if not isinstance(asked, str):
        raise InvalidArgument(f"target must be a name, a function or a bandit, got {shown(asked)}")
    kind, _, rest = asked.partition(":")
    if asked == "uniform":
        return Constant(name, np.full(len(arms), 1 / len(arms)))
    if kind == "arm" or asked in arms:
        arm = rest if kind == "arm" else asked
        require(arm in arms, "target", f"one of the arms {', '.join(arms[:20])}", arm, "list more arms by arms=")
        return Constant(name, np.eye(len(arms))[arms.index(arm)])
    if kind == "column":
        return Column(name, rest, arms)
    return make_learner(name, asked, survey, rng)


def make_learner(name: str, asked: Any, survey: Survey, rng: Rng) -> Target:
    """The bandit or policy as a target."""
    from polyarm.evaluation import learners  # loads the compiler, which other targets do not need

    if is_bandit(asked):
        return learners.BanditTarget.of(name, asked, survey)
    kind, _, rest = asked.partition(":")
    try:
        if kind == "replay":
            return learners.Replayed.of(name, rest, survey, rng)
        return learners.cross_fitted(name, asked, survey, rng)
    except UnknownName:
        raise UnknownName(
            "target must be uniform, an arm (arm:NAME), a column (column:NAME), a policy's name, replay:POLICY, a "
            f"saved bandit (.polyarm) or a function, got {shown(asked)}; the arms are {', '.join(survey.log.arms[:20])}"
        ) from None
