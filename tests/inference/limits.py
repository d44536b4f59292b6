"""One thing of a state changed, and what a check says of it."""

from collections.abc import Callable
from typing import Any

import pytest

from polyarm.errors import InvalidArgument
from polyarm.inference.door import copied

Change = Callable[[Any], Any]


def row(arm: int, place: Any, value: float) -> Change:
    """One number of an arm's rewards becomes another."""

    def change(state: Any) -> Any:
        state.data[arm][place] = value
        return state

    return change


def put_in(within: str, part: str, place: Any, value: float) -> Change:
    """One number of what stands within the state, or of the state itself, becomes another."""

    def change(state: Any) -> Any:
        inner = getattr(state, within)
        getattr(inner if part in inner._fields else state, part)[place] = value
        return state

    return change


def assert_judged(require: Callable[[Any], None], change: Change, refusal: str | None, state: Any) -> None:
    """A copy of the state with the change is refused in these words, or taken where there are none."""
    changed = change(copied(state))
    if refusal is None:
        require(changed)
        return
    with pytest.raises(InvalidArgument, match=refusal):
        require(changed)
