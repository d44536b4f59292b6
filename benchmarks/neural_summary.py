"""Arms played by `neural_study.py` with any settings beside the published numbers, as a Markdown table.

python -m benchmarks.neural_summary runs/*/*.npz
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.neural_arms import pieces

from polyarm.environments.presets import make_scenario
from polyarm.experiments.paper.published import SCENARIOS, TABLES
from polyarm.experiments.reporting.statistics import z_score
from polyarm.types import IntArray, World


class Regret(NamedTuple):
    """Regret of one realisation: expected, and as observed with the noise of the rewards."""

    expected: float
    observed: float


def regret(world: World, arms: IntArray) -> Regret:
    steps = np.arange(len(arms))
    best = world.means.max(axis=1).sum()
    return Regret(best - world.means[steps, arms].sum(), best - world.rewards[steps, arms].sum())


def collect(files: list[Path], seed: int, data: str | None) -> dict[tuple[str, str], list[Regret]]:
    """Regrets by policy and scenario; a realisation that stands in two files counts once."""
    found: dict[tuple[str, str], dict[int, Regret]] = {}
    for path in files:
        for label, first, arms, _, worlds in pieces(path, make_scenario(path.stem, data), seed):
            here = found.setdefault((label, path.stem), {})
            here.update({first + i: regret(world, arms[i]) for i, world in enumerate(worlds)})
    return {key: list(values.values()) for key, values in found.items()}


def cell(scenario: str, label: str, regrets: list[Regret]) -> str:
    """Mean ± standard error (std of the observed regret), the distance z from the published mean, and R below 500."""
    expected, observed = np.array(regrets).T
    published, count = TABLES[scenario][name_of(label)], len(expected)
    mean, se = float(expected.mean()), float(expected.std(ddof=1)) / count**0.5
    z = z_score(mean, se, published.mean, (published.std or 0.0) / published.realizations**0.5)
    few = "" if count == published.realizations else f", R {count}"
    return f"{mean:.1f} ± {se:.1f} ({observed.std(ddof=1):.0f}), z {z:.1f}{few}"


def name_of(label: str) -> str:
    return label.partition(":")[0]


def rows(found: dict[tuple[str, str], list[Regret]], scenarios: list[str]) -> Iterator[list[str]]:
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
