"""The named scenarios."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from polyarm.environments.bimodal import BIMODAL_BEST, BIMODAL_BOTH
from polyarm.environments.classification import PACKAGED, ClassificationBandit, from_classes, packaged
from polyarm.environments.disguises import Rounded, Shifted, WildStart
from polyarm.environments.drift import Drift
from polyarm.environments.exponential import ExponentialBandit
from polyarm.environments.full_feedback import from_file
from polyarm.environments.gaussian import StaticGaussian
from polyarm.environments.linear import LinearGaussian, RandomLinear
from polyarm.environments.mixtures import Component, MixtureBandit
from polyarm.environments.nonlinear import SmoothBandit
from polyarm.environments.oncology import oncology
from polyarm.environments.outliers import LinearOutliers
from polyarm.environments.revenue import Revenue
from polyarm.environments.rewards import REWARDS
from polyarm.environments.risk import JACKPOT, TAILS
from polyarm.environments.student import LinearStudent
from polyarm.errors import UnknownName, shown
from polyarm.types import Environment


@dataclass(frozen=True, slots=True)
class Scenario:
    """An environment, its name, its usual horizon, and the true number of components per arm if known.

    >>> from polyarm import make_scenario
    >>> scenario = make_scenario("heavy-tailed")
    >>> Scenario("short", scenario.environment, horizon=50).horizon
    50
    """

    name: str
    environment: Environment
    horizon: int = 1000
    n_components: tuple[int, ...] | None = None


GAPS = {  # slopes of the oracle figures: every entry of an arm's slope vector is the same number
    "a2-0.1": (-0.1, 0.1),
    "a2-0.5": (-0.5, 0.5),
    "a2-1": (-1.0, 1.0),
    "a3-0.1": (-0.1, 0.0, 0.1),
    "a3-0.5": (-0.5, 0.0, 0.5),
    "a3-1": (-1.0, 0.0, 1.0),
    "a4-0.1": (-0.2, -0.1, 0.1, 0.2),
    "a4-0.5": (-1.0, -0.5, 0.5, 1.0),
    "a4-1": (-2.0, -1.0, 1.0, 2.0),
    "a5-0.1": (-0.2, -0.1, 0.0, 0.1, 0.2),
    "a5-0.5": (-1.0, -0.5, 0.0, 0.5, 1.0),
    "a5-1": (-2.0, -1.0, 0.0, 1.0, 2.0),
}


def _flat(weight: float, slope: float, noise_sd: float = 1.0) -> Component:
    return Component(weight, (slope, slope), noise_sd)


MIXTURE_A = MixtureBandit(((_flat(0.5, 1), _flat(0.5, 2)), (_flat(0.3, 0), _flat(0.7, 3))))
MIXTURE_B = MixtureBandit(
    ((_flat(1.0, 1),), (_flat(0.5, 1), _flat(0.5, 2)), (_flat(0.3, 0), _flat(0.6, 3), _flat(0.1, 4)))
)


def heavy_tailed(outlier_sd: float = 10.0) -> MixtureBandit:
    """Two arms, a quarter of whose rewards are outliers."""
    return MixtureBandit(tuple((_flat(0.75, slope), _flat(0.25, slope, outlier_sd)) for slope in (0, 2)))


def _gaussian(name: str, gap: float) -> Scenario:
    return Scenario(name, StaticGaussian((-gap, gap)), 1500, (1, 1))


def _linear_gaussian(name: str, slopes: tuple[float, ...]) -> Scenario:
    return Scenario(name, LinearGaussian(tuple((s, s) for s in slopes)), 500, (1,) * len(slopes))


def _linear(name: str, n_arms: int, n_nonzero: int) -> Scenario:
    return Scenario(name, RandomLinear(n_arms, n_nonzero=n_nonzero), 1500, (1,) * n_arms)


def _mixture(name: str, bandit: MixtureBandit) -> Scenario:
    return Scenario(name, bandit, 1000, bandit.n_components)


def _outliers(name: str, share: float, outlier_sd: float = 10.0) -> Scenario:
    bandit = LinearOutliers(outlier_share=share, outlier_sd=outlier_sd)
    return Scenario(name, bandit, 1500, bandit.n_components)


def _plain(name: str, environment: Environment, horizon: int = 1000) -> Scenario:
    return Scenario(name, environment, horizon)


def _table(name: str, table: str, n_columns: int | None = None) -> Scenario:
    return one_pass(name, packaged(table, n_columns))


def one_pass(name: str, bandit: ClassificationBandit) -> Scenario:
    """The scenario that goes once through the rows of a table."""
    return Scenario(name, bandit, len(bandit.classes))


def _bimodal(name: str, bandit: MixtureBandit) -> Scenario:
    return Scenario(name, bandit, 2000, bandit.n_components)


Builder = Callable[[str], Scenario]
# Every scenario, by its settings: a new one adds a line; the first setting is the one that the bare name means.
SETTINGS: dict[str, dict[str, Builder]] = {
    "gaussian": {f"{gap:g}": partial(_gaussian, gap=gap) for gap in (0.5, 0.1, 1.0)},
    "linear-gaussian": {
        setting: partial(_linear_gaussian, slopes=GAPS[setting])
        for setting in sorted(GAPS, key=lambda setting: setting != "a2-0.5")
    },
    "linear": {"": partial(_linear, n_arms=8, n_nonzero=10)},
    "sparse-linear": {
        "": partial(_linear, n_arms=7, n_nonzero=3),  # as published; the paper's text says 8 arms
        "8-arms": partial(_linear, n_arms=8, n_nonzero=3),
    },
    "mixture-a": {"": partial(_mixture, bandit=MIXTURE_A)},
    "mixture-b": {"": partial(_mixture, bandit=MIXTURE_B)},
    "heavy-tailed": {
        "": partial(_mixture, bandit=heavy_tailed()),  # as published; the paper's text says variance 10
        "variance-10": partial(_mixture, bandit=heavy_tailed(10.0**0.5)),
        "rounded": partial(_plain, environment=Rounded(heavy_tailed())),
        "shifted": partial(_plain, environment=Shifted(heavy_tailed(), 100 / 12**0.5)),  # 100 sd of a U(0, 1) column
        "wild-start": partial(_plain, environment=WildStart(heavy_tailed())),
    },
    "exponential": {"": lambda name: Scenario(name, ExponentialBandit())},
    "oncology": {"": lambda name: Scenario(name, oncology())},
    "linear-outliers": {
        "": partial(_outliers, share=0.1),
        "sd-30": partial(_outliers, share=0.1, outlier_sd=30.0),
        "sd-10000": partial(_outliers, share=0.1, outlier_sd=1e4),
    },
    "linear-noise": {
        "": partial(_outliers, share=0.0),
        "rounded": partial(_plain, environment=Rounded(LinearOutliers(outlier_share=0.0)), horizon=1500),
        "shifted": partial(_plain, environment=Shifted(LinearOutliers(outlier_share=0.0), 100.0), horizon=1500),
        "wild-start": partial(_plain, environment=WildStart(LinearOutliers(outlier_share=0.0)), horizon=1500),
    },
    "student": {"": lambda name: Scenario(name, LinearStudent(), 1500)},
    "revenue": {"": lambda name: Scenario(name, Revenue())},
    "bimodal": {
        "best": partial(_bimodal, bandit=BIMODAL_BEST),
        "both": partial(_bimodal, bandit=BIMODAL_BOTH),
    },
    "risk": {"tails": partial(_bimodal, bandit=TAILS), "jackpot": partial(_bimodal, bandit=JACKPOT)},
    "nonlinear": {"": lambda name: Scenario(name, SmoothBandit())},
    "drift": {
        "": lambda name: Scenario(name, Drift(), 2000),
        "abrupt": lambda name: Scenario(name, Drift(abrupt=True), 2000),
    },
    "digits": {"20": partial(_table, table="digits", n_columns=20), "64": partial(_table, table="digits")},
    "breast-cancer": {"": partial(_table, table="breast-cancer")},
    "wine": {"": partial(_table, table="wine")},
    **{
        name: {setting: partial(_plain, environment=e, horizon=n) for setting, (e, n) in settings.items()}
        for name, settings in REWARDS.items()
    },
}
NAMES = tuple(SETTINGS)
REAL = ("oncology", *PACKAGED)  # need data: a download or a package
CLASSES = "classes:"  # before the path of a classification table


def scenario_names() -> list[str]:
    """Every scenario with every setting, as `make_scenario` takes them.

    >>> "heavy-tailed" in scenario_names()
    True
    """
    return [f"{name}/{setting}".rstrip("/") for name, settings in SETTINGS.items() for setting in settings]


def make_scenario(name: str, data: str | Path | None = None) -> Scenario:
    """The scenario of that name, or the full-feedback table in that CSV or Parquet file.

    `classes:FILE.csv` is a classification table (see `from_classes`); `data` is a local copy of the oncology data.

    >>> scenario = make_scenario("mixture-b")
    >>> scenario.name, scenario.horizon
    ('mixture-b', 1000)
    """
    if name.startswith(CLASSES):
        path = Path(name.removeprefix(CLASSES))
        return one_pass(path.stem, from_classes(path))
    if Path(name).suffix in (".csv", ".parquet"):
        return Scenario(Path(name).stem, from_file(name))
    if name == "oncology":
        return Scenario(name, oncology(data))
    base, _, setting = name.partition("/")
    settings = SETTINGS.get(base)
    if settings is None:
        raise UnknownName(f"scenario must be one of {', '.join(NAMES)}, got {shown(name)}")
    setting = setting or next(iter(settings))
    if setting not in settings:
        known = ", ".join(f"{base}/{s}".rstrip("/") for s in settings)
        raise UnknownName(f"scenario must be one of {known}, got {shown(name)}")
    return settings[setting](f"{base}/{setting}".rstrip("/"))
