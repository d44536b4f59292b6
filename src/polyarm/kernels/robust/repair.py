"""An arm of the robust mixture afresh from its rewards, after its numbers failed (notation of component.py).

s2  noise variance that every component starts from again
"""

from polyarm.kernels._jit import kernel, no_refcount
from polyarm.kernels.lanes import LANES, load, splat, sum_of, within
from polyarm.kernels.mixture.records import K_USED, ROWS, close_slot
from polyarm.kernels.robust.component import COUNT, MEAN, VAR, keep, recount, sxx_row, w_row
from polyarm.kernels.robust.records import Books, Rewards
from polyarm.types import Array, IntArray


@no_refcount
def arm_check(books: Books, arm: int) -> float:
    """0 where centre, slopes and noise of an arm are finite; else no number.

    A number times 0 is 0 unless it is infinite or none, and sums keep what is none.
    """
    T, K, D = books.components[arm], books.sizes[arm, K_USED], books.features.shape[1]
    total, slopes = 0.0, splat(0.0)
    for i in range(D):
        for j in range(D + 2):
            total += 0.0 * books.centres[arm, i, j]
    for k in range(K):
        total += 0.0 / T[VAR, k]
    for k in range(0, K, LANES):
        for row in range(MEAN, sxx_row(D)):
            slopes += 0.0 * within(0, K - k, load(T, row, k), 0.0)
    return total + sum_of(slopes)


@no_refcount
def shared_check(books: Books) -> float:
    """0 where what the arms share is finite; else no number."""
    total = 0.0
    for value in books.shared:
        total += 0.0 * value
    for row in range(books.features.shape[0]):
        for j in range(books.features.shape[1]):
            total += 0.0 * books.features[row, j]
    return total


@no_refcount
def is_finite(books: Books) -> bool:
    """Whether what the arms share, every centre, and slopes and noise of every component in use are finite."""
    total = shared_check(books)
    for arm in range(books.components.shape[0]):
        total += arm_check(books, arm)
    return total == 0.0


@no_refcount
def is_finite_in(books: Books, arm: int, other: int) -> bool:
    """The same where only two arms can have changed."""
    return bool(shared_check(books) + arm_check(books, arm) + arm_check(books, other) == 0.0)


@kernel
def recount_arm(T: Array, slots: IntArray, size: IntArray, rewards: Rewards, centre: Array, s2: float) -> None:
    """Sums from what is kept and the rewards, slopes at the centre, noise variances at s2; empty components close."""
    D = centre.shape[0]
    for k in range(size[K_USED] - 1, -1, -1):
        recount(T, k, rewards.data, rewards.z, size[ROWS], slots[0, k])
        T[VAR, k] = s2
        for j in range(D):
            T[w_row(D) + j, k] = centre[j]
        if T[COUNT, k] <= 0.0:
            close_slot(T, slots[0], slots[1], size, k)


@kernel
def freeze(T: Array, slot: IntArray, rewards: Rewards, row: int) -> None:
    """Let the reward in a row stay in its component for good."""
    keep(T, slot[rewards.z[row]], rewards.data, row)
