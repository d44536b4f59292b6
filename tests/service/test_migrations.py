"""Stored databases of every schema, brought up to date, taken back and brought up again: the data stay."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, MetaData, inspect, select, text

from polyarm.errors import InvalidArgument
from polyarm.service import database as databases
from polyarm.service.catalog import get_experiment
from polyarm.service.database import Database, open_database, upgrade
from polyarm.service.reports import make_report
from polyarm.service.schema import long_rollups, metadata, rollups

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json"))


def rows_of(engine: Engine, tables: list[str]) -> dict[str, list[dict[str, Any]]]:
    found = MetaData()
    found.reflect(engine, only=tables)
    with engine.connect() as connection:
        return {
            name: sorted(
                (dict(row) for row in connection.execute(select(found.tables[name])).mappings()),
                key=lambda row: str(row),
            )
            for name in tables
        }


def to_revision(database: Database, revision: str) -> None:
    with database.writing.connect() as connection:
        command.downgrade(databases.configuration(connection), revision)
        connection.commit()


@pytest.fixture(params=FIXTURES, ids=lambda path: path.stem)
def stored(request: pytest.FixtureRequest, address: str) -> Iterator[tuple[Database, str, list[str]]]:
    """A database of an older schema with rows in it, its revision and its tables."""
    revision = request.param.stem
    database = open_database(address)
    to_revision(database, revision)
    content = json.loads(request.param.read_text())
    found = MetaData()
    found.reflect(database.writing, only=list(content))
    with database.writing.begin() as connection:
        for table in found.sorted_tables:
            for row in content[table.name]:
                if row.get("content") is not None:
                    row["content"] = base64.b64decode(row["content"])
            if content[table.name]:
                connection.execute(table.insert(), content[table.name])
    yield database, revision, list(content)
    database.close()


def test_up_down_and_up_keep_every_row(stored: tuple[Database, str, list[str]]) -> None:
    database, revision, tables = stored
    before = rows_of(database.writing, tables)
    assert sum(len(rows) for rows in before.values()) > 50
    upgrade(database)
    everything = rows_of(database.writing, sorted(inspect(database.writing).get_table_names()))
    assert {name: everything[name] for name in tables} == before
    to_revision(database, revision)
    assert rows_of(database.writing, tables) == before
    assert set(inspect(database.writing).get_table_names()) - {"alembic_version"} == set(tables)
    upgrade(database)
    assert rows_of(database.writing, sorted(everything)) == everything


def test_what_is_summed_anew_is_what_was_there(stored: tuple[Database, str, list[str]]) -> None:
    database, _, _ = stored
    upgrade(database)
    with database.reading.connect() as connection:
        report = make_report(connection, get_experiment(connection, "fed"))
        plays = sum(row.plays for row in connection.execute(select(rollups)))
        hours = sum(row.plays for row in connection.execute(select(long_rollups).where(long_rollups.c.span == 60)))
    assert (report.decisions, plays, hours) == (12, 12, 12)
    assert sum(arm.rewards for arm in report.arms) == 12


def test_the_tables_are_those_that_the_code_knows(address: str) -> None:
    database = open_database(address)
    with database.writing.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()


def test_a_newer_schema_is_refused_in_one_sentence(address: str) -> None:
    database = open_database(address)
    with database.writing.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(InvalidArgument, match="got revision 9999 of a newer version"):
        open_database(address)
