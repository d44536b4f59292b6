"""Rows of a study: one per policy, realisation and checkpoint.

policy           string  label of the policy
realization      int32   number of the realisation
step             int32   steps played so far
regret           float   cumulative expected regret: sum of best mean minus the mean of the played arm
observed_regret  float   cumulative regret as in the paper: sum of best mean minus the reward received
optimal_plays    int32   steps so far at which the best arm was played
plays            list    plays of each arm so far
seconds          float   time the whole realisation took
"""

import numpy as np
import pyarrow as pa

from polyarm.experiments.running.play import Run
from polyarm.types import IntArray, World

SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("realization", pa.int32()),
        ("step", pa.int32()),
        ("regret", pa.float64()),
        ("observed_regret", pa.float64()),
        ("optimal_plays", pa.int32()),
        ("plays", pa.list_(pa.int32())),
        ("seconds", pa.float64()),
    ]
)


def last_tenth(horizon: int) -> int:
    """Step after which the last tenth of a run begins."""
    return horizon - max(1, horizon // 10)


def checkpoints(horizon: int) -> IntArray:
    """Steps at which a run is recorded: about a hundred, more of them near the start, and the last."""
    even = np.linspace(0, horizon, 81).round()
    early = np.geomspace(1, horizon, 33).round()
    steps = np.union1d(np.concatenate([even, early]), [last_tenth(horizon), horizon])
    return steps[steps >= 1].astype(np.int64)


def record(label: str, realization: int, world: World, run: Run) -> pa.Table:
    """The rows of one run."""
    arms, steps = run.arms, np.arange(len(run.arms))
    at = checkpoints(len(arms))
    best, mean = world.means.max(axis=1), world.means[steps, arms]
    plays = (arms[:, None] == np.arange(world.means.shape[1])).cumsum(axis=0)[at - 1]
    columns = {
        "policy": np.full(len(at), label),
        "realization": np.full(len(at), realization),
        "step": at,
        "regret": (best - mean).cumsum()[at - 1],
        "observed_regret": (best - world.rewards[steps, arms]).cumsum()[at - 1],
        "optimal_plays": (mean == best).cumsum()[at - 1],
        "plays": plays.tolist(),
        "seconds": np.full(len(at), run.seconds),
    }
    return pa.table(columns, schema=SCHEMA)
