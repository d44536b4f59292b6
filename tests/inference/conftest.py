"""What tests of the engines share."""

from typing import Any

import pytest

from tests.inference.learning import Listen


@pytest.fixture
def listen(monkeypatch: pytest.MonkeyPatch) -> Listen:
    """Arguments and answers of a function from now on; it does what it always did."""

    def heard(module: Any, name: str) -> list[tuple[Any, Any]]:
        calls: list[tuple[Any, Any]] = []
        function = getattr(module, name)

        def listening(*arguments: Any) -> Any:
            found = function(*arguments)
            calls.append((arguments, found))
            return found

        monkeypatch.setattr(module, name, listening)
        return calls

    return heard
