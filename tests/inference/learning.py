"""An engine of every kind of reward, and what it has learnt."""

from collections.abc import Callable
from typing import Any

import numpy as np

from polyarm.inference import KindsEngine, KindsState, RobustEngine
from polyarm.models import RobustMixture
from polyarm.types import Array

Listen = Callable[[Any, str], list[tuple[Any, Any]]]  # the calls of a function from now on: see conftest


def engine(n_arms: int = 2, dim: int = 1, **options: Any) -> KindsEngine:
    """An engine that works little."""
    return KindsEngine(RobustEngine(RobustMixture(n_arms, dim), 8, 4, **options))


def fed(kinds: KindsEngine, values: Array, contexts: Array, seed: int = 0, state: KindsState | None = None) -> Any:
    """Its state after rewards of all arms in turn."""
    rng = np.random.default_rng(seed)
    state = kinds.init() if state is None else state
    for i, (x, value) in enumerate(zip(contexts, values, strict=True)):
        state = kinds.update(state, x, i % kinds.n_arms, float(value), rng)
    return state
