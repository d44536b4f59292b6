"""Bandits that the tests share."""

from typing import Any

import numpy as np

from polyarm import Bandit, Cyclic, Number
from polyarm.types import Rng

ARMS = ("short", "long", "video")
COLUMNS: dict[str, Any] = {
    "hour": Cyclic(24),
    "age": Number(optional=True),
    "device": ["phone", "desktop", "tablet"],
    "member": bool,
    "price": float,
}


def visitor(rng: Rng) -> dict[str, Any]:
    """A context with every kind of column."""
    return {
        "hour": float(rng.integers(24)),
        "age": None if rng.random() < 0.3 else float(rng.integers(18, 80)),
        "device": str(rng.choice(["phone", "desktop", "tablet"])),
        "member": bool(rng.random() < 0.5),
        "price": 100 + rng.normal(),
    }


def played(bandit: Bandit, n: int, seed: int = 0, prefix: str = "d", whole: bool = False) -> Bandit:
    """The bandit after n more decisions under ids of ours, each learnt a little later, a few never.

    `whole` rewards are all 1, which models of clicks, counts, ratings and amounts take as well.
    """
    rng = np.random.default_rng(seed)
    waiting: list[str] = []
    for step in range(n):
        context = visitor(rng) if bandit.settings.schema.names else None
        waiting.append(bandit.choose(context, id=f"{prefix}{step}").id)
        if len(waiting) > 3:
            name = waiting.pop(int(rng.integers(len(waiting))))
            bandit.learn(name, 1.0 if whole else float(rng.normal() + ARMS.index(bandit.decision(name).arm)))
    return bandit
