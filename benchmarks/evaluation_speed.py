"""Time and memory of `polyarm evaluate` on logs that do not fit in memory comfortably.

    python benchmarks/evaluation_speed.py --rows 1000000

Writes a Parquet file with 8 arms and 10 context columns to a temporary folder, then evaluates the uniform target by
IPS, SNIPS and DR with a fitted reward model, in a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from polyarm.types import Array

N_ARMS, N_COLUMNS, PIECE = 8, 10, 250_000


class Fitted:
    """A linear reward model that was fitted elsewhere."""

    slopes = np.random.default_rng(1).normal(size=(N_COLUMNS, N_ARMS)) / 10

    def predict(self, contexts: Array) -> Array:
        return np.asarray(contexts @ self.slopes)


def write_log(path: Path, n_rows: int) -> None:
    """A log by a logger with context-free propensities, written piece by piece."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(N_ARMS, 3.0))
    writer = None
    for start in range(0, n_rows, PIECE):
        n = min(PIECE, n_rows - start)
        x = rng.normal(size=(n, N_COLUMNS))
        arms = rng.choice(N_ARMS, size=n, p=p)
        rewards = (x @ Fitted.slopes)[np.arange(n), arms] + rng.normal(size=n)
        columns = {"id": np.arange(start, start + n), "arm": arms, "reward": rewards, "propensity": p[arms]}
        table = pa.table({**columns, **{f"x{j}": x[:, j] for j in range(N_COLUMNS)}})
        writer = writer or pa.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=PIECE)
    assert writer is not None
    writer.close()


def peak_memory() -> float:
    """Megabytes of resident memory at its largest; the kernel's count for this program alone (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def measure(path: Path, interval: str) -> dict[str, float]:
    """Seconds, and megabytes of resident memory at its largest, before and after."""
    from polyarm.evaluation import evaluate

    before = peak_memory()
    start, cpu = time.perf_counter(), time.process_time()
    found = evaluate(path, "uniform", ["ips", "snips", "dr"], interval, model=Fitted())
    return {
        "rows": found.log.n_used,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "mb_before": before,
        "mb_peak": peak_memory(),
        "dr": found["dr"].value,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--interval", default="normal")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.interval)))
        return
    for n_rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.parquet"
            write_log(path, n_rows)
            command = [sys.executable, __file__, "--measure", str(path), "--interval", options.interval]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        print(", ".join(f"{name} {value:.6g}" for name, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
