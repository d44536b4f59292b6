"""Gibbs moves, uniform number by uniform number, against a sampler that only knows joint densities."""

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import gibbs
from polyarm.kernels.mixture.component import MEAN, MOVES
from polyarm.kernels.mixture.records import EVER, K_USED, NEXT, ROWS, arm_of, room_for
from polyarm.types import Array
from tests.kernels.mixture.chain import ARM, CAPACITY, Chain, N
from tests.kernels.script import Script
from tests.statistics.exact import log_joint

PROCESSES = [(0.8, 0.0), (0.8, 0.3), (1.5, -0.5)]  # the last: three components at most


@pytest.mark.parametrize("memory", [N, 9])
@pytest.mark.parametrize(("concentration", "discount"), PROCESSES)
def test_rewards_are_seated_and_moved_as_their_joint_densities_say(
    concentration: float, discount: float, memory: int
) -> None:
    chain = Chain(concentration, discount, memory)
    for i in range(N):
        chain.learn(i, 12 if i < 2 else 4)
        chain.check()
    size = chain.books.sizes[ARM]
    assert size[EVER] == N
    assert size[ROWS] == memory
    parts = sum(len(part) for part in chain.slow.parts)
    assert parts == N
    if memory == N:
        z = [chain.slow.slot_of(i) for i in range(N)]
        tables, sizes, priors, processes = (
            chain.books.tables,
            chain.books.sizes,
            chain.books.priors,
            chain.books.processes,
        )
        joint = plain(gibbs.log_joint)(tables, sizes, priors, processes, ARM)
        assert joint == pytest.approx(log_joint(tuple(z), chain.X, chain.y, chain.model), rel=1e-7)


def shuffled(uniforms: list[float]) -> list[int]:
    """An inside-out shuffle."""
    order: list[int] = []
    for i, u in enumerate(uniforms):
        j = int(u * (i + 1))
        order.append(order[j] if j < i else i)
        order[j] = i
    return order


def test_a_sweep_moves_every_reward_once_in_a_shuffled_order() -> None:
    chain = Chain(0.8, 0.3, N)
    for i in range(N):
        chain.learn(i, 0)
    places, moves, order = chain.take(N), chain.take(N), np.full(N, -1)
    assert plain(gibbs.sweep)(chain.books, ARM, order, N, Script(uniforms=[*places, *moves])) == 0
    assert order.tolist() == shuffled(places)
    for i, u in zip(order, moves, strict=True):
        chain.slow.seat(int(i), u)
    chain.check()
    rest = chain.take(7)  # a sweep that goes on keeps its order
    assert plain(gibbs.sweep)(chain.books, ARM, order, 7, Script(uniforms=rest)) == 0
    for i, u in zip(order[-7:], rest, strict=True):
        chain.slow.seat(int(i), u)
    chain.check()
    places, moves = chain.take(5), chain.take(5)
    assert plain(gibbs.random_moves)(chain.books, ARM, 5, Script(uniforms=[*places, *moves])) == 0
    for place, u in zip(places, moves, strict=True):
        chain.slow.seat(int(place * N), u)
    chain.check()


def test_moves_stop_where_no_slot_is_free() -> None:
    chain = Chain(0.8, 0.3, N)
    for i in range(N):
        chain.learn(i, 0)
    one = plain(arm_of)(chain.books, ARM)
    for used, expected in ((CAPACITY - 2, True), (CAPACITY - 1, False), (CAPACITY, False)):
        one.size[K_USED] = used
        assert plain(gibbs.has_room)(one) == expected
    assert plain(gibbs.random_moves)(chain.books, ARM, 5, Script()) == 5
    assert plain(gibbs.sweep)(chain.books, ARM, np.zeros(N, np.int64), N, Script()) == N


def own_weights(chain: Chain, i: int, spare: int) -> tuple[float, float]:
    """Log weight of reward i for its own component: by a downdate where digits allow it, and rebuilt."""
    one = plain(arm_of)(chain.books, ARM)
    room = plain(room_for)(one)
    plain(gibbs.score)(one, i, room)
    k = int(one.slot[one.z[i]])
    quick = plain(gibbs.log_leave_one_out)(one, k, i, spare, room.s[k], room.e[k])
    return float(quick), float(plain(gibbs.log_without)(one, spare, i))


def test_a_reward_is_weighed_for_its_own_component_without_it() -> None:
    chain = Chain(0.8, 0.3, N)
    for i in range(N):
        chain.learn(i, 6)
    K = len(chain.slow.parts)
    for i in range(N):
        part = chain.slow.parts[chain.slow.slot_of(i)]
        if len(part) > 1:
            exact = chain.slow.log_weight(part, i, K)
            np.testing.assert_allclose(own_weights(chain, i, K), exact, rtol=1e-5, atol=1e-6)
    chain.check()


def test_components_are_computed_afresh_and_failures_are_told() -> None:
    chain = Chain(0.8, 0.3, 9)
    for i in range(N):
        chain.learn(i, 6)
    T, K = chain.books.tables[ARM], len(chain.slow.parts)
    T[:, :K] = np.nan
    plain(gibbs.rebuild_components)(chain.books, ARM)
    chain.check()
    assert not T[MOVES, :K].any()
    T[MEAN, K - 1] = np.inf
    chain.books.sizes[ARM, NEXT] = 0
    with np.errstate(all="ignore"):
        left = plain(gibbs.learn)(chain.books, ARM, chain.X[0], 0.0, 0, Script())
    assert left == gibbs.NOT_FINITE


def test_a_seat_is_drawn_without_moves() -> None:
    chain = Chain(0.8, 0.3, N)
    for i in range(N):
        own = chain.take(1)
        plain(gibbs.seat)(chain.books, ARM, chain.X[i], chain.y[i], Script(uniforms=own))
        chain.number[i] = i
        chain.slow.seat(i, own[0])
    chain.check()


def weights_of(chain: Chain, i: int) -> Array:
    one = plain(arm_of)(chain.books, ARM)
    room = plain(room_for)(one)
    plain(gibbs.score)(one, i, room)
    return room.logw[: len(chain.slow.parts) + 1].copy()


def test_a_new_reward_is_weighed_for_every_component_and_a_new_one() -> None:
    chain = Chain(0.8, 0.3, N)
    for i in range(N - 1):
        chain.learn(i, 6)
    last, d = N - 1, chain.books.data
    d[last, :2], d[last, 2], d[last, 3] = chain.X[last], chain.y[last], chain.slow.evidence([last])
    np.testing.assert_allclose(weights_of(chain, last), chain.slow.log_weights(last), rtol=1e-6)


@pytest.mark.parametrize("size", [1.0, 1e5])
def test_a_reward_that_determines_its_component_is_weighed_without_it(size: float) -> None:
    """Its leverage leaves too few digits for a downdate: the component is rebuilt."""
    chain = Chain(0.8, 0.3, N)
    chain.X[3], chain.y[3] = size * np.array([1.0, -0.4]), size * 1.2
    chain.X[:3], chain.y[:3] = [[0.3, 1.0], [-0.5, 0.2], [0.1, -0.8]], [0.4, -0.9, 1.6]
    for i in range(4):  # all in one component
        plain(gibbs.seat)(chain.books, ARM, chain.X[i], chain.y[i], Script(uniforms=[0.0]))
        chain.number[i] = i
    chain.slow.parts = [[0, 1, 2, 3]]
    chain.check()
    exact = chain.slow.log_weight([0, 1, 2, 3], 3, 1)
    np.testing.assert_allclose(own_weights(chain, 3, 1), exact, rtol=1e-5)
