"""An arm of the robust mixture by information-directed sampling, in one call."""

import numpy as np

from polyarm.kernels import information
from polyarm.kernels._jit import RngHandle, kernel
from polyarm.kernels.robust.outlook import outlook
from polyarm.kernels.robust.records import Books
from polyarm.kernels.robust.units import REFUSED, is_usable
from polyarm.types import Array


@kernel
def choose(books: Books, x: Array, n_draws: int, power: float, mix: Array, scores: Array, handle: RngHandle) -> int:
    """Draw an arm from the mix for the outlook in context x, or answer REFUSED."""
    if not is_usable(x):
        return REFUSED
    A = mix.shape[0]
    moments, noise = np.empty((2, A)), np.empty(A)
    outlook(books, x, moments, noise)
    return information.choose(moments, noise, n_draws, power, mix, scores, handle)
