"""Moves in the franchise, uniform number by uniform number, against one that only knows joint densities."""

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.franchise import books, moves
from polyarm.kernels.franchise.books import SEEN, TABLES, Rules
from polyarm.kernels.mixture.records import K_USED
from tests.kernels.franchise.chain import ARM_OF, CAPACITY, ROOM, Chain, N
from tests.kernels.script import Script

RULES = [Rules(0.8, 0.0, 1.3, 0.0), Rules(0.6, 0.3, 0.9, 0.2), Rules(3.0, 0.5, 4.0, 0.4)]


@pytest.mark.parametrize("rules", RULES)
def test_rewards_and_tables_are_drawn_as_their_joint_densities_say(rules: Rules) -> None:
    chain = Chain(rules)
    for i in range(N):
        chain.learn(i)
        chain.check()
        chain.move_rewards(4)
        chain.check()
        chain.move_tables(2)
        chain.check()
    assert chain.n_dishes > 1
    assert chain.books.tables.arms[:, TABLES].sum() > chain.n_dishes


def test_weights_are_those_of_the_joint_densities() -> None:
    chain = Chain(RULES[1])
    for i in range(N):
        chain.learn(i)
    room = plain(books.room_for)(chain.books)
    for i in range(N):
        a = ARM_OF[i]
        plain(moves.leave)(chain.books, i, room)
        chain.leave(i)
        plain(moves.log_dishes)(chain.books.dishes, chain.books.rewards.data, i, room)
        plain(moves.weigh)(chain.books, a, room.fit, chain.evidence([i]), room.logw)
        exact = chain.weights(i)
        np.testing.assert_allclose(room.logw[: len(exact)], exact, rtol=1e-6)
        u = chain.take(1)
        plain(moves.sit)(chain.books, i, room, Script(uniforms=u))
        chain.sit(i, u[0])
    chain.check()


def test_moves_stop_where_nothing_fits() -> None:
    chain = Chain(RULES[1])
    for i in range(N):
        chain.learn(i)
    size, arms = chain.books.dishes.size, chain.books.tables.arms
    used, seen = int(size[K_USED]), arms[:, SEEN].copy()
    for n_dishes, expected in ((CAPACITY - 2, True), (CAPACITY - 1, False)):
        size[K_USED] = n_dishes
        assert plain(books.fits)(chain.books) == expected
    size[K_USED] = used
    for a in range(3):
        for n_seen, expected in ((ROOM - 1, True), (ROOM, False)):
            arms[a, SEEN] = n_seen
            assert plain(books.fits)(chain.books) == expected
        assert plain(moves.move_rewards)(chain.books, 3, Script()) == 3
        assert plain(moves.move_tables)(chain.books, 2, Script()) == 2
        arms[a, SEEN] = seen[a]
    chain.check()


def test_masses_of_first_tables_and_dishes_are_certain() -> None:
    rules = Rules(0.6, 0.3, 0.9, 0.2)
    assert plain(books.new_table_mass)(rules, 0, 5) == 1.0
    assert plain(books.new_table_mass)(rules, 2, 5) == pytest.approx(0.6 + 2 * 0.3)
    assert plain(books.new_dish_mass)(rules, 0) == 1.0
    assert plain(books.new_dish_mass)(rules, 4) == pytest.approx(0.9 + 4 * 0.2)
    empty = Chain(rules).books
    assert plain(books.log_all_tables)(empty) == 0.0
    empty.tables.arms[:, TABLES] = 1, 0, 2
    assert plain(books.log_all_tables)(empty) == pytest.approx(np.log(3.9))
    room = plain(books.room_for)(empty)
    assert [len(part) for part in room] == [ROOM + CAPACITY + 4, CAPACITY, CAPACITY, CAPACITY, 2]  # whole lanes
