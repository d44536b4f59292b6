"""Names of decisions: ours are UUIDs of version 7 (RFC 9562), which sort by time; a caller's own are any text."""

import os
import struct
import threading
import time

from polyarm.errors import require

LONGEST = 200
_LOW_BITS, _STEP_BITS, _POOL_BYTES = 62, 40, 4096
_PAIR = struct.Struct(">QQ")
_lock = threading.Lock()
_pool, _at = b"", 0  # random bytes, and how many of them are used: asking the system for many at once is quicker
_high, _low, _head = 0, 0, ""  # 48 bits of milliseconds and 12 random ones; 62 random ones; the first as text


def new_id() -> str:
    """A new id, later than all that this process gave before.

    Its bits are read as one number, which never falls: within a millisecond it grows by a random step of up to 2^40.
    """
    with _lock:
        return _next_id()


def new_ids(n: int) -> list[str]:
    """That many new ids."""
    with _lock:
        return [_next_id() for _ in range(n)]


def _next_id() -> str:
    global _pool, _at, _high, _low, _head
    if _at == len(_pool):
        _pool, _at = os.urandom(_POOL_BYTES), 0
    first, second = _PAIR.unpack_from(_pool, _at)
    _at += _PAIR.size
    now = time.time_ns() // 1_000_000 << 12
    high = _high
    if now > high:
        high, _low = now | first >> 52, second >> 2
    else:
        _low += 1 + (first & (1 << _STEP_BITS) - 1)
        if _low >> _LOW_BITS:
            high, _low = high + 1, _low - (1 << _LOW_BITS)
    if high != _high:
        digits = f"{high:015x}"
        _high, _head = high, f"{digits[:8]}-{digits[8:12]}-7{digits[12:]}"
    tail = f"{_low | 1 << 63:016x}"
    return f"{_head}-{tail[:4]}-{tail[4:]}"


def _forget() -> None:
    """In a forked child: random bytes of its own, or it would give the ids that its parent gives."""
    global _pool, _at, _lock, _low
    _pool, _at, _lock = b"", 0, threading.Lock()
    _low = min(_low + int.from_bytes(os.urandom(7), "big"), (1 << _LOW_BITS) - 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def require_id(value: str) -> str:
    """Value, if it can name a decision."""
    rule = f"text of 1 to {LONGEST} printable characters"
    require(isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable(), "id", rule, value)
    return value
