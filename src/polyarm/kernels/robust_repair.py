"""An arm of the robust model afresh from its rewards, after its numbers failed (layout of robust.py).

s2  noise variance that every component starts from again
"""

from polyarm.kernels._jit import kernel
from polyarm.kernels.gibbs import ROWS, close_place
from polyarm.kernels.robust_component import COUNT, VAR, keep, recount, w_row
from polyarm.types import Array, IntArray


@kernel
def recount_arm(T: Array, labels: IntArray, size: IntArray, data: Array, z: IntArray, centre: Array, s2: float) -> None:
    """Sums from what is kept and the rewards, slopes at the centre, noise variances at s2; empty components close."""
    D = centre.shape[0]
    label, place = labels[0], labels[1]
    for k in range(size[0] - 1, -1, -1):
        recount(T, k, data, z, size[ROWS], label[k])
        T[VAR, k] = s2
        for j in range(D):
            T[w_row(D) + j, k] = centre[j]
        if T[COUNT, k] <= 0.0:
            close_place(T, label, place, size, k)


@kernel
def freeze(T: Array, place: IntArray, data: Array, z: IntArray, row: int) -> None:
    """Let the reward in a row stay in its component for good."""
    keep(T, place[z[row]], data, row)
