"""Samples of rows, chosen by a hash of the row's number: the same wherever the rows live."""

from __future__ import annotations

import numpy as np

from shapetree._core.sampling import rows_below


def sampled(first_row: int, n_rows: int, n_total: int, size: int) -> np.ndarray:
    """Choose about `size` of all rows, or all if there are no more.

    Parameters
    ----------
    first_row, n_rows : int
        The rows to choose from: those numbered first_row .. first_row + n_rows - 1 of all.
    n_total : int
        Number of all rows, wherever they are.
    size : int
        Rows to choose of all. How many it really are varies by about its square root.

    Returns
    -------
    int64 array
        Numbers of the chosen rows, ascending. Whoever holds a part of the rows chooses those that
        belong to the sample of all.
    """
    if n_total <= size:
        return np.arange(first_row, first_row + n_rows, dtype=np.int64)
    return rows_below(first_row, n_rows, size * 2**64 // n_total)
