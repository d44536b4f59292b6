"""One policy in one world."""

import time
from typing import NamedTuple

import numpy as np

from polyarm.errors import InvalidArgument
from polyarm.types import AnyPolicy, Environment, IntArray, Rng, World


class Run(NamedTuple):
    """The arms a policy played, and the seconds it took."""

    arms: IntArray
    seconds: float


def play(policy: AnyPolicy, world: World, rng: Rng) -> Run:
    """Let the policy choose and learn at every step of the world."""
    choose, update = policy.choose, policy.update
    arms: list[int] = []
    start = time.perf_counter()
    state = policy.init()
    for context, rewards in zip(list(world.contexts), world.rewards.tolist(), strict=True):
        arm = choose(state, context, rng).arm
        state = update(state, context, arm, rewards[arm], rng)
        arms.append(arm)
    return Run(np.array(arms, dtype=np.int64), time.perf_counter() - start)


def sample_world(environment: Environment, horizon: int, rng: Rng) -> World:
    """A world of that environment, checked, since users write environments."""
    world = environment.sample(horizon, rng)
    shapes = tuple(np.shape(part) for part in world)
    wanted = ((horizon, environment.context_dim), *[(horizon, environment.n_arms)] * 2)
    if shapes != wanted:
        raise InvalidArgument(f"shapes of contexts, rewards and means must be {wanted}, got {shapes}")
    return World(*(np.ascontiguousarray(part, dtype=np.float64) for part in world))


def shorten(world: World, horizon: int) -> World:
    """The first steps of a world."""
    return World(*(part[:horizon] for part in world))
