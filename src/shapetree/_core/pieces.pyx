"""Pieces: the branches of a feature's bins in its own values, and thresholds between values."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from shapetree._core.arena cimport NO_BRANCH

cdef extern from "parting.h":
    double parting(double low, double high) noexcept nogil
    double parting_of_bins(
        const double* low, const double* high, Py_ssize_t below, Py_ssize_t above
    ) noexcept nogil


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


def number_cuts(low not None):
    """Number the cuts and regions of a binary tree, each from low to high.

    Parameters
    ----------
    low : int array of shape (n_nodes,)
        The child below a node's cut, the one above follows it; -1 for regions.

    Returns
    -------
    cuts, regions : int arrays
        Nodes that are cuts, and nodes that are regions, in their new order.
    cut_low, cut_high : int arrays of shape (n_cuts,)
        Where points go that are not, or are, above a cut: to cut c, or to region p, written as
        -1 - p.
    """
    cdef:
        const int32_t[::1] child = np.ascontiguousarray(low, dtype=np.int32)
        Py_ssize_t n = child.shape[0], i, n_cuts = 0, n_regions = 0, n_waiting = 1
        int32_t node
        int32_t[::1] waiting = np.zeros(n + 1, dtype=np.int32)
        int32_t[::1] code = np.empty(n, dtype=np.int32)
        int64_t[::1] cut, region
        int32_t[::1] below, above
    if n == 0:
        raise ValueError("a tree has a root")
    cuts, regions = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    cut, region = cuts, regions
    while n_waiting > 0:
        n_waiting -= 1
        node = waiting[n_waiting]
        if child[node] < 0:
            code[node] = <int32_t> (-1 - n_regions)
            region[n_regions] = node
            n_regions += 1
            continue
        # Every node comes once, or else there would be more of them.
        if not 0 < child[node] < n - 1 or n_cuts + n_regions + n_waiting + 3 > n:
            raise ValueError("every node but the root is the child of one node")
        code[node] = <int32_t> n_cuts
        cut[n_cuts] = node
        n_cuts += 1
        waiting[n_waiting] = child[node] + 1
        waiting[n_waiting + 1] = child[node]
        n_waiting += 2
    cut_low, cut_high = np.empty(n_cuts, dtype=np.int32), np.empty(n_cuts, dtype=np.int32)
    below, above = cut_low, cut_high
    for i in range(n_cuts):
        below[i] = code[child[cut[i]]]
        above[i] = code[child[cut[i]] + 1]
    return cuts[:n_cuts], regions[:n_regions], cut_low, cut_high
