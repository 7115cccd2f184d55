"""Rows counted in the cells of every node that they pass."""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.stdlib cimport free, malloc

from shapetree._core.columns cimport (
    FLOAT32, FLOAT64, INT32, NOT_GIVEN, Column, Columns, number_at,
)
from shapetree._core.lookup cimport Lookup, bin_of, lay_out_cells
from shapetree._core.node_checks cimport are_below, check_counts, check_nodes, check_starts

cdef enum:
    ROWS_AT_ONCE = 16384      # that one thread counts in one go
    LOOKUP_CELLS = 64         # of the table that a search starts with


ctypedef struct Passed:
    # What a row that passes a node needs of it.
    Column column              # the node's; NOT_GIVEN if it has no cells
    int parent
    int64_t first_cell
    int64_t n_cells            # without the one for missing values
    Lookup lookup


cdef inline Py_ssize_t cell_of_row(const Passed* node, Py_ssize_t row) noexcept nogil:
    """Cell of a row's number or category; the one after the last if it is missing."""
    cdef:
        const char* at = node.column.data + row * node.column.stride
        int32_t code
    if node.column.kind == FLOAT64:
        return bin_of(&node.lookup, (<const double*> at)[0], node.lookup.width)
    if node.column.kind == FLOAT32:
        return bin_of(&node.lookup, (<const float*> at)[0], node.lookup.width)
    code = (<const int32_t*> at)[0]
    return code if 0 <= code < node.n_cells else node.n_cells


def count_cells(
    Columns columns not None,
    const int32_t[::1] leaves not None,
    const int32_t[::1] parent not None,
    const int32_t[::1] feature not None,
    const int64_t[::1] edge_start not None,
    const double[::1] edges not None,
    const int64_t[::1] cell_start not None,
    const int32_t[::1] labels,
    const double[::1] targets,
    Py_ssize_t n_classes,
    int n_threads=1,
    const int32_t[::1] row_counts=None,
):
    """Count rows in the cells of every node that they pass.

    Row by row and from the leaf up, because all values of a row lie close together in memory.

    Parameters
    ----------
    columns : Columns
        Numbers, or codes of categories.
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    parent, feature : int32 arrays of shape (n_nodes,)
        The root's parent is -1, all others' come before them.
    edge_start : int64 array of shape (n_nodes + 1,)
    edges : float64 array
        Inner edges of a node's cells on an ordered feature, ascending, from its start on.
    cell_start : int64 array of shape (n_nodes + 1,)
        A node has the cells from its start on, the last of which is for missing values; one more
        than inner edges and that one, or one for each category and that one. Nodes without cells
        are passed over.
    labels : int32 array or None
        Classes of the rows; None if there are targets.
    targets : float64 array or None
        Numbers of the rows; for several threads, on a grid on which their sums are exact.
    n_classes : int
        1 for targets.
    n_threads : int
    row_counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for 1.

    Returns
    -------
    counts : int32 array of shape (n_cells, n_classes)
    totals : float64 array of shape (n_cells,)
        Sums of the targets; 0 for classes.
    least, greatest : float64 arrays of shape (n_nodes,)
        Of the numbers of each node's rows, infinite ones as the greatest finite ones; an infinite
        range where there are none.
    """
    cdef:
        Py_ssize_t n_rows = columns.n_rows, n_edges
        int n_nodes = <int> parent.shape[0]
        bint has_labels = labels is not None
    if has_labels == (targets is not None):
        raise ValueError("give labels or targets")
    if n_rows != (labels.shape[0] if has_labels else targets.shape[0]):
        raise ValueError("there is a label or target for each row")
    check_nodes(columns, leaves, parent, feature)
    check_counts(row_counts, n_rows)
    check_starts(edge_start, n_nodes, edges.shape[0])
    check_starts(cell_start, n_nodes, cell_start[n_nodes] if cell_start.shape[0] > n_nodes else 0)
    check_cells(columns, feature, edge_start, cell_start)
    if n_classes < 1 or n_threads < 1:
        raise ValueError("there is at least one class, and one thread")
    if has_labels and not are_below(labels, n_classes):
        raise ValueError("labels are classes")
    cdef:
        Py_ssize_t n_cells = cell_start[n_nodes], part, n_parts = n_threads, block
        Py_ssize_t n_blocks = (n_rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
        int32_t[:, :, ::1] counts
        double[:, ::1] totals, least, greatest
        double[::1] uppers = np.empty(3 * edges.shape[0] + 4 * n_nodes)
        uint16_t[::1] before = np.zeros(LOOKUP_CELLS * n_nodes, dtype=np.uint16)
        Passed* nodes
        Passed* its
        int node
    # Every thread counts for itself.
    counted = np.zeros((n_parts, n_cells, n_classes), dtype=np.int32)
    summed = np.zeros((n_parts, n_cells))
    lows, highs = np.full((n_parts, n_nodes + 1), np.inf), np.full((n_parts, n_nodes + 1), -np.inf)
    counts, totals, least, greatest = counted, summed, lows, highs
    nodes = <Passed*> malloc((n_nodes + 1) * sizeof(Passed))
    if nodes == NULL:
        raise MemoryError("no memory to count rows")
    with nogil:
        for node in range(n_nodes):
            n_edges = edge_start[node + 1] - edge_start[node]
            its = &nodes[node]
            its.parent = parent[node]
            its.first_cell = cell_start[node]
            its.n_cells = cell_start[node + 1] - cell_start[node] - 1
            its.column.kind = NOT_GIVEN
            if its.n_cells >= 0:
                its.column = columns.column[feature[node]]
            its.lookup.n_cells = LOOKUP_CELLS
            its.lookup.upper = &uppers[3 * edge_start[node] + 4 * node]
            its.lookup.before = &before[node * LOOKUP_CELLS]
            lay_out_cells(
                &its.lookup, &edges[0] + edge_start[node] if n_edges else NULL, <int> n_edges)
        if n_cells > 0:
            for block in prange(n_blocks, num_threads=n_threads, schedule="dynamic"):
                part = threadid()
                count_block(
                    nodes, leaves, labels, targets, row_counts,
                    block * ROWS_AT_ONCE, min((block + 1) * ROWS_AT_ONCE, n_rows), n_classes,
                    &counts[part, 0, 0], &totals[part, 0], &least[part, 0], &greatest[part, 0])
    free(nodes)
    return (
        counted.sum(axis=0, dtype=np.int32), summed.sum(axis=0),
        lows.min(axis=0)[:n_nodes], highs.max(axis=0)[:n_nodes])


cdef void count_block(
    const Passed* nodes, const int32_t[::1] leaves, const int32_t[::1] labels,
    const double[::1] targets, const int32_t[::1] row_counts, Py_ssize_t first, Py_ssize_t last,
    Py_ssize_t n_classes, int32_t* counts, double* totals, double* least, double* greatest,
) noexcept nogil:
    """Count some rows in the cells of every node that they pass."""
    cdef:
        Py_ssize_t row, cell
        int node
        double value
        int32_t times = 1
        bint has_labels = labels is not None, has_counts = row_counts is not None
    for row in range(first, last):
        node = leaves[row]
        if has_counts:
            times = row_counts[row]
        while node >= 0:
            if nodes[node].column.kind != NOT_GIVEN:
                cell = cell_of_row(&nodes[node], row)
                if nodes[node].column.kind != INT32 and cell < nodes[node].n_cells:
                    value = number_at(&nodes[node].column, row)
                    if value < least[node]:
                        least[node] = value
                    if value > greatest[node]:
                        greatest[node] = value
                cell += nodes[node].first_cell
                if has_labels:
                    counts[cell * n_classes + labels[row]] += times
                else:
                    counts[cell] += times
                    totals[cell] += times * targets[row]
            node = nodes[node].parent


cdef int check_cells(
    Columns columns, const int32_t[::1] feature, const int64_t[::1] edge_start,
    const int64_t[::1] cell_start
) except -1:
    """Refuse cells that a loop without checks would leave."""
    cdef:
        int node, kind
        int64_t its_edges, its_cells
    for node in range(<int> feature.shape[0]):
        its_edges = edge_start[node + 1] - edge_start[node]
        its_cells = cell_start[node + 1] - cell_start[node]
        if its_cells == 0:
            continue
        kind = columns.column[feature[node]].kind if feature[node] >= 0 else NOT_GIVEN
        if kind != INT32 and kind != FLOAT32 and kind != FLOAT64:
            raise ValueError(f"column {feature[node]} holds neither numbers nor categories")
        if kind != INT32 and its_cells != its_edges + 2:
            raise ValueError("cells are one more than the edges between them, and one")
    return 0
