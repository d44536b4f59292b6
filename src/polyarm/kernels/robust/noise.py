"""How noisy an arm's rewards are beside those of a typical arm: what one more reward of it would tell.

s2_a  typical noise variance of arm a: the median of its components' s2_k, weighted by their rewards, so that neither
      outliers nor a heavy tail decide
n_a   rewards of the arm;  D  features that a line has;  f_a = max(n_a - D, 0)  rewards that tell of its noise
r_a   = (s2_a / s2)^(f_a / (f_a + DOUBT)),  s2 being the median over arms weighted in the same way: of an arm with few
      rewards nothing is known yet, and a line through as many points as it has features leaves no noise at all;
      with s2_a / s2 brought nearer to 1 by a factor ALIKE, and 1 within it: arms of about the same noise are alike
"""

import math

import numpy as np

from polyarm.kernels._jit import inlined, kernel
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.component import COUNT, VAR
from polyarm.types import Array, IntArray

MOST = 1e12  # ratio of two noise variances beyond which it does not matter
ALIKE = 4.0  # noise variances within such a factor of the typical arm's count as alike
DOUBT = 10.0  # rewards beyond a line's features at which an arm's noise is believed by half, on the scale of logarithms


@inlined
def weighted_median(values: Array, weights: Array, n: int) -> float:
    """The least of the first n values up to which at least half of the weight is."""
    total, found = 0.0, math.inf
    for i in range(n):
        total += weights[i]
    for i in range(n):
        below = 0.0
        for j in range(n):
            if values[j] <= values[i]:
                below += weights[j]
        if below >= 0.5 * total and values[i] < found:
            found = values[i]
    return found


@kernel
def relative_noise(components: Array, sizes: IntArray, D: int, out: Array) -> None:
    """Fill out (n_arms,) with r."""
    A = out.shape[0]
    room = np.empty((2, A))
    s2, trust, some = room[0], room[1], False
    for arm in range(A):
        T, K, n = components[arm], sizes[arm, K_USED], 0.0
        s2[arm], trust[arm] = 1.0, 0.0
        for k in range(K):
            n += T[COUNT, k]
        if n > D:
            s2[arm] = weighted_median(T[VAR], T[COUNT], K)
            trust[arm] = (n - D) / (n - D + DOUBT)
            some = True
    typical = weighted_median(s2, trust, A) if some else 1.0
    for arm in range(A):
        ratio = min(max(s2[arm] / typical, 1.0 / MOST), MOST)
        out[arm] = 1.0
        if ratio > ALIKE:
            out[arm] = math.exp(trust[arm] * math.log(ratio / ALIKE))
        elif ratio * ALIKE < 1.0:
            out[arm] = math.exp(trust[arm] * math.log(ratio * ALIKE))
