"""`polyarm serve` with less durability, to see what durability costs: `durable`, `cached` or `silent`."""

import sys
from typing import Any

from sqlalchemy import event
from sqlalchemy.pool import Pool

from polyarm.cli import main
from polyarm.service import replica
from polyarm.service.writer import Writer

honest = Writer.write


def _hurry(connection: Any, *_: Any) -> None:
    cursor = connection.cursor()
    if type(connection).__module__.startswith("sqlite3"):
        cursor.execute("PRAGMA synchronous=OFF")
    else:
        cursor.execute("SET synchronous_commit = off")
        connection.commit()
    cursor.close()


def cache() -> None:
    """Let no commit wait for the disk."""
    event.listen(Pool, "checkout", _hurry)


def silence() -> None:
    """Answer single decisions and rewards without writing them."""

    async def write(self: Writer, work: Any, argument: Any) -> Any:
        if len(argument) > 1:  # batches are written: there is something to learn
            return await honest(self, work, argument)
        return argument if work is replica.add_batches else ["accepted"]

    Writer.write = write  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    {"durable": lambda: None, "cached": cache, "silent": silence}[sys.argv[1]]()
    sys.exit(main(["serve", *sys.argv[2:]]))
