"""Behaviour on the Showdown's linear bandit against the published curves (baselines.md, sections 15 and 17)."""

import os

import numpy as np
import pytest

from polyarm.neural import presets
from polyarm.neural.simulate import simulate
from tests.neural.worlds import linear_worlds, observed_regret


@pytest.mark.parametrize(("n_arms", "expected"), [(8, 1.42), (7, 1.35)])
def test_regret_of_the_first_round(n_arms: int, expected: float) -> None:
    worlds = linear_worlds(4000, 1, n_arms=n_arms)
    regret = observed_regret(worlds, np.zeros((4000, 1), np.int64))
    assert regret.mean() == pytest.approx(expected, abs=0.05)


PUBLISHED_AT_50 = {
    "neural-linear": 67.6,
    "neural-bootstrapped": 53.7,
    "neural-dropout": 53.5,
    "neural-param-noise": 53.8,
    "multitask-gp": 69.4,
    "bnn-variational": 61.1,
    "bnn-alpha": 69.7,
}


COSTLY = ("bnn-alpha", "bnn-variational", "neural-bootstrapped")  # half a minute each
LIKE_RMS = ("neural-dropout", "neural-param-noise")  # too close to its regret to tell them apart here
slow = pytest.mark.skipif(not os.environ.get("POLYARM_LONG"), reason="slow: make test-long runs it")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=slow) if name in (*COSTLY, *LIKE_RMS) else name for name in PUBLISHED_AT_50],
)
def test_regret_after_50_rounds_is_the_published_one(name: str) -> None:
    """Within 3.5 standard errors; costly networks get fewer realisations."""
    n_worlds = {"bnn-alpha": 2, "bnn-variational": 4, "neural-bootstrapped": 6, "neural-dropout": 8}.get(name, 12)
    worlds = linear_worlds(n_worlds, 50, seed=1)
    arms, _ = simulate(name, worlds, np.arange(n_worlds), **presets.published_options(name, "linear"))
    regret = observed_regret(worlds, arms)[:, -1]
    assert abs(regret.mean() - PUBLISHED_AT_50[name]) < 3.5 * 8.0 / n_worlds**0.5  # their spread is about 8


def rms_regret(lr_reset: str, n_worlds: int, horizon: int, seed: int) -> np.ndarray:
    worlds = linear_worlds(n_worlds, horizon, seed=seed)
    options = presets.published_options("neural-rms", "linear")
    arms, _ = simulate("neural-rms", worlds, np.arange(n_worlds), lr_reset=lr_reset, **options)
    return observed_regret(worlds, arms)


def as_published(regret: np.ndarray) -> list[bool]:
    """Whether regret after 50 and 100 rounds is within 3.5 standard errors of 52.2 and 78.4; spreads are 8 and 12."""
    published = {50: (52.2, 8.0), 100: (78.4, 12.0)}
    limit = 3.5 / len(regret) ** 0.5
    return [
        bool(abs(regret[:, n - 1].mean() - mean) < limit * spread)
        for n, (mean, spread) in published.items()
        if n <= regret.shape[1]
    ]


@pytest.mark.parametrize(
    ("lr_reset", "n_rounds", "expected"),
    [
        ("faithful", 50, [True]),
        pytest.param("faithful", 100, [True, True], marks=slow),
        pytest.param("fixed", 100, [True, False], marks=slow),
    ],
)
def test_regret_of_rms_is_the_published_one(lr_reset: str, n_rounds: int, expected: list[bool]) -> None:
    """After 100 rounds only the rate that never restarts gives it; test_training.py proves which one that is."""
    assert as_published(rms_regret(lr_reset, 12, n_rounds, seed=1)) == expected


@slow
@pytest.mark.parametrize(("lr_reset", "n_worlds", "low", "high"), [("faithful", 4, 150, 185), ("fixed", 3, 270, 330)])
def test_regret_after_500_rounds(lr_reset: str, n_worlds: int, low: float, high: float) -> None:
    """Published 161.7, which only the rate that never restarts gives."""
    assert low < rms_regret(lr_reset, n_worlds, 500, seed=0)[:, -1].mean() < high
