"""What an evaluation found: numbers, tables, JSON, HTML and figures."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from polyarm.drawing import save
from polyarm.errors import require_writable_parent
from polyarm.evaluation.diagnosis import LogDiagnosis, TargetDiagnosis
from polyarm.evaluation.weights import Weights
from polyarm.files import write_atomically
from polyarm.tables import Cell, Table, write_files

PREFERRED = ("dr", "snips", "switch", "ips", "clipped", "replay", "direct")  # by whom the verdict decides


class Estimate(NamedTuple):
    """A value with its interval; `label` says what it rests on besides the log."""

    target: str
    estimator: str
    value: float
    se: float
    low: float
    high: float
    interval: str
    label: str = ""


class Difference(NamedTuple):
    """What a target earns more than another, estimated from the same rows."""

    target: str
    versus: str
    estimator: str
    value: float
    se: float
    low: float
    high: float
    interval: str
    label: str = ""

    @property
    def words(self) -> str:
        """Which is better, if the interval tells."""
        if self.low > 0:
            return f"{self.target} earns more than {self.versus}"
        if self.high < 0:
            return f"{self.target} earns less than {self.versus}"
        return f"which of {self.target} and {self.versus} earns more cannot be told"


@dataclass(frozen=True)
class Evaluation:
    """Estimates, paired differences and diagnosis of one or more targets."""

    estimates: tuple[Estimate, ...]
    differences: tuple[Difference, ...]
    targets: tuple[TargetDiagnosis, ...]
    log: LogDiagnosis
    level: float
    model: str
    notes: tuple[str, ...]
    weights: dict[str, Weights]

    def __getitem__(self, key: tuple[str, str] | str) -> Estimate:
        """The estimate of (target, estimator), or of an estimator where there is one target."""
        target, estimator = key if isinstance(key, tuple) else (self.targets[0].target, key)
        for estimate in self.estimates:
            if (estimate.target, estimate.estimator) == (target, estimator):
                return estimate
        raise KeyError(key)

    @property
    def verdict(self) -> str:
        """One sentence per target, and whether it beats the log's own policy where that can be told."""
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        for diagnosis in self.targets:
            yield diagnosis.sentence
            if diagnosis.level != "no":
                told = [d for d in self.differences if d.target == diagnosis.target and d.interval != "none"]
                if told:
                    best = min(told, key=lambda d: PREFERRED.index(d.estimator))
                    yield f"By {best.estimator}, {best.words}."

    def tables(self) -> list[Table]:
        """Estimates, differences, diagnosis, and rows set aside."""
        percent = f"{100 * self.level:g} %"
        labelled = any(e.label for e in self.estimates)
        heads = ("target", "estimator", "value", "se", f"{percent} low", "high", "interval", *["rests on"] * labelled)
        rows = tuple(
            (e.target, e.estimator, e.value, e.se, bound(e.low), bound(e.high), e.interval, *[e.label] * labelled)
            for e in self.estimates
        )
        found = [Table(f"Mean reward, {self.log.n_used} rows", heads, rows)]
        if self.differences:
            heads = ("target", "versus", "estimator", "difference", "se", f"{percent} low", "high", "interval")
            differences = tuple(
                (d.target, d.versus, d.estimator, d.value, d.se, bound(d.low), bound(d.high), d.interval)
                for d in self.differences
            )
            found.append(Table("Paired differences", heads, differences))
        heads = ("target", "worth rows", "of", "mean weight", "largest weight", "top 1 % has", "outside", "can tell")
        shown = tuple(diagnosis_row(diagnosis) for diagnosis in self.targets)
        found.append(Table("What the log can say", heads, shown))
        return found

    def lines(self) -> list[str]:
        """What is to be said besides the tables; the verdict last."""
        log = self.log
        context = ", ".join(log.context) or "none"
        out = [f"Rows: {log.n_rows}, used {log.n_used}. Context: {context}. Reward model: {self.model}."]
        if log.left_out:
            out.append(f"Columns that are no context: {', '.join(name or '(no name)' for name in log.left_out)}.")
        out += [f"Set aside: {line}." for line in log.set_aside_lines]
        out.append(f"Propensities: {log.propensities}; {self._test()}.")
        if log.n_duplicates is not None:
            about = "" if log.duplicates_exact else "about "
            out.append(f"Ids that came before: {about}{log.n_duplicates}.")
        return [*out, *self.notes, f"Verdict: {self.verdict}"]

    def _test(self) -> str:
        test = self.log.test
        if not test.n_tests:
            return test.worst
        fits = "do not fit" if test.rejected else "fit"
        return f"they {fits} the plays (p = {test.p_value:.2g} over {test.n_tests} tests)"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        log = self.log._asdict()
        log["test"] = {**self.log.test._asdict(), "rejected": self.log.test.rejected}
        del log["set_aside_lines"]
        return {
            "level": self.level,
            "model": self.model,
            "estimates": [estimate._asdict() for estimate in self.estimates],
            "differences": [difference._asdict() for difference in self.differences],
            "targets": [diagnosis.to_dict() for diagnosis in self.targets],
            "log": log,
            "notes": list(self.notes),
            "verdict": self.verdict,
        }

    def to_json(self) -> str:
        """Everything as JSON; what is not finite is null."""
        return json.dumps(plain(self.to_dict()), indent=2) + "\n"

    def html(self, figures: bool = True) -> str:
        """A part of an HTML page: tables, what to know, and figures where matplotlib is installed."""
        from polyarm.evaluation.page import fragment

        return fragment(self, figures)

    def _repr_html_(self) -> str:
        return self.html(figures=False)

    def report(self, path: str | Path) -> Path:
        """Write a page that needs no other file."""
        from polyarm.evaluation.page import page

        target = require_writable_parent(path)
        write_atomically(target, page(self).encode())
        return target

    def write(self, folder: Path) -> list[Path]:
        """Write tables, figures and the page into a folder; give the figures and the page."""
        for table, stem in zip(self.tables(), self._stems(), strict=True):
            write_files(table, folder / stem)
        for stem, figure in (("forest", self.plot_estimates()), ("weights", self.plot_weights())):
            save(figure, folder / stem)
        return [folder / "forest.png", folder / "weights.png", self.report(folder / "evaluation.html")]

    def _stems(self) -> list[str]:
        return ["estimates", *["differences"] * bool(self.differences), "diagnosis"]

    def plot_estimates(self) -> Any:
        """Forest plot of the estimates and differences, as a matplotlib figure."""
        from polyarm.evaluation.figures import forest_figure

        return forest_figure(self)

    def plot_weights(self) -> Any:
        """Histogram of every target's weights, as a matplotlib figure."""
        from polyarm.evaluation.figures import weights_figure

        return weights_figure(self)

    def __str__(self) -> str:
        """Estimates and verdict as text."""
        numbers = [
            f"{e.target}, {e.estimator}: {e.value:.4g} ({e.low:.4g} to {e.high:.4g})"
            + (f", {e.label}" if e.label else "")
            for e in self.estimates
        ]
        return "\n".join([*numbers, self.verdict])


def bound(value: float) -> Cell:
    """A bound of an interval for a table; a dash where there is none."""
    return value if math.isfinite(value) else None


def diagnosis_row(diagnosis: TargetDiagnosis) -> tuple[Cell, ...]:
    """One row of the diagnosis."""
    largest = diagnosis.largest[0].weight if diagnosis.largest else 0.0
    return (
        diagnosis.target,
        round(diagnosis.effective),
        diagnosis.n,
        f"{diagnosis.mean_weight:.3f} ± {diagnosis.mean_weight_se:.3f}",
        largest,
        f"{diagnosis.share_of_top:.0%}",
        f"{diagnosis.outside:.1%}",
        {"yes": "yes", "care": "with care", "no": "no"}[diagnosis.level],
    )


def plain(value: Any) -> Any:
    """Value with tuples as lists, and None for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.item() if hasattr(value, "item") else value
