"""Exponential forgetting: statistics fade towards the prior and counts become soft (layout of gibbs.py).

share  what remains of the past at a fade       R'R <- share R'R + (1 - share) root0'root0,   n_k <- share n_k
root0  square-root information of the prior
"""

from polyarm.kernels._jit import kernel
from polyarm.kernels.component import DISCOUNT, SHAPE, cache_constants, settle
from polyarm.kernels.gibbs import NEXT, ROWS, close_place
from polyarm.kernels.root import absorb, fade, n_absorbed
from polyarm.types import Array, IntArray

FORGOTTEN = 0.5  # a component that holds less than half a reward is dropped


@kernel
def forget(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    priors: Array,
    roots: Array,
    laws: Array,
    data: Array,
    z: IntArray,
    arm: int,
    root0: Array,
    share: float,
) -> None:
    """Absorb every reward of an arm, then fade its components and drop the forgotten ones."""
    T, label, place, size = tables[arm], labels[arm, 0], labels[arm, 1], sizes[arm]
    d = root0.shape[0] - 1
    for i in range(size[ROWS]):
        absorb(roots[arm, z[i]], data[i, : d + 1].copy())
    size[ROWS] = size[NEXT] = 0
    for k in range(size[0] - 1, -1, -1):
        R = roots[arm, label[k]]
        fade(R, root0, share)
        if n_absorbed(R) <= max(FORGOTTEN, laws[arm, DISCOUNT]):
            R[:] = root0
            close_place(T, label, place, size, k)
        else:
            settle(T, k, priors[arm], R, n_absorbed(R))
            cache_constants(T, k, laws[arm, SHAPE], laws[arm, DISCOUNT])
