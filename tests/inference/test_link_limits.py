"""What models of counts and marks ask of a state: rules that hold for both, each on its limit and one step beyond."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from polyarm.errors import CONTEXT_LIMIT
from polyarm.inference.links import LinkModels, LinkState, Reward
from polyarm.inference.links_checks import require_links
from polyarm.inference.state_checks import DATA_LIMIT
from polyarm.kernels.links import LAM, MEAN, VARIANCE
from polyarm.kernels.sticks import NEXT, ROWS, UNIT
from tests.inference.limits import Change, assert_judged, put_in, row


@pytest.fixture(scope="module")
def learnt() -> LinkState:
    """A state of ten marks of one arm and five of another, from 1 to 5."""
    rng, models = np.random.default_rng(0), LinkModels(2, 2)
    rewards = [Reward(int(k >= 10), rng.standard_normal(2), 1.0 + k % 5) for k in range(15)]
    state = models.init()
    for n, reward in enumerate(rewards, 1):
        state = models.learnt(state, reward, n, n > 3, partial(list, rewards[:n]))
    require_links(state)
    assert state.models.fits.shape == (2, 2, 3, 4)
    return state


put = partial(put_in, "models")


def cut(part: str, axis: int, n: int) -> Change:
    """A part of the models has so many families."""

    def change(state: Any) -> Any:
        array = getattr(state.models, part)
        return state._replace(models=state.models._replace(**{part: np.take(array, range(n), axis)}))

    return change


FAMILIES_OF = (("sums", 1), ("kept", 1), ("fits", 1), ("guess", 0))
LIMITS: list[tuple[Change, str | None]] = [
    *(
        (put(part, -1, np.nan), rf"state\.links\.{part} must be finite")
        for part in ("sums", "kept", "fits", "guess", "cuts", "level", "grid", "columns")
    ),
    *((cut(part, axis, n), r"state\.links must be of no or 2 families") for part, axis in FAMILIES_OF for n in (0, 1)),
    (put("columns", (UNIT, 1), 1e-300), None),
    (put("columns", (UNIT, 1), 0.0), r"state\.links\.columns must be finite and above 0"),
    *(
        (put("guess", (family, which, 2), 0.0), r"variances in state\.links\.guess must be finite and above 0")
        for family in range(2)
        for which in (VARIANCE, LAM)
    ),
    (put("guess", (1, MEAN, 2), -3.0), None),
    (put("sizes", (0, ROWS), 17), r"state\.links\.sizes\[0, ROWS\] must be from 0 to 16"),
    (put("sizes", (0, ROWS), -1), r"state\.links\.sizes\[0, ROWS\] must be from 0 to 16"),
    (put("sizes", (1, NEXT), 6), r"state\.links\.sizes\[1, NEXT\] must be from 0 to 5"),
    (put("sizes", (1, NEXT), -1), r"state\.links\.sizes\[1, NEXT\] must be from 0 to 5"),
    (put("sizes", (1, NEXT), 0), None),
    *((row(0, (9, column), 10 * CONTEXT_LIMIT), None) for column in (0, 1)),
    *((row(0, (9, column), 11 * CONTEXT_LIMIT), r"state\.data\.0 must be at most") for column in (0, 1)),
    (row(1, (4, 3), DATA_LIMIT), None),
    (row(1, (4, 3), 1.1 * DATA_LIMIT), r"state\.data\.1 must be at most"),
    (row(1, (5, 3), np.nan), None),  # beyond what is in use
    *(
        (put("fits", (1, family, j, j), 0.0), r"diagonals of state\.links\.fits must be finite and above 0")
        for family in range(2)
        for j in range(3)
    ),
    (put("fits", (1, 1, 2, 0), 0.0), None),
    (put("sums", (1, 1, 0), -0.1), r"state\.links\.sums must be counts of at least 0"),
    (put("sums", (1, 1, 1), -5.0), None),
]


@pytest.mark.parametrize("number", range(len(LIMITS)))
def test_a_state_of_links_is_sound_up_to_its_limits(number: int, learnt: LinkState) -> None:
    assert_judged(require_links, *LIMITS[number], learnt)
