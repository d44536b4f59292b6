"""The log: one row per decision."""

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from polyarm import Bandit
from polyarm.bandit import log
from polyarm.errors import InvalidArgument
from tests.bandit.shapes import ARMS, COLUMNS, played


def test_the_log_has_a_row_for_every_decision() -> None:
    bandit = played(Bandit(ARMS, COLUMNS, policy="linear", seed=7), 20)
    bandit.drop(bandit.pending[0])
    bandit.learn_logged([bandit.decision("d0").context], ["long"], [1.0])
    table = bandit.log()
    names = ["id", "time", "arm", "propensity", "probabilities", "reward", "n_learnt", *COLUMNS]
    assert table.column_names == names
    assert table.num_rows == 20
    rows = table.to_pylist()
    for row in rows:
        decision = bandit.decision(row["id"])
        assert (row["arm"], row["propensity"], row["n_learnt"]) == (
            decision.arm,
            decision.propensity,
            decision.n_learnt,
        )
        assert dict(zip(ARMS, row["probabilities"], strict=True)) == decision.probabilities
        assert {name: row[name] for name in COLUMNS} == decision.context
        assert row["reward"] == bandit.reward(row["id"])
    assert sum(row["reward"] is None for row in rows) == 3
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)


def test_the_log_of_a_bandit_without_context_or_decisions() -> None:
    assert Bandit(ARMS, policy="linear").log().num_rows == 0
    assert played(Bandit(ARMS, policy="linear", seed=1), 3).log().num_columns == 7


def test_columns_that_the_log_needs_itself_are_refused() -> None:
    bandit = Bandit(ARMS, {"reward": float}, policy="linear")
    with pytest.raises(InvalidArgument, match="context must be columns with other names than id, time"):
        bandit.log()


def test_a_folder_gets_every_closed_decision_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "FLUSH", 8)
    folder = tmp_path / "log"
    bandit = played(Bandit(ARMS, COLUMNS, policy="linear", seed=7, log=folder), 30)
    bandit.save(tmp_path / "b.polyarm")
    bandit = Bandit.load(tmp_path / "b.polyarm", log=folder)
    bandit.drop("d29")
    bandit.add_arm("audio")
    bandit.learn_many(bandit.choose_many([bandit.decision("d1").context] * 9).ids, np.arange(9))
    bandit.save(tmp_path / "b.polyarm")
    parts = [pyarrow.parquet.read_table(path) for path in sorted(folder.iterdir())]
    assert len(parts) > 4
    ids = [name for part in parts for name in part["id"].to_pylist()]
    closed = set(bandit.log()["id"].to_pylist()) - set(bandit.pending)
    assert len(ids) == len(set(ids)) == len(closed)
    assert set(ids) == closed
    assert len(parts[-1]["probabilities"][0].as_py()) == 4
