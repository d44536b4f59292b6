"""Keys of the HTTP interface: shown once, stored as a hash, each with the scopes that it opens."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import IntegrityError

from polyarm.errors import InvalidArgument, UnknownName, require
from polyarm.service.audit import add_entry
from polyarm.service.clock import now
from polyarm.service.schema import api_keys

SCOPES = ("decide", "reward", "read", "admin")
PREFIX = "pak_"


class Caller(NamedTuple):
    """Who sent a request, and what they may do."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        """Whether the scope is open to the caller; `admin` opens all."""
        return scope in self.scopes or "admin" in self.scopes


LOCAL = Caller("local", frozenset(SCOPES))  # a server without keys listens on loopback alone


def add_key(connection: Connection, name: str, scopes: Sequence[str], actor: str = "command line") -> str:
    """A new key; this is the only time that it can be read."""
    require(bool(scopes) and set(scopes) <= set(SCOPES), "scopes", f"some of {', '.join(SCOPES)}", list(scopes))
    require(0 < len(name) <= 64 and name.isprintable(), "name", "1 to 64 printable characters", name)
    key = PREFIX + secrets.token_urlsafe(32)
    row = {"sha256": hashed(key), "name": name, "scopes": ",".join(scopes), "created_at": now()}
    try:
        connection.execute(api_keys.insert().values(**row))
    except IntegrityError:
        raise InvalidArgument(f"name must be one that no key has, got {name!r}") from None
    add_entry(connection, actor, "add key", name, list(scopes))
    return key


def revoke_key(connection: Connection, name: str, actor: str = "command line") -> None:
    """End a key at once."""
    query = update(api_keys).where(api_keys.c.name == name, api_keys.c.revoked_at.is_(None)).values(revoked_at=now())
    if connection.execute(query).rowcount == 0:
        raise UnknownName(f"name must be that of a key in use, got {name!r}")
    add_entry(connection, actor, "revoke key", name)


def list_keys(connection: Connection) -> list[dict[str, object]]:
    """Every key's name, scopes and times."""
    query = select(api_keys.c.name, api_keys.c.scopes, api_keys.c.created_at, api_keys.c.revoked_at)
    return [dict(row) for row in connection.execute(query.order_by(api_keys.c.created_at)).mappings()]


def hashed(key: str) -> str:
    """Hash under which a key is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def find_caller(connection: Connection, key: str) -> Caller | None:
    """Whoever holds the key, if it is in use."""
    digest = hashed(key)
    row = connection.execute(
        select(api_keys).where(api_keys.c.sha256 == digest, api_keys.c.revoked_at.is_(None))
    ).one_or_none()
    if row is None or not hmac.compare_digest(row.sha256, digest):
        return None
    return Caller(row.name, frozenset(row.scopes.split(",")))


def any_key(connection: Connection) -> bool:
    """Whether a key is in use."""
    return (
        connection.execute(select(api_keys.c.name).where(api_keys.c.revoked_at.is_(None)).limit(1)).first() is not None
    )
