import errno
import json
import os
import subprocess
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path

import pytest

import polyarm
from polyarm.cli import main
from polyarm.environments.presets import make_scenario
from polyarm.experiments.running.policy_specs import PolicySpec
from polyarm.experiments.warm import all_policies

SMALL = ["--realizations", "3", "--horizon", "30", "--workers", "1", "--quiet"]


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "scenarios"]) == 0
    scenarios = capsys.readouterr().out.split()
    assert {"mixture-a", "linear-gaussian/a3-0.5", "gaussian/0.1", "oncology"} <= set(scenarios)
    assert main(["list", "policies"]) == 0
    assert {"nonparametric", "optimal", "neural-rms"} <= set(capsys.readouterr().out.split())
    assert main(["list", "targets"]) == 0
    assert {"mixture-a", "growth", "run-times"} <= set(capsys.readouterr().out.split())


def test_compare_writes_the_fixed_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "mixture-a", "--policy", "linear", "--policy", "optimal", *SMALL]
    assert main([*command, "--json", str(tmp_path / "verdict.json")]) == 0
    assert "mixture-a: cumulative expected regret at t = 30, R = 3, seed 0" in capsys.readouterr().out
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert set(verdict) == {"scenario", "horizon", "realizations", "seed", "policies", "differences"}
    assert (verdict["scenario"], verdict["horizon"], verdict["realizations"], verdict["seed"]) == (
        "mixture-a",
        30,
        3,
        0,
    )
    linear = verdict["policies"]["linear"]
    assert set(linear["regret"]) == {"mean", "se", "std", "median", "p95"}
    assert set(linear["observed_regret"]) == {"mean", "std"}
    assert set(linear) == {
        "regret",
        "observed_regret",
        "optimal_arm_share",
        "lock_in_share",
        "seconds_per_realization",
    }
    difference = verdict["differences"]["optimal"]
    assert difference["versus"] == "linear"
    assert difference["ci95"][0] <= difference["mean"] <= difference["ci95"][1]
    assert difference["mean"] == pytest.approx(-linear["regret"]["mean"])


def test_single_realization_is_valid_json(tmp_path: Path) -> None:
    command = ["compare", "mixture-a", "--policy", "linear", "--policy", "uniform", *SMALL]
    assert main([*command, "--only", "2", "--json", str(tmp_path / "v.json")]) == 0
    assert json.loads((tmp_path / "v.json").read_text())["policies"]["linear"]["regret"]["se"] is None


def test_compare_leaves_tables_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "heavy-tailed", *SMALL, "--out", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    pictures = {f"{stem}{suffix}" for stem in ("regret", "densities", "learning") for suffix in (".png", ".pdf")}
    tables = {f"{stem}{suffix}" for stem in ("table", "differences") for suffix in (".csv", ".md", ".tex")}
    assert names == {"results.parquet"} | pictures | tables
    shown = capsys.readouterr().out
    policies = ("nonparametric", "nonparametric-paper", "linear", "oracle-mixture", "optimal")
    assert all(policy in shown for policy in policies)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "nowhere"], "scenario must be one of gaussian"),
        (["compare", "mixture-a", "--policy", "nobody"], "policy must be one of"),
        (["compare", "mixture-a", "--policy", "linear:colour=3"], "options of policy 'linear' must be its settings"),
        (["compare", "mixture-a", "--policy", "linear", "--realizations", "0"], "realizations must be"),
        (["compare", "mixture-a", "--policy", "linear", "--horizon", "-3"], "horizon must be"),
        (["compare", "mixture-a", "--policy", "linear", "--workers", "0"], "workers must be"),
        (["compare", "mixture-a", "--policy", "linear", "--out", "/dev/null/x"], "out must be a folder"),
        (["compare", "mixture-a", "--policy", "linear", "--json", "/nowhere/x.json"], "json must be in a folder"),
        (["compare", "mixture-a", "--policy", "linear", "--json", "/tmp"], "json must be a file, not a folder"),
        (["compare", "mixture-a", "--policy", "linear", "--only", "3000000000"], "only must be an integer from 0 to"),
        (["compare", "mixture-a", "--policy", "linear", "--only", str(10**30)], "only must be an integer from 0 to"),
        (["compare", "mixture-a", "--policy", "linear", "--horizon", str(2**31 - 1)], "horizon must be short enough"),
        (["compare", "mixture-a", "--policy", "linear", "--horizon", str(10**30)], "horizon must be an integer from"),
        (["compare", "mixture-a", "--policy", "linear", "--realizations", str(10**10)], "realizations must be an int"),
        (["compare", "mixture-a", "--policy", "linear", "--realizations", str(10**30)], "realizations must be an int"),
        (["compare", "oncology", "--data", "/nowhere.csv"], "oncology data must be a readable file"),
        (["compare", "none.csv"], "must be a readable CSV file"),
        (["reproduce", "nothing"], "target must be one of linear"),
        (["reproduce", "mixture-a", "--realizations", "0"], "realizations must be"),
        (["reproduce", "mixture-a", "--realizations", str(10**10)], "realizations must be"),
        (["reproduce", "mixture-a:²"], "target must be a name, or a name with a number"),
        (["reproduce", "mixture-a", "--summary", "/tmp"], "summary must be a file, not a folder"),
        (["reproduce", "mixture-a", "--out", "/dev/null/x"], "out must be a folder"),
        (["bench", "--json", "/tmp"], "json must be a file, not a folder"),
        (["warm", "--workers", "0"], "workers must be"),
    ],
)
def test_mistakes_are_told_with_code_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("polyarm: ")
    assert message in error
    assert error.count("\n") == 1


def test_interruption_has_its_own_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("polyarm.experiments.comparison.run_study", interrupt)
    assert main(["compare", "mixture-a", "--policy", "linear", *SMALL]) == 130
    assert "continues where it stopped" in capsys.readouterr().err


def test_dead_worker_has_its_own_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def die(*args: object, **kwargs: object) -> None:
        raise BrokenExecutor("killed")

    monkeypatch.setattr("polyarm.experiments.comparison.run_study", die)
    assert main(["compare", "mixture-a", "--policy", "linear", *SMALL]) == 1
    assert "a worker died (killed)" in capsys.readouterr().err


def full(*args: object, **kwargs: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "results.parquet")


@pytest.mark.parametrize("broken", ["polyarm.experiments.running.store.write_table", "polyarm.files.write_atomically"])
def test_a_full_disk_is_told_in_one_line(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(broken, full)
    files = ["--out", str(tmp_path / "out"), "--json", str(tmp_path / "verdict.json")]
    assert main(["compare", "mixture-a", "--policy", "uniform", *SMALL, *files]) == 1
    error = capsys.readouterr().err
    assert error == (
        "polyarm: No space left on device (results.parquet); with --out, the same command continues where it stopped\n"
    )


def test_too_little_memory_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def greedy(*args: object, **kwargs: object) -> None:
        raise MemoryError("Unable to allocate 7 PiB")

    monkeypatch.setattr("polyarm.experiments.comparison.run_study", greedy)
    assert main(["compare", "mixture-a", "--policy", "linear", *SMALL]) == 1
    assert capsys.readouterr().err.startswith("polyarm: not enough memory (Unable to allocate 7 PiB); try fewer")


def test_a_reader_that_has_seen_enough_gets_no_traceback() -> None:
    command = f"{sys.executable} -m polyarm.cli list policies"
    done = subprocess.run(f"{command} | head -c 1 > /dev/null", shell=True, capture_output=True, text=True)
    assert done.stderr == ""


def test_warm_compiles_ahead(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("polyarm.experiments.warm.DEFAULT", PolicySpec("linear"))
    assert main(["warm", "--workers", "1"]) == 0
    assert "compiled kernels of 1 policies are in /" in capsys.readouterr().out
    scenario = make_scenario("mixture-a")
    for spec in all_policies():
        spec.build(scenario)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.strip() == polyarm.__version__
