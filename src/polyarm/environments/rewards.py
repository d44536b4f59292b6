"""Scenarios for every kind of reward: clicks, revenue, durations, counts, ratings, noise, windfalls, profits."""

from typing import TypeAlias

from polyarm.environments.clicks import Clicks, Rates
from polyarm.environments.counts import Counts
from polyarm.environments.durations import Durations
from polyarm.environments.laplace import LinearLaplace
from polyarm.environments.profits import Profits
from polyarm.environments.purchases import Purchases, Refunds
from polyarm.environments.ratings import Ratings
from polyarm.environments.unequal import UnequalNoise
from polyarm.environments.windfalls import Windfalls
from polyarm.types import Environment

Settings: TypeAlias = dict[str, tuple[Environment, int]]  # setting -> environment and usual horizon

REWARDS: dict[str, Settings] = {
    "rates": {
        "few": (Rates(0.01, 0.06), 10_000),
        "rare": (Rates(0.005, 0.02), 10_000),
        "common": (Rates(0.1, 0.4), 2000),
        "wide": (Rates(0.005, 0.4), 2000),
    },
    "clicks": {
        "": (Clicks(), 2000),
        "correlated": (Clicks(columns="correlated"), 2000),
        "one-hot": (Clicks(context_dim=10, columns="one-hot", slope_sd=1.0), 2000),
        "rare": (Clicks(rate=0.02), 4000),
        "frequent": (Clicks(rate=0.4), 2000),
    },
    "purchases": {
        "": (Purchases(), 2000),
        "gamma": (Purchases(amounts="gamma"), 2000),
        "fee": (Purchases(rate=0.4, fee=5.0), 2000),
    },
    "refunds": {"": (Refunds(), 2000)},
    "durations": {
        "": (Durations(), 1500),
        "weibull": (Durations(law="weibull"), 1500),
        "log-normal": (Durations(law="log-normal"), 1500),
        "exponential": (Durations(law="exponential"), 1500),
        "erlang": (Durations(law="erlang"), 1500),
    },
    "counts": {"": (Counts(), 1500), "overdispersed": (Counts(dispersion=0.5), 1500)},
    "ratings": {"": (Ratings(), 1500)},
    "laplace": {"6-arms": (LinearLaplace(6), 1500), "20-arms": (LinearLaplace(20), 1500)},
    "unequal-noise": {"": (UnequalNoise(), 1500)},
    "windfalls": {
        "": (Windfalls(), 3000),
        "frequent": (Windfalls(rate=0.1, size=20.0), 1500),
        "losses": (Windfalls(size=-50.0), 3000),
    },
    "profits": {
        "": (Profits(), 2000),
        "price": (Profits(margins="price"), 2000),
        "control": (Profits(control=True), 2000),
    },
}
