"""Linear regression with Student-t noise, as a Gaussian one whose rewards carry random precisions.

rows   (n, d+2)      a reward's context x, value y, and precision l:  y ~ N(x'w, s2 / l),  l ~ Gamma(v/2, rate v/2)
prior  (d+1, d+1)    square-root information of the prior of w (linalg/sqrt_information.py)
R      (d+1, d+1)    the same with every row rotated in at its precision
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, kernel, rng_from
from polyarm.kernels.conjugate import KNOWN, SCALE, SHAPE
from polyarm.kernels.copying import copy_rows
from polyarm.kernels.linalg.sqrt_information import rotate_in
from polyarm.types import Array


@kernel
def weigh(rows: Array, prior: Array, R: Array) -> None:
    """Write the information of the prior and of every row at its precision."""
    m = R.shape[0]
    row = np.empty(m)
    copy_rows(prior, R)
    for i in range(rows.shape[0]):
        scale = math.sqrt(rows[i, m])
        for j in range(m):
            row[j] = scale * rows[i, j]
        rotate_in(R, row)


@kernel
def draw_precisions(
    rows: Array, first: int, n: int, R: Array, noise_prior: Array, dof: float, handle: RngHandle
) -> None:
    """Precisions of the rows from `first` on, given one draw of (w, s2) from R, which holds n rewards."""
    rng = rng_from(handle)
    d = R.shape[0] - 1
    variance = noise_prior[KNOWN]
    if variance <= 0.0:
        variance = (noise_prior[SCALE] + 0.5 * R[d, d] * R[d, d]) / rng.standard_gamma(noise_prior[SHAPE] + 0.5 * n)
    w = np.empty(d)
    for i in range(d - 1, -1, -1):  # R w = R[:, d] + s e
        t = R[i, d] + math.sqrt(variance) * rng.standard_normal()
        for j in range(i + 1, d):
            t -= R[i, j] * w[j]
        w[i] = t / R[i, i]
    for i in range(first, rows.shape[0]):
        gap = rows[i, d]
        for j in range(d):
            gap -= rows[i, j] * w[j]
        rows[i, d + 1] = 2.0 * rng.standard_gamma(0.5 * (dof + 1.0)) / (dof + gap * gap / variance)


@kernel
def learn(
    rows: Array, prior: Array, R: Array, noise_prior: Array, dof: float, n_sweeps: int, handle: RngHandle
) -> None:
    """Weigh the last row, which R does not hold yet; then Gibbs sweeps over all of them."""
    n = rows.shape[0]
    draw_precisions(rows, n - 1, n - 1, R, noise_prior, dof, handle)
    row = math.sqrt(rows[n - 1, R.shape[0]]) * rows[n - 1, : R.shape[0]]
    rotate_in(R, row)
    for _ in range(n_sweeps):
        draw_precisions(rows, 0, n, R, noise_prior, dof, handle)
        weigh(rows, prior, R)
