"""A demonstration: customers who come, see one of three offers, and pay skewed amounts a few seconds later."""

import threading
import time

import numpy as np

from polyarm.client import Client
from polyarm.errors import PolyarmError
from polyarm.service.messages import Column, ExperimentSettings

NAME = "demo-offers"
ARMS = ("basic", "bundle", "premium")
PER_SECOND = 25.0
LATEST = 3.0  # seconds until a customer has paid
SETTINGS = ExperimentSettings(
    name=NAME,
    arms=list(ARMS),
    context=[Column("basket"), Column("returning", "flag")],
    min_propensity=0.01,
    seed=7,
    window=5.0,
    holdout=0.1,
    control="basic",
)


def amount(arm: str, basket: float, returning: bool, rng: np.random.Generator) -> float:
    """What a customer pays: log-normal, most for the bundle unless the basket is small."""
    level = {"basic": 2.2, "bundle": 1.9 + 0.5 * basket, "premium": 1.7 + 0.6 * basket * returning}[arm]
    return float(np.exp(level + 0.6 * rng.standard_normal()))


def send_traffic(address: str, stop: threading.Event, key: str | None = None, seed: int = 0) -> None:
    """Send customers until told to stop."""
    rng = np.random.default_rng(seed)
    due: list[tuple[float, str, float]] = []
    with Client(address, NAME, key) as client:
        while not stop.wait(float(rng.exponential(1.0 / PER_SECOND))):
            basket, returning = float(rng.gamma(2.0, 0.6)), bool(rng.random() < 0.4)
            try:
                decision = client.choose({"basket": basket, "returning": returning})
                pays_at = time.monotonic() + LATEST * float(rng.random())
                due.append((pays_at, decision.id, amount(decision.arm, basket, returning, rng)))
                ready = [event for event in due if event[0] <= time.monotonic()]
                if ready:
                    client.learn_many([event[1] for event in ready], [event[2] for event in ready])
                    due = [event for event in due if event not in ready]
            except PolyarmError:  # paused by a button, or the server is going down: the customer leaves
                stop.wait(1.0)
