"""Where among the contexts a component is at home: the weights of an arm's mixture depend on the context.

x_j | component k  ~ N(m_kj, v_j),   m_kj ~ N(m_j, tau v_j)       m_j, v_j  mean and variance of column j, all contexts
with the places m_k integrated out, S_kj being the component's sum of x_j:
x_j | others in k  ~ N((m_j + tau S_kj) / (1 + tau n_k),  v_j (1 + tau / (1 + tau n_k)))
tau ~ IG(shape, scale);  tau = 0: every component is at home everywhere, and weights do not depend on the context.

columns[AT]  m   columns[PRECISION]  1/v, or 0 for a column that says nothing: a constant, the intercept
The sums S are the last row of Sxx, so a model without intercept has none, and tau = 0.
"""

import math

from polyarm.kernels._jit import kernel, step
from polyarm.kernels.robust_component import COUNT, sxx_row
from polyarm.types import Array, IntArray, Rng

AT, PRECISION = 6, 7
TAU_LOW, TAU_HIGH = 1e-9, 1e3  # against overflow; no data reach these
NEVER = 1e-300  # the least count at x, so that a Gamma variable can be drawn


@step
def sums_row(D: int) -> int:
    """First row of S."""
    return sxx_row(D) + D * (D - 1) // 2


@step
def look(T: Array, k: int, columns: Array, tau: float, x: Array, own: float) -> tuple[float, float, float]:
    """Squared distance of x from the expected place of component k in units of v, variance of the place, columns used.

    own = 1 takes x itself out of the component; k = -1 is one that is still empty.
    """
    D = columns.shape[1]
    first = sums_row(D)
    n = T[COUNT, k] - own if k >= 0 else 0.0
    shrink = 1.0 / (1.0 + tau * n)
    far, used = 0.0, 0.0
    for j in range(D):
        if columns[PRECISION, j] > 0.0:
            total = T[first + j, k] - own * x[j] if k >= 0 else 0.0
            gap = x[j] - (columns[AT, j] + tau * total) * shrink
            far += gap * gap * columns[PRECISION, j]
            used += 1.0
    return far, tau * shrink, used


@step
def distance(T: Array, k: int, columns: Array, tau: float, x: Array, own: float) -> float:
    """Minus log density of x in component k, up to a constant."""
    if tau == 0.0:
        return 0.0
    far, vague, used = look(T, k, columns, tau, x, own)
    return 0.5 * (far / (1.0 + vague) + used * math.log(1.0 + vague))


@step
def local_counts(T: Array, K: int, columns: Array, gamma: float, tau: float, x: Array, counts: Array) -> None:
    """Write counts of a Dirichlet distribution of the components' weights at x; the last is that of the unseen.

    Its mean P is n_k, or gamma, times the component's density at x: exactly the predictive weights.  Its size A answers
    for the variance that the weights owe to n rewards and to places that are known up to Z_k = var log N(x; m_k, v):
    sum P (1 - P) / (A + 1) = sum P (1 - P) / (n + gamma + 1) + sum_k P_k^2 ((1 - P_k)^2 Z_k + sum_{j != k} P_j^2 Z_j).
    """
    size, low = gamma, math.inf
    counts[K] = gamma
    for k in range(K):
        counts[k] = T[COUNT, k]
        size += counts[k]
    if tau == 0.0:
        return
    for k in range(K + 1):
        counts[k] = distance(T, k if k < K else -1, columns, tau, x, 0.0)
        low = min(low, counts[k])
    here = 0.0
    for k in range(K + 1):
        counts[k] = (T[COUNT, k] if k < K else gamma) * math.exp(low - counts[k])
        here += counts[k]
    blur, pure, mixed, spread = 0.0, 0.0, 0.0, 0.0
    for k in range(K + 1):
        far, vague, used = look(T, k if k < K else -1, columns, tau, x, 0.0)
        P, Z = counts[k] / here, vague * (far + 0.5 * vague * used)
        pure += P * P * ((1.0 - P) * (1.0 - P) - P * P) * Z
        blur += P * P * Z
        mixed += P * P
        spread += P * (1.0 - P)
    if spread > 0.0:
        size = max(1.0 / (1.0 / (size + 1.0) + (pure + mixed * blur) / spread) - 1.0, min(size, 1.0))
    for k in range(K + 1):
        counts[k] = max(counts[k] * size / here, NEVER)


@kernel
def draw_tau(tables: Array, sizes: IntArray, columns: Array, tau: float, shape: float, scale: float, rng: Rng) -> float:
    """Draw tau given places that are drawn for every component first."""
    D = columns.shape[1]
    first = sums_row(D)
    squares, count = 0.0, 0.0
    for arm in range(tables.shape[0]):
        T = tables[arm]
        for k in range(sizes[arm, 0]):
            shrink = 1.0 / (1.0 + tau * T[COUNT, k])
            for j in range(D):
                if columns[PRECISION, j] > 0.0:
                    away = (T[first + j, k] - T[COUNT, k] * columns[AT, j]) * math.sqrt(columns[PRECISION, j])
                    gap = tau * away * shrink + math.sqrt(tau * shrink) * rng.standard_normal()
                    squares += gap * gap
                    count += 1.0
    drawn = (scale + 0.5 * squares) / rng.standard_gamma(shape + 0.5 * count)
    return min(max(drawn, TAU_LOW), TAU_HIGH)
