"""What tests of the engines share."""

from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from tests.inference.learning import Listen


@pytest.fixture
def listen(monkeypatch: pytest.MonkeyPatch) -> Listen:
    """Arguments and answers of a function from now on; it does what it always did.

    While a kernel runs nobody listens: it may have to be compiled first, from the kernels themselves.
    """
    heard_of: list[tuple[Any, str, Any, Any]] = []

    def heard(module: Any, name: str) -> list[tuple[Any, Any]]:
        calls: list[tuple[Any, Any]] = []
        function = getattr(module, name)

        def listening(*arguments: Any) -> Any:
            if not isinstance(function, Dispatcher):
                found = function(*arguments)
            else:
                for owner, its_name, original, _ in heard_of:
                    setattr(owner, its_name, original)
                try:
                    found = function(*arguments)
                finally:
                    for owner, its_name, _, listener in heard_of:
                        setattr(owner, its_name, listener)
            calls.append((arguments, found))
            return found

        monkeypatch.setattr(module, name, listening)
        heard_of.append((module, name, function, listening))
        return calls

    return heard
