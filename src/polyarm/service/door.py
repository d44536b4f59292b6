"""The door of the HTTP interface: who is calling, what they may do, what a body may hold, what an error looks like."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl

import msgspec
from sqlalchemy.exc import DBAPIError
from starlette.requests import Request
from starlette.responses import Response

from polyarm.errors import InvalidArgument, PolyarmError, UnknownArm, UnknownName
from polyarm.service.catalog import AlreadyThere
from polyarm.service.database import Database, Unavailable
from polyarm.service.keys import LOCAL, Caller, any_key, find_caller
from polyarm.service.ledger import KeyConflict
from polyarm.service.messages import ErrorAnswer, to_json
from polyarm.service.replica import Paused
from polyarm.service.writer import Overloaded

T = TypeVar("T")
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
BODY_LIMIT = 64 * 1024
BATCH_LIMIT = 1024 * 1024
REMEMBERED = 5.0  # seconds for which a key is not looked up again; a revoked one works no longer than that
HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownArm, 422),
    (UnknownName, 404),
    (AlreadyThere, 409),
    (KeyConflict, 409),
    (Paused, 409),
    (Overloaded, 429),
    (Unavailable, 503),
    (DBAPIError, 503),
    (InvalidArgument, 422),
)


class Refused(PolyarmError):
    """A request that goes no further."""

    def __init__(self, status: int, error: str, field: str | None = None) -> None:
        super().__init__(error)
        self.status, self.field = status, field


@dataclass(eq=False)
class Bucket:
    """Requests that a key has left: `rate` a second come in, at most `rate` are kept."""

    rate: float
    left: float
    at: float = field(default_factory=time.monotonic)

    def take(self) -> bool:
        """Whether one more request is allowed now."""
        at = time.monotonic()
        self.left = min(self.rate, self.left + (at - self.at) * self.rate)
        self.at = at
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


@dataclass(eq=False)
class Door:
    """Looks keys up and counts requests."""

    database: Database
    rate_limit: float | None = None
    open_to_all: bool = False  # no key is asked for: the server listens on loopback alone
    _callers: dict[str, tuple[float, Caller | None]] = field(default_factory=dict)
    _buckets: dict[str, Bucket] = field(default_factory=dict)

    async def admit(self, request: Request, scope: str) -> Caller:
        """The caller, if the scope is open to them."""
        if self.open_to_all:
            return LOCAL
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            key = request.cookies.get("polyarm_key", "")
        if not key:
            raise Refused(401, "Authorization must be 'Bearer pak_...', got none")
        caller = await self.caller(key)
        if caller is None:
            raise Refused(401, "Authorization must hold a key in use, got another")
        if not caller.may(scope):
            raise Refused(403, f"the key must have the scope {scope}, got {', '.join(sorted(caller.scopes))}")
        self._count(caller)
        return caller

    async def caller(self, key: str) -> Caller | None:
        """Whoever holds the key."""
        known = self._callers.get(key)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        caller = await asyncio.to_thread(self._find, key)
        if len(self._callers) > 10_000:  # keys that somebody tries out must not fill the memory
            self._callers.clear()
        self._callers[key] = (time.monotonic() + REMEMBERED, caller)
        return caller

    def forget(self) -> None:
        """Look every key up again."""
        self._callers.clear()

    def _find(self, key: str) -> Caller | None:
        with self.database.reading.connect() as connection:
            return find_caller(connection, key)

    def has_keys(self) -> bool:
        """Whether a key is in use."""
        with self.database.reading.connect() as connection:
            return any_key(connection)

    def _count(self, caller: Caller) -> None:
        if self.rate_limit is None:
            return
        bucket = self._buckets.setdefault(caller.name, Bucket(self.rate_limit, self.rate_limit))
        if not bucket.take():
            raise Refused(429, f"requests must be at most {self.rate_limit:g} a second, got more")


async def read_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """The body, refused as soon as it is too long."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise Refused(413, f"the body must be at most {limit} bytes, got {declared}")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise Refused(413, f"the body must be at most {limit} bytes, got more")
        parts.append(part)
    return b"".join(parts)


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form of the dashboard."""
    body = await read_body(request)
    try:
        return dict(parse_qsl(body.decode("ascii"), max_num_fields=20, errors="strict"))
    except ValueError:
        raise Refused(400, "the form must be one that the page sends, got another") from None


_PATH = re.compile(r" - at `(\$.*)`$")


def decode(body: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    """The body as its type says; an error names the field."""
    try:
        value = decoder.decode(body)
        _once(body)
    except msgspec.ValidationError as error:
        text = str(error)
        path = _PATH.search(text)
        raise Refused(422, _PATH.sub("", text), path.group(1) if path else None) from None
    except RecursionError:
        raise Refused(422, "the body must not be nested so deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, f"the body must be JSON, got {error}") from None
    _plain(value)
    return value


def _pairs(found: list[tuple[str, Any]]) -> None:
    if len(dict(found)) < len(found):
        names = [name for name, _ in found]
        twice = next(name for name in names if names.count(name) > 1)
        raise Refused(422, "a name must stand once in an object, got it twice", twice)


_pair_reader = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=float, parse_float=float)


def _once(body: bytes) -> None:
    """Refuse objects that have a name twice: which value was meant is anybody's guess."""
    _pair_reader.decode(body.decode())


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _plain(value: Any) -> None:
    """Refuse text that a database or a page cannot hold: control characters anywhere in a context."""
    context = getattr(value, "context", None)
    if isinstance(context, dict):
        for name, entry in context.items():
            if _CONTROL.search(name) or (isinstance(entry, str) and (_CONTROL.search(entry) or len(entry) > 1000)):
                raise Refused(
                    422, "text must have at most 1000 characters and no control characters", f"$.context.{name!r}"
                )
    for inner in getattr(value, "decisions", ()):
        _plain(inner)


_RAW = [(name.encode(), value.encode()) for name, value in (HEADERS | {"content-type": "application/json"}).items()]


class JsonResponse(Response):
    """A JSON answer whose headers were encoded once."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """The headers of every answer, its length, and those given."""
        self.raw_headers = [*_RAW, (b"content-length", b"%d" % len(self.body))]
        for name, value in (headers or {}).items():
            self.raw_headers.append((name.lower().encode("latin-1"), value.encode("latin-1")))


def reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return JsonResponse(to_json(value), status, headers)


def refusal(error: Exception) -> Response | None:
    """The answer to a mistake; None for what is no mistake of the caller's."""
    if isinstance(error, Refused):
        headers = {"www-authenticate": "Bearer"} if error.status == 401 else {}
        if error.status == 429:
            headers["retry-after"] = "1"
        return reply(ErrorAnswer(str(error), error.field), error.status, headers)
    for kind, status in STATUS:
        if isinstance(error, kind):
            text = "the database must be reachable, got an error; try again" if kind is DBAPIError else str(error)
            return reply(ErrorAnswer(text), status, {"retry-after": "1"} if status in (429, 503) else None)
    return None


def guarded(handler: Handler) -> Handler:
    """A handler whose mistakes become answers."""

    async def guarded_handler(request: Request) -> Response:
        try:
            return await handler(request)
        except (PolyarmError, DBAPIError) as error:
            answer = refusal(error)
            if answer is None:
                raise
            return answer

    return guarded_handler
