"""The order of the tests: one worker compiles nearly every kernel while the other trains networks, which need none;
then the longest files, so that both end together; short ones come last."""

import pytest

FIRST = (
    "tests/contracts/test_engines.py",
    "tests/neural",
    "tests/statistics",
    "tests/docs",
    "tests/test_",
    "tests/service",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests by their file's place in the list; those of one file keep their order."""
    items.sort(key=lambda item: next((i for i, name in enumerate(FIRST) if item.nodeid.startswith(name)), len(FIRST)))
