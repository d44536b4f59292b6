"""Environments from files: full feedback and the oncology data."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polyarm.environments import FullFeedback, from_file, make_scenario, oncology
from polyarm.environments.oncology import CONTEXTS, PATH_VARIABLE, REWARDS
from polyarm.errors import BrokenFile, InvalidArgument

REAL = Path(__file__).parents[3] / "shared" / "data" / "oncology" / "final_df.csv"
HEADER = "context_1,context_2,reward_a,reward_b\n"


def write_oncology(path: Path, n_rows: int = 30) -> str:
    """A file of the same format, and its checksum."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(n_rows, len(CONTEXTS))), -rng.random((n_rows, len(REWARDS)))])
    lines = [",".join((*CONTEXTS, *REWARDS)), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_csv_and_parquet_give_the_same_bandit(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "0.5,1,2,3\n1.5,2,4,5\n")
    columns = {"context_1": [0.5, 1.5], "context_2": [1, 2], "reward_a": [2, 4], "reward_b": [3.0, 5.0]}
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    first, second = from_file(tmp_path / "a.csv"), from_file(tmp_path / "b.parquet")
    assert repr(first) == repr(second)
    assert (first.n_arms, first.context_dim) == (2, 2)
    world = first.sample(50, np.random.default_rng(1))
    assert set(map(tuple, world.rewards)) == {(2.0, 3.0), (4.0, 5.0)}
    assert (world.means == world.rewards).all()


def test_columns_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y0,y1\n1,2,3\n")
    assert from_file(tmp_path / "a.csv", contexts=["x"], rewards=["y1", "y0"]).rewards.tolist() == [[3, 2]]
    with pytest.raises(InvalidArgument, match="z missing; it has x, y0, y1"):
        from_file(tmp_path / "a.csv", contexts=["z"], rewards=["y0"])
    with pytest.raises(InvalidArgument, match="columns must be present"):
        from_file(tmp_path / "a.csv")


def test_a_file_is_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(HEADER + "0.5,1,2,3\n")
    assert make_scenario(str(tmp_path / "mine.csv")).name == "mine"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must be a table with a header"),
        (HEADER, "must be a table with a header"),
        (HEADER + "1,2,3,4\n1,2\n", "got 2 in line 3"),
        (HEADER + "1,2,3,cat\n", "must hold numbers only"),
        (HEADER + "1,2,3,nan\n", "rewards must be finite"),
    ],
)
def test_broken_csv_is_told(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises((BrokenFile, InvalidArgument), match=message):
        from_file(tmp_path / "a.csv")


def test_missing_and_damaged_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="must be a readable CSV"):
        from_file(tmp_path / "none.csv")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(BrokenFile, match="must be a Parquet file"):
        from_file(tmp_path / "a.parquet")


def test_shapes_must_match() -> None:
    with pytest.raises(InvalidArgument, match="must be of matching shapes"):
        FullFeedback(np.ones((3, 1)), np.ones((2, 2)), np.ones((2, 2)))


def test_oncology_from_a_local_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checksum = write_oncology(tmp_path / "o.csv")
    bandit = oncology(tmp_path / "o.csv", sha256=checksum)
    assert (bandit.n_arms, bandit.context_dim) == (7, 27)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "o.csv"))
    assert repr(oncology(sha256=checksum)) == repr(bandit)


def test_oncology_refuses_wrong_data(tmp_path: Path) -> None:
    checksum = write_oncology(tmp_path / "o.csv")
    with pytest.raises(BrokenFile, match="must have SHA-256"):
        make_scenario("oncology", data=tmp_path / "o.csv")
    (tmp_path / "o.csv").write_text((tmp_path / "o.csv").read_text()[:-100])
    with pytest.raises(BrokenFile, match="truncated"):
        oncology(tmp_path / "o.csv", sha256=checksum)
    with pytest.raises(BrokenFile, match="must be a readable file"):
        oncology(tmp_path / "gone.csv")


def test_failed_download_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    def refuse(*args: object, **kwargs: object) -> str:
        raise OSError("no network")

    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(BrokenFile, match=r"no network.*POLYARM_ONCOLOGY"):
        oncology()


@pytest.mark.skipif(not REAL.exists(), reason="the oncology data is not part of the project")
def test_facts_of_the_oncology_data() -> None:
    bandit = oncology(REAL)
    assert bandit.rewards.shape == (896, 7)
    regret = bandit.means.max(axis=1, keepdims=True) - bandit.means
    assert 1000 * regret.mean() == pytest.approx(2066.4, abs=0.05)
    assert 1000 * regret.mean(axis=0).min() == pytest.approx(1777.6, abs=0.05)
    assert int(regret.mean(axis=0).argmin()) == 2  # dabrafenib
    protocol = bandit.contexts[:, 20:].argmax(axis=1)
    assert 1000 * regret[np.arange(896), protocol].mean() == pytest.approx(1912.1, abs=0.05)
