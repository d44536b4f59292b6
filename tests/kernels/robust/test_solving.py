"""Components and centres of several arms, four at a time, have the digits of each arm alone."""

import numpy as np
import pytest

from polyarm.inference.door import copied
from polyarm.inference.robust import RobustEngine, RobustState
from polyarm.kernels._jit import kernel, plain
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.centre import find_centre, find_centres
from polyarm.kernels.robust.records import Books, arms_of, n_features, room_for
from polyarm.kernels.robust.solving import solve_all, solve_arms
from polyarm.models.robust import RobustMixture


@kernel
def together(books: Books) -> None:
    arms = arms_of(books)
    solver = room_for(arms).solver
    solve_arms(arms, solver)
    find_centres(arms, solver)


@kernel
def each_alone(books: Books) -> None:
    arms = arms_of(books)
    solver, D = room_for(arms).solver, n_features(arms)
    for arm in range(arms.sizes.shape[0]):
        T, K, centre = arms.components[arm], arms.sizes[arm, K_USED], arms.centres[arm]
        solve_all(T, K, centre[:, D + 1], arms.features.part_var, solver)
        find_centre(T, K, centre, arms.features, solver)


def learnt(n_arms: int, n_columns: int, empty: int) -> tuple[RobustEngine, RobustState]:
    """An engine whose arms have one to many components, but for one without rewards."""
    engine = RobustEngine(RobustMixture(n_arms, n_columns, concentration=3.0))
    state, rng = engine.init(), np.random.default_rng(n_arms)
    for t in range(30 * n_arms):
        arm, x = t % n_arms, rng.standard_normal(n_columns)
        if arm != empty:
            state = engine.update(state, x, arm, float(rng.standard_normal() + 20.0 * (t // n_arms % (arm + 1))), rng)
    return engine, state


@pytest.mark.parametrize(("n_arms", "n_columns", "empty"), [(1, 2, -1), (2, 1, 0), (5, 3, 4), (9, 10, 2), (3, 22, 1)])
def test_arms_are_solved_together_as_each_alone(n_arms: int, n_columns: int, empty: int) -> None:
    engine, state = learnt(n_arms, n_columns, empty)
    books = engine._books(state)
    one, other, plainly = (copied(books) for _ in range(3))
    for copy in (one, other, plainly):  # what is out of date must be written anew, in slots in use alone
        for arm, n in enumerate(state.sizes[:, K_USED]):
            copy.components[arm, 4 : 4 + (n_columns + 1) * (n_columns + 4) // 2, :n] = 99.0
        copy.features[1:3] *= 1.7
    each_alone(one)
    together(other)
    for mine, right in zip(other, one, strict=True):
        np.testing.assert_array_equal(mine, right)
    if n_columns < 5:
        plain(together)(plainly)
        np.testing.assert_array_equal(plainly.components, one.components)
        np.testing.assert_array_equal(plainly.centres, one.centres)
    assert state.sizes[:, K_USED].max() > (4 if n_arms > 2 else 0)
