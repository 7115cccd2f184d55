"""Targets of the rows of all nodes: counts, sums and squares by leaf, and what nodes above have."""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport ceil, fabs, ldexp, rint, sqrt
from libc.stdint cimport int32_t, int64_t

from shapetree._core.node_checks cimport are_below, check_counts, check_leaves, check_parents

cdef enum:
    MAX_EXPONENT = 1 << 12    # beyond those of all numbers


def count_targets(
    const int32_t[::1] leaves not None,
    const int32_t[::1] cells not None,
    const double[::1] targets,
    Py_ssize_t n_nodes,
    Py_ssize_t n_cells,
    int n_threads=1,
    const int32_t[::1] row_counts=None,
):
    """Count the rows of each leaf by class or cell of the target.

    Parameters
    ----------
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    cells : int32 array of shape (n_rows,)
        Classes, or cells of the target.
    targets : float64 array of shape (n_rows,) or None
    n_nodes, n_cells, n_threads : int
    row_counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for 1.

    Returns
    -------
    counts : int32 array of shape (n_nodes, n_cells)
    least, greatest : float64 arrays of shape (n_nodes,)
        Of the targets; an infinite range where there are none.
    """
    cdef:
        Py_ssize_t part
        int32_t[:, :, ::1] count
        double[:, ::1] least, greatest
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    check_leaves(leaves, n_nodes)
    check_counts(row_counts, leaves.shape[0])
    if cells.shape[0] != leaves.shape[0]:
        raise ValueError("there is a leaf and a cell for each row")
    if targets is not None and targets.shape[0] != leaves.shape[0]:
        raise ValueError("there is a leaf and a target for each row")
    if n_cells < 1 or not are_below(cells, n_cells):
        raise ValueError("labels are classes")
    counts = np.zeros((n_threads, n_nodes, n_cells), dtype=np.int32)
    lows, highs = np.full((n_threads, n_nodes), np.inf), np.full((n_threads, n_nodes), -np.inf)
    count, least, greatest = counts, lows, highs
    for part in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
        count_part(
            leaves, cells, targets, row_counts, leaves.shape[0] * part // n_threads,
            leaves.shape[0] * (part + 1) // n_threads, count[part], least[part], greatest[part])
    if n_threads == 1:
        return counts[0], lows[0], highs[0]
    return counts.sum(axis=0, dtype=np.int32), lows.min(axis=0), highs.max(axis=0)


cdef void count_part(
    const int32_t[::1] leaves, const int32_t[::1] cells, const double[::1] targets,
    const int32_t[::1] row_counts, Py_ssize_t first, Py_ssize_t last, int32_t[:, ::1] count,
    double[::1] least, double[::1] greatest,
) noexcept nogil:
    """Count some of the rows, and find the least and the greatest of their targets."""
    cdef:
        Py_ssize_t row
        int leaf
    for row in range(first, last):
        count[leaves[row], cells[row]] += row_counts[row] if row_counts is not None else 1
    if targets is not None:
        for row in range(first, last):
            leaf = leaves[row]
            least[leaf] = min(least[leaf], targets[row])
            greatest[leaf] = max(greatest[leaf], targets[row])


def sum_targets(
    const int32_t[::1] leaves not None,
    const double[::1] targets not None,
    const int32_t[::1] exponent not None,
    const double[::1] unit not None,
    const int32_t[::1] row_counts=None,
):
    """Sum the targets of each leaf, on a grid on which sums are exact.

    Parameters
    ----------
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    targets : float64 array of shape (n_rows,)
    exponent : int32 array of shape (n_nodes,)
        Powers of two that no target of a leaf is above; targets are counted in these.
    unit : float64 array of shape (n_nodes,)
        Units to which a leaf's targets are then rounded.
    row_counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for 1.

    Returns
    -------
    sums : float64 array of shape (n_nodes,)
    bounds : int64 array of shape (n_nodes,)
        What absolute values add up to at most, in 2**-16ths.
    """
    cdef:
        Py_ssize_t row, n_nodes = exponent.shape[0]
        int leaf
        int64_t times = 1
        double share
        double[::1] total
        int64_t[::1] bound
        bint has_counts = row_counts is not None
    check_moments(leaves, targets, n_nodes, unit)
    check_counts(row_counts, leaves.shape[0])
    check_exponents(exponent)
    sums, bounds = np.zeros(n_nodes), np.zeros(n_nodes, dtype=np.int64)
    total, bound = sums, bounds
    with nogil:
        for row in range(leaves.shape[0]):
            leaf = leaves[row]
            if has_counts:
                times = row_counts[row]
            share = ldexp(targets[row], -exponent[leaf])
            total[leaf] += times * rint(share / unit[leaf]) * unit[leaf]
            # In this order, what is no number counts as 1.
            bound[leaf] += times * <int64_t> ceil(min(1.0, fabs(share)) * 65536.0)
    return sums, bounds


def sum_squares(
    const int32_t[::1] leaves not None,
    const double[::1] targets not None,
    const int32_t[::1] exponent not None,
    const double[::1] centre not None,
    const int32_t[::1] reach not None,
    const double[::1] unit not None,
    const int32_t[::1] row_counts=None,
):
    """Sum the squares of what the targets of each leaf are off a centre, on an exact grid.

    Parameters
    ----------
    leaves, targets, exponent
        As for `sum_targets`.
    centre : float64 array of shape (n_nodes,)
        In the leaf's power of two.
    reach : int32 array of shape (n_nodes,)
        Powers of two, of the former, that none is farther off.
    unit : float64 array of shape (n_nodes,)
        Units to which squares are rounded, which are counted in squares of `reach`.
    row_counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for 1.
    """
    cdef:
        Py_ssize_t row, n_nodes = exponent.shape[0]
        int leaf
        int64_t times = 1
        double off
        double[::1] total
        bint has_counts = row_counts is not None
    check_moments(leaves, targets, n_nodes, unit)
    check_counts(row_counts, leaves.shape[0])
    if centre.shape[0] != n_nodes or reach.shape[0] != n_nodes:
        raise ValueError("arrays of nodes have one entry for each node")
    check_exponents(exponent)
    check_exponents(reach)
    sums = np.zeros(n_nodes)
    total = sums
    with nogil:
        for row in range(leaves.shape[0]):
            leaf = leaves[row]
            if has_counts:
                times = row_counts[row]
            off = ldexp(ldexp(targets[row], -exponent[leaf]) - centre[leaf], -reach[leaf])
            total[leaf] += times * rint(off * off / unit[leaf]) * unit[leaf]
    return sums


def add_up(
    const int32_t[::1] parent not None,
    int32_t[:, ::1] counts not None,
    double[::1] mean,
    double[::1] deviation,
):
    """Add what leaves have to all nodes above them, in place.

    Parameters
    ----------
    parent : int32 array of shape (n_nodes,)
        The root's parent is -1, all others' come before them.
    counts : int32 array of shape (n_nodes, n_cells)
        Rows by class or cell.
    mean, deviation : float64 arrays of shape (n_nodes,) or None
        Of the targets; NaN where there are no rows.

    Returns
    -------
    int64 array of shape (n_nodes,)
        All rows of each node.
    """
    cdef:
        Py_ssize_t n_nodes = parent.shape[0], node, cell
        bint has_moments = mean is not None
        int64_t[::1] n
    if counts.shape[0] != n_nodes or has_moments != (deviation is not None):
        raise ValueError("arrays of nodes have one entry for each node")
    if has_moments and (mean.shape[0] != n_nodes or deviation.shape[0] != n_nodes):
        raise ValueError("arrays of nodes have one entry for each node")
    check_parents(parent)
    n_rows = np.zeros(n_nodes, dtype=np.int64)
    n = n_rows
    with nogil:
        for node in range(n_nodes):
            for cell in range(counts.shape[1]):
                n[node] += counts[node, cell]
        for node in range(n_nodes - 1, 0, -1):
            if parent[node] < 0 or n[node] == 0:
                continue
            for cell in range(counts.shape[1]):
                counts[parent[node], cell] += counts[node, cell]
            if has_moments:
                join(node, parent[node], n, mean, deviation)
            n[parent[node]] += n[node]
    return n_rows


cdef inline void join(
    Py_ssize_t node, Py_ssize_t above, int64_t[::1] n, double[::1] mean, double[::1] deviation
) noexcept nogil:
    """Add a node's mean and deviation to those of the rows that the node above it has so far."""
    cdef:
        double both = <double> (n[node] + n[above]), joint, here, there, greatest
        double share = n[node] / both
    if n[above] == 0:
        mean[above], deviation[above] = mean[node], deviation[node]
        return
    joint = mean[above] * (1.0 - share) + mean[node] * share
    here, there = fabs(mean[node] - joint), fabs(mean[above] - joint)
    # Ratios, because squares could be too great or too small for numbers.
    greatest = max(max(here, there), max(deviation[node], deviation[above]))
    if greatest > 0.0:
        deviation[above] = greatest * sqrt(
            share * (square(deviation[node] / greatest) + square(here / greatest))
            + (1.0 - share) * (square(deviation[above] / greatest) + square(there / greatest)))
    mean[above] = joint


cdef inline double square(double number) noexcept nogil:
    return number * number


cdef int check_moments(
    const int32_t[::1] leaves, const double[::1] targets, Py_ssize_t n_nodes,
    const double[::1] unit
) except -1:
    """Refuse leaves, targets and units that do not belong together."""
    check_leaves(leaves, n_nodes)
    if targets.shape[0] != leaves.shape[0]:
        raise ValueError("there is a leaf and a target for each row")
    if unit.shape[0] != n_nodes or n_nodes and not np.min(unit) > 0.0:
        raise ValueError("there is a positive unit for each node")
    return 0


cdef int check_exponents(const int32_t[::1] exponents) except -1:
    """Refuse powers of two far beyond all numbers, which might have no opposite."""
    cdef Py_ssize_t i
    for i in range(exponents.shape[0]):
        if not -MAX_EXPONENT <= exponents[i] <= MAX_EXPONENT:
            raise ValueError("powers of two must be those of numbers")
    return 0
