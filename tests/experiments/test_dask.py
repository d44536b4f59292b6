"""The same study on a real Dask cluster of two worker processes."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from polyarm.experiments.comparison import compare

pytest.importorskip("distributed")

# a process of its own: Dask's event loop and its warnings stay out of the test session
SCRIPT = """
import sys
from distributed import LocalCluster
from polyarm.cli import main
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        command = ["compare", "mixture-a", "--policy", "nonparametric", "--policy", "linear", "--quiet"]
        command += ["--realizations", "20", "--horizon", "60", "--seed", "5", "--out", sys.argv[1]]
        sys.exit(main([*command, "--cluster", cluster.scheduler_address]))
"""


def test_a_cluster_gives_identical_results_and_no_warnings(tmp_path: Path) -> None:
    script = tmp_path / "on_a_cluster.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "out")], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "poorly aligned" not in done.stderr  # Arrow's word for columns as the network left them
    remote = pq.read_table(tmp_path / "out" / "results.parquet").replace_schema_metadata(None)
    local = compare("mixture-a", ["nonparametric", "linear"], 20, 60, 5).results.table
    order = [("policy", "ascending"), ("realization", "ascending"), ("step", "ascending")]
    assert remote.sort_by(order).drop_columns(["seconds"]).equals(local.sort_by(order).drop_columns(["seconds"]))
