"""Double precision, switched on around our own calls only, so that a user's JAX settings stay as they are."""

from contextlib import AbstractContextManager
from typing import Any

import jax


def double_precision() -> AbstractContextManager[Any]:
    """Context in which JAX keeps 64-bit numbers; networks ask for 32 bits by name."""
    enable = getattr(jax, "enable_x64", None)
    if enable is None:  # JAX before 0.8
        from jax.experimental import enable_x64 as enable
    context: AbstractContextManager[Any] = enable(True)
    return context
