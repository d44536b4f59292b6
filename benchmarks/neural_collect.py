"""Turn arms played on a GPU (`neural_study.py`) into results that `polyarm reproduce --out DIR` finds and uses.

python -m benchmarks.neural_collect --out DIR results/gpu/*.npz
"""

import argparse
import re
import sys
import time
from pathlib import Path

import pyarrow as pa
from benchmarks.neural_arms import labels_in, pieces

from polyarm.environments.presets import make_scenario
from polyarm.experiments.comparison import make_study
from polyarm.experiments.running.play import Run
from polyarm.experiments.running.records import record
from polyarm.experiments.running.runner import open_store, versions
from polyarm.experiments.running.store import runs_of


def collect(path: Path, out: Path, seed: int, data: str | None) -> None:
    scenario = make_scenario(path.stem, data)
    study = make_study(scenario, labels_in(path), 1, scenario.horizon, seed)
    name = re.sub("[^a-z0-9.]+", "-", f"{scenario.name}-t{scenario.horizon}-seed{seed}")
    store = open_store(study, out / "runs" / name)
    done = runs_of(store.load())
    for label, first, arms, seconds, worlds in pieces(path, scenario, seed):
        rows = [
            record(label, first + i, world, Run(arms[i], seconds))
            for i, world in enumerate(worlds)
            if (label, first + i) not in done
        ]
        if rows:
            about = {"settings": study.settings, "versions": versions()}
            store.add(pa.concat_tables(rows), {**about, "timing": {"finished": time.time(), "since_start_s": 0.0}})
        print(f"{path.stem}: {label} from {first}: {len(rows)} runs added", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the folder of `polyarm reproduce`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", default=None, help="the oncology table")
    settings = parser.parse_args(arguments)
    for path in settings.files:
        collect(path, settings.out, settings.seed, settings.data)


if __name__ == "__main__":
    main(sys.argv[1:])
