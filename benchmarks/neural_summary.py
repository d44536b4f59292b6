"""Arms played by `neural_study.py` with any settings beside the published numbers, as a Markdown table.

python benchmarks/neural_summary.py runs/*/*.npz
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from polyarm.environments.presets import Scenario, make_scenario
from polyarm.experiments.paper.published import SCENARIOS, TABLES
from polyarm.experiments.play import sample_world
from polyarm.experiments.seeds import world_rng
from polyarm.experiments.statistics import z_score
from polyarm.types import Array, World


def worlds_of(scenario: Scenario, start: int, end: int, seed: int) -> World:
    drawn = [sample_world(scenario.environment, scenario.horizon, world_rng(seed, r)) for r in range(start, end)]
    return World(*(np.stack(parts) for parts in zip(*drawn, strict=True)))


def regrets(worlds: World, arms: Array) -> tuple[Array, Array]:
    """Expected and observed regret of every realisation."""
    best = worlds.means.max(axis=2).sum(axis=1)
    paid, received = (
        np.take_along_axis(values, arms[..., None].astype(np.int64), axis=2).sum(axis=(1, 2))
        for values in (worlds.means, worlds.rewards)
    )
    return best - paid, best - received


def collect(files: list[Path], seed: int, data: str | None) -> dict[tuple[str, str], list[tuple[Array, Array]]]:
    """Regrets by policy and scenario, pieces of realisations together."""
    found: dict[tuple[str, str], list[tuple[Array, Array]]] = {}
    for path in files:
        scenario = make_scenario(path.stem, data)
        with np.load(path) as file:
            for key in (name.removesuffix("|arms") for name in file.files if name.endswith("|arms")):
                label, _, numbers = key.partition("|")
                start, _, end = numbers.partition("-")
                worlds = worlds_of(scenario, int(start), int(end), seed)
                if hashlib.sha256(worlds.rewards.tobytes()).hexdigest() != str(file[f"{key}|worlds"]):
                    sys.exit(f"{path}: {key} was played in other worlds (another NumPy, seed or horizon)")
                found.setdefault((label, path.stem), []).append(regrets(worlds, file[f"{key}|arms"]))
    return found


def cell(scenario: str, label: str, parts: list[tuple[Array, Array]]) -> str:
    """Mean ± standard error (std of the observed regret), the distance z from the published mean, and R below 500."""
    expected, observed = (np.concatenate(values) for values in zip(*parts, strict=True))
    published, count = TABLES[scenario][name_of(label)], len(expected)
    mean, se = float(expected.mean()), float(expected.std(ddof=1)) / count**0.5
    z = z_score(mean, se, published.mean, (published.std or 0.0) / published.realizations**0.5)
    few = "" if count == published.realizations else f", R {count}"
    return f"{mean:.1f} ± {se:.1f} ({observed.std(ddof=1):.0f}), z {z:.1f}{few}"


def name_of(label: str) -> str:
    return label.partition(":")[0]


def rows(found: dict[tuple[str, str], list[tuple[Array, Array]]], scenarios: list[str]) -> Iterator[list[str]]:
    """For every policy what was published, and then ours with each setting."""
    labels = sorted({label for label, _ in found})
    for name in sorted({name_of(label) for label in labels}):
        published = [TABLES[scenario][name] for scenario in scenarios]
        yield [f"**{name}**, published", *(f"{value.mean:.1f} ({value.std:.0f})" for value in published)]
        for label in (label for label in labels if name_of(label) == name):
            cells = [found.get((label, scenario)) for scenario in scenarios]
            options = label.partition(":")[2] or "as stated"
            yield [options, *(cell(s, label, c) if c else "" for s, c in zip(scenarios, cells, strict=True))]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", default=None, help="the oncology table")
    settings = parser.parse_args(arguments)
    found = collect(settings.files, settings.seed, settings.data)
    scenarios = [scenario for scenario in SCENARIOS if any(there == scenario for _, there in found)]
    for line in (["settings", *scenarios], ["---"] * (1 + len(scenarios)), *rows(found, scenarios)):
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
