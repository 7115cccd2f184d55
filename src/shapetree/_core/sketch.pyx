"""Rows counted in the bins of every node that they pass, which sketches are made of."""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from shapetree._core.columns cimport UINT32, Column, Columns, code_at
from shapetree._core.node_checks cimport are_below, check_counts, check_nodes, check_starts

cdef enum:
    ROWS_AT_ONCE = 16384      # that one thread counts in one go


ctypedef struct Passed:
    # What a row that passes a node needs of it.
    const Column* column       # NULL if the node has no cells
    const int32_t* cell_of_bin
    int64_t first_cell
    int parent


def count_cells(
    Columns bins not None,
    const int32_t[::1] leaves not None,
    const int32_t[::1] parent not None,
    const int32_t[::1] feature not None,
    const int64_t[::1] bin_start not None,
    const int32_t[::1] cell_of_bin not None,
    const int64_t[::1] cell_start not None,
    const int32_t[::1] labels,
    const double[::1] targets,
    Py_ssize_t n_classes,
    int n_threads=1,
    const int32_t[::1] row_counts=None,
):
    """Count rows in the cells of every node that they pass.

    Row by row and from the leaf up. A node's cells are those of its feature, in which neighbouring
    bins may be joined:

        row 7:  leaf 5 -> node 2 -> node 0           feature[2] = 4, bins[4][7] = 11
        counts of node 2:  .. | .. | +1 | .. | missing
                                     ^ cell_start[2] + cell_of_bin[bin_start[4] + 11]

    Parameters
    ----------
    bins : Columns
        Columns that no node has may be None.
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    parent, feature : int32 arrays of shape (n_nodes,)
        The root's parent is -1, all others' come before them. Nodes whose feature is -1 have no
        cells.
    bin_start : int64 array of shape (n_features + 1,)
    cell_of_bin : int32 array
        Cell of each bin of a feature from its start on, the missing bin last.
    cell_start : int64 array of shape (n_nodes + 1,)
        A node has the cells from its start on.
    labels : int32 array or None
        Classes of the rows; None for one class alone.
    targets : float64 array or None
        Numbers of the rows to sum, on a grid on which sums are exact.
    n_classes, n_threads : int
    row_counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for 1.

    Returns
    -------
    counts : int32 array of shape (n_cells, n_classes)
    totals : float64 array of shape (n_cells,)
        Sums of the targets; 0 without them.
    """
    cdef:
        Py_ssize_t n_rows = bins.n_rows, n_cells, block
        Py_ssize_t n_blocks = (n_rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
        int n_nodes = <int> parent.shape[0], node, part
        int32_t[:, :, ::1] counts
        double[:, ::1] totals
        Passed* nodes
    check_nodes(bins, leaves, parent, feature)
    check_counts(row_counts, n_rows)
    check_starts(bin_start, bins.n_columns, cell_of_bin.shape[0])
    check_starts(cell_start, n_nodes, cell_start[n_nodes] if cell_start.shape[0] > n_nodes else 0)
    if n_classes < 1 or n_threads < 1:
        raise ValueError("there is at least one class, and one thread")
    if labels is not None and (
            labels.shape[0] != n_rows or not are_below(labels, n_classes)):
        raise ValueError("labels are classes, one for each row")
    if targets is not None and targets.shape[0] != n_rows:
        raise ValueError("there is a target for each row")
    check_cells(bins, feature, bin_start, cell_of_bin, cell_start)
    n_cells = cell_start[n_nodes]
    # Every thread counts for itself.
    counted = np.zeros((n_threads, n_cells, n_classes), dtype=np.int32)
    summed = np.zeros((n_threads, n_cells))
    counts, totals = counted, summed
    nodes = <Passed*> malloc((n_nodes + 1) * sizeof(Passed))
    if nodes == NULL:
        raise MemoryError("no memory to count rows")
    for node in range(n_nodes):
        nodes[node].parent = parent[node]
        nodes[node].column = NULL
        nodes[node].first_cell = cell_start[node]
        if feature[node] >= 0:
            nodes[node].column = &bins.column[feature[node]]
            nodes[node].cell_of_bin = &cell_of_bin[bin_start[feature[node]]]
    if n_cells > 0:
        for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            part = threadid()
            count_block(
                nodes, leaves, labels, targets, row_counts, block * ROWS_AT_ONCE,
                min((block + 1) * ROWS_AT_ONCE, n_rows), n_classes, &counts[part, 0, 0],
                &totals[part, 0])
    free(nodes)
    if n_threads == 1:
        return counted[0], summed[0]
    return counted.sum(axis=0, dtype=np.int32), summed.sum(axis=0)


cdef void count_block(
    const Passed* nodes, const int32_t[::1] leaves, const int32_t[::1] labels,
    const double[::1] targets, const int32_t[::1] row_counts, Py_ssize_t first, Py_ssize_t last,
    Py_ssize_t n_classes, int32_t* counts, double* totals,
) noexcept nogil:
    """Count some rows in the cells of every node that they pass."""
    cdef:
        Py_ssize_t row, cell
        int node
        int32_t times = 1, label = 0
        double target = 0.0
    for row in range(first, last):
        if row_counts is not None:
            times = row_counts[row]
        if labels is not None:
            label = labels[row]
        if targets is not None:
            target = times * targets[row]
        node = leaves[row]
        while node >= 0:
            if nodes[node].column != NULL:
                cell = nodes[node].first_cell + nodes[node].cell_of_bin[
                    code_at(nodes[node].column, row)]
                counts[cell * n_classes + label] += times
                totals[cell] += target
            node = nodes[node].parent


cdef int check_cells(
    Columns bins, const int32_t[::1] feature, const int64_t[::1] bin_start,
    const int32_t[::1] cell_of_bin, const int64_t[::1] cell_start
) except -1:
    """Refuse cells that a loop without checks would leave."""
    cdef:
        int node, f
        int64_t i, n_cells
    for node in range(<int> feature.shape[0]):
        f = feature[node]
        if f < 0:
            continue
        if bins.column[f].kind > UINT32:
            raise ValueError(f"column {f} does not hold bins")
        if bin_start[f + 1] - bin_start[f] <= bins.column[f].largest:
            raise ValueError(f"column {f} has more bins than it was said to have")
        n_cells = cell_start[node + 1] - cell_start[node]
        for i in range(bin_start[f], bin_start[f + 1]):
            if not 0 <= cell_of_bin[i] < n_cells:
                raise ValueError("bins lie in the cells of their nodes")
    return 0
