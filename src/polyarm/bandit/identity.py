"""Names of decisions: ours are UUIDs of version 7 (RFC 9562), which sort by time; a caller's own are any text."""

import os
import struct
import threading
import time
from collections.abc import Iterator

from polyarm.errors import require

LONGEST = 200
_LOW_BITS, _STEP, _VARIANT = 62, (1 << 40) - 1, 1 << 63
_POOL = struct.Struct("512Q")
_lock = threading.Lock()
_pool: Iterator[int] = iter(())  # random words of 64 bits: asking the system for many at once is quicker
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
    global _high, _low
    word, now = _random_word(), time.time_ns() // 1_000_000 << 12
    if now > _high:
        _set_high(now | word >> 52)
        _low = _random_word() >> 2
    else:
        _low += 1 + (word & _STEP)
        if _low >> _LOW_BITS:
            _set_high(_high + 1)
            _low -= 1 << _LOW_BITS
    return f"{_head}-{(_low | _VARIANT).to_bytes(8, 'big').hex('-', 6)}"


def _set_high(high: int) -> None:
    global _high, _head
    digits = f"{high:015x}"
    _high, _head = high, f"{digits[:8]}-{digits[8:12]}-7{digits[12:]}"


def _random_word() -> int:
    global _pool
    word = next(_pool, -1)
    if word < 0:
        _pool = iter(_POOL.unpack(os.urandom(_POOL.size)))
        word = next(_pool)
    return word


def _forget() -> None:
    """In a forked child: random bytes of its own, or it would give the ids that its parent gives."""
    global _pool, _lock, _low
    _pool, _lock = iter(()), threading.Lock()
    _low = min(_low + int.from_bytes(os.urandom(7), "big"), (1 << _LOW_BITS) - 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def require_id(value: str) -> str:
    """Value, if it can name a decision."""
    rule = f"text of 1 to {LONGEST} printable characters"
    require(isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable(), "id", rule, value)
    return value
