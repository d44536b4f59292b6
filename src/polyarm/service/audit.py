"""The audit trail: who changed what, each entry holding the hash of the one before, so that none can be left out."""

import hashlib
from typing import Any

from sqlalchemy import Connection, select, text

from polyarm.service.clock import now
from polyarm.service.messages import to_json
from polyarm.service.schema import audit_log

START = "0" * 64


def add_entry(connection: Connection, actor: str, action: str, subject: str, detail: Any = None) -> None:
    """Add an entry to the trail."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE audit_log IN EXCLUSIVE MODE"))  # one entry after the other
    last = connection.execute(select(audit_log).order_by(audit_log.c.number.desc()).limit(1)).mappings().first()
    entry = {
        "number": last["number"] + 1 if last else 1,
        "time": now(),
        "actor": actor,
        "action": action,
        "subject": subject,
        "detail": to_json(detail).decode(),
        "previous": last["sha256"] if last else START,
    }
    connection.execute(audit_log.insert().values(**entry, sha256=digest(entry)))


def digest(entry: dict[str, Any]) -> str:
    """Hash of an entry, which holds that of the one before."""
    return hashlib.sha256(to_json({key: value for key, value in entry.items() if key != "sha256"})).hexdigest()


def first_broken(connection: Connection) -> int | None:
    """Number of the first entry that was changed or follows a gap, if there is one."""
    previous = START
    entries = connection.execute(select(audit_log).order_by(audit_log.c.number)).mappings()
    for number, row in enumerate(entries, 1):
        if row["number"] != number or row["previous"] != previous or row["sha256"] != digest(dict(row)):
            return int(row["number"])
        previous = row["sha256"]
    return None
