"""The restaurant franchise against the enumeration of all tables and dishes of two arms with three rewards each."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import logsumexp

from polyarm.inference.franchise import FranchiseState, HierarchicalEngine
from polyarm.kernels._jit import plain
from polyarm.kernels.franchise import moves as kernels
from polyarm.kernels.franchise.books import room_for
from polyarm.models import HierarchicalMixture, NormalInverseGamma
from polyarm.types import Array, IntArray, Rng
from tests.reference import canonical, log_eppf, partitions
from tests.statistics.exact import Partition, excess_tv, log_evidence

ARMS = np.array([0, 1, 0, 1, 0, 1])


def problem(discount: float, shared_discount: float) -> tuple[Array, Array, HierarchicalMixture]:
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(6), rng.normal(size=6)])
    y = np.where(rng.random(6) < 0.5, 1.5, -1.0) * x[:, 1] + 0.5 * rng.normal(size=6)
    base = NormalInverseGamma(2, [0.2, -0.1], [[2.0, 0.9], [0.9, 1.0]], 2.0, 0.5)
    return x, y, HierarchicalMixture(base, 0.7, discount, 1.2, shared_discount)


def key(table: IntArray | list[int], dish: IntArray | list[int]) -> Partition:
    """Tables of arm 0, tables of arm 1 and dishes, each in order of appearance."""
    tables, dishes = np.asarray(table), np.asarray(dish)
    return (*canonical(tables[ARMS == 0]), *canonical(tables[ARMS == 1]), *canonical(dishes))


def exact(x: Array, y: Array, model: HierarchicalMixture) -> dict[Partition, float]:
    """Posterior probability of every seating with its dishes."""
    joint: dict[Partition, float] = {}
    for first in partitions(3):
        for second in partitions(3):
            table = np.empty(6, int)
            table[ARMS == 0], table[ARMS == 1] = first, np.array(second) + max(first) + 1
            seats = [np.bincount(first), np.bincount(second)]
            inner = sum(log_eppf([int(c) for c in s], model.concentration, model.discount) for s in seats)
            for menu in partitions(table.max() + 1):
                dish = np.array(menu)[table]
                order = [int(c) for c in np.bincount(menu)]
                total = inner + log_eppf(order, model.shared_concentration, model.shared_discount)
                total += sum(log_evidence(x[dish == k], y[dish == k], model.base) for k in range(max(menu) + 1))
                joint[key(table, dish)] = total
    norm = logsumexp(list(joint.values()))
    return {z: float(np.exp(v - norm)) for z, v in joint.items()}


def fed(engine: HierarchicalEngine, x: Array, y: Array, rng: Rng) -> FranchiseState:
    state = engine.init()
    for xi, yi, a in zip(x, y, ARMS, strict=True):
        state = engine.update(state, xi, int(a), yi, rng)
    return state


def rewards_only(engine: HierarchicalEngine, state: FranchiseState, rng: Rng) -> FranchiseState:
    return engine.move_rewards(state, 12, rng)


def both(engine: HierarchicalEngine, state: FranchiseState, rng: Rng) -> FranchiseState:
    return engine.move_tables(engine.move_rewards(state, 8, rng), 2, rng)


@pytest.mark.parametrize("step", [rewards_only, both])
@pytest.mark.parametrize(("discount", "shared_discount"), [(0.0, 0.0), (0.5, 0.3)])
def test_seatings_are_visited_as_often_as_they_are_probable(
    step: Callable[[HierarchicalEngine, FranchiseState, Rng], FranchiseState], discount: float, shared_discount: float
) -> None:
    x, y, model = problem(discount, shared_discount)
    engine, rng = HierarchicalEngine(model, 2, moves=8), np.random.default_rng(1)
    state = fed(engine, x, y, rng)
    seen: Counter[Partition] = Counter()
    for _ in range(20_000):
        state = step(engine, state, rng)
        seen[key(*engine.seating(state)[1:])] += 1
    truth = exact(x, y, model)
    assert set(seen) <= set(truth)
    assert excess_tv(truth, seen) < 1.35


def conditional_error(engine: HierarchicalEngine, x: Array, y: Array, weigh: Callable[..., None]) -> float:
    """Largest gap between a reward's conditional in the sampler and the ratio of joint probabilities."""
    truth = exact(x, y, engine.model)
    rng = np.random.default_rng(2)
    state = fed(engine, x, y, rng)
    worst = 0.0
    for step in range(60):
        state = engine.move_rewards(state, 3, rng)
        i, a = step % 6, int(ARMS[step % 6])
        books, label = engine.books(state), state.labels[0]
        room = room_for(books)
        kernels.leave(books, i, room)
        n_dishes, seen = int(state.size[0]), int(state.arms[a, 1])
        logw = np.full(seen + n_dishes + 1, np.nan)
        kernels.log_dishes(books.dishes, state.data, i, room)
        weigh(books, a, room.fit, state.data[i, -1], logw)
        joint = []
        for choice in range(len(logw)):
            table, dish = state.seat[:6].copy(), state.z[:6].copy()
            if choice < seen:
                table[i], dish[i] = choice, state.dish[a, choice]
            else:
                k = choice - seen
                table[i], dish[i] = 99, label[k] if k < n_dishes else 99
            free = choice < seen and state.guests[a, choice] == 0
            joint.append(0.0 if free else truth[key(table, dish)])
        ours = np.exp(logw - logw.max())
        worst = max(worst, np.abs(ours / ours.sum() - np.array(joint) / np.sum(joint)).max())
        kernels.sit(books, i, room, rng)
    return worst


def test_conditionals_are_ratios_of_joint_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, model = problem(0.5, 0.3)
    engine = HierarchicalEngine(model, 2, moves=8)
    assert conditional_error(engine, x, y, kernels.weigh) < 1e-10
    slow = plain(kernels.weigh)
    assert conditional_error(engine, x, y, slow) < 1e-10
    printed = lambda rules, n_tables, n_dishes: rules.concentration + rules.discount * n_dishes  # noqa: E731  planted: the appendix
    monkeypatch.setitem(slow.__globals__, "new_table_mass", printed)
    assert conditional_error(engine, x, y, slow) > 0.05


def test_draws_average_to_the_expectation_and_arms_move_together() -> None:
    x, y, model = problem(0.2, 0.1)
    engine, rng = HierarchicalEngine(model, 3), np.random.default_rng(3)
    state = fed(engine, x, y, rng)
    at = np.array([1.0, 0.7])
    draws = engine.draw_means(state, at, 50_000, rng)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - engine.expected_means(state, at)) < 4.5 * error).all()
    correlation = np.atleast_2d(np.corrcoef(draws.T))
    assert correlation[0, 1] > 0.1
    assert correlation[0, 2] > 0.1  # an arm never played still eats from the same menu


def test_prior_draws_are_those_of_the_model() -> None:
    _, _, model = problem(0.1, 0.0)
    engine, rng = HierarchicalEngine(model, 2), np.random.default_rng(4)
    at = np.array([1.0, 0.7])
    ours = engine.draw_means(engine.init(), at, 40_000, rng)
    told = np.array([[p.weights @ p.coefficients @ at for p in model.sample_params(2, rng)] for _ in range(2_000)])
    for a, b in ((ours[:, 0], told[:, 0]), (ours.sum(axis=1), told.sum(axis=1)), (ours @ [1, -1], told @ [1, -1])):
        clipped = [np.clip(v, -3, 3) for v in (a, b)]
        spread = np.sqrt(sum(np.var(v**2) / len(v) for v in clipped))
        assert abs(np.mean(clipped[0] ** 2) - np.mean(clipped[1] ** 2)) < 4.5 * spread


def test_books_balance_after_many_rewards() -> None:
    _, _, model = problem(0.5, 0.3)
    engine, rng = HierarchicalEngine(model, 3, moves=16), np.random.default_rng(5)
    state = engine.init()
    for t in range(400):
        x = np.array([1.0, rng.normal()])
        state = engine.update(state, x, t % 3, x[1] * rng.choice([-2.0, 2.0]) + 0.3 * rng.normal(), rng)
    arm, seat, dish = engine.seating(state)
    tables = {(a, s): d for a, s, d in zip(arm, seat, dish, strict=True)}
    assert all(state.dish[a, s] == d for (a, s), d in tables.items())
    assert state.arms[:, 0].sum() == len(tables) == state.menu.sum()
    k = int(state.size[0])
    assert k == len(set(dish))
    for place in range(k):
        own = dish == state.labels[0, place]
        xs, ys = state.data[:400][own, :2], state.data[:400][own, 2]
        precision = np.linalg.inv(model.base.covariance_matrix)
        mean = np.linalg.solve(precision + xs.T @ xs, precision @ model.base.mean_vector + xs.T @ ys)
        assert state.dishes[0, place] == own.sum()
        assert np.allclose(state.dishes[6:8, place], mean, rtol=1e-7)
