"""Linear regression with Student-t noise, as a Gaussian one whose rewards carry random precisions.

rows   (n, d+2)      a reward's context x, value y, and precision l:  y ~ N(x'w, s2 / l),  l ~ Gamma(v/2, rate v/2)
prior  (d+1, d+1)    square-root information of the prior of w (root.py)
root   (d+1, d+1)    the same with every row rotated in at its precision
"""

import math

import numpy as np

from polyarm.kernels._jit import Stream, generator, kernel
from polyarm.kernels.conjugate import KNOWN, SCALE, SHAPE
from polyarm.kernels.linalg.root import rotate_in
from polyarm.types import Array


@kernel
def weigh(rows: Array, prior: Array, root: Array) -> None:
    """Write the information of the prior and of every row at its precision."""
    m = root.shape[0]
    row = np.empty(m)
    root[:] = prior
    for i in range(rows.shape[0]):
        scale = math.sqrt(rows[i, m])
        for j in range(m):
            row[j] = scale * rows[i, j]
        rotate_in(root, row)


@kernel
def draw_precisions(rows: Array, first: int, n: int, root: Array, law: Array, dof: float, source: Stream) -> None:
    """Precisions of the rows from `first` on, given one draw of (w, s2) from the root, which holds n rewards."""
    rng = generator(source)
    d = root.shape[0] - 1
    variance = law[KNOWN]
    if variance <= 0.0:
        variance = (law[SCALE] + 0.5 * root[d, d] * root[d, d]) / rng.standard_gamma(law[SHAPE] + 0.5 * n)
    w = np.empty(d)
    for i in range(d - 1, -1, -1):  # R w = R[:, d] + s e
        t = root[i, d] + math.sqrt(variance) * rng.standard_normal()
        for j in range(i + 1, d):
            t -= root[i, j] * w[j]
        w[i] = t / root[i, i]
    for i in range(first, rows.shape[0]):
        gap = rows[i, d]
        for j in range(d):
            gap -= rows[i, j] * w[j]
        rows[i, d + 1] = 2.0 * rng.standard_gamma(0.5 * (dof + 1.0)) / (dof + gap * gap / variance)


@kernel
def learn(rows: Array, prior: Array, root: Array, law: Array, dof: float, n_sweeps: int, source: Stream) -> None:
    """Weigh the last row, which the root does not hold yet; then Gibbs sweeps over all of them."""
    n = rows.shape[0]
    draw_precisions(rows, n - 1, n - 1, root, law, dof, source)
    row = math.sqrt(rows[n - 1, root.shape[0]]) * rows[n - 1, : root.shape[0]]
    rotate_in(root, row)
    for _ in range(n_sweeps):
        draw_precisions(rows, 0, n, root, law, dof, source)
        weigh(rows, prior, root)
