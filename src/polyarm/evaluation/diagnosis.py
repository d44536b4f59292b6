"""Whether an answer can be trusted, and a sentence that says so."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from polyarm.evaluation.propensity_test import PropensityVerdict
from polyarm.evaluation.weights import LargeWeight, Weights

TOO_FEW, FEW = 30.0, 200.0  # effective rows below which a mean says nothing, or little
TOO_FEW_PAID = 10.0  # effective rows that pay anything below which a rate says nothing
TOO_MUCH_OUTSIDE, MUCH_OUTSIDE = 0.05, 0.005  # share of the target's choices that the log never tries
TOO_DOMINANT, DOMINANT = 0.25, 0.05  # share of all weight in one row
MANY_BAD = 0.05  # share of rows set aside
FAR = 4.0  # standard errors of a mean weight from 1


class LogDiagnosis(NamedTuple):
    """What the log itself is like."""

    n_rows: int
    n_used: int
    set_aside: dict[str, int]
    set_aside_lines: tuple[str, ...]
    arms: tuple[str, ...]
    plays: dict[str, int]
    context: tuple[str, ...]
    left_out: tuple[str, ...]
    propensities: str
    smallest_propensity: float
    test: PropensityVerdict
    n_duplicates: int | None
    duplicates_exact: bool
    duplicate_examples: tuple[str, ...]
    reward_range: tuple[float, float]

    def faults(self) -> Iterator[str]:
        """Reasons to trust no number from this log."""
        if self.n_duplicates:
            about = "" if self.duplicates_exact else "about "
            some = ", ".join(self.duplicate_examples)
            yield (
                f"{about}{self.n_duplicates} rows repeat an id that came before ({some}): the log holds decisions more "
                "than once, so remove the copies"
            )
        if self.test.rejected:
            yield (
                f"the propensities are not those that the log was played by: {self.test.worst} "
                f"(p = {self.test.p_value:.1g})"
            )

    def cautions(self) -> Iterator[str]:
        """Reasons to take every number from this log with care."""
        if self.propensities == "estimated":
            yield "the propensities were estimated from the log: what decided and was not logged biases all"
        if self.n_rows - self.n_used > MANY_BAD * self.n_rows:
            share = (self.n_rows - self.n_used) / self.n_rows
            yield f"{share:.0%} of the rows could not be used, which biases all if they differ from the others"


class TargetDiagnosis(NamedTuple):
    """How much the log says about one target."""

    target: str
    n: int
    effective: float
    effective_signal: float
    mean_weight: float
    mean_weight_se: float
    largest: tuple[LargeWeight, ...]
    share_of_largest: float
    share_of_top: float
    outside: float
    level: str
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        out = self._asdict()
        out["largest"] = [large._asdict() for large in self.largest]
        return out


def diagnose(name: str, weights: Weights, log: LogDiagnosis, never_played: float | None) -> TargetDiagnosis:
    """Judge one target; `never_played` is the share of its choices on arms that the log never has, where known."""
    outside = outside_support(weights, never_played)
    faults, cautions = [*log.faults()], [*log.cautions()]
    if weights.total <= 0:
        faults.append("the log never plays what the target would")
    elif outside > TOO_MUCH_OUTSIDE:
        faults.append(
            f"{outside:.0%} of what the target would do the log never tries, and nobody can know what that pays"
        )
    elif outside > MUCH_OUTSIDE:
        cautions.append(f"{outside:.1%} of what the target would do the log never tries")
    if weights.mean > 1 + FAR * weights.mean_se and weights.mean > 1.001 and not log.test.rejected:
        faults.append(
            f"the weights average {weights.mean:.3g} where 1 is due, so the propensities or the target's are wrong"
        )
    if 0 < weights.effective < TOO_FEW:
        faults.append(f"the {weights.n} rows are worth only {weights.effective:.0f} of the target's own")
    elif 0 < weights.effective < FEW:
        cautions.append(f"the {weights.n} rows are worth only {weights.effective:.0f} of the target's own")
    if weights.effective >= TOO_FEW and 0 < weights.effective_signal < TOO_FEW:
        worth = f"all reward comes from what is worth {weights.effective_signal:.0f} rows: too few others pay anything"
        (faults if weights.effective_signal < TOO_FEW_PAID else cautions).append(worth)
    if weights.share_of_largest > TOO_DOMINANT and weights.effective >= TOO_FEW:
        faults.append(f"one row has {weights.share_of_largest:.0%} of all weight")
    elif weights.share_of_largest > DOMINANT and weights.effective >= TOO_FEW:
        cautions.append(f"one row has {weights.share_of_largest:.0%} of all weight")
    level = "no" if faults else "care" if cautions else "yes"
    return TargetDiagnosis(
        target=name,
        n=weights.n,
        effective=weights.effective,
        effective_signal=weights.effective_signal,
        mean_weight=weights.mean,
        mean_weight_se=weights.mean_se,
        largest=tuple(weights.largest),
        share_of_largest=weights.share_of_largest,
        share_of_top=weights.share_of_top(),
        outside=outside,
        level=level,
        sentence=sentence(name, faults, cautions, weights),
    )


def outside_support(weights: Weights, never_played: float | None) -> float:
    """Share of the target's choices that the log never tries: known exactly, or what the mean weight lacks of 1."""
    lacking = 1 - weights.mean
    if lacking < FAR * weights.mean_se or lacking < MUCH_OUTSIDE:
        lacking = 0.0
    return max(never_played or 0.0, lacking, 0.0)


def sentence(name: str, faults: list[str], cautions: list[str], weights: Weights) -> str:
    """The verdict on one target, plainly."""
    if faults:
        return f"{name}: this log cannot tell; {'; '.join(faults)}."
    worth = f"{weights.n} rows are worth {weights.effective:.0f} of the target's own"
    if cautions:
        return f"{name}: with care; {'; '.join(cautions)}."
    return f"{name}: the log can tell; {worth}."
