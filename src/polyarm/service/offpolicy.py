"""What always playing one arm would have earned, from the sums that the log keeps: no decision is read again.

Self-normalised importance weighting: theta = sum w r / sum w over the arm's own plays, w = 1 / propensity;
var theta = sum w^2 (r - theta)^2 / (sum w)^2, by the delta method.
"""

import math
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from polyarm.service.catalog import Experiment
from polyarm.service.schema import long_rollups

FEW = 30.0  # effective plays under which a normal interval cannot be trusted


class Value(NamedTuple):
    """Estimated mean reward of always playing an arm; no interval where too little is known."""

    arm: str
    mean: float
    interval: tuple[float, float] | None
    effective: float


def always_each_arm(connection: Connection, experiment: Experiment) -> list[Value]:
    """The value of always playing each arm."""
    names = ("w", "wr", "ww", "wwr", "wwrr")
    query = (
        select(long_rollups.c.arm, *(func.sum(long_rollups.c[name]).label(name) for name in names))
        .where(long_rollups.c.experiment == experiment.name, long_rollups.c.span == 0)
        .group_by(long_rollups.c.arm)
    )
    sums = {row.arm: row for row in connection.execute(query)}
    found = []
    for arm in experiment.arms:
        row = sums.get(arm)
        if row is None or not row.w:
            continue
        mean, effective = row.wr / row.w, row.w**2 / row.ww
        half = 1.96 * math.sqrt(max(row.wwrr - 2 * mean * row.wwr + mean**2 * row.ww, 0.0)) / row.w
        found.append(Value(arm, mean, (mean - half, mean + half) if effective >= FEW else None, effective))
    return found
