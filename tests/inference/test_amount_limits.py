"""What the model of amounts asks of a state: every rule on its limit and one step beyond."""

from functools import partial

import numpy as np
import pytest

from polyarm.errors import CONTEXT_LIMIT, InvalidArgument
from polyarm.inference.amounts import AmountModel, AmountState
from polyarm.inference.amounts_checks import require_amounts
from polyarm.inference.generalized import GAMMA_SHAPES
from polyarm.inference.links import Reward
from polyarm.inference.state_checks import DATA_LIMIT
from polyarm.kernels.amounts import AMOUNT_UNIT, GAMMA_SHAPE, HIGHEST, OFF, ON, ORIGIN, STATUS, WAITING
from polyarm.kernels.links import LAM, MEAN, VARIANCE
from polyarm.kernels.sticks import NEXT, NONZERO, ROWS, TOTAL, UNIT
from tests.inference.limits import Change, assert_judged, put_in, row


@pytest.fixture(scope="module")
def learnt() -> AmountState:
    """A state of ten amounts of one arm and four of another, from 1 on."""
    rng, model = np.random.default_rng(0), AmountModel(2, 2)
    rewards = [Reward(int(k >= 10), rng.standard_normal(2), 1.0 + float(k)) for k in range(14)]
    state = model.init()
    for n, reward in enumerate(rewards, 1):
        state = model.learnt(state, reward, n, np.zeros(1), partial(list, rewards[:n]))
    require_amounts(state)
    assert state.model.level[STATUS] == ON
    return state


put = partial(put_in, "model")


def without(part: str) -> Change:
    """A part of the model has no arms."""
    return lambda state: state._replace(model=state.model._replace(**{part: getattr(state.model, part)[:0]}))


low, high = GAMMA_SHAPES
LIMITS: list[tuple[Change, str | None]] = [
    *((put(part, -1, np.nan), "must be finite") for part in ("sums", "kept", "fits", "guess", "columns")),
    (put("level", ORIGIN, np.nan), r"state\.amounts\.level must be finite"),
    (put("weights", slice(None), 0.5), None),
    (put("weights", 0, 0.6), r"state\.amounts\.weights must be probabilities"),
    (put("level", STATUS, 3.0), "must be waiting, off or on"),
    (put("level", STATUS, 0.5), "must be waiting, off or on"),
    (put("level", STATUS, OFF), r"state\.amounts must be of 0 arms"),
    (put("level", STATUS, WAITING), r"state\.amounts must be of 0 arms"),
    *((without(part), r"state\.amounts must be of 2 arms") for part in ("sums", "kept", "fits")),
    (put("columns", (UNIT, 1), 1e-300), None),
    (put("columns", (UNIT, 1), 0.0), r"state\.amounts\.columns must be finite and above 0"),
    (put("columns", (NONZERO, 1), 0.0), None),
    (put("columns", (NONZERO, 1), -1.0), r"state\.amounts\.columns must be counts of at least 0"),
    (put("columns", (TOTAL, 1), -5.0), None),
    (put("guess", (VARIANCE, 2), 0.0), r"variances in state\.amounts\.guess must be finite and above 0"),
    (put("guess", (LAM, 0), 0.0), r"variances in state\.amounts\.guess must be finite and above 0"),
    (put("guess", (MEAN, 0), -3.0), None),
    (put("level", HIGHEST, 0.0), "largest amount must be finite and above 0"),
    (put("level", AMOUNT_UNIT, 0.0), "unit of amounts must be other than 0"),
    (put("level", GAMMA_SHAPE, low), None),
    (put("level", GAMMA_SHAPE, high), None),
    (put("level", GAMMA_SHAPE, 0.99 * low), "shape of amounts must be from 0.05 to"),
    (put("level", GAMMA_SHAPE, 1.01 * high), "shape of amounts must be from 0.05 to"),
    *((put("fits", (1, j, j), 0.0), r"diagonals of state\.amounts\.fits must be finite and above 0") for j in range(3)),
    (put("fits", (1, 2, 0), 0.0), None),
    (put("sums", (1, 0), 0.0), None),
    (put("sums", (1, 0), -0.1), r"state\.amounts\.sums must be counts of at least 0"),
    (put("sums", (1, 1), -5.0), None),
    (put("sizes", (0, ROWS), 17), r"state\.amounts\.sizes\[0, ROWS\] must be from 0 to 16"),
    (put("sizes", (1, NEXT), 5), r"state\.amounts\.sizes\[1, NEXT\] must be from 0 to 4"),
    (put("sizes", (1, NEXT), 0), None),
    *((row(0, (9, column), 10 * CONTEXT_LIMIT), None) for column in (0, 1)),
    *((row(0, (9, column), 11 * CONTEXT_LIMIT), r"state\.amounts\.data\.0 must be at most") for column in (0, 1)),
    (row(1, (3, 3), DATA_LIMIT), None),
    (row(1, (3, 3), 1.1 * DATA_LIMIT), r"state\.amounts\.data\.1 must be at most"),
    (row(0, (0, 3), 0.0), "amounts of arm 0 must be finite and above 0"),
    (row(1, (3, 3), 1e-9), None),
    (row(1, (3, 3), -2.0), "amounts of arm 1 must be finite and above 0"),
    (row(1, (4, 3), -2.0), None),  # beyond what is in use
    (put("level", ORIGIN, 1.0), "amounts of arm 0 must be finite and above 0"),
    (put("level", AMOUNT_UNIT, -1.0), "amounts of arm 0 must be finite and above 0"),
]


@pytest.mark.parametrize("number", range(len(LIMITS)))
def test_a_state_of_amounts_is_sound_up_to_its_limits(number: int, learnt: AmountState) -> None:
    assert_judged(require_amounts, *LIMITS[number], learnt)


@pytest.mark.parametrize("status", [WAITING, OFF])
def test_where_there_is_no_model_the_other_has_all_the_weight(status: int) -> None:
    state = AmountModel(2, 2).init(status)
    require_amounts(state)
    state.weights[:] = 0.9, 0.1
    with pytest.raises(InvalidArgument, match=r"state\.amounts\.weights must be 1 alone"):
        require_amounts(state)
