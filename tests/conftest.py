"""The order of the tests: two workers end together if the longest files come first."""

import pytest

FIRST = (
    "tests/neural/test_regret.py",
    "tests/neural/test_contract.py",
    "tests/statistics",
    "tests/docs",
    "tests/service",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests by their file's place in the list; those of one file keep their order."""
    items.sort(key=lambda item: next((i for i, name in enumerate(FIRST) if item.nodeid.startswith(name)), len(FIRST)))
