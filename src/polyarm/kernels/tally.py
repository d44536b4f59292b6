"""Which single values rewards take again and again, in bounded memory (Misra & Gries 1982).

tally (SLOTS, 2)   values and how often they were seen
seen (3,)          N rewards, L lost, U slots in use

A value without a slot takes a free one; where none is free every slot loses one count instead, and L grows by one.
So a value's true count is between its count and its count + L, and L <= N / (SLOTS + 1).
"""

from polyarm.kernels._jit import kernel
from polyarm.types import Array

SLOTS = 32
VALUE, COUNT = 0, 1
N, LOST, USED = 0, 1, 2
FORGOTTEN = 0.5  # a value that faded to less than half a reward is dropped


@kernel
def drop(tally: Array, seen: Array, least: float) -> None:
    """Free the slots that count less."""
    used = 0
    for i in range(int(seen[USED])):
        if tally[i, COUNT] >= least:
            tally[used, VALUE] = tally[i, VALUE]
            tally[used, COUNT] = tally[i, COUNT]
            used += 1
    seen[USED] = used


@kernel
def count_value(tally: Array, seen: Array, y: float) -> None:
    """Count a reward."""
    used = int(seen[USED])
    seen[N] += 1.0
    for i in range(used):
        if tally[i, VALUE] == y:
            tally[i, COUNT] += 1.0
            return
    if used < SLOTS:
        tally[used, VALUE] = y
        tally[used, COUNT] = 1.0
        seen[USED] = used + 1
        return
    seen[LOST] += 1.0
    for i in range(used):
        tally[i, COUNT] -= 1.0
    drop(tally, seen, FORGOTTEN)


@kernel
def fade(tally: Array, seen: Array, share: float) -> None:
    """Let only a share of the past remain."""
    for i in range(int(seen[USED])):
        tally[i, COUNT] *= share
    seen[N] *= share
    seen[LOST] *= share
    drop(tally, seen, FORGOTTEN)
