"""Independent random streams, spawned by key from one seed.

A stream depends on what it is for and never on the order of the work, so any realisation can be run alone.
"""

import zlib

import numpy as np

from polyarm.types import Rng

WORLD, POLICY, PICTURE = range(3)


def world_rng(seed: int, realization: int) -> Rng:
    """Stream that draws the world every policy of this realisation meets."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(WORLD, realization)))


def policy_sequence(seed: int, realization: int, label: str) -> np.random.SeedSequence:
    """Seed of one policy's own randomness in one realisation."""
    return np.random.SeedSequence(seed, spawn_key=(POLICY, realization, zlib.crc32(label.encode())))


def policy_rng(seed: int, realization: int, label: str) -> Rng:
    """Stream of one policy's own randomness in one realisation."""
    return np.random.default_rng(policy_sequence(seed, realization, label))


def policy_seed(seed: int, realization: int, label: str) -> int:
    """The same as one integer from 0 to 2^63 - 1, for simulators that keep their own streams."""
    return int(policy_sequence(seed, realization, label).generate_state(1, np.uint64)[0] >> np.uint64(1))


def picture_rng(seed: int, realization: int) -> Rng:
    """Stream for draws that only a picture needs, so that looking changes nothing."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(PICTURE, realization)))
