"""Simulation-based calibration of the hierarchical model: the sampler passes, planted bugs do not."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from polyarm.inference.franchise import FranchiseState, HierarchicalEngine, redraw_concentration
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.franchise import moves
from polyarm.kernels.franchise.books import Rules
from polyarm.kernels.mixture import component
from polyarm.kernels.mixture.hyperparameters import rate_rewards
from polyarm.kernels.mixture.records import open_slot
from polyarm.models import HierarchicalMixture, NormalInverseGamma
from polyarm.models.mixture import MixtureParams
from polyarm.types import Array, IntArray, Rng
from tests.statistics.mutants import compiled_mutant
from tests.statistics.test_calibration import POINT, REJECTED, contexts, ranks_of_truth, uniformity_p_value

Sampler = Callable[[HierarchicalEngine, FranchiseState, Rng], FranchiseState]
Draw = Callable[[HierarchicalEngine, FranchiseState, Rng], Array]
Law = tuple[float, float, float]
N_ARMS = 2


class Story(NamedTuple):
    """Rewards with the arm, table and dish that each came from, and the mean of every arm at POINT."""

    X: Array
    y: Array
    arm: IntArray
    table: IntArray
    dish: IntArray
    means: Array


def model_of(discount: float, shared_concentration: float, shared_discount: float) -> HierarchicalMixture:
    base = NormalInverseGamma(2, 0.3, [[40.0, -38.0], [-38.0, 40.0]], 3.0, 2.0)
    return HierarchicalMixture(base, 0.8, discount, shared_concentration, shared_discount)


def sticks(concentration: float, discount: float, rng: Rng) -> Array:
    """Weights of a Pitman-Yor process; the last 0.003, where two of ten rewards hardly ever meet, is one atom."""
    weights, left = np.empty(0), 1.0
    while left > 3e-3:
        j = len(weights) + np.arange(1, 17 + len(weights))
        stays = left * np.cumprod(1 - rng.beta(1 - discount, concentration + j * discount))
        weights, left = np.append(weights, -np.diff(stays, prepend=left)), stays[-1]
    return np.append(weights, left)


def told(model: HierarchicalMixture, n_each: int, rng: Rng) -> Story:
    """The joint distribution forwards: a stick of an arm is a table, which orders its dish from the menu's sticks."""
    on_menu = sticks(model.shared_concentration, model.shared_discount, rng)
    menu = MixtureParams(on_menu, *model.base.sample(len(on_menu), rng))
    X = np.tile(contexts(n_each), (N_ARMS, 1))
    arm = np.repeat(np.arange(N_ARMS), n_each)
    table, dish, means = np.empty_like(arm), np.empty_like(arm), np.empty(N_ARMS)
    for a in range(N_ARMS):
        weights = sticks(model.concentration, model.discount, rng)
        order = rng.choice(len(menu.weights), size=len(weights), p=menu.weights / menu.weights.sum())
        means[a] = weights @ menu.coefficients[order] @ POINT / weights.sum()
        table[arm == a] = rng.choice(len(weights), size=n_each, p=weights / weights.sum())
        dish[arm == a] = order[table[arm == a]]
    y = np.einsum("ij,ij->i", X, menu.coefficients[dish])
    return Story(X, y + np.sqrt(menu.noise_var[dish]) * rng.standard_normal(len(y)), arm, table, dish, means)


def seated(engine: HierarchicalEngine, story: Story) -> FranchiseState:
    """The state in which every reward sits at the table it came from; the engine takes it without a check."""
    n = len(story.y)
    columns, sqrt_information, law = engine._prior
    z = np.unique(story.dish, return_inverse=True)[1]
    data = np.column_stack([story.X, story.y, np.zeros(n)])
    rate_rewards(data, n, columns, law[0])
    state = engine.init()
    dish, guests = np.zeros((2, N_ARMS, n + 1), np.int64)
    arms, seat = np.zeros((N_ARMS, 3), np.int64), np.empty(n, np.int64)
    dishes, labels, size = np.zeros((len(columns), 4 * n)), np.tile(np.arange(4 * n), (2, 1)), state.size
    menu = np.zeros(4 * n, np.int64)
    for k in range(z.max() + 1):
        open_slot(dishes, labels[0], labels[1], size, columns)
        component.rebuild(dishes, k, columns, sqrt_information[0], data, z, k, -1)
        component.cache_constants(dishes, k, law[0], law[3])
    for a in range(N_ARMS):
        own = story.arm == a
        seat[own] = np.unique(story.table[own], return_inverse=True)[1]
        for t in range(seat[own].max() + 1):
            dish[a, t] = z[own][seat[own] == t][0]
            guests[a, t] = (seat[own] == t).sum()
            menu[dish[a, t]] += 1
        arms[a] = seat[own].max() + 1, seat[own].max() + 1, own.sum()
    size[1:] = n
    engine._door.last = state = state._replace(
        dishes=dishes,
        labels=labels,
        data=data,
        z=z,
        arm_of=story.arm.copy(),
        seat=seat,
        menu=menu,
        dish=dish,
        guests=guests,
        arms=arms,
    )
    return state


def copy_of(engine: HierarchicalEngine, state: FranchiseState) -> FranchiseState:
    """The same state in arrays of its own; the engine takes it without a check."""
    copies: dict[str, Any] = {
        name: part.copy() for name, part in state._asdict().items() if isinstance(part, np.ndarray)
    }
    engine._door.last = copy = state._replace(**copies)
    return copy


def summary(state: FranchiseState) -> list[float]:
    """Dishes, tables of both arms, and the guests of the fullest table."""
    return [float(state.size[0]), float(state.arms[:, 0].sum()), float(state.guests.max())]


def move(engine: HierarchicalEngine, state: FranchiseState, rng: Rng) -> FranchiseState:
    """Rewards, tables, rewards: the same read backwards, as calibration asks."""
    n = len(state.data)
    return engine.move_rewards(engine.move_tables(engine.move_rewards(state, n, rng), 2, rng), n, rng)


def draw_means(engine: HierarchicalEngine, state: FranchiseState, rng: Rng) -> Array:
    return np.asarray(engine.draw_means(state, POINT, 1, rng)[0])


LAWS: dict[Law, tuple[int, int]] = {  # rewards of each arm, stories
    (0.0, 1.0, 0.0): (10, 800),
    (0.4, 1.0, 0.25): (10, 500),
    (0.6, 0.2, 0.0): (6, 200),
    (0.4, 1.0, 0.5): (4, 200),
}


@functools.cache
def stories(law: Law) -> list[Story]:
    """Stories of a law: sampler and planted bugs share them, since a large discount breaks 30,000 sticks for each."""
    (n_each, n_stories), rng = LAWS[law], np.random.default_rng(7)
    return [told(model_of(*law), n_each, rng) for _ in range(n_stories)]


def calibration_ranks(law: Law, sampler: Sampler, draw: Draw, runs: int, seed: int) -> IntArray:
    """Ranks (runs, 5) of one mean, the gap of the means and the summary among 19 draws, both ways from the truth."""
    rng, engine = np.random.default_rng(seed), HierarchicalEngine(model_of(*law), N_ARMS)
    ranks = np.empty((runs, 5), np.int64)
    for run, story in enumerate(stories(law)[:runs]):
        start = seated(engine, story)
        values = [[story.means[0], story.means[0] - story.means[1], *summary(start)]]
        position = int(rng.integers(20))
        for steps in (position, 19 - position):
            state = copy_of(engine, start)
            for _ in range(steps):
                state = sampler(engine, state, rng)
                means = draw(engine, state, rng)
                values.append([means[0], means[0] - means[1], *summary(state)])
        ranks[run] = ranks_of_truth(np.array(values), rng)
    return ranks


@pytest.mark.parametrize("law", LAWS)
def test_ranks_of_the_truth_are_uniform(law: Law) -> None:
    assert uniformity_p_value(calibration_ranks(law, move, draw_means, LAWS[law][1], seed=2)) > REJECTED


def moves_with(replaced: dict[str, Callable[..., Any]], n_moves: int) -> Sampler:
    """Moves of single rewards with a planted bug."""
    move_rewards = compiled_mutant(moves.move_rewards, replaced)

    def sampler(engine: HierarchicalEngine, state: FranchiseState, rng: Rng) -> FranchiseState:
        left = move_rewards(engine.books(state), n_moves, rng_handle(rng))
        assert left == 0, "seated leaves room for every reward to sit alone"
        return state

    return sampler


def printed_table_mass(rules: Rules, n_tables: int, n_dishes: int) -> float:
    """The appendix's new-table mass, with the number of dishes instead of the arm's tables."""
    return rules.concentration + rules.discount * n_dishes


def plain_dish_mass(rules: Rules, n_dishes: int) -> float:
    """A new dish without its discount."""
    return rules.shared_concentration


def draw_apart(engine: HierarchicalEngine, state: FranchiseState, rng: Rng) -> Array:
    """Every arm with a menu of its own instead of one for all."""
    return np.diag(engine.draw_means(state, POINT, N_ARMS, rng))


PRINTED = moves_with({"new_table_mass": printed_table_mass}, 12)
PLAIN = moves_with({"new_dish_mass": plain_dish_mass}, 8)
BUGS = [
    pytest.param((0.0, 1.0, 0.0), move, draw_apart, 800, id="a menu for every arm"),
    pytest.param((0.6, 0.2, 0.0), PRINTED, draw_means, 120, id="printed mass"),
    pytest.param((0.4, 1.0, 0.5), PLAIN, draw_means, 120, id="no shared discount"),
]


@pytest.mark.parametrize(("law", "sampler", "draw", "runs"), BUGS)
def test_planted_bugs_are_rejected(law: Law, sampler: Sampler, draw: Draw, runs: int) -> None:
    assert uniformity_p_value(calibration_ranks(law, sampler, draw, runs, seed=2)) < REJECTED


# -- learned concentrations


def learned_ranks(redraw: Callable[[HierarchicalEngine, FranchiseState, Rng], None], runs: int, seed: int) -> IntArray:
    """Ranks of both concentrations, which are Gamma(2, 2), one mean and the summary among 19 draws."""
    rng, n_each = np.random.default_rng(seed), 10
    start = model_of(0.2, 1.0, 0.0)  # a slice for the arms' concentration, Escobar and West's draw for the menu's
    belief = (2.0, 2.0)
    engine = HierarchicalEngine(start, N_ARMS, learn_concentration=belief, learn_shared_concentration=belief)
    ranks = np.empty((runs, 6), np.int64)
    for run in range(runs):
        concentrations = rng.gamma(2.0, size=2) / 2.0
        model = replace(start, concentration=concentrations[0], shared_concentration=concentrations[1])
        story = told(model, n_each, rng)
        first = seated(engine, story)
        first.rules[[0, 2]] = concentrations
        values = [[*concentrations, story.means[0], *summary(first)]]
        position = int(rng.integers(20))
        for steps in (position, 19 - position):
            state = copy_of(engine, first)
            for _ in range(steps):
                redraw(engine, state, rng)
                state = move(engine, state, rng)
                redraw(engine, state, rng)
                values.append([*state.rules[[0, 2]], draw_means(engine, state, rng)[0], *summary(state)])
        ranks[run] = ranks_of_truth(np.array(values), rng)
    return ranks


def redraw(engine: HierarchicalEngine, state: FranchiseState, rng: Rng) -> None:
    engine.redraw_hyperparameters(state, rng)


def redraw_from_rewards(engine: HierarchicalEngine, state: FranchiseState, rng: Rng) -> None:
    """The menu's concentration given how many rewards, not tables, have each dish."""
    engine.redraw_hyperparameters(state, rng)
    redraw_concentration([np.unique(state.z, return_counts=True)[1]], state.rules[2:], (2.0, 2.0), rng)


def test_learned_concentrations_are_calibrated() -> None:
    assert uniformity_p_value(learned_ranks(redraw, 400, seed=3)) > REJECTED
    assert uniformity_p_value(learned_ranks(redraw_from_rewards, 150, seed=3)) < REJECTED
