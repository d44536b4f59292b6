"""Arms played by `neural_study.py`, with the worlds they were played in."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyarm.environments.presets import Scenario
from polyarm.experiments.running.play import sample_world
from polyarm.experiments.running.seeds import world_rng
from polyarm.types import IntArray, World


class Piece(NamedTuple):
    """Some realisations of one policy: its label, the first one's number, the arms (R, T) and seconds for each."""

    label: str
    first: int
    arms: IntArray
    seconds: float
    worlds: list[World]


def labels_in(path: Path) -> list[str]:
    """Labels of the policies in a file."""
    with np.load(path) as file:
        return sorted({name.partition("|")[0] for name in file.files})


def pieces(path: Path, scenario: Scenario, seed: int) -> Iterator[Piece]:
    """Pieces in a file, one at a time; stops the program if one was played in other worlds than those of the seed."""
    with np.load(path) as file:
        for key in (name.removesuffix("|arms") for name in file.files if name.endswith("|arms")):
            label, _, numbers = key.partition("|")
            first = int(numbers.partition("-")[0])
            arms = file[f"{key}|arms"].astype(np.int64)
            worlds = [
                sample_world(scenario.environment, scenario.horizon, world_rng(seed, first + i))
                for i in range(len(arms))
            ]
            digest = hashlib.sha256(np.stack([world.rewards for world in worlds]).tobytes()).hexdigest()
            if arms.shape[1] != scenario.horizon or digest != str(file[f"{key}|worlds"]):
                sys.exit(f"{path}: {key} was played in other worlds (another NumPy, seed or horizon)")
            yield Piece(label, first, arms, float(file[f"{key}|seconds"]) / len(arms), worlds)
