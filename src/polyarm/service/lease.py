"""Who learns: one process holds the lease, and each new holder a higher epoch.

An epoch is checked inside every transaction that numbers outcomes or publishes a snapshot, on a row that is locked
until the commit.  So a holder that was stopped for longer than its lease cannot write any more when it wakes up.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, select, text, update

from polyarm.errors import PolyarmError
from polyarm.service.clock import SECOND, Micros, now
from polyarm.service.ledger import insert
from polyarm.service.schema import leases

NAME = "learner"
LASTS = 5 * SECOND


class Fenced(PolyarmError, RuntimeError):
    """Another process has taken the lease; nothing was written."""


@dataclass(frozen=True)
class Lease:
    """The right to learn, as one holder has it."""

    holder: str
    epoch: int


def clock(connection: Connection) -> Micros:
    """The database's clock where several machines share it, this machine's otherwise."""
    if connection.dialect.name != "postgresql":
        return now()
    return int(
        connection.execute(text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")).scalar_one()
    )


def take(connection: Connection, holder: str, *, force: bool = False) -> Lease | None:
    """The lease, if nobody holds it; `force` takes it from whoever does."""
    time = clock(connection)
    first = insert(connection, leases).values(name=NAME, holder="", epoch=0, expires_at=0)
    connection.execute(first.on_conflict_do_nothing())
    row = connection.execute(select(leases).where(leases.c.name == NAME).with_for_update()).one()
    if row.expires_at > time and row.holder != holder and not force:
        return None
    lease = Lease(holder, row.epoch + 1)
    connection.execute(
        update(leases)
        .where(leases.c.name == NAME)
        .values(holder=holder, epoch=lease.epoch, expires_at=clock(connection) + LASTS)
    )
    return lease


def renew(connection: Connection, lease: Lease) -> None:
    """Hold the lease for longer."""
    check(connection, lease)
    connection.execute(update(leases).where(leases.c.name == NAME).values(expires_at=clock(connection) + LASTS))


def check(connection: Connection, lease: Lease) -> None:
    """Raise unless the lease is still this one; nobody can take it before the transaction ends."""
    row = connection.execute(select(leases).where(leases.c.name == NAME).with_for_update()).one_or_none()
    if row is None or (row.holder, row.epoch) != (lease.holder, lease.epoch):
        raise Fenced(f"the lease must be that of epoch {lease.epoch}, got epoch {row.epoch if row else 0}")


def release(connection: Connection, lease: Lease) -> None:
    """Let another process learn at once."""
    check(connection, lease)
    connection.execute(update(leases).where(leases.c.name == NAME).values(expires_at=0))
