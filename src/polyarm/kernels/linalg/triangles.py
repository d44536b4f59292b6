"""`triangle.py` for LANES matrices at a time: M (d, d, LANES) holds an entry of all of them side by side.

inverse_diagonal  (d, LANES)  1 / F[i, i] of all of them: products are quicker than quotients
"""

from polyarm.kernels._jit import inlined
from polyarm.kernels.lanes import load, splat, sqrt, store, where_less
from polyarm.types import Array


@inlined
def factorise_all(M: Array, variance: Array, d: int, inverse_diagonal: Array) -> None:
    """Replace the lower triangles by their Cholesky factors."""
    for i in range(d):
        for j in range(i + 1):
            t = load(M, i, j)
            for k in range(j):
                t -= load(M, i, k) * load(M, j, k)
            if j < i:
                store(t * load(inverse_diagonal, j), M, i, j)
            else:
                least = 1.0 / variance[i]
                root = sqrt(where_less(t, least, least, t))
                store(root, M, i, i)
                store(1.0 / root, inverse_diagonal, i)


@inlined
def invert_all(F: Array, inverse_diagonal: Array, d: int, B: Array) -> None:
    """Write B = F^-T of all of them: upper triangular."""
    for i in range(d):
        store(load(inverse_diagonal, i), B, i, i)
        for j in range(i + 1, d):
            t = splat(0.0)
            for k in range(i, j):
                t -= load(F, j, k) * load(B, i, k)
            store(t * load(inverse_diagonal, j), B, i, j)


@inlined
def factorise_alike(M: Array, variance: Array, d: int) -> None:
    """Replace the lower triangles by their Cholesky factors: what `factorise` makes of each, to the last bit."""
    for i in range(d):
        for j in range(i + 1):
            t = load(M, i, j)
            for k in range(j):
                t -= load(M, i, k) * load(M, j, k)
            if j < i:
                store(t / load(M, j, j), M, i, j)
            else:
                least = 1.0 / variance[i]
                store(sqrt(where_less(t, least, least, t)), M, i, i)


@inlined
def solve_alike(F: Array, v: Array, d: int) -> None:
    """Replace v (d, LANES) by (F F')^-1 v of all of them: what `solve_lower`, then `solve_upper` make of each."""
    for i in range(d):
        t = load(v, i)
        for j in range(i):
            t -= load(F, i, j) * load(v, j)
        store(t / load(F, i, i), v, i)
    for i in range(d - 1, -1, -1):
        t = load(v, i)
        for j in range(i + 1, d):
            t -= load(F, j, i) * load(v, j)
        store(t / load(F, i, i), v, i)
