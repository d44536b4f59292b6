import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.postgres import Postgres, find_programs

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: run scripts/install-test-services")
    server = Postgres(programs)
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "service.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.create(f"t{next(_numbers)}")
