"""Inverse and log-determinant of a symmetric positive definite matrix by sweeping blocks.

Sweeping block k of A: with P = A_kk^-1, A_ij <- A_ij - A_ik P A_kj, A_ik <- A_ik P, A_kk <- -P; after all blocks A is
minus its inverse.  Nearly all the work is one matrix product a block, what a GPU does best on a batch of matrices.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

BLOCK = 64


def invert(matrix: jax.Array, n_blocks: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """Inverse and log-determinant of the leading blocks; what lies beyond must be the identity."""
    identity = jnp.eye(BLOCK, dtype=matrix.dtype)

    def sweep(k: jax.Array, swept: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, log_det = swept
        start = k * BLOCK
        columns = jax.lax.dynamic_slice_in_dim(a, start, BLOCK, axis=1)
        factor = jnp.linalg.cholesky(jax.lax.dynamic_slice_in_dim(columns, start, BLOCK, axis=0))
        root = solve_triangular(factor, identity, lower=True)
        pivot = root.T @ root
        scaled = columns @ pivot
        a = a - scaled @ columns.T
        a = jax.lax.dynamic_update_slice_in_dim(a, scaled, start, axis=1)
        a = jax.lax.dynamic_update_slice_in_dim(a, scaled.T, start, axis=0)
        a = jax.lax.dynamic_update_slice(a, -pivot, (start, start))
        return a, log_det + 2 * jnp.sum(jnp.log(jnp.diagonal(factor)))

    swept, log_det = jax.lax.fori_loop(0, n_blocks, sweep, (matrix, jnp.zeros((), matrix.dtype)))
    inside = jnp.arange(len(matrix)) < n_blocks * BLOCK
    return jnp.where(inside[:, None] & inside, -swept, swept), log_det


def padded(size: int) -> int:
    """Smallest whole number of blocks that holds `size` rows, in rows."""
    return -(-size // BLOCK) * BLOCK
