"""Densities of Student-t distributions and of their mixtures.

w, dof, m, scale  (K,)  weight, degrees of freedom (infinity: a normal), location and scale of each component
y, out            (N,)  where, and the density there
"""

import math

import numpy as np

from polyarm.kernels._jit import inlined, kernel
from polyarm.kernels.mixture.component import LOG_2PI, log_gamma_step
from polyarm.types import Array


@inlined
def student_density(t: float, a: float) -> float:
    """Density of Student's t with 2 a degrees of freedom."""
    return math.exp(log_gamma_step(a) - 0.5 * math.log(2.0 * math.pi * a) - (a + 0.5) * math.log1p(0.5 * t * t / a))


@kernel
def mixture_density(w: Array, dof: Array, m: Array, scale: Array, y: Array, out: Array) -> None:
    """Write sum_k w_k t(y | dof_k, m_k, scale_k) for every y."""
    K = w.shape[0]
    front, power = np.empty(K), np.empty(K)
    for k in range(K):
        a = 0.5 * dof[k]
        peak = log_gamma_step(a) - 0.5 * math.log(2.0 * math.pi * a) if a < math.inf else -0.5 * LOG_2PI
        front[k] = w[k] / scale[k] * math.exp(peak)
        power[k] = a + 0.5
    for i in range(y.shape[0]):
        total = 0.0
        for k in range(K):
            z = (y[i] - m[k]) / scale[k]
            if power[k] < math.inf:
                total += front[k] * math.exp(-power[k] * math.log1p(z * z / dof[k]))
            else:
                total += front[k] * math.exp(-0.5 * z * z)
        out[i] = total
