import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polyarm.environments import StaticGaussian
from polyarm.environments.presets import make_scenario
from polyarm.errors import BrokenFile, InvalidArgument, MissingExtra, UnknownName
from polyarm.experiments.comparison import Comparison, compare
from polyarm.experiments.running.executors import local_processes, open_executor
from polyarm.experiments.running.play import play
from polyarm.experiments.running.policy_specs import PolicySpec
from polyarm.experiments.running.seeds import policy_rng
from polyarm.experiments.running.store import read_metadata, write_table
from polyarm.types import IntArray, Rng, World
from tests.experiments import gamblers

MINE = {"greedy": gamblers.greedy, "bold": gamblers.bold}
SETTINGS: dict[str, Any] = {"realizations": 20, "horizon": 60, "seed": 5}


def numbers(found: Comparison | Path) -> pa.Table:
    """Every row but the time it took."""
    table = pq.read_table(found).replace_schema_metadata(None) if isinstance(found, Path) else found.results.table
    return table.drop_columns(["seconds"])


@pytest.fixture(scope="module")
def whole() -> pa.Table:
    """An uninterrupted study in one process."""
    return numbers(compare("mixture-a", MINE, **SETTINGS))


def test_rows_are_what_happened(whole: pa.Table) -> None:
    assert whole.num_rows == 2 * 20 * len(np.unique(whole["step"]))
    frame = whole.filter((pa.compute.field("policy") == "bold") & (pa.compute.field("realization") == 3))
    steps = frame["step"].to_numpy()
    assert steps[-1] == 60
    assert (np.diff(frame["regret"].to_numpy()) >= 0).all()
    assert [sum(plays) for plays in frame["plays"].to_pylist()] == steps.tolist()
    assert (frame["optimal_plays"].to_numpy() <= steps).all()


def test_two_workers_give_identical_results(whole: pa.Table) -> None:
    assert numbers(compare("mixture-a", MINE, **SETTINGS, workers=2)).equals(whole)


@pytest.mark.parametrize("make", [lambda: ThreadPoolExecutor(2), lambda: local_processes(1)])
def test_any_executor_gives_identical_results(whole: pa.Table, make: "type[Executor]") -> None:
    with make() as executor:
        assert numbers(compare("mixture-a", MINE, **SETTINGS, executor=executor)).equals(whole)


def test_one_realization_alone_matches(whole: pa.Table) -> None:
    alone = numbers(compare("mixture-a", {"bold": gamblers.bold}, **SETTINGS, only=13))
    mask = (pa.compute.field("policy") == "bold") & (pa.compute.field("realization") == 13)
    assert alone.equals(whole.filter(mask))


def test_policies_and_realizations_can_be_added(tmp_path: Path, whole: pa.Table) -> None:
    few = compare("mixture-a", {"bold": gamblers.bold}, 7, 60, 5, out=tmp_path)
    assert len(few.results.realizations) == 7
    before = pq.read_table(tmp_path / "results.parquet")["seconds"]
    assert numbers(compare("mixture-a", MINE, **SETTINGS, out=tmp_path)).equals(whole)
    after = compare("mixture-a", {"bold": gamblers.bold}, 7, 60, 5, out=tmp_path)
    assert after.results.table["seconds"].equals(before)  # not run again
    assert numbers(tmp_path / "results.parquet").equals(whole)


def test_metadata_tells_settings_and_versions(tmp_path: Path) -> None:
    compare("mixture-a", MINE, 2, 10, 5, out=tmp_path)
    about = read_metadata(tmp_path / "results.parquet")
    assert about["identity"]["scenario"] == "mixture-a"
    assert about["identity"]["seed"] == 5
    assert about["settings"]["policies"] == ["greedy", "bold"]
    assert about["versions"]["numpy"] == np.__version__
    assert about["timing"]["since_start_s"] > 0
    assert "Component(weight=0.5" in about["identity"]["environment"]


def test_another_study_in_the_folder_is_refused(tmp_path: Path) -> None:
    compare("mixture-a", MINE, 2, 10, 5, out=tmp_path)
    content = (tmp_path / "results.parquet").read_bytes()
    changes: list[dict[str, Any]] = [{"seed": 6}, {"horizon": 11}]
    for changed in changes:
        with pytest.raises(InvalidArgument, match=f"out must be a folder of the same study.*{next(iter(changed))}"):
            compare("mixture-a", MINE, 2, **({"horizon": 10, "seed": 5} | changed), out=tmp_path)
    with pytest.raises(InvalidArgument, match="one with scenario"):
        compare("mixture-b", MINE, 2, 10, 5, out=tmp_path)
    assert (tmp_path / "results.parquet").read_bytes() == content


class Silent:
    """A user's own environment that does not say what it is made of."""

    n_arms = 2
    context_dim = 1

    def __init__(self, k: float, secret: object = None) -> None:
        self.k = k
        self.secret = secret

    def sample(self, horizon: int, rng: Rng) -> World:
        means = np.tile([0.0, self.k], (horizon, 1))
        return World(np.ones((horizon, 1)), means + rng.standard_normal((horizon, 2)), means)


def test_results_of_another_environment_are_never_returned(tmp_path: Path) -> None:
    first = compare(Silent(1.0), MINE, 2, 10, out=tmp_path)
    with pytest.raises(InvalidArgument, match=r"one with environment .*k=1\.0.* instead of .*k=100\.0"):
        compare(Silent(100.0), MINE, 2, 10, out=tmp_path)
    assert numbers(compare(Silent(1.0), MINE, 2, 10, out=tmp_path)).equals(numbers(first))


def test_results_of_another_factory_under_the_same_label_are_never_returned(tmp_path: Path) -> None:
    compare("mixture-a", {"mine": gamblers.greedy, "other": gamblers.greedy}, 2, 10, out=tmp_path)
    with pytest.raises(InvalidArgument, match=r"one with settings of policy 'mine' 'greedy#.*' instead of 'bold#.*'"):
        compare("mixture-a", {"mine": gamblers.bold}, 2, 10, out=tmp_path)
    compare("mixture-a", {"new": gamblers.bold}, 2, 10, out=tmp_path)
    with pytest.raises(InvalidArgument, match="settings of policy 'other'"):  # what the last study did not name
        compare("mixture-a", {"other": gamblers.bold}, 2, 10, out=tmp_path)
    compare("mixture-a", {"other": gamblers.greedy}, 2, 10, out=tmp_path)


def test_results_of_other_options_behind_the_same_label_are_never_returned(tmp_path: Path) -> None:
    """NumPy shortens long arrays, so labels may agree where options do not."""
    means = np.zeros(2000), np.zeros(2000)
    means[1][1000] = 9.0
    first, second = (PolicySpec("uniform", (("n_arms", mean),)) for mean in means)
    assert first.label == second.label
    scenario = make_scenario("mixture-a")
    assert first.making(scenario) != second.making(scenario)


def test_an_environment_that_cannot_be_read_is_not_resumed(tmp_path: Path) -> None:
    secretive = Silent(1.0, (n for n in range(3)))
    compare(secretive, MINE, 2, 10, out=tmp_path)
    with pytest.raises(InvalidArgument, match=r"environment must be made of what can be read.*plain attributes"):
        compare(secretive, MINE, 3, 10, out=tmp_path)


def test_changed_sources_and_unrecorded_ones_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare("mixture-a", MINE, 2, 10, out=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("polyarm.experiments.running.runner.polyarm_sources", lambda parts: "another")
        with pytest.raises(InvalidArgument, match=r"sources of the worlds '[0-9a-f]*' instead of 'another'"):
            compare("mixture-a", MINE, 2, 10, out=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("polyarm.experiments.running.policy_specs.polyarm_sources", lambda parts: "another")
        with pytest.raises(InvalidArgument, match=r"sources of policy 'bold' '[0-9a-f]*' instead of 'another'"):
            compare("mixture-a", MINE, 2, 10, out=tmp_path)
    file = tmp_path / "results.parquet"
    about = read_metadata(file)
    del about["makings"], about["identity"]["sources of the worlds"]
    write_table(file, pq.read_table(file), about)
    with pytest.raises(InvalidArgument, match=r"sources of the worlds not recorded, as by an earlier polyarm"):
        compare("mixture-a", MINE, 2, 10, out=tmp_path)


def test_damaged_results_are_told(tmp_path: Path) -> None:
    compare("mixture-a", MINE, 2, 10, 5, out=tmp_path)
    file = tmp_path / "results.parquet"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(BrokenFile, match=r"results\.parquet must be a Parquet file of polyarm results"):
        compare("mixture-a", MINE, 2, 10, 5, out=tmp_path)


def start_slow_study(folder: Path, workers: int) -> "subprocess.Popen[bytes]":
    code = (
        "import signal\nfrom tests.experiments import gamblers\nfrom polyarm.experiments.comparison import compare\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start deaf to Ctrl-C\n"
        f"    compare('mixture-a', {{'slow': gamblers.slow}}, 64, 40, 9, workers={workers}, out={str(folder)!r})\n"
    )
    script = folder.parent / "study.py"
    script.write_text(code)
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, str(script)], env=os.environ | {"PYTHONPATH": paths, "GAMBLERS_PAUSE": "0.03"}
    )


@pytest.fixture(scope="module")
def uninterrupted() -> pa.Table:
    return numbers(compare("mixture-a", {"slow": gamblers.slow}, 64, 40, 9))


@pytest.mark.parametrize(("workers", "blow"), [(1, signal.SIGKILL), (2, signal.SIGKILL), (2, signal.SIGINT)])
def test_killed_study_resumes_to_identical_results(
    tmp_path: Path, uninterrupted: pa.Table, workers: int, blow: signal.Signals
) -> None:
    folder = tmp_path / "out"
    victim = start_slow_study(folder, workers)
    deadline = time.monotonic() + 300
    while len(list(folder.glob("pieces/*.parquet"))) < 2:
        assert time.monotonic() < deadline
        assert victim.poll() is None
        time.sleep(0.02)
    victim.send_signal(blow)
    assert victim.wait(timeout=120) != 0
    kept = sorted(folder.glob("pieces/*.parquet"))
    assert kept
    assert not (folder / "results.parquet").exists()
    times = pa.concat_tables([pq.read_table(path).replace_schema_metadata(None) for path in kept])

    resumed = compare("mixture-a", {"slow": gamblers.slow}, 64, 40, 9, out=folder)
    assert numbers(resumed).equals(uninterrupted)
    done = pa.compute.is_in(resumed.results.table["realization"], times["realization"])
    kept_seconds = times.sort_by([("realization", "ascending"), ("step", "ascending")])["seconds"]
    assert resumed.results.table.filter(done)["seconds"].equals(kept_seconds)  # not run again
    assert sorted(path.name for path in folder.iterdir()) == ["results.parquet"]


def test_error_in_a_worker_reaches_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="no such policy"):
        compare("mixture-a", {"broken": gamblers.broken}, 2, 10, workers=2, out=tmp_path)


def test_world_is_the_same_for_every_policy() -> None:
    found = compare("gaussian", {"a": gamblers.greedy, "b": gamblers.bold}, 5, 30)
    optimum = compare("gaussian", ["optimal"], 5, 30).results
    assert (optimum.final("optimal") == 0).all()
    best = optimum.final("optimal", "optimal_plays")
    assert (best == 30).all()
    assert not np.array_equal(found.results.final("a"), found.results.final("b"))


def test_users_own_environment() -> None:
    found = compare(StaticGaussian((0.0, 1.0, 2.0)), MINE, 4, 25)
    assert found.summary()["scenario"] == "StaticGaussian"
    assert np.shape(found.results.curves("bold", "plays"))[2] == 3


def test_a_single_step() -> None:
    found = compare("mixture-a", ["optimal", "uniform"], 3, 1).summary()
    assert found["policies"]["optimal"]["lock_in_share"] == 0
    assert found["policies"]["uniform"]["optimal_arm_share"] in (0, 1 / 3, 2 / 3, 1)


def test_lying_environment_is_told() -> None:
    class Liar(StaticGaussian):
        n_arms = 3

    with pytest.raises(InvalidArgument, match="shapes of contexts, rewards and means must be"):
        compare(Liar((0.0, 1.0)), ["optimal"], 1, 5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"realizations": 0}, "realizations must be an integer from 1 to 1000000, got 0"),
        ({"realizations": 2.5}, "realizations must be"),
        ({"horizon": -5}, "horizon must be an integer from 1 to 2147483647, got -5"),
        ({"horizon": 0}, "horizon must be"),
        ({"seed": -1}, "seed must be"),
        ({"workers": 0}, "workers must be"),
        ({"only": -1}, "only must be"),
        ({"reference": "nobody"}, "reference must be one of greedy, bold"),
    ],
)
def test_impossible_settings_are_told(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        compare("mixture-a", MINE, **{**SETTINGS, **changes}, out=tmp_path / "new")
    assert not (tmp_path / "new" / "results.parquet").exists()


def test_unwritable_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match="out must be a folder that can be written"):
        compare("mixture-a", MINE, **SETTINGS, out=tmp_path / "file" / "out")


def test_policy_names_and_options() -> None:
    with pytest.raises(UnknownName, match="policy must be one of nonparametric"):
        compare("mixture-a", ["nonsense"])
    with pytest.raises(InvalidArgument, match="options must be written as"):
        compare("mixture-a", ["linear:noise"])
    with pytest.raises(InvalidArgument, match="policies must be all different"):
        compare("mixture-a", ["optimal", "optimal"])
    with pytest.raises(InvalidArgument, match=r"number of components is unknown.*n_components"):
        compare("exponential", ["oracle-mixture"])
    assert PolicySpec("linear", (("noise_var", 1.0), ("prior_mean", 0))).label == "linear:noise_var=1.0,prior_mean=0"


def test_unreachable_cluster_is_told() -> None:
    pytest.importorskip("distributed")
    with (
        pytest.raises(InvalidArgument, match="cluster must be the address"),
        open_executor(cluster="nonsense://x"),
    ):
        pass


@pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="the networks are installed")
def test_missing_networks_are_told() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'polyarm\[neural\]'"):
        compare("mixture-a", ["neural-rms"], 1, 5)


def test_batched_policies_give_the_same_rows(whole: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator that plays many worlds at once slots into a study: here it plays what `bold` plays."""
    greedy = gamblers.bold(2, 2)
    numbers_seen: list[int] = []

    def simulate(
        name: str, worlds: World, seeds: IntArray, progress: Callable[[int, int], None], device: str | None
    ) -> tuple[IntArray, float]:
        progress(30, 60)
        assert worlds.contexts.shape == (len(seeds), 60, 2)
        assert len(set(seeds.tolist())) == len(seeds)
        first = len(numbers_seen)
        numbers_seen.extend(seeds)
        rngs = (policy_rng(5, first + i, "bold") for i in range(len(seeds)))
        arms = [play(greedy, World(*parts), rng).arms for *parts, rng in zip(*worlds, rngs, strict=True)]
        return np.array(arms), 1.0

    simulator = SimpleNamespace(simulate=simulate, REALIZATIONS_PER_CALL=7)
    monkeypatch.setattr(PolicySpec, "simulator", lambda self: simulator if self.name == "neural-rms" else None)
    monkeypatch.setattr(PolicySpec, "build", lambda self, *args: greedy)
    table = compare("mixture-a", ["neural-rms"], **SETTINGS).results.table
    wanted = whole.filter(pa.compute.field("policy") == "bold")
    assert table.drop_columns(["policy", "seconds"]).equals(wanted.drop_columns(["policy"]))
    assert table["seconds"][0].as_py() == pytest.approx(1 / 7)
    assert len(numbers_seen) == 20
