"""Exponential forgetting: statistics fade towards the prior and counts become soft (notation of records.py).

share  what remains of the past at a fade       R'R <- share R'R + (1 - share) R0'R0,   n_k <- share n_k
R0     square-root information of the prior
"""

from polyarm.kernels._jit import kernel
from polyarm.kernels.copying import copy_rows
from polyarm.kernels.linalg.sqrt_information import absorb, fade, n_absorbed
from polyarm.kernels.mixture.component import DISCOUNT, SHAPE, cache_constants, settle
from polyarm.kernels.mixture.records import K_USED, NEXT, ROWS, Books, arm_of, close_slot
from polyarm.types import Array

FORGOTTEN = 0.5  # a component that holds less than half a reward is dropped


@kernel
def forget(books: Books, arm: int, R0: Array, share: float) -> None:
    """Absorb every reward of an arm, then fade its components and drop the forgotten ones."""
    one = arm_of(books, arm)
    size, d = one.size, R0.shape[0] - 1
    for i in range(size[ROWS]):
        absorb(one.R0[one.z[i]], one.data[i, : d + 1].copy())
    size[ROWS] = size[NEXT] = 0
    for k in range(size[K_USED] - 1, -1, -1):
        R = one.R0[one.label[k]]
        fade(R, R0, share)
        if n_absorbed(R) <= max(FORGOTTEN, one.process[DISCOUNT]):
            copy_rows(R0, R)
            close_slot(one.components, one.label, one.slot, size, k)
        else:
            settle(one.components, k, one.prior, R, n_absorbed(R))
            cache_constants(one.components, k, one.process[SHAPE], one.process[DISCOUNT])
