"""Opening the database: SQLite with one writer, or PostgreSQL; schema brought up to date, a newer one refused."""

import contextlib
import fcntl
import os
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from polyarm.errors import InvalidArgument, PolyarmError

MIGRATIONS = Path(__file__).parent / "migrations"
SQLITE_LOSSY = ((3, 7, 0), (3, 51, 2))  # WAL may lose rows when two connections write and checkpoint at once
NETWORK = {  # a silent network is given up after seconds, where the system would wait for many minutes
    "connect_timeout": 5,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
}
LOCKS = {  # a writer that the network cut off must not keep its locks, nor others wait for them for long
    "options": "-c idle_in_transaction_session_timeout=2000 -c lock_timeout=2000"
}
MIGRATION_LOCK = 0x706F6C79  # one replica at a time changes the schema


class Unavailable(PolyarmError, ConnectionError):
    """The database cannot be written now; nothing was recorded."""


@dataclass(frozen=True, eq=False)
class Database:
    """Engines to write and to read with, and the lock that keeps a second process off a SQLite file."""

    url: URL
    writing: Engine
    reading: Engine
    lock: IO[str] | None = None

    @property
    def is_sqlite(self) -> bool:
        """Whether there can be one process only."""
        return self.url.get_backend_name() == "sqlite"

    def close(self) -> None:
        """Give back connections and the lock."""
        self.writing.dispose()
        self.reading.dispose()
        if self.lock is not None:
            self.lock.close()


def open_database(address: str, *, exclusive: bool = True) -> Database:
    """The database at a path or URL, its schema up to date.

    A SQLite file is held by one process; `exclusive=False` opens it for reading beside that process.
    """
    url = parse(address)
    if url.get_backend_name() == "sqlite":
        return _open_sqlite(url, exclusive)
    writing = create_engine(url, pool_pre_ping=True, pool_size=4, max_overflow=4, connect_args=NETWORK | LOCKS)
    reading = create_engine(url, pool_pre_ping=True, pool_size=4, max_overflow=8, connect_args=NETWORK)
    database = Database(url, writing, reading)
    patient = create_engine(url, poolclass=NullPool, connect_args=NETWORK)  # a migration may take its time
    with _closed_if_refused(database):
        _upgrade_together(Database(url, patient, patient))
    return database


@contextlib.contextmanager
def _closed_if_refused(database: Database) -> Iterator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise


def parse(address: str) -> URL:
    """URL of a path or of sqlite:/// or postgresql:// address."""
    if "://" not in address:
        return URL.create("sqlite", database=str(Path(address).expanduser().absolute()))
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.get_backend_name() not in ("sqlite", "postgresql"):
        raise InvalidArgument("database must be a path, sqlite:///PATH or postgresql://USER@HOST/NAME, got another")
    return url.set(drivername="postgresql+psycopg") if url.get_backend_name() == "postgresql" else url


def _open_sqlite(url: URL, exclusive: bool) -> Database:
    path = Path(str(url.database))
    if not path.parent.is_dir():
        raise InvalidArgument(f"database must be in a folder that exists, got {path}")
    lock = _hold(path) if exclusive else None
    if SQLITE_LOSSY[0] <= sqlite3.sqlite_version_info <= SQLITE_LOSSY[1] and exclusive:
        print(
            f"polyarm: SQLite {sqlite3.sqlite_version} may lose rows in WAL mode if two programs write; "
            "polyarm is one, so no other may write to the file",
            file=sys.stderr,
        )
    writing = create_engine(url, poolclass=NullPool, connect_args={"check_same_thread": False})
    beside = {"check_same_thread": False}
    reading = create_engine(f"sqlite:///file:{path}?mode=ro&uri=true", pool_size=4, max_overflow=8, connect_args=beside)
    event.listen(writing, "connect", _durable)
    event.listen(writing, "begin", _begin)
    database = Database(url, writing, reading, lock)
    if exclusive:
        with _closed_if_refused(database):
            upgrade(database)
    return database


def _hold(path: Path) -> IO[str]:
    lock = open(f"{path}.lock", "a+")  # noqa: SIM115  held until the database is closed
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise InvalidArgument(
            f"database must not be open elsewhere, got {path}, which process {holder} holds; "
            "stop that process, or move to PostgreSQL to run several"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _durable(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself: `_begin` does
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")  # takes the lock for writing at once, never half way


def configuration(connection: Connection) -> Config:
    """Alembic's settings for this connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def upgrade(database: Database, revision: str = "head") -> None:
    """Bring the schema to a revision; a schema that this version does not know is refused."""
    with database.writing.connect() as connection:
        config = configuration(connection)
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        current = MigrationContext.configure(connection).get_current_revision()
        if current is not None and current not in known:
            raise InvalidArgument(
                f"database must have a schema that polyarm knows, got revision {current} of a newer version"
            )
        command.upgrade(config, revision)
        connection.commit()


def _upgrade_together(database: Database) -> None:
    try:
        with database.writing.connect() as guard:
            guard.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
            try:
                upgrade(database)
            finally:
                guard.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
                guard.commit()
    except DBAPIError as error:
        raise Unavailable(f"database must be reachable, got {str(error.orig).strip().splitlines()[0]}") from error
