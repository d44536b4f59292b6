"""Every public name has an example in its docstring, and every example runs and prints what it says."""

import doctest
import inspect
from typing import Any

import pytest

import polyarm

NAMES = sorted(
    name
    for name in dir(polyarm)
    if not name.startswith("_") and getattr(getattr(polyarm, name), "__module__", "").startswith("polyarm.")
)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    thing = getattr(polyarm, name)
    text = inspect.getdoc(thing) or ""
    test = doctest.DocTestParser().get_doctest(text, {name: thing}, name, None, 0)
    assert test.examples, f"{name} has no example"
    told: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    assert outcome.failed == 0, "".join(told)


def test_there_are_many_public_names() -> None:
    assert {"Bandit", "evaluate", "make_policy"} <= set(NAMES)
    assert len(NAMES) > 40
