"""What the checks of states cost: a look at the token, a look at the numbers after an update, a check at the door."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from polyarm.inference.door import NOTHING
from polyarm.kernels.robust.records import Books
from polyarm.kernels.robust.repair import is_finite
from polyarm.policies import make_policy
from polyarm.types import World

REPEATS = 20_000


def nanoseconds(work: Callable[[int], object]) -> float:
    """Processor time of one repetition, the least of five rounds."""
    times = []
    for _ in range(5):
        start = time.thread_time()
        work(REPEATS)
        times.append(time.thread_time() - start)
    return 1e9 * min(times) / REPEATS


def look(engine: Any, state: Any, n: int) -> None:
    """What a choice and an update ask of the door, n times."""
    for _ in range(n):
        if state is not engine._door.last:
            raise AssertionError
        if state is not engine._door.last:
            raise AssertionError
        engine._door.last = NOTHING
        engine._door.last = state


def nothing(n: int) -> None:
    """A loop that does nothing."""
    for _ in range(n):
        pass


def learnt(policy: Any, world: World) -> Any:
    """State after a world in which arms take turns."""
    rng, state = np.random.default_rng(0), policy.init()
    for t, (x, rewards) in enumerate(zip(world.contexts, world.rewards, strict=True)):
        arm = t % world.rewards.shape[1]
        state = policy.update(state, x, arm, float(rewards[arm]), rng)
    return state


def check_costs(world: World, interaction_us: dict[str, float]) -> dict[str, float]:
    """Nanoseconds of the checks of one interaction of the default policy, and their share of it."""
    policy: Any = make_policy("nonparametric", world.rewards.shape[1], world.contexts.shape[1])
    engine, state = policy.engine.rest, learnt(policy, world).rest
    engine.draw_means(state, world.contexts[0], 1, np.random.default_rng(0))
    doors = 2 * (nanoseconds(lambda n: look(engine, state, n)) - nanoseconds(nothing))  # its own, and of the rest
    books: Books = engine._books(state)
    empty = books._replace(
        components=books.components[:0], shared=books.shared[:0], features=books.features[:0, :0].copy()
    )

    def finite(given: Books) -> Callable[[int], object]:
        return lambda n: [is_finite(given) for _ in range(n)]

    is_finite(empty)
    numbers = nanoseconds(finite(books)) - nanoseconds(finite(empty))
    start = time.thread_time()
    for _ in range(100):
        engine._door.check(engine, state)
    whole = 1e9 * (time.thread_time() - start) / 100
    share = (doors + numbers) / (1000 * interaction_us["nonparametric"])
    linear = 0.5 * doors / (1000 * interaction_us["linear"])
    return {
        "token_ns": doors,
        "numbers_ns": numbers,
        "door_ns": whole,
        "share_of_interaction": share,
        "share_of_linear_interaction": linear,
    }
