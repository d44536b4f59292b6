"""Every method that takes a state looks at it at the door."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument
from polyarm.inference.door import copied
from polyarm.models.objectives import Quantile
from tests.contracts.engines import ENGINES
from tests.contracts.policies import POLICIES
from tests.contracts.states import bits, fed, rewards, suited

X = np.array([0.8, -0.4])
EVERYONE: dict[str, Callable[[int, int], Any]] = {**ENGINES, **{f"policy {n}": b for n, b in POLICIES.items()}}
LEARNERS = {name: build for name, build in EVERYONE.items() if hasattr(build(3, 2), "_door")}
AT_THE_DOOR_ITSELF = ("require_fit", "must_migrate", "migrated", "books", "engine_state")  # what the door asks


def questions(learner: Any) -> list[str]:
    """Public methods whose first argument is a state."""
    found = []
    for name, method in inspect.getmembers(type(learner), inspect.isfunction):
        parameters = list(inspect.signature(method).parameters)
        if not name.startswith("_") and parameters[1:2] == ["state"] and name not in AT_THE_DOOR_ITSELF:
            found.append(name)
    return found


def asked(learner: Any, name: str, state: Any, **others: Any) -> Any:
    """What a method answers; every argument has one value, by its name, unless another is given."""
    given = {
        **{"context": X, "contexts": np.stack([X, -X]), "x": X, "arm": 1, "reward": suited(learner, 0.7)},
        **{"rng": np.random.default_rng(0), "n_draws": 3, "grid": np.linspace(-1, 1, 4), "low": -1.0, "high": 1.0},
        **{"objective": Quantile(0.3), "share": 0.9, "n_moves": 2, "n_proposals": 1, "power": 2.0},
        **{"values": np.array([1.0]), "shares": np.full((learner.n_arms, 3, 2), 0.5)},
        **others,
    }
    method = getattr(learner, name)
    needed = [p for p in inspect.signature(method).parameters.values() if p.default is p.empty][1:]
    return method(state, *(given[parameter.name] for parameter in needed))


def learnt(learner: Any, n_arms: int) -> Any:
    return fed(learner, rewards(20, 2, n_arms, seed=0), np.random.default_rng(0))


@pytest.mark.parametrize("name", LEARNERS)
def test_a_state_of_more_arms_is_refused_by_every_method_in_the_same_words(name: str) -> None:
    """More arms than are asked for: no array is too short, so that without a look nothing would fail."""
    state = learnt(LEARNERS[name](4, 2), 4)
    with pytest.raises(InvalidArgument, match="state") as refusal:
        LEARNERS[name](3, 2)._door.check(LEARNERS[name](3, 2), state)
    learner, before = LEARNERS[name](3, 2), bits(state)
    for method in questions(learner):
        with pytest.raises(InvalidArgument) as answer:
            asked(learner, method, state)
        assert str(answer.value) == str(refusal.value), method
    assert bits(state) == before


@pytest.mark.parametrize("name", LEARNERS)
def test_a_state_of_an_equal_one_is_answered_as_its_own(name: str) -> None:
    """A second look is all that another engine of the same settings needs, and it is the last that it takes."""
    own, other = LEARNERS[name](3, 2), LEARNERS[name](3, 2)
    state = learnt(own, 3)
    for method in questions(own):
        if method == "fade" and "fading" not in name and "memory" not in name and not name.startswith("robust"):
            continue  # refused: see below
        one, same = (asked(learner, method, copied(state)) for learner in (own, other))
        if method == "with_arm":
            assert bits(one[1]) == bits(same[1])
        elif hasattr(one, "made_with"):
            assert bits(one) == bits(same), method
            assert other._door.last is same, method
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, same, method)


WRONG: dict[str, list[Any]] = {
    "context": [np.ones(1), np.ones(3), np.array([np.nan, 1.0]), None],
    "contexts": [np.ones(2), np.ones((2, 3)), np.full((2, 2), np.inf)],
    "arm": [-1, 3, True, 1.0],
    "n_draws": [0, 2.5, True],
    "reward": [np.nan, None],
    "grid": ["high", None],
    "share": [0.0, -0.1, 1.1, np.nan],
    "shares": [np.ones((2, 3, 2)), np.ones((3, 3, 1)), np.ones((3, 3))],
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_wrong_argument_is_named_by_every_method_and_changes_nothing(name: str) -> None:
    learner = LEARNERS[name](3, 2)
    state = learnt(learner, 3)
    before = bits(state)
    for method in questions(learner):
        for argument in inspect.signature(getattr(learner, method)).parameters:
            for value in WRONG.get(argument, []):
                with pytest.raises(InvalidArgument, match=rf"^{argument}?.* must be "):
                    asked(learner, method, state, **{argument: value})
                assert bits(state) == before, (method, argument, value)


def test_what_is_never_absorbed_cannot_fade() -> None:
    engine: Any = ENGINES["dirichlet, budget"](3, 2)
    with pytest.raises(InvalidArgument, match="half_life must be given, or a memory, where the past fades, got None"):
        engine.fade(learnt(engine, 3), 0.9)


@pytest.mark.parametrize("name", EVERYONE)
def test_a_single_arm_is_enough_to_begin_with(name: str) -> None:
    """It is asked, learns, and another arm can come, which is then as if it had been there all along."""
    alone, two = EVERYONE[name](1, 2), EVERYONE[name](2, 2)
    wider, state = alone.with_arm(alone.init())
    fresh = two.init()
    assert bits(state) == bits(fresh)
    wider, state = alone.with_arm(fed(alone, rewards(20, 2, 1, seed=0), np.random.default_rng(0)))
    if hasattr(alone, "draw_means"):
        assert wider.n_arms == 2
        assert alone.draw_means(alone.init(), X, 3, np.random.default_rng(0)).shape == (3, 1)
        assert wider.draw_means(state, X, 3, np.random.default_rng(0)).shape == (3, 2)
    else:
        assert wider.probabilities(state, X, np.random.default_rng(0)).shape == (2,)
        assert alone.probabilities(alone.init(), X, np.random.default_rng(0)).tolist() == [1.0]
    assert bits(wider.init()) == bits(fresh)
