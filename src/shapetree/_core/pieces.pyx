"""Pieces: the branches of a feature's bins in its own values, and thresholds between values."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "parting.h":
    double parting(double low, double high) noexcept nogil
    double parting_of_bins(
        const double* low, const double* high, Py_ssize_t below, Py_ssize_t above
    ) noexcept nogil

cdef enum:
    NO_BRANCH = 255


def thresholds_between(
    const double[::1] low not None,                # IN: (n,)
    const double[::1] high not None,               # IN: (n,) greater than those in `low`
):
    """Finite numbers t between two values each, so that low <= t < high.

    Numbers with the fewest digits in the middle half between the two, or their means. Infinite
    values count as the greatest finite ones. Nothing finite parts minus infinity from the least
    finite number.
    """
    cdef:
        Py_ssize_t i, n = low.shape[0]
        double[::1] threshold
    if high.shape[0] != n:
        raise ValueError("each threshold needs a value on either side")
    result = np.empty(n)
    threshold = result
    with nogil:
        for i in range(n):
            threshold[i] = parting(low[i], high[i])
    return result


def pieces_of_bins(
    const uint8_t[::1] branch_of_bin not None,     # IN: (n_bins + 1,) NO_BRANCH without rows
    const double[::1] low not None,                # IN: (n_bins,) least value of each bin
    const double[::1] high not None,               # IN: (n_bins,) and greatest
    const int64_t[::1] n_rows=None,                # IN: (n_bins + 1,) rows of each bin
):
    """Join the bins of an ordered feature to pieces of its axis.

    A piece ends where the next bin with rows goes elsewhere, at a short number between the two. The
    last bin is that of missing values, which are no piece. If numbers of rows are not told, bins
    without a branch are those that hold none.

    Returns
    -------
    upper : float64 array (n_pieces,)
        Greatest value of each piece; the last one is infinite.
    branch : int32 array (n_pieces,)
    """
    cdef:
        Py_ssize_t i, below = -1, n_bins = branch_of_bin.shape[0] - 1, n = 0, piece = 0
        double[::1] upper
        int32_t[::1] branch
    if n_bins < 0 or low.shape[0] != n_bins or high.shape[0] != n_bins or (
            n_rows is not None and n_rows.shape[0] != n_bins + 1):
        raise ValueError("each bin needs its bounds")
    for i in range(n_bins):
        if branch_of_bin[i] != NO_BRANCH if n_rows is None else n_rows[i] > 0:
            n += below < 0 or branch_of_bin[below] != branch_of_bin[i]
            below = i
    if below < 0:
        raise ValueError("some bin must have a branch")
    uppers, branches = np.empty(n), np.empty(n, dtype=np.int32)
    upper, branch = uppers, branches
    below = -1
    for i in range(n_bins):
        if branch_of_bin[i] == NO_BRANCH if n_rows is None else n_rows[i] <= 0:
            continue
        if below >= 0 and branch_of_bin[below] != branch_of_bin[i]:
            upper[piece] = parting_of_bins(&low[0], &high[0], below, i)
            piece += 1
        branch[piece] = branch_of_bin[i]
        below = i
    upper[piece] = np.inf
    return uppers, branches
