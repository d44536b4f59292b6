"""Names of decisions: ours are UUIDs of version 7 (RFC 9562), which sort by time; a caller's own are any text."""

import os
import threading
import time

from polyarm.errors import require

LONGEST = 200
_RANDOM_BITS = 74
_POOL_BYTES = 4096
_lock = threading.Lock()
_last = 0
_pool = memoryview(b"")


def new_ids(n: int) -> list[str]:
    """That many new ids, each later than all that this process gave before.

    The 48 bits of milliseconds and 74 random ones are read as one number, which never falls: within a millisecond it
    grows by a random step of up to 2^40.
    """
    global _last
    random = os.urandom(9 + 5 * n)
    with _lock:
        now = (time.time_ns() // 1_000_000 << _RANDOM_BITS) + int.from_bytes(random[:9], "big")
        value = max(now, _last)
        values = []
        for k in range(9, len(random), 5):
            value += 1 + int.from_bytes(random[k : k + 5], "big")
            values.append(value)
        _last = value
    return [written(value) for value in values]


def new_id() -> str:
    """One new id, as `new_ids` gives it."""
    global _last, _pool
    with _lock:
        if len(_pool) < 14:  # asking the system once for many bytes is quicker than for each id
            _pool = memoryview(os.urandom(_POOL_BYTES))
        now = (time.time_ns() // 1_000_000 << _RANDOM_BITS) + int.from_bytes(_pool[:9], "big")
        value = _last = (now if now > _last else _last) + 1 + int.from_bytes(_pool[9:14], "big")
        _pool = _pool[14:]
    return written(value)


def _forget_pool() -> None:
    """In a forked child: random bytes of its own, or it would give the ids that its parent gives."""
    global _pool, _lock
    _pool, _lock = memoryview(b""), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def written(value: int) -> str:
    """The 122 free bits of a UUID of version 7 as its 36 characters."""
    time_and_a, b = value >> 62, value & (1 << 62) - 1
    number = time_and_a >> 12 << 80 | 7 << 76 | (time_and_a & 0xFFF) << 64 | 1 << 63 | b
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def require_id(value: str) -> str:
    """Value, if it can name a decision."""
    rule = f"text of 1 to {LONGEST} printable characters"
    require(isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable(), "id", rule, value)
    return value
