"""Turn arms played on a GPU (`neural_study.py`) into results that `polyarm reproduce --out DIR` finds and uses.

python benchmarks/neural_collect.py --out DIR results/gpu/*.npz
"""

import argparse
import hashlib
import re
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from polyarm.environments.presets import make_scenario
from polyarm.experiments.comparison import make_study
from polyarm.experiments.play import Run, sample_world
from polyarm.experiments.records import record
from polyarm.experiments.runner import versions
from polyarm.experiments.seeds import world_rng
from polyarm.experiments.store import Store, require_folder, runs_of


def collect(path: Path, out: Path, seed: int, data: str | None) -> None:
    scenario = make_scenario(path.stem, data)
    with np.load(path) as file:
        keys = [key.removesuffix("|arms") for key in file.files if key.endswith("|arms")]
        labels = sorted({key.partition("|")[0] for key in keys})
        study = make_study(scenario, labels, 1, scenario.horizon, seed)
        name = re.sub("[^a-z0-9.]+", "-", f"{scenario.name}-t{scenario.horizon}-seed{seed}")
        store = Store(require_folder(out / "runs" / name), study.identity)
        done = runs_of(store.load())
        for key in keys:
            label, _, numbers = key.partition("|")
            first = int(numbers.partition("-")[0])
            arms = file[f"{key}|arms"].astype(np.int64)
            each = float(file[f"{key}|seconds"]) / len(arms)
            worlds = [
                sample_world(scenario.environment, scenario.horizon, world_rng(seed, first + i))
                for i in range(len(arms))
            ]
            digest = hashlib.sha256(np.stack([world.rewards for world in worlds]).tobytes()).hexdigest()
            if arms.shape[1] != scenario.horizon or digest != str(file[f"{key}|worlds"]):
                sys.exit(f"{path}: {key} was played in other worlds (another NumPy, seed or horizon)")
            rows = [
                record(label, first + i, world, Run(arms[i], each))
                for i, world in enumerate(worlds)
                if (label, first + i) not in done
            ]
            if rows:
                about = {"settings": study.settings, "versions": versions()}
                store.add(pa.concat_tables(rows), {**about, "timing": {"finished": time.time(), "since_start_s": 0.0}})
            print(f"{path.stem}: {key}: {len(rows)} runs added", flush=True)


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
