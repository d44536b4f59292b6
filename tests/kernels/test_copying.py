import numpy as np

from polyarm.kernels._jit import plain
from polyarm.kernels.copying import copy_row, copy_rows


def test_a_copy_leaves_what_is_beyond_it() -> None:
    row, rows = np.full(3, 9.0), np.full((3, 2), 9.0)
    plain(copy_row)(np.array([1.0, 2.0]), row)
    plain(copy_rows)(np.array([[1.0, 2.0], [3.0, 4.0]]), rows)
    np.testing.assert_array_equal(row, [1, 2, 9])
    np.testing.assert_array_equal(rows, [[1, 2], [3, 4], [9, 9]])
