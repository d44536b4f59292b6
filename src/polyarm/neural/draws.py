"""Random numbers of the networks: few hash calls, the same on every device.

JAX's Threefry hash makes 64 bits a call but keeps 32 of them for a 32-bit number, and drawing bounds the dropout and
variational networks; these draws use every bit.
"""

import math

import jax
import jax.numpy as jnp


def draw_words(key: jax.Array, n_words: int, n_bits: int) -> jax.Array:
    """Random unsigned integers of 16 or 32 bits, (n_words,)."""
    dtype = {16: jnp.uint16, 32: jnp.uint32}[n_bits]
    n_calls = -(-n_words * n_bits // 64)
    words = jax.lax.bitcast_convert_type(jax.random.bits(key, (n_calls,), jnp.uint64), dtype)
    return words.reshape(-1)[:n_words]


def draw_uniforms(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Uniform numbers in [0, 1) on a grid of 2^-24."""
    words = draw_words(key, math.prod(shape), 32).reshape(shape)
    return (words >> 8).astype(jnp.float32) * jnp.float32(2.0**-24)


def draw_normals(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Standard normal numbers in single precision."""
    words = draw_words(key, math.prod(shape), 32).reshape(shape)
    centred = ((words >> 9).astype(jnp.float32) + jnp.float32(0.5)) * jnp.float32(2.0**-22) - jnp.float32(1.0)
    return jnp.float32(math.sqrt(2.0)) * jax.lax.erf_inv(centred)


def draw_mask(key: jax.Array, keep: float, shape: tuple[int, ...]) -> jax.Array:
    """True with probability `keep`, to within 2^-17."""
    words = draw_words(key, math.prod(shape), 16).reshape(shape)
    return words < jnp.uint16(round(keep * 2**16))


def draw_rows(key: jax.Array, n: jax.Array, n_rows: int) -> jax.Array:
    """Indices drawn uniformly with replacement from 0, ..., n - 1."""
    places = draw_uniforms(key, (n_rows,)) * n.astype(jnp.float32)
    return jnp.minimum(places.astype(jnp.int32), n.astype(jnp.int32) - 1)
