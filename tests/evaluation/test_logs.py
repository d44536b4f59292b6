"""Logs of every origin are read alike, and bad rows are counted and named."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from polyarm import evaluate
from polyarm.cli import main
from polyarm.errors import BrokenFile, InvalidArgument, MissingExtra, PolyarmError
from polyarm.evaluation import Evaluation
from tests.evaluation.worlds import ARMS, TARGET, make_world

WORLD = make_world(400, 0)
TABLE = pa.table(WORLD.columns())


def run(log: Any, **options: Any) -> Evaluation:
    return evaluate(log, TARGET, ["ips", "snips", "dr"], "normal", model="ridge", **options)


def numbers(found: Evaluation) -> list[float]:
    return [x for e in found.estimates for x in (e.value, e.low, e.high)]


EXPECTED = numbers(run(TABLE))


def test_every_origin_gives_the_same(tmp_path: Path) -> None:
    pa.csv.write_csv(TABLE, tmp_path / "log.csv")
    with pa.CompressedOutputStream(tmp_path / "log.csv.gz", "gzip") as stream:
        pa.csv.write_csv(TABLE, stream)
    pa.csv.write_csv(TABLE, tmp_path / "log.tsv", pa.csv.WriteOptions(delimiter="\t"))
    pa.parquet.write_table(TABLE, tmp_path / "log.parquet", row_group_size=50)
    (tmp_path / "folder").mkdir()
    for i in range(4):
        pa.parquet.write_table(TABLE.slice(100 * i, 100), tmp_path / "folder" / f"part-{i}.parquet")
    logs = [
        *(tmp_path / name for name in ("log.csv", "log.csv.gz", "log.tsv", "log.parquet", "folder")),
        str(tmp_path / "log.csv"),
        WORLD.columns(),
        pa.dataset.dataset(tmp_path / "log.parquet"),
        TABLE.to_batches()[0],
        pandas.DataFrame(WORLD.columns()),
        polars.DataFrame(WORLD.columns()),
    ]
    for log in logs:
        assert numbers(run(log)) == pytest.approx(EXPECTED, rel=1e-9), log


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'polyarm\[evaluation\]'"):
        run(TABLE)


def test_a_folder_with_partitions_is_read_as_a_dataset(tmp_path: Path) -> None:
    pa.dataset.write_dataset(TABLE, tmp_path, format="parquet", partitioning=["arm"], partitioning_flavor="hive")
    with pytest.raises(InvalidArgument, match="arm must be a column of the log"):
        run(tmp_path)
    found = run(pa.dataset.dataset(tmp_path, format="parquet", partitioning="hive"))
    assert found["ips"].value == pytest.approx(EXPECTED[3])


def test_columns_are_mapped_by_name(tmp_path: Path) -> None:
    names = {"arm": "item_id", "reward": "click", "propensity": "pscore", "id": "impression"}
    log = TABLE.rename_columns([names.get(name, name) for name in TABLE.column_names])
    assert numbers(run(log, **names)) == pytest.approx(EXPECTED)
    with pytest.raises(InvalidArgument, match="reward must be a column of the log"):
        run(log, arm="item_id")
    with pytest.raises(InvalidArgument, match="propensity must be a column of the log"):
        run(TABLE, propensity="nothing")


def test_arms_may_be_numbers() -> None:
    log = WORLD.columns(arm=WORLD.arms * 10)
    assert numbers(run(log)) == pytest.approx(EXPECTED)
    assert run(log).log.arms == ("0", "10", "20")
    assert run(log, arms=[20, 0, 10]).log.arms == ("20", "0", "10")


def bad_log() -> dict[str, Any]:
    """A log with one bad row of every kind."""
    log: dict[str, Any] = {name: list(values) for name, values in WORLD.columns().items()}
    log["reward"][3] = None
    log["reward"][4] = float("inf")
    log["arm"][5] = None
    log["arm"][6] = "stranger"
    log["propensity"][7] = 0.0
    log["propensity"][8] = 1.5
    log["propensity"][9] = None
    log["x"][10] = float("nan")
    return log


REASONS = {
    "reward is missing: the decision is still open": 1,
    "reward is not a finite number of sane size": 1,
    "arm is missing": 1,
    "arm is none of the arms": 1,
    "propensity is not above 0 and at most 1": 2,
    "propensity is missing or not a number": 1,
}


def test_bad_rows_are_counted_and_named() -> None:
    found = evaluate(bad_log(), "uniform", ["snips", "dr"], "normal", arms=ARMS, model="ridge")
    assert (
        "Context x is missing or no sane number in some rows, which are used and marked for the models." in found.notes
    )
    assert found.log.set_aside == REASONS
    assert (found.log.n_rows, found.log.n_used) == (400, 393)
    assert "Set aside: 2 rows: propensity is not above 0 and at most 1 (row 7, 8)." in found.lines()
    good = np.setdiff1d(np.arange(400), np.arange(3, 10))
    clean = TABLE.take(pa.array(good))
    uniform = [evaluate(log, "uniform", "ips", "normal", arms=ARMS)["ips"].value for log in (bad_log(), clean)]
    assert uniform[0] == pytest.approx(uniform[1])


def test_bad_values_in_text_are_counted_too(tmp_path: Path) -> None:
    lines = ["id,arm,reward,propensity,x"]
    lines += [f"{i},{'ab'[i % 2]},{i % 3},0.5,{i / 7}" for i in range(100)]
    lines[11], lines[21], lines[31] = "10,a,many,0.5,1", "20,a,1,half,1", "30,a,1,0.5"
    lines[41] = "40,a,1,0.5,warm"
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    found = evaluate(path, "uniform", "ips", "normal")
    assert found.log.set_aside == {
        "reward is not a finite number of sane size": 1,
        "propensity is missing or not a number": 1,
        "another number of values than the header": 1,
    }
    assert (found.log.n_rows, found.log.n_used) == (100, 97)


def test_probabilities_of_all_arms_are_checked_against_the_played_one() -> None:
    vectors = WORLD.logging.tolist()
    found = run(WORLD.columns(probabilities=vectors))
    assert numbers(found) == pytest.approx(EXPECTED)
    columns = WORLD.columns(probabilities=vectors)
    del columns["propensity"]
    assert numbers(run(columns)) == pytest.approx(EXPECTED)
    vectors[1] = [0.5, 0.5]
    vectors[2] = [0.5, 0.5, 0.5]
    vectors[3] = [*vectors[3][1:], vectors[3][0]]
    found = run(WORLD.columns(probabilities=vectors))
    assert found.log.set_aside == {
        "probabilities is not one probability for each of the 3 arms": 1,
        "probabilities is not a vector of probabilities that sum to 1": 1,
        "propensity is not what probabilities says of the played arm": 1,
    }


def test_context_columns_of_every_kind() -> None:
    rng = np.random.default_rng(0)
    more = {
        "device": np.array(["phone", "desktop", "tablet"])[rng.integers(3, size=400)],
        "member": rng.random(400) < 0.5,
        "session": [f"s{i}" for i in range(400)],
        "when": np.datetime64("2026-01-01") + np.arange(400),
        "": np.arange(400),
    }
    found = run(WORLD.columns(**more))
    assert found.log.context == ("x", "z", "device", "member")
    assert found.log.left_out == ("when", "", "session")
    with pytest.raises(InvalidArgument, match="context must be columns of numbers"):
        run(WORLD.columns(**more), context=["session"])
    with pytest.raises(InvalidArgument, match="context must be columns of the log"):
        run(TABLE, context=["weather"])
    assert run(TABLE, context=["z", "x"]).log.context == ("z", "x")


@pytest.mark.parametrize(
    ("log", "error", "message"),
    [
        ("nowhere.parquet", BrokenFile, "log must be a file or folder that exists"),
        ({"arm": ["a"], "reward": [1.0, 2.0]}, InvalidArgument, "log must be a path, a table"),
        (3, InvalidArgument, "log must be a path, a table"),
        ({"arm": [], "reward": [], "propensity": []}, BrokenFile, "log must have at least one row"),
        ({"arm": ["a"], "reward": [None], "propensity": [0.5]}, InvalidArgument, "log must have rows that can be used"),
    ],
)
def test_what_is_no_log_is_refused(log: Any, error: type[PolyarmError], message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate(log, "uniform", "ips", "normal")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.parquet"
    pa.parquet.write_table(TABLE.append_column("pi", pa.array(WORLD.target.tolist())), log)
    command = ["evaluate", str(log), "--target", "column:pi", "--target", "arm:b", "--estimator", "snips"]
    out, report = tmp_path / "out", tmp_path / "found.json"
    assert main([*command, "--estimator", "shortfall:0.2", "--interval", "normal", "--context", "x,z",
                 "--json", str(report), "--out", str(out)]) == 0  # fmt: skip
    shown = capsys.readouterr().out
    assert "Mean reward, 400 rows" in shown
    assert "Verdict: column:pi: the log can tell" in shown
    found = json.loads(report.read_text())
    assert set(found) == {"level", "model", "estimates", "differences", "targets", "log", "notes", "verdict"}
    assert [e["estimator"] for e in found["estimates"]] == ["reward", "shortfall:0.2", *["snips", "shortfall:0.2"] * 2]
    names = {path.name for path in out.iterdir()}
    figures = {f"{stem}.{suffix}" for stem in ("forest", "weights") for suffix in ("png", "pdf")}
    tables = {f"{s}.{suffix}" for s in ("estimates", "differences", "diagnosis") for suffix in ("csv", "md", "tex")}
    assert names == figures | tables | {"evaluation.html"}
    assert (out / "evaluation.html").read_text().count("data:image/png") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "nobody"], "target must be uniform, an arm"),
        (["--target", "arm:zzz"], "target must be one of the arms a, b, c"),
        (["--target", "column:zzz"], "target must be a column of the log"),
        (["--target", "uniform", "--estimator", "magic"], "estimator must be one of replay"),
        (["--target", "uniform", "--estimator", "quantile:2"], "quantile:2 must be a share between 0 and 1"),
        (["--target", "uniform", "--interval", "wide"], "interval must be one of normal"),
        (["--target", "uniform", "--level", "95"], "level must be a number between 0 and 1"),
        (["--target", "uniform", "--model", "magic"], "model must be one of auto"),
        (["--target", "uniform", "--reward-range", "0", "1"], "reward_range must be a range that holds all rewards"),
        (["--target", "uniform", "--min-propensity", "0.9"], "min_propensity must be at most the smallest in the log"),
        (["--target", "uniform", "--json", "/nowhere/x.json"], "json must be in a folder"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.parquet"
    pa.parquet.write_table(TABLE, log)
    assert main(["evaluate", str(log), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("polyarm: ")
    assert message in error
    assert error.count("\n") == 1
