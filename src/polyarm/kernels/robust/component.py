"""A component of the robust mixture: its slopes are integrated out, its noise variance is not.

A component is one column of an arm's table T (rows, capacity); components stand side by side.

row         content of column k                                      formula
COUNT       n        rewards in the component
VAR         s2       its noise variance
SYY         sum y^2
MOVES       adds and removes since its sums were last computed afresh
MEAN ...    U (D rows)               mean of its slopes                U = V (Sxy/s2 + Q w0)
            V (P rows)               their covariance                  V = (Sxx/s2 + Q)^-1
            Sxx (P rows)             sum x x'
            Sxy (D rows)             sum x y
            w (D rows)               the slopes as last drawn
            kept (2 + P + D rows)    n, sum y^2, Sxx and Sxy of the rewards that can move no more

D = features, P = D (D+1) / 2: a symmetric matrix is kept as the rows of its lower triangle.
w0 (D,)  centre of the arm's components;  R (D,)  prior variance of the slopes around it;  Q = diag(1/R)
data (N, D + 1) holds x and y of each reward;  z (N,) its label
"""

from polyarm.kernels._jit import inlined, kernel, no_refcount
from polyarm.kernels.lanes import LANES, load, splat, store
from polyarm.types import Array, IntArray

COUNT, VAR, SYY, MOVES, MEAN = 0, 1, 2, 3, 4
CAREFUL = 1e-4  # a reward that holds all but this share of its component's information is removed by rebuilding
OUTWEIGHED = 1e-6  # sums of squares that fall below this share of the reward that left are computed afresh
MOVES_KEPT = 65536  # sums are computed afresh after so many moves


@kernel
def n_rows(D: int) -> int:
    """Rows of a component's column."""
    return MEAN + 3 * D + D * (D + 1) + 2 + D + D * (D + 1) // 2


@inlined
def sxx_row(D: int) -> int:
    """First row of Sxx."""
    return MEAN + D + D * (D + 1) // 2


@inlined
def sxy_row(D: int) -> int:
    """First row of Sxy."""
    return MEAN + D + D * (D + 1)


@inlined
def w_row(D: int) -> int:
    """First row of w."""
    return MEAN + 2 * D + D * (D + 1)


@inlined
def kept_row(D: int) -> int:
    """First row of what is kept of rewards that can move no more."""
    return MEAN + 3 * D + D * (D + 1)


@inlined
def residuals(T: Array, n_used: int, data: Array, r: int, q: Array, e: Array) -> None:
    """Write q = x'Vx and e = y - x'U of reward r for the first n_used components, LANES at a time."""
    D = data.shape[1] - 1
    for k in range(0, n_used, LANES):
        square, residual = splat(0.0), splat(data[r, D])
        p = MEAN + D
        for i in range(D):
            xi = data[r, i]
            residual -= xi * load(T, MEAN + i, k)
            for j in range(i):
                square += 2.0 * xi * data[r, j] * load(T, p, k)
                p += 1
            square += xi * xi * load(T, p, k)
            p += 1
        store(square, q, k)
        store(residual, e, k)


@inlined
def reset(T: Array, k: int, w0: Array, R: Array, s2: float) -> None:
    """Make component k an empty one with this noise variance: its slopes have their prior."""
    D = w0.shape[0]
    for r in range(T.shape[0]):
        T[r, k] = 0.0
    T[VAR, k] = s2
    p = MEAN + D
    for i in range(D):
        T[MEAN + i, k] = w0[i]
        p += i
        T[p, k] = R[i]
        p += 1


@inlined
def count_in(T: Array, k: int, data: Array, r: int, sign: float) -> None:
    """Add (sign 1) or remove (sign -1) reward r from the sums of component k."""
    D = data.shape[1] - 1
    y = data[r, D]
    p = sxx_row(D)
    s = sxy_row(D)
    for i in range(D):
        xi = sign * data[r, i]
        for j in range(i + 1):
            T[p, k] += xi * data[r, j]
            p += 1
        T[s + i, k] += xi * y
    T[SYY, k] += sign * y * y
    T[COUNT, k] += sign
    T[MOVES, k] += 1.0


@inlined
def keep(T: Array, k: int, data: Array, r: int) -> None:
    """Let reward r, which is in the sums of component k, stay there for good."""
    D = data.shape[1] - 1
    y = data[r, D]
    kept = kept_row(D)
    T[kept, k] += 1.0
    T[kept + 1, k] += y * y
    p = kept + 2
    s = p + D * (D + 1) // 2
    for i in range(D):
        for j in range(i + 1):
            T[p, k] += data[r, i] * data[r, j]
            p += 1
        T[s + i, k] += data[r, i] * y


@inlined
def fade(T: Array, k: int, D: int, share: float) -> None:
    """Keep all rewards of component k for good, and only a share of their weight."""
    kept, first = kept_row(D), sxx_row(D)
    T[COUNT, k] *= share
    T[SYY, k] *= share
    T[kept, k] = T[COUNT, k]
    T[kept + 1, k] = T[SYY, k]
    for r in range(D * (D + 1) // 2 + D):
        T[first + r, k] *= share
        T[kept + 2 + r, k] = T[first + r, k]
    T[MOVES, k] = 0.0


@inlined
def rank_one(T: Array, k: int, data: Array, r: int, sign: float, v: Array) -> bool:
    """Add or remove reward r from U and V; tell whether that would lose digits, and then leave them as they are.

    V -= vv'/t,  U += v e/t  with v = Vx and t = x'Vx + sign s2.
    """
    D = v.shape[0]
    e = data[r, D]
    t = sign * T[VAR, k]
    for i in range(D):
        v[i] = 0.0
    p = MEAN + D
    for i in range(D):
        e -= data[r, i] * T[MEAN + i, k]
        for j in range(i):
            v[i] += T[p, k] * data[r, j]
            v[j] += T[p, k] * data[r, i]
            p += 1
        v[i] += T[p, k] * data[r, i]
        p += 1
    for i in range(D):
        t += data[r, i] * v[i]
    if sign * t <= CAREFUL * T[VAR, k]:
        return True
    p = MEAN + D
    for i in range(D):
        T[MEAN + i, k] += v[i] * e / t
        g = v[i] / t
        for j in range(i + 1):
            T[p, k] -= g * v[j]
            p += 1
    return False


@no_refcount
def recount(T: Array, k: int, data: Array, z: IntArray, n: int, label: int) -> None:
    """Compute the sums of component k afresh from what it has kept and the rewards that carry its label."""
    D = data.shape[1] - 1
    kept, first = kept_row(D), sxx_row(D)
    T[COUNT, k] = T[kept, k]
    T[SYY, k] = T[kept + 1, k]
    for r in range(D * (D + 1) // 2 + D):
        T[first + r, k] = T[kept + 2 + r, k]
    for i in range(n):
        if z[i] == label:
            count_in(T, k, data, i, 1.0)
    T[MOVES, k] = 0.0


@inlined
def shift_rewards(T: Array, k: int, shift: Array) -> None:
    """Count what component k has kept from elsewhere: columns lose shift[:-1], rewards shift[-1].

    The last feature is the intercept: the last row of Sxx is n and the sums of the columns.
    """
    D = shift.shape[0]
    kept = kept_row(D)
    first = kept + 2
    s = first + D * (D + 1) // 2
    sums = s - D
    n, o, total = T[kept, k], shift[D - 1], T[s + D - 1, k]
    T[kept + 1, k] += o * (o * n - 2.0 * total)
    for i in range(D - 1):
        T[s + i, k] += shift[i] * (o * n - total) - o * T[sums + i, k]
    T[s + D - 1, k] -= o * n
    p = first
    for i in range(D - 1):
        for j in range(i + 1):
            T[p, k] += shift[i] * shift[j] * n - shift[i] * T[sums + j, k] - shift[j] * T[sums + i, k]
            p += 1
    for j in range(D - 1):
        T[sums + j, k] -= shift[j] * n


@no_refcount
def squared_errors(T: Array, k: int, D: int) -> float:
    """Sum of (y - x'w)^2 over the component, w as last drawn."""
    s = sxy_row(D)
    w = w_row(D)
    p = sxx_row(D)
    total = T[SYY, k]
    for i in range(D):
        wi = T[w + i, k]
        t = -2.0 * T[s + i, k]
        for j in range(i):
            t += 2.0 * T[p, k] * T[w + j, k]
            p += 1
        t += T[p, k] * wi
        p += 1
        total += wi * t
    return max(total, 0.0)
