"""The estimators are those of the Open Bandit Pipeline (Saito et al. 2021), written out here from its documentation."""

from typing import Any

import numpy as np
import pytest

from polyarm import evaluate
from polyarm.evaluation import Evaluation
from polyarm.types import Array
from tests.evaluation.worlds import ARMS, TARGET, World, make_world

NAMES = ("replay", "ips", "clipped", "snips", "direct", "dr", "switch")
CLIP, SWITCH = 1.7, 1.3


class Fitted:
    """A reward model that was fitted elsewhere."""

    slopes = np.array([[0.8, 0.1], [-0.7, 0.3], [0.2, 0.9]])

    def predict(self, contexts: Array) -> Array:
        return np.asarray(contexts @ self.slopes.T + 0.5)


def pipeline(world: World, target: Array, q: Array) -> dict[str, float]:
    """Values of the pipeline's estimators."""
    n = len(world.rewards)
    pscore = world.logging[np.arange(n), world.arms]
    iw = target[np.arange(n), world.arms] / pscore
    base = np.average(q, weights=target, axis=1)
    shift = world.rewards - q[np.arange(n), world.arms]
    return {
        "ips": float((world.rewards * iw).mean()),
        "clipped": float((world.rewards * np.minimum(iw, CLIP)).mean()),
        "snips": float((world.rewards * iw / iw.mean()).mean()),
        "direct": float(base.mean()),
        "dr": float((base + iw * shift).mean()),
        "switch": float((base + np.array(iw <= SWITCH, dtype=int) * iw * shift).mean()),
    }


def run(world: World, estimators: tuple[str, ...] = NAMES) -> Evaluation:
    return evaluate(world.columns(), TARGET, estimators, "normal", arms=ARMS, model=Fitted(), clip=CLIP, switch=SWITCH)


@pytest.mark.parametrize(("n", "scale"), [(1, 1.0), (7, 1.0), (1000, 1.0), (1000, 1e6), (1000, 1e-6)])
def test_values_are_the_pipelines(n: int, scale: float) -> None:
    world = make_world(n, n)
    world = world._replace(rewards=world.rewards * scale)
    found = run(world)
    for name, value in pipeline(world, world.target, Fitted().predict(world.contexts)).items():
        assert found["as_function", name].value == pytest.approx(value, rel=1e-10, abs=1e-10)


def test_replay_of_a_deterministic_target_on_a_uniform_log_is_the_pipelines() -> None:
    world = make_world(2000, 5)
    rng = np.random.default_rng(1)
    world = world._replace(logging=np.full((2000, 3), 1 / 3), arms=rng.integers(3, size=2000))
    chosen = world.target.argmax(axis=1)
    match = chosen == world.arms
    expected = float((match * world.rewards / match.mean()).mean())
    found = evaluate(world.columns(choice=np.array(ARMS)[chosen]), "column:choice", "replay", "normal")
    assert found["replay"].value == pytest.approx(expected, abs=1e-10)


def test_a_log_split_into_many_batches_gives_the_same() -> None:
    import pyarrow as pa

    world = make_world(3000, 2)
    whole = pa.table(world.columns())
    pieces = pa.Table.from_batches([b for start in range(0, 3000, 7) for b in whole.slice(start, 7).to_batches()])
    options = {"model": Fitted(), "clip": CLIP, "switch": SWITCH}
    both = [evaluate(log, TARGET, NAMES, "normal", **options) for log in (whole, pieces)]  # type: ignore[arg-type]
    for one, other in zip(both[0].estimates, both[1].estimates, strict=True):
        if one.estimator != "replay":  # its lots are drawn batch by batch
            assert other.value == pytest.approx(one.value, rel=1e-12)
            assert other.se == pytest.approx(one.se, rel=1e-9)


def test_standard_errors_are_those_of_the_rows() -> None:
    world = make_world(500, 3)
    found = run(world)
    n, rows = 500, np.arange(500)
    w = world.target[rows, world.arms] / world.logging[rows, world.arms]
    gain = w * world.rewards
    assert found["ips"].se == pytest.approx(gain.std(ddof=1) / np.sqrt(n), rel=1e-9)
    centred = w * (world.rewards - found["snips"].value) / w.mean()
    assert found["snips"].se == pytest.approx(centred.std(ddof=1) / np.sqrt(n), rel=1e-9)


def test_differences_are_paired() -> None:
    world = make_world(500, 4)
    found = evaluate(world.columns(), {"t": TARGET, "same": TARGET, "u": "uniform"}, ["ips", "snips"], "normal")
    zero = next(d for d in found.differences if (d.target, d.versus) == ("same", "t"))
    assert zero.value == pytest.approx(0, abs=1e-12)
    assert zero.se == pytest.approx(0, abs=1e-9)
    own = next(d for d in found.differences if (d.target, d.versus, d.estimator) == ("u", "the log", "ips"))
    rows = np.arange(500)
    terms = world.rewards * (1 / 3 / world.logging[rows, world.arms] - 1)
    assert own.value == pytest.approx(terms.mean(), rel=1e-9)
    assert own.se == pytest.approx(terms.std(ddof=1) / np.sqrt(500), rel=1e-9)


@pytest.mark.parametrize("interval", ["normal", "bootstrap", "empirical-bernstein", "betting"])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"reward": [3.0] * 50},
        {"reward": [0.0] * 50},
        {"reward": [1e90, -1e90] * 25},
        {"reward": [True, False] * 25},
        {"propensity": [1e-11] * 50},
        {"x": [None] * 50},
        {"x": ["same"] * 50},
        {"x": [1e7, -1e7] * 25},
        {"arm": ["a"] * 50, "propensity": [1.0] * 50},
        {"n": 1},
        {"n": 2},
    ],
    ids=str,
)
def test_odd_logs_give_intervals_the_right_way_round(change: dict[str, Any], interval: str) -> None:
    log = {name: list(values) for name, values in make_world(50, 9).columns().items()} | change
    n = log.pop("n", 50)
    log = {name: values[:n] for name, values in log.items()}
    tails = ("quantile:0.1", "shortfall:0.1")
    found = evaluate(log, ["uniform", "arm:a"], (*NAMES, *tails), interval, arms=ARMS, model="ridge")
    for estimate in found.estimates:
        assert estimate.low <= estimate.high
        assert estimate.interval == "none" or not np.isnan(estimate.low)
    assert found.to_json()
    assert found.html(figures=False)
