"""The posterior predictive distribution of a reward, from the components that it may belong to."""

import numpy as np

from polyarm.kernels.mixture import means
from polyarm.kernels.mixture.component import COUNT, SCALE
from polyarm.models import StudentMixture
from polyarm.types import Array


def student_mixture(columns: Array, mass: Array, shape: float, context: Array) -> StudentMixture:
    """Components weighted by mass: sum_k mass_k t(2 a_k, x'U_k, sqrt(b_k/a_k (1 + x'V_k x))), a_k = shape + n_k/2.

    columns (rows, K) are laid out as in kernels.mixture.component; the prior's is an empty component.  The masses need
    not sum to one.
    """
    K = columns.shape[1]
    m, q = np.empty(K), np.empty(K)
    means.locate(columns, K, context, m, q)
    a = shape + 0.5 * columns[COUNT]
    return StudentMixture(mass / mass.sum(), 2 * a, m, np.sqrt(columns[SCALE] / a * (1 + q)))


def process_mixture(components: Array, empty: Array, process: Array, context: Array) -> StudentMixture:
    """Components of one seating with masses n_k - discount, and a new one; of a process: kernels.mixture.component."""
    shape, _, concentration, discount = process
    K = components.shape[1]
    columns = np.column_stack([components, empty])
    new = max(concentration + K * discount, 0.0) if K > 0 else 1.0
    return student_mixture(columns, np.append(columns[COUNT, :K] - discount, new), shape, context)
