"""Numbers that judge policies."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyarm import special
from polyarm.types import Array


class Summary(NamedTuple):
    """Location and spread of one value per realisation; a single value has no standard error (NaN)."""

    mean: float
    se: float
    std: float
    median: float
    p95: float


def summarize(values: Array) -> Summary:
    """Mean, standard error, standard deviation, median and 95th percentile."""
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    median, p95 = np.quantile(values, [0.5, 0.95])
    return Summary(float(np.mean(values)), std / len(values) ** 0.5, std, float(median), float(p95))


class Difference(NamedTuple):
    """Mean paired difference, its confidence interval, and the p-value of no difference."""

    mean: float
    low: float
    high: float
    p_value: float


def paired_difference(values: Array, reference: Array, level: float = 0.95) -> Difference:
    """Values minus reference, realisation by realisation, judged by the paired t test."""
    gaps = np.asarray(values - reference, dtype=np.float64)
    mean, se, *_ = summarize(gaps)
    freedom = len(gaps) - 1
    if freedom < 1:
        return Difference(mean, float("nan"), float("nan"), float("nan"))
    half = float(special.stdtrit(freedom, 0.5 + level / 2)) * se
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = float(np.divide(mean, se))
    p_value = 1.0 if mean == 0 else float(2 * special.stdtr(freedom, -abs(statistic)))
    return Difference(mean, mean - half, mean + half, p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the order given."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(corrected, 1.0)
    return [float(value) for value in result]


def z_score(mean: float, se: float, published: float, published_se: float) -> float:
    """How many combined standard errors our mean lies above the published one."""
    return (mean - published) / float(np.hypot(se, published_se))


class Growth(NamedTuple):
    """Regret fitted as factor * T^(1/2) * log(T)^log_power, and freely as T^power."""

    factor: float
    log_power: float
    power: float


def fit_growth(steps: Array, regret: Array) -> Growth:
    """Least squares in logarithms, one equation per step."""
    log_step, log_regret = np.log(steps), np.log(regret)
    ones = np.ones_like(log_step)
    fitted = np.linalg.lstsq(np.column_stack([ones, np.log(log_step)]), log_regret - log_step / 2, rcond=None)[0]
    power = np.linalg.lstsq(np.column_stack([ones, log_step]), log_regret, rcond=None)[0][1]
    return Growth(float(np.exp(fitted[0])), float(fitted[1]), float(power))


def total_variation(p: Array, q: Array, grid: Array) -> float:
    """Half the area between two densities on a grid."""
    return float(np.trapezoid(np.abs(p - q), grid) / 2)
