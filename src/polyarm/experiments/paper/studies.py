"""The paper's tables and figures of regret: one constant each."""

from polyarm.environments.presets import GAPS
from polyarm.experiments.paper.baselines import HORIZONS, baseline_target
from polyarm.experiments.paper.panels import Entry, Panel, PanelTarget
from polyarm.experiments.paper.published import MISSPECIFIED as PUBLISHED_MISSPECIFIED
from polyarm.experiments.paper.published import ORACLE as PUBLISHED
from polyarm.experiments.paper.published import TABLES, Published

READ_OFF = "Published values were read off figures, so no std is known: that of our observed regret stands in."
DEFAULT = "nonparametric-paper"
SIX = ("linear", "sparse-linear", "mixture-a", "mixture-b", "heavy-tailed", "exponential")

LINEAR = baseline_target(
    "linear",
    "Linear bandit, 8 arms, d = 10",
    "The paper omits LinearGaussian TS here, though it is the well-specified model; linear is the same without "
    "intercept and with prior mean 0.",
)
SPARSE_LINEAR = baseline_target(
    "sparse-linear",
    "Sparse linear bandit, 7 arms, d = 10",
    "7 arms: the paper's text says 8, its numbers say 7.",
)
MIXTURE_A = baseline_target("mixture-a", "Scenario A: Gaussian mixtures, 2 arms")
MIXTURE_B = baseline_target("mixture-b", "Scenario B: Gaussian mixtures, 3 arms")
HEAVY_TAILED = baseline_target(
    "heavy-tailed",
    "Heavy-tailed bandit",
    "The outliers have standard deviation 10: the paper's text says variance 10, its numbers do not.",
)
EXPONENTIAL = baseline_target(
    "exponential",
    "Exponential rewards",
    "The mean reward has infinite variance over contexts, so standard errors are rough: see the medians.",
)
ONCOLOGY = baseline_target(
    "oncology",
    "Precision oncology, 7 drugs, 896 cell lines",
    "Rows are drawn with replacement; a uniformly random drug has regret 2066.4, the best fixed drug 1777.6.",
)


def oracle_panel(scenario: str, horizon: int, nonparametric: str, oracle: str, realizations: int) -> Panel:
    """Nonparametric TS beside the oracle, with the end values of the published figure over so many realisations."""
    mine, theirs = (Published(mean, None, realizations) for mean in PUBLISHED[scenario])
    entries = (Entry(nonparametric, "Nonparametric TS", mine), Entry(oracle, "Oracle TS", theirs))
    return Panel(scenario, horizon, entries)


# settings of the authors' public script for these figures: Gibbs_max 10, tolerance 1 %, all-ones prior means
KNOWN_MODEL = ("nonparametric-paper:tolerance=0.01", "linear:prior_mean=1.0")
LINEAR_GAUSSIAN = PanelTarget(
    "linear-gaussian",
    "Linear Gaussian bandits against the oracle",
    tuple(oracle_panel(f"linear-gaussian/{gap}", 500, *KNOWN_MODEL, 1000) for gap in GAPS),
    1000,
    READ_OFF,
)
GAUSSIAN = PanelTarget(
    "gaussian",
    "Gaussian bandits without context against the oracle",
    tuple(oracle_panel(f"gaussian/{gap}", 1500, *KNOWN_MODEL, 1000) for gap in ("0.1", "0.5", "1")),
    1000,
    READ_OFF,
)
# settings of the authors' public script for these figures: Gibbs_max 4, tolerance 1 %
OPTIONS = "gibbs_max=4,tolerance=0.01"
KNOWN_COMPONENTS = (f"nonparametric-paper:{OPTIONS}", f"oracle-mixture:{OPTIONS}")
ORACLE_MIXTURES = PanelTarget(
    "oracle-mixtures",
    "Mixture bandits against finite-mixture oracles",
    tuple(oracle_panel(name, 500, *KNOWN_COMPONENTS, 3000) for name in ("mixture-a", "mixture-b", "heavy-tailed")),
    3000,
    READ_OFF,
)
MISSPECIFIED = PanelTarget(
    "misspecified",
    "Heavy-tailed bandit with one Gaussian per arm",
    (
        Panel(
            "heavy-tailed",
            500,
            (
                Entry(KNOWN_COMPONENTS[0], "Nonparametric TS", Published(PUBLISHED_MISSPECIFIED[0], None, 3000)),
                Entry("linear", "TS with one Gaussian per arm", Published(PUBLISHED_MISSPECIFIED[1], None, 3000)),
            ),
        ),
    ),
    3000,
    READ_OFF,
)


def variant_panels(option: str, values: tuple[float, ...], default: float, shown: str) -> tuple[Panel, ...]:
    """One panel per scenario, one curve per value; the default value is the policy of the tables."""
    return tuple(
        Panel(name, HORIZONS.get(name, 1000), tuple(_entry(name, option, value, default, shown) for value in values))
        for name in SIX
    )


def _entry(scenario: str, option: str, value: float, default: float, shown: str) -> Entry:
    if value == default:
        return Entry(DEFAULT, f"{shown} {value:g}", TABLES[scenario][DEFAULT])
    return Entry(f"{DEFAULT}:{option}={value:g}", f"{shown} {value:g}")


GIBBS_MAX = PanelTarget(
    "gibbs-max",
    "Nonparametric TS by Gibbs_max",
    variant_panels("gibbs_max", (1, 5, 10), 10, "Gibbs_max"),
    500,
    "As in the authors' code, the draw of the new reward counts as the first iteration.",
)
CONCENTRATION = PanelTarget(
    "concentration",
    "Nonparametric TS by concentration",
    variant_panels("concentration", (0.01, 0.1, 1, 5, 10), 0.1, "concentration"),
    500,
)
