import importlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.postgres import Postgres, find_programs

# pytest rewrites its plugins when they are first imported: not in a thread, where Python 3.11's parser may fail beside
# another thread's (cpython#106905)
importlib.import_module("anyio._backends._asyncio")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: run scripts/install-test-services")
    server = Postgres(programs)
    yield server
    server.close()


@pytest.fixture(scope="session", autouse=True)
def quick_goodbyes() -> Iterator[None]:
    """Listeners for news look often whether they should stop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyarm.service.news.LOOK", 0.02)
        yield


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    return new_address(request, tmp_path)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database of each kind for tests that change nothing in it."""
    return new_address(request, tmp_path_factory.mktemp("shared"))


def new_address(request: pytest.FixtureRequest, folder: Path) -> str:
    """An empty database of the kind that the request names."""
    if request.param == "sqlite":
        return str(folder / "service.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.create(f"t{next(_numbers)}")
