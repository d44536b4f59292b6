"""The verdict on a comparison, as plain values."""

import math
from typing import Any

from polyarm.errors import require_name
from polyarm.experiments.reporting.statistics import holm, paired_difference, summarize
from polyarm.experiments.running.results import Results


def policy_summary(results: Results, label: str) -> dict[str, Any]:
    """Regret, play and time of one policy."""
    observed = summarize(results.final(label, "observed_regret"))
    return {
        "regret": summarize(results.final(label))._asdict(),
        "observed_regret": {"mean": observed.mean, "std": observed.std},
        "optimal_arm_share": float(results.optimal_share(label)[:, -1].mean()),
        "lock_in_share": float(results.locked_in(label).mean()),
        "seconds_per_realization": float(results.final(label, "seconds").mean()),
    }


def differences(results: Results, reference: str) -> dict[str, Any]:
    """Paired differences in regret of every other policy against the reference."""
    others = [label for label in results.labels if label != reference]
    base = results.final(reference)
    found = [paired_difference(results.final(label), base) for label in others]
    corrected = holm([difference.p_value for difference in found])
    return {
        label: {
            "versus": reference,
            "mean": difference.mean,
            "ci95": [difference.low, difference.high],
            "p_value": difference.p_value,
            "p_holm": p_holm,
        }
        for label, difference, p_holm in zip(others, found, corrected, strict=True)
    }


def summary(results: Results, reference: str | None = None) -> dict[str, Any]:
    """Everything `polyarm compare --json` writes."""
    reference = require_name(reference or results.labels[0], results.labels, "reference")
    return {
        "scenario": results.settings["scenario"],
        "horizon": results.horizon,
        "realizations": len(results.realizations),
        "seed": results.settings["seed"],
        "policies": {label: policy_summary(results, label) for label in results.labels},
        "differences": differences(results, reference),
    }


def without_nan(value: Any) -> Any:
    """The same value with null for what is not a number, as JSON wants it."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
