"""The Open Bandit Dataset (Saito et al. 2021): each logger's click rate from the other's log, beside the truth."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from polyarm import evaluate
from polyarm.evaluation import Evaluation
from polyarm.types import Array

DATA = Path(os.environ.get("POLYARM_OBD", Path(__file__).parents[3] / "shared" / "data" / "obd"))
UNIFORM, THOMPSON = DATA / "random-men.csv.gz", DATA / "bts-men.csv.gz"
NAMES: dict[str, Any] = {"arm": "item_id", "reward": "click", "propensity": "propensity_score"}
CONTEXT = ["position", *(f"user_feature_{i}" for i in range(4))]
N_ITEMS = 34

pytestmark = pytest.mark.skipif(not UNIFORM.exists(), reason="the Open Bandit Dataset is not here")


def columns(path: Path) -> dict[str, Any]:
    table = pyarrow.csv.read_csv(path)
    return {name: table[name].to_numpy() for name in ("timestamp", *CONTEXT, *NAMES.values())}


def thompson_probabilities(log: dict[str, Any], thompson: dict[str, Any]) -> Array:
    """The Thompson sampler's probability of every item at each row's position, as it logged it nearest in time."""
    out = np.zeros((len(log["click"]), N_ITEMS))
    for position in (1, 2, 3):
        rows = log["position"] == position
        for item in range(N_ITEMS):
            said = (thompson["position"] == position) & (thompson["item_id"] == item)
            times = thompson["timestamp"][said]
            order = np.argsort(times)
            place = np.searchsorted(times[order], log["timestamp"][rows]).clip(1, len(times) - 1)
            before = log["timestamp"][rows] - times[order][place - 1] < times[order][place] - log["timestamp"][rows]
            out[rows, item] = thompson["propensity_score"][said][order][place - before]
    return np.asarray(out / out.sum(axis=1, keepdims=True))


@pytest.fixture(scope="module")
def from_uniform() -> Evaluation:
    log, thompson = columns(UNIFORM), columns(THOMPSON)
    log["pi"] = list(thompson_probabilities(log, thompson))
    return evaluate(log, "column:pi", ["ips", "snips", "dr"], context=CONTEXT, **NAMES)


def test_the_thompson_sampler_from_the_uniform_log(from_uniform: Evaluation) -> None:
    truth = columns(THOMPSON)["click"].mean()
    assert truth == pytest.approx(0.0069)
    for name in ("ips", "snips", "dr"):
        assert from_uniform[name].low <= truth <= from_uniform[name].high


def test_the_verdict_says_that_ten_thousand_rows_cannot_tell(from_uniform: Evaluation) -> None:
    diagnosis = from_uniform.targets[0]
    assert diagnosis.level != "yes"
    assert "all reward comes from what is worth" in from_uniform.verdict
    assert not from_uniform.log.test.rejected


def test_the_uniform_logger_from_the_thompson_samplers_log() -> None:
    found = evaluate(THOMPSON, "uniform", ["ips", "snips", "dr"], context=CONTEXT, **NAMES)
    truth = columns(UNIFORM)["click"].mean()
    assert truth == pytest.approx(0.0046)
    for name in ("ips", "snips", "dr"):
        assert found[name].low <= truth <= found[name].high
    assert found.targets[0].level == "care"
    assert 500 < found.targets[0].effective < 800
    assert not found.log.test.rejected


def test_a_log_without_its_propensities() -> None:
    found = evaluate(UNIFORM, "arm:3", "snips", "normal", arm="item_id", reward="click", context=CONTEXT)
    logged = evaluate(UNIFORM, "arm:3", "snips", "normal", context=CONTEXT, **NAMES)
    assert found.log.propensities == "estimated"
    assert found["snips"].value == pytest.approx(logged["snips"].value, abs=2 * logged["snips"].se)
