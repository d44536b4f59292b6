"""What an engine asks of a sound state: that its numbers are those of its settings, on their limits and beyond."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument
from polyarm.inference import Budget, GibbsEngine, HierarchicalEngine, RobustEngine
from polyarm.inference.door import copied
from polyarm.inference.generalized import GeneralizedEngine
from polyarm.kernels.mixture.component import DISCOUNT, GAMMA, NOISE, SHAPE
from polyarm.models import HierarchicalMixture, LinearMixture, NormalInverseGamma, RobustMixture
from tests.contracts.engines import ENGINES
from tests.contracts.states import bits, fed, position, rewards

BASE = NormalInverseGamma(2, 0.0, 1.0, 2.0, 0.5)
X = np.array([0.8, -0.4])


def process(**options: Any) -> GibbsEngine:
    return GibbsEngine([LinearMixture(BASE, 0.5, 0.1)] * 2, Budget(4), **options)


def franchise(**options: Any) -> HierarchicalEngine:
    return HierarchicalEngine(HierarchicalMixture(BASE, 0.5, 0.1, 1.0, 0.2), 2, 8, **options)


def robust(**options: Any) -> RobustEngine:
    return RobustEngine(RobustMixture(2, 2, **options), 4, 2)


def put(part: str, place: Any, value: float) -> Callable[[Any], None]:
    """One entry of a part of a state becomes another number."""

    def change(state: Any) -> None:
        getattr(state, part)[place] = value

    return change


def drawn(name: str, value: float) -> Callable[[Any], None]:
    """A number that the arms of a robust state share becomes another one."""

    def change(state: Any) -> None:
        setattr(state.shared, name, value)

    return change


LEARN = {"learn_concentration": (1.0, 1.0), "learn_discount": (1.0, 9.0), "learn_scale": (2.0, 2.0)}
CASES: dict[str, tuple[Any, Callable[[Any], None], str | None]] = {  # engine, what becomes of its state, the refusal
    "a click": (GeneralizedEngine(2, 2), lambda s: s.rows[0].__setitem__((0, -1), 1.0), None),
    "half a click": (GeneralizedEngine(2, 2), lambda s: s.rows[0].__setitem__((0, -1), 0.5), "reward must be 0 or 1"),
    "a count below 0": (
        GeneralizedEngine(2, 2, "poisson"),
        lambda s: s.rows[1].__setitem__((0, -1), -1.0),
        "reward must be a whole number of at least 0",
    ),
    "the highest mark": (GeneralizedEngine(2, 2, "ordinal"), lambda s: s.rows[1].__setitem__((0, -1), 4.0), None),
    "a mark too high": (
        GeneralizedEngine(2, 2, "ordinal"),
        lambda s: s.rows[1].__setitem__((0, -1), 5.0),
        "reward must be a whole number from 1 to 5",
    ),
    "no amount": (
        GeneralizedEngine(2, 2, "gamma"),
        lambda s: s.rows[1].__setitem__((0, -1), 0.0),
        "reward must be above 0",
    ),
    "cut points": (GeneralizedEngine(2, 2, "ordinal"), put("extra", slice(None), -1.0), "rising cut points"),
    "cut points that fall": (GeneralizedEngine(2, 2, "ordinal"), put("extra", 1, -9.0), "rising cut points"),
    "a shape": (GeneralizedEngine(2, 2, "gamma"), put("extra", 0, 1e-9), None),
    "no shape": (GeneralizedEngine(2, 2, "gamma"), put("extra", 0, 0.0), "state.extra must be finite and above 0"),
    **{
        f"law {place}, {'learned' if learned else 'given'}": (
            process(**({name: LEARN[name]} if learned else {})),
            put("laws", (1, place), value),
            None if learned else "state.laws must be the models'",
        )
        for name, place, value in (
            ("learn_concentration", GAMMA, 3.0),
            ("learn_discount", DISCOUNT, 0.9),
            ("learn_scale", NOISE, 7.0),
        )
        for learned in (True, False)
    },
    "shape of the noise, which is never learned": (process(**LEARN), put("laws", (0, SHAPE), 3.0), "state.laws must"),
    "no scale": (process(**LEARN), put("laws", (0, NOISE), 0.0), "state.laws must be the models'"),
    "a discount of all": (process(**LEARN), put("laws", (0, DISCOUNT), 1.0), "state.laws must be the models'"),
    "a concentration as low as the discount": (process(**LEARN), put("laws", (0, GAMMA), -0.1), "state.laws must"),
    **{
        f"rule {place}, {'learned' if learned else 'given'}": (
            franchise(**({name: (1.0, 1.0)} if learned else {})),
            put("rules", place, 3.0),
            None if learned else "state.rules must be",
        )
        for name, place in (("learn_concentration", 0), ("learn_shared_concentration", 2))
        for learned in (True, False)
    },
    "no concentration": (franchise(learn_concentration=(1.0, 1.0)), put("rules", 0, 0.0), "state.rules must be"),
    "discount of tables": (franchise(learn_concentration=(1.0, 1.0)), put("rules", 1, 0.3), "state.rules must be"),
    "discount of dishes": (
        franchise(learn_shared_concentration=(1.0, 1.0)),
        put("rules", 3, 0.3),
        "state.rules must be",
    ),
    "a robust concentration": (robust(), drawn("concentration", 0.7), "state.hyper must be"),
    "one that is learned": (robust(concentration_prior=(1.0, 1.0)), drawn("concentration", 0.7), None),
    "a spread of places": (robust(place_shape=0.0), drawn("location_var", 0.7), "state.hyper must be"),
    "one where nothing is learned": (robust(learned=False), drawn("location_var", 0.7), "state.hyper must be"),
    "a spread that is learned": (robust(), drawn("location_var", 0.7), None),
}


@pytest.mark.parametrize("case", CASES)
def test_a_state_fits_its_engine_or_what_does_not_is_named(case: str) -> None:
    engine, change, refusal = CASES[case]
    state = copied(fed(engine, rewards(12, 2, 2, seed=0), np.random.default_rng(0)))
    engine.require_fit(state)
    change(state)
    if refusal is None:
        engine.require_fit(state)
        return
    for look in (engine.require_fit, lambda state: engine.expected_means(state, X)):
        with pytest.raises(InvalidArgument, match=refusal):
            look(state)


MOVING = {
    name: [move for move in ("random_moves", "sweep", "split_merge", "move_rewards", "move_tables") if hasattr(e, move)]
    for name, e in ((name, build(3, 2)) for name, build in ENGINES.items())
}


@pytest.mark.parametrize("name", [name for name, moves in MOVING.items() if moves])
def test_without_rewards_nothing_moves(name: str) -> None:
    """Not in a state without rewards, and not in an arm without any, nor does it cost a random number."""
    engine: Any = ENGINES[name](3, 2)
    data = [row for row in rewards(20, 2, 3, seed=0) if row[1] != 1]
    for state in (engine.init(), fed(engine, data, np.random.default_rng(0))):
        before, rng = bits(state), np.random.default_rng(1)
        start = position(rng)
        for move in MOVING[name]:
            if move in ("move_rewards", "move_tables"):
                if state.size[1] > 0:
                    continue
                arguments: tuple[int, ...] = (5,)
            else:
                arguments = (1,) if move == "sweep" else (1, 5)
            after = getattr(engine, move)(state, *arguments, rng)
            assert bits(after) == before
            assert position(rng) == start
