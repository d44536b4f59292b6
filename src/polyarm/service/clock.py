"""The server's clock: microseconds since 1970, the only time that decides anything."""

import time
from typing import TypeAlias

Micros: TypeAlias = int
SECOND = 1_000_000


def now() -> Micros:
    """The time."""
    return time.time_ns() // 1000


def seconds(duration: float) -> Micros:
    """A duration in seconds as microseconds."""
    return round(duration * SECOND)
