"""News between replicas on PostgreSQL: whoever publishes a snapshot or changes an experiment says so when it commits.

Replicas that hear it look at once; those that miss it look a little later by themselves.  Decisions are never
announced: a notification takes a lock that all transactions of the server share.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg
from sqlalchemy import Connection

from polyarm.service.database import Database

CHANNEL = "polyarm_news"
LOOK = 0.5  # seconds between looks whether to stop
log = logging.getLogger("polyarm.service")


def announce(connection: Connection) -> None:
    """Tell the other replicas, when this transaction commits, that there is something new."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"NOTIFY {CHANNEL}")


@dataclass(eq=False)
class Listener:
    """A thread that calls `heard` whenever a replica announces something."""

    database: Database
    heard: Callable[[], None]
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to listen, where there can be other replicas."""
        if not self.database.is_sqlite:
            self._thread = threading.Thread(target=self._run, name="polyarm-listener", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        address = self.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        while not self._stop.is_set():
            try:
                with psycopg.connect(address, autocommit=True, connect_timeout=5) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self.heard()  # something may have been said while nobody listened
                    while not self._stop.is_set():
                        if list(connection.notifies(timeout=LOOK, stop_after=1)):
                            self.heard()
            except psycopg.Error as error:
                log.warning("news of other replicas are not heard: %s", str(error).strip().splitlines()[0])
                self._stop.wait(1.0)
