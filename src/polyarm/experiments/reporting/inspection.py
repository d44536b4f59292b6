"""What a policy knows about the arms: numbers behind the pictures of what was learnt.

A realisation can be run again by its number, so these come from the very run that is in the results.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyarm.environments.judged import Judged
from polyarm.environments.presets import Scenario
from polyarm.experiments.running.play import sample_world
from polyarm.experiments.running.policy_specs import PolicySpec
from polyarm.experiments.running.records import checkpoints
from polyarm.experiments.running.seeds import picture_rng, policy_rng, world_rng
from polyarm.policies import engine_of, probability_best
from polyarm.types import AnyEngine, Array, IntArray, Rng, World

N_DRAWS = 400
N_STATES = 20  # the noise variances of one state are fixed: a band from it alone is too narrow
N_GRID = 241
NEIGHBOURS = 60  # plays whose context is nearest: enough for a histogram, few enough to be near


class ArmDensity(NamedTuple):
    """Density of an arm's reward at one context: learnt, its 95 % band, the truth if known, rewards near."""

    arm: int
    grid: Array
    learnt: Array
    low: Array
    high: Array
    truth: Array | None
    rewards: Array
    rewards_are: str
    n_plays: int


@dataclass(frozen=True, eq=False)
class Inspection:
    """One realisation of one policy, looked at as it learns."""

    label: str
    context: Array
    steps: IntArray
    n_components: Array | None  # (checkpoints, arms)
    shares: Array  # (checkpoints, arms): share of each arm in the plays so far
    best: Array  # (checkpoints, arms): probability that each arm is the best at `context`
    densities: list[ArmDensity]


def inspect_run(scenario: Scenario, spec: PolicySpec, horizon: int, seed: int = 0, realization: int = 0) -> Inspection:
    """Play one realisation and look at the engine at every checkpoint."""
    world = sample_world(scenario.environment, horizon, world_rng(seed, realization))
    policy, rng = spec.build(scenario, world), policy_rng(seed, realization, spec.label)
    eyes, context = picture_rng(seed, realization), np.median(world.contexts, axis=0)
    steps, arms, state = checkpoints(horizon), [], policy.init()
    components, best = [], []
    for step in range(horizon):
        arm = policy.choose(state, world.contexts[step], rng).arm
        state = policy.update(state, world.contexts[step], arm, float(world.rewards[step, arm]), rng)
        arms.append(arm)
        if step + 1 in steps:
            engine, inner = engine_of(policy, state)
            components.append(_n_components(engine, inner))
            best.append(probability_best(policy, state, context, N_DRAWS, eyes).probability)
    played = np.array(arms)
    shares = (played[:, None] == np.arange(world.means.shape[1])).cumsum(axis=0)[steps - 1] / steps[:, None]
    engine, inner = engine_of(policy, state)
    return Inspection(
        spec.label,
        context,
        steps,
        None if components[0] is None else np.array(components, dtype=np.float64),
        shares,
        np.array(best),
        [_density(engine, inner, scenario, world, played, arm, context, eyes) for arm in range(shares.shape[1])],
    )


def _n_components(engine: Any, state: Any) -> Any | None:
    return engine.n_components(state) if hasattr(engine, "n_components") else None


def _density(
    engine: Any,
    state: Any,
    scenario: Scenario,
    world: World,
    played: IntArray,
    arm: int,
    context: Array,
    rng: Rng,
) -> ArmDensity:
    rewards, rewards_are = rewards_at(engine, state, world, np.flatnonzero(played == arm), arm, context)
    grid = reward_grid(world.rewards if len(context) <= 2 or len(rewards) < 10 else rewards)
    draws = draw_densities(engine, state, context, arm, grid, rng)
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    environment = scenario.environment
    truth = getattr(environment.environment if isinstance(environment, Judged) else environment, "density", None)
    return ArmDensity(
        arm,
        grid,
        engine.predictive(state, context, arm).pdf(grid),
        low,
        high,
        None if truth is None else truth(context, arm, grid),
        rewards,
        rewards_are,
        int((played == arm).sum()),
    )


def draw_densities(engine: Any, state: Any, context: Array, arm: int, grid: Array, rng: Rng) -> Array:
    """Posterior draws of a density, (N_DRAWS, len(grid)), over several states of a sampler that can be refreshed."""
    if not hasattr(engine, "refresh"):
        draws: Array = engine.draw_densities(state, context, arm, grid, N_DRAWS, rng)
        return draws
    own, parts = deepcopy(state), []
    for _ in range(N_STATES):
        own = engine.refresh(own, rng)
        parts.append(engine.draw_densities(own, context, arm, grid, N_DRAWS // N_STATES, rng))
    return np.concatenate(parts)


def rewards_at(
    engine: AnyEngine, state: Any, world: World, steps: IntArray, arm: int, context: Array
) -> tuple[Array, str]:
    """Rewards to hold against the density at this context, and what they are.

    In up to two dimensions, those received nearest to it.  In more dimensions nothing is near: all of them, each moved
    by the difference of the learnt means.
    """
    if len(context) <= 2:
        near = steps[np.argsort(np.linalg.norm(world.contexts[steps] - context, axis=1))[:NEIGHBOURS]]
        return world.rewards[near, arm], "nearest rewards"
    here = engine.expected_means(state, context)[arm]
    shifts = [here - engine.expected_means(state, world.contexts[step])[arm] for step in steps]
    return world.rewards[steps, arm] + np.array(shifts), "rewards, moved to this context"


def reward_grid(rewards: Array) -> Array:
    """Grid over the bulk of the rewards."""
    low, high = np.quantile(rewards, [0.01, 0.99])
    margin = 0.25 * (high - low)
    return np.linspace(low - margin, high + margin, N_GRID)
