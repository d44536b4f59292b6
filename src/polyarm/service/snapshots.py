"""Snapshots: the model after so many steps, kept so that nobody need learn the whole log again."""

import hashlib
from importlib.metadata import version as library_version
from typing import NamedTuple

from sqlalchemy import Connection, func, select, update

from polyarm.errors import BrokenFile
from polyarm.service.clock import now
from polyarm.service.news import announce
from polyarm.service.schema import changes, snapshots

KEPT = 100  # contents; of older snapshots the hash stays, and `polyarm rebuild` makes the rest again
KEPT_BYTES = 256 * 2**20  # of one experiment's contents
FEWEST = 3  # contents that stay whatever their size


class Snapshot(NamedTuple):
    """A model as bytes, and what it has learnt."""

    version: int
    apply_seq: int
    content: bytes
    sha256: str


def digest(content: bytes) -> str:
    """Hash that tells two models apart."""
    return hashlib.sha256(content).hexdigest()


def add_snapshot(connection: Connection, experiment: str, apply_seq: int, epoch: int, content: bytes) -> int:
    """Publish a snapshot; returns its version."""
    last = connection.execute(
        select(func.max(snapshots.c.version)).where(snapshots.c.experiment == experiment)
    ).scalar()
    version = 0 if last is None else last + 1
    connection.execute(
        snapshots.insert().values(
            experiment=experiment,
            version=version,
            apply_seq=apply_seq,
            epoch=epoch,
            time=now(),
            library=library_version("polyarm"),
            sha256=digest(content),
            content=content,
        )
    )
    _drop_old(connection, experiment)
    announce(connection)
    return version


def _drop_old(connection: Connection, experiment: str) -> None:
    """Empty the snapshots beyond the newest, but for those that somebody went back to: a rebuild does so again."""
    goals = select(changes.c.subject).where(changes.c.experiment == experiment, changes.c.kind == "rollback")
    asked = {int(subject) for subject in connection.execute(goals).scalars()}
    query = select(snapshots.c.version, func.length(snapshots.c.content).label("size"))
    full = query.where(snapshots.c.experiment == experiment, snapshots.c.content.is_not(None))
    total, old = 0, []
    for number, row in enumerate(connection.execute(full.order_by(snapshots.c.version.desc()))):
        total += row.size
        if number >= FEWEST and (number >= KEPT or total > KEPT_BYTES) and row.version not in {0, *asked}:
            old.append(row.version)
    if old:
        which = (snapshots.c.experiment == experiment) & snapshots.c.version.in_(old)
        connection.execute(update(snapshots).where(which).values(content=None))


def latest(connection: Connection, experiment: str) -> Snapshot:
    """The newest snapshot."""
    query = select(snapshots).where(snapshots.c.experiment == experiment, snapshots.c.content.is_not(None))
    row = connection.execute(query.order_by(snapshots.c.version.desc()).limit(1)).one()
    return _checked(row)


def get_snapshot(connection: Connection, experiment: str, version: int) -> Snapshot | None:
    """A snapshot, if its content is still kept."""
    query = select(snapshots).where(snapshots.c.experiment == experiment, snapshots.c.version == version)
    row = connection.execute(query).one_or_none()
    return _checked(row) if row is not None and row.content is not None else None


def latest_versions(connection: Connection) -> dict[str, int]:
    """Version of every experiment's newest snapshot."""
    query = select(snapshots.c.experiment, func.max(snapshots.c.version).label("version"))
    return {row.experiment: row.version for row in connection.execute(query.group_by(snapshots.c.experiment))}


def _checked(row: object) -> Snapshot:
    snapshot = Snapshot(row.version, row.apply_seq, row.content, row.sha256)  # type: ignore[attr-defined]
    if digest(snapshot.content) != snapshot.sha256:
        raise BrokenFile(f"snapshot {snapshot.version} must have the hash that was recorded, got another")
    return snapshot
