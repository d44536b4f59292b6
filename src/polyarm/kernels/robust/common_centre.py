"""The centre c that all arms share, integrated out of what is said of them.

Given c, w0 of an arm is N(mu, (F F')^-1) (centre.py), and where c moves, mu moves J = (F F')^-1 L^-1 times as far.
Given seatings, noise variances and scales, all rewards say of c, c on the right being the last that was drawn:

c   ~ N(c + e, (C C')^-1)       C C'   = W^-1 + sum over arms of L^-1 - L^-1 (F F')^-1 L^-1
                                C C' e = W^-1 (m - c) + sum over arms of L^-1 (mu - c)
w0  ~ N(mu + J e, (F F')^-1 + J (C C')^-1 J')

m, W (D,)  mean and variance of c's prior
"""

from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import inlined, kernel, no_refcount
from polyarm.kernels.lanes import LANES, load, splat, store, sum_of, within
from polyarm.kernels.linalg.triangle import factorise, solve_lower, solve_upper
from polyarm.kernels.linalg.triangles import invert_all
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.records import Arms, n_features
from polyarm.kernels.robust.shared import prior_of_centre
from polyarm.types import Array


class Common(NamedTuple):
    """What all rewards say of c; both arrays are empty where it is taken as it was drawn."""

    shift: Array  # e
    factor: Array  # C


@inlined
def is_integrated(arms: Arms) -> bool:
    """Whether c is drawn, and so to be integrated out."""
    return bool(arms.prior.shared_centre > 0.0 and arms.prior.learned > 0.0)


@inlined
def add_arms(F: Array, n: int, L: Array, C: Array, B: Array, inverse_diagonal: Array) -> None:
    """Add L - (F F')^-1 of the first n of LANES arms to the lower triangle of C."""
    D = L.shape[0]
    for i in range(D):
        store(1.0 / within(0, n, load(F, i, i), 1.0), inverse_diagonal, i)
    invert_all(F, inverse_diagonal, D, B)
    for i in range(D):
        for j in range(i + 1):
            known = splat(0.0)  # (F F')^-1
            for k in range(i, D):
                known += load(B, i, k) * load(B, j, k)
            C[i, j] += sum_of(within(0, n, (L[i] if i == j else 0.0) - known, 0.0))


@no_refcount
def find_common(arms: Arms, common: Common, W: Array, lanes: Array, inverse_diagonal: Array) -> None:
    """Write e and C, which is 0; W (D,), lanes (2, D, D, LANES) and a diagonal (D, LANES) are room to work in."""
    e, C, F, D = common.shift, common.factor, lanes[0], n_features(arms)
    c, L = arms.features.centre, arms.features.arm_var
    for i in range(D):
        mean, W[i] = prior_of_centre(arms, i)
        e[i] = (mean - c[i]) / W[i]
    n, last = 0, arms.sizes.shape[0] - 1
    for arm in range(last + 1):
        if arms.sizes[arm, K_USED] > 0:
            centre = arms.centres[arm]
            for i in range(D):
                e[i] += (centre[i, D] - c[i]) / L[i]
                for j in range(i + 1):
                    F[i, j, n] = centre[i, j]
            n += 1
        if n == LANES or (arm == last and n > 0):
            add_arms(F, n, L, C, lanes[1], inverse_diagonal)
            n = 0
    for i in range(D):
        for j in range(i + 1):
            C[i, j] = C[i, j] / L[i] / L[j]
        C[i, i] += 1.0 / W[i]
    factorise(C, W, D)
    solve_lower(C, e, D)
    solve_upper(C, e, D)


@kernel
def common_of(arms: Arms) -> Common:
    """What all rewards say of c."""
    D = n_features(arms) if is_integrated(arms) else 0
    common = Common(np.empty(D), np.zeros((D, D)))
    if D > 0:
        find_common(arms, common, np.empty(D), np.zeros((2, D, D, LANES)), np.empty((D, LANES)))
    return common
