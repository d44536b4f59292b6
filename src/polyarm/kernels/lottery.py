"""The draw of an arm: probabilities as shares of 2^53 places, and the arm whose share holds a place.

q         (A,)  probabilities that the policy gives
eligible  (A,)  arms that may be played
least           probability that every one of them has at least
Every share is rounded up, and what that adds is taken from the largest one: they sum to one exactly.
"""

import math

import numpy as np

from polyarm.kernels._jit import kernel
from polyarm.types import Array, IntArray, Mask

PLACES = 2**53
CLOSE = 1e-9  # to one: the sum of a distribution


@kernel
def draw(q: Array, eligible: Mask, least: float, place: int, out: Array) -> int:
    """Write the probabilities that the arm is drawn from, and give that arm; -1 if q is no distribution."""
    A = q.shape[0]
    n, total = 0, 0.0
    for a in range(A):
        if not q[a] >= 0.0:
            return -1
        n += eligible[a]
        total += q[a]
    if not abs(total - 1.0) < CLOSE:
        return -1
    shares = np.empty(A, np.int64)
    used, largest = 0, 0
    for a in range(A):
        share = q[a]
        if least > 0.0:
            share = (1.0 - n * least) * share + least if eligible[a] else 0.0
        shares[a] = math.ceil(share * PLACES)
        used += shares[a]
        if shares[a] > shares[largest]:
            largest = a
    shares[largest] += PLACES - used
    edge, arm = 0, -1
    for a in range(A):
        out[a] = shares[a] / PLACES
        if arm < 0:
            edge += shares[a]
            if edge > place:
                arm = a
    return arm


@kernel
def draw_many(q: Array, eligible: Mask, least: float, places: IntArray, out: Array, arms: IntArray) -> int:
    """The same for every row of q and place; gives the first row that is no distribution, or -1."""
    for i in range(q.shape[0]):
        arms[i] = draw(q[i], eligible, least, places[i], out[i])
        if arms[i] < 0:
            return i
    return -1
