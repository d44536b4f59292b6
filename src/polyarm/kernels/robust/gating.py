"""The region of context space that a component explains: the weights of an arm's mixture depend on the context.

x_j | component k  ~ N(m_kj, v_j),   m_kj ~ N(m_j, tau v_j)       m_j, v_j  mean and variance of column j, all contexts
with the locations m_k integrated out, S_kj being the component's sum of x_j:
x_j | others in k  ~ N((m_j + tau S_kj) / (1 + tau n_k),  v_j (1 + tau / (1 + tau n_k)))
tau ~ IG(shape, scale);  tau = 0: every component is everywhere, and weights do not depend on the context.

features.mean  m    features.precision  1/v, or 0 for a column that says nothing: a constant, the intercept
v is larger where an entry would be outlying (units.py): its density would outweigh every reward, and a component of its
own would know nothing of the line that all others tell.
The sums S are the last row of Sxx, so a model without intercept has none, and tau = 0.
"""

import math

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.kernels.elementary import log
from polyarm.kernels.lanes import Lanes, load, splat
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.component import COUNT, sxx_row
from polyarm.kernels.robust.records import Arms, Features, Shared, n_features
from polyarm.types import Array, Rng

TAU_LOW, TAU_HIGH = 1e-9, 1e3  # against overflow; no data reach these
NEVER = 1e-300  # the least count at x, so that a Gamma variable can be drawn


@inlined
def sums_row(D: int) -> int:
    """First row of S."""
    return sxx_row(D) + D * (D - 1) // 2


@inlined
def distance_to_component(
    T: Array, k: int, features: Features, tau: float, x: Array, own: float
) -> tuple[float, float, float]:
    """Squared distance of x from where component k is expected, in units of v; variance of its location; columns used.

    own = 1 takes x itself out of the component; k = -1 is one that is still empty.
    """
    D = features.unit.shape[0]
    first = sums_row(D)
    n = T[COUNT, k] - own if k >= 0 else 0.0
    shrink = 1.0 / (1.0 + tau * n)
    far, used = 0.0, 0.0
    for j in range(D):
        if features.precision[j] > 0.0:
            total = T[first + j, k] - own * x[j] if k >= 0 else 0.0
            gap = x[j] - (features.mean[j] + tau * total) * shrink
            far += gap * gap * features.precision[j]
            used += 1.0
    return far, tau * shrink, used


@inlined
def minus_log_density(T: Array, k: int, features: Features, tau: float, x: Array, own: float) -> float:
    """Minus log density of x in component k, up to a constant."""
    if tau == 0.0:
        return 0.0
    far, vague, used = distance_to_component(T, k, features, tau, x, own)
    return 0.5 * (far / (1.0 + vague) + used * math.log(1.0 + vague))


@inlined
def minus_log_densities(T: Array, k: int, features: Features, tau: float, x: Array) -> Lanes:
    """`minus_log_density` for components k to k + 3, x being in none of them."""
    D = features.unit.shape[0]
    first, used, far = sums_row(D), 0.0, splat(0.0)
    if tau == 0.0:
        return far
    shrink = 1.0 / (1.0 + tau * load(T, COUNT, k))
    for j in range(D):
        if features.precision[j] > 0.0:
            gap = x[j] - (features.mean[j] + tau * load(T, first + j, k)) * shrink
            far += gap * gap * features.precision[j]
            used += 1.0
    wide = 1.0 + tau * shrink
    return 0.5 * (far / wide + used * log(wide))


@inlined
def local_counts(T: Array, K: int, features: Features, shared: Shared, x: Array, counts: Array) -> None:
    """Write counts of a Dirichlet distribution of the components' weights at x; the last is that of the unseen.

    Its mean P is n_k, or gamma, times the component's density at x: exactly the predictive weights.  Its size A answers
    for the variance that the weights owe to n rewards and to locations that are known up to Z_k = var log N(x; m_k, v):
    sum P (1 - P) / (A + 1) = sum P (1 - P) / (n + gamma + 1) + sum_k P_k^2 ((1 - P_k)^2 Z_k + sum_{j != k} P_j^2 Z_j).
    """
    gamma, tau = shared.concentration, shared.location_var
    size, low = gamma, math.inf
    counts[K] = gamma
    for k in range(K):
        counts[k] = T[COUNT, k]
        size += counts[k]
    if tau == 0.0:
        return
    for k in range(K + 1):
        counts[k] = minus_log_density(T, k if k < K else -1, features, tau, x, 0.0)
        low = min(low, counts[k])
    here = 0.0
    for k in range(K + 1):
        counts[k] = (T[COUNT, k] if k < K else gamma) * math.exp(low - counts[k])
        here += counts[k]
    blur, pure, mixed, spread = 0.0, 0.0, 0.0, 0.0
    for k in range(K + 1):
        far, vague, used = distance_to_component(T, k if k < K else -1, features, tau, x, 0.0)
        P, Z = counts[k] / here, vague * (far + 0.5 * vague * used)
        pure += P * P * ((1.0 - P) * (1.0 - P) - P * P) * Z
        blur += P * P * Z
        mixed += P * P
        spread += P * (1.0 - P)
    if spread > 0.0:
        size = max(1.0 / (1.0 / (size + 1.0) + (pure + mixed * blur) / spread) - 1.0, min(size, 1.0))
    for k in range(K + 1):
        counts[k] = max(counts[k] * size / here, NEVER)


@no_refcount
def draw_location_var(arms: Arms, rng: Rng) -> float:
    """Draw tau given locations that are drawn for every component first."""
    features, tau, prior = arms.features, arms.shared.location_var, arms.prior
    D = n_features(arms)
    first = sums_row(D)
    squares, count = 0.0, 0.0
    for arm in range(arms.components.shape[0]):
        T = arms.components[arm]
        for k in range(arms.sizes[arm, K_USED]):
            shrink = 1.0 / (1.0 + tau * T[COUNT, k])
            for j in range(D):
                if features.precision[j] > 0.0:
                    away = (T[first + j, k] - T[COUNT, k] * features.mean[j]) * math.sqrt(features.precision[j])
                    gap = tau * away * shrink + math.sqrt(tau * shrink) * rng.standard_normal()
                    squares += gap * gap
                    count += 1.0
    drawn = (prior.location_scale + 0.5 * squares) / rng.standard_gamma(prior.location_shape + 0.5 * count)
    return min(max(drawn, TAU_LOW), TAU_HIGH)
