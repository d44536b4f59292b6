"""Published numbers of Urteaga and Wiggins, by scenario and by the name our policy has.

TABLES: cumulative regret, mean and std, over 500 realisations.
ORACLE: mean cumulative regret of Nonparametric TS and of the Oracle TS, read off the figures.
SECONDS: run time of one realisation of the authors' implementation, by Gibbs_max.
"""

from typing import NamedTuple


class Published(NamedTuple):
    """A published mean with its std (None where only a figure shows it) over so many realisations."""

    mean: float
    std: float | None
    realizations: int


SCENARIOS = ("linear", "sparse-linear", "mixture-a", "mixture-b", "heavy-tailed", "exponential", "oncology")

_ROWS: dict[str, tuple[tuple[float, float] | None, ...]] = {
    "nonparametric-paper": (
        (189.889, 12.980),
        (157.406, 12.430),
        (27.467, 70.723),
        (44.114, 70.391),
        (99.972, 188.909),
        (67.860, 119.415),
        (1392.798, 66.030),
    ),
    "linear-showdown": (
        None,
        None,
        (51.236, 99.308),
        (65.422, 89.903),
        (142.103, 200.863),
        (116.375, 129.156),
        (1358.589, 66.218),
    ),
    "neural-linear": (
        (398.485, 18.219),
        (334.569, 16.400),
        (57.029, 91.606),
        (78.081, 94.970),
        (196.797, 273.561),
        (94.192, 125.731),
        (1392.541, 68.072),
    ),
    "neural-bootstrapped": (
        (210.914, 47.416),
        (176.136, 46.643),
        (137.878, 220.172),
        (166.907, 267.797),
        (214.427, 546.000),
        (138.577, 179.869),
        (1352.044, 139.205),
    ),
    "neural-rms": (
        (256.897, 69.191),
        (208.738, 64.960),
        (147.014, 227.547),
        (183.307, 282.358),
        (218.240, 556.263),
        (143.737, 173.734),
        (1400.774, 170.774),
    ),
    "neural-dropout": (
        (382.870, 87.055),
        (334.870, 92.306),
        (143.284, 224.607),
        (182.552, 282.107),
        (196.450, 510.753),
        (110.687, 173.952),
        (1400.064, 167.596),
    ),
    "neural-param-noise": (
        (241.039, 59.296),
        (199.122, 62.129),
        (70.493, 71.740),
        (103.703, 72.562),
        (130.734, 197.637),
        (146.497, 128.506),
        (1355.162, 85.962),
    ),
    "multitask-gp": (
        (213.648, 22.006),
        (186.023, 21.026),
        (116.178, 99.036),
        (185.676, 152.088),
        (532.727, 310.488),
        (197.159, 140.864),
        (1604.067, 114.537),
    ),
    "bnn-variational": (
        (827.369, 193.087),
        (762.321, 203.467),
        (126.860, 229.256),
        (173.787, 293.195),
        (323.231, 691.833),
        (166.212, 227.565),
        (1826.218, 207.688),
    ),
    "bnn-alpha": (
        (793.118, 43.457),
        (695.097, 39.556),
        (197.361, 66.569),
        (325.655, 68.638),
        (611.635, 187.579),
        (153.459, 122.482),
        (1917.583, 63.648),
    ),
}

TABLES: dict[str, dict[str, Published]] = {name: {} for name in SCENARIOS}
for _label, _row in _ROWS.items():
    for _name, _found in zip(SCENARIOS, _row, strict=True):
        if _found is not None:
            TABLES[_name][_label] = Published(*_found, 500)

# Mean cumulative regret over time on the linear bandit, from the vector figure of the authors' repository.
CURVE_STEPS = (50, 100, 200, 500, 1000, 1500)
LINEAR_CURVES: dict[str, tuple[float, ...]] = {
    "nonparametric-paper": (63.4, 111.5, 154.2, 179.3, 187.2, 189.9),
    "neural-linear": (67.6, 126.0, 216.6, 335.4, 382.1, 398.5),
    "neural-bootstrapped": (53.7, 80.6, 111.5, 152.6, 187.7, 210.9),
    "neural-rms": (52.2, 78.4, 109.6, 161.7, 215.7, 256.9),
    "neural-dropout": (53.5, 82.4, 121.6, 198.7, 297.1, 382.9),
    "neural-param-noise": (53.8, 83.9, 117.1, 163.8, 207.7, 241.0),
    "multitask-gp": (69.4, 136.3, 201.4, 211.7, 213.1, 213.6),
    "bnn-variational": (61.1, 104.5, 172.1, 332.8, 582.7, 827.4),
    "bnn-alpha": (69.7, 137.9, 271.6, 564.3, 721.3, 793.1),
}

ORACLE: dict[str, tuple[float, float]] = {  # T = 500, gaussian T = 1500
    "linear-gaussian/a2-0.1": (22.5, 22.0),
    "linear-gaussian/a2-0.5": (18.8, 18.0),
    "linear-gaussian/a2-1": (17.7, 16.0),
    "linear-gaussian/a3-0.1": (31.0, 31.3),
    "linear-gaussian/a3-0.5": (37.4, 38.6),
    "linear-gaussian/a3-1": (34.0, 32.9),
    "linear-gaussian/a4-0.1": (50.3, 48.9),
    "linear-gaussian/a4-0.5": (52.1, 52.4),
    "linear-gaussian/a4-1": (49.1, 49.4),
    "linear-gaussian/a5-0.1": (58.9, 59.6),
    "linear-gaussian/a5-0.5": (67.0, 66.5),
    "linear-gaussian/a5-1": (60.3, 62.9),
    "gaussian/0.1": (28.9, 30.2),
    "gaussian/0.5": (15.3, 14.8),
    "gaussian/1": (15.4, 15.4),
    "mixture-a": (28.6, 32.3),
    "mixture-b": (39.2, 46.7),
    "heavy-tailed": (71.2, 72.8),
}
MISSPECIFIED = (71.2, 84.6)  # heavy-tailed, T = 500: Nonparametric TS, and TS with one Gaussian per arm

SECONDS: dict[str, dict[int, float]] = {
    "linear": {10: 242},
    "mixture-a": {1: 136, 5: 3476, 10: 8957},
    "mixture-b": {1: 133, 5: 3421, 10: 8898},
    "heavy-tailed": {1: 86, 5: 3780, 10: 10256},
}
