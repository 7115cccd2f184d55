"""Sketch: count rows in the cells of their nodes' axes, by class or with the sums of a target."""

import numpy as np

from libc.math cimport isnan
from libc.stdint cimport int32_t, int64_t

from shapetree._core.columns cimport FLOAT32, FLOAT64, INT32, Column, Columns, number_at


cdef inline Py_ssize_t cell_of(
    const double* edges, Py_ssize_t n_edges, double value
) noexcept nogil:
    """Number of edges below a value, found without a jump that could be mispredicted."""
    cdef Py_ssize_t low = 0, half
    if n_edges == 0:
        return 0
    while n_edges > 1:
        half = n_edges // 2
        low += (edges[low + half - 1] < value) * half
        n_edges -= half
    return low + (edges[low] < value)


cdef inline Py_ssize_t cell_at(
    const Column* column, Py_ssize_t row, const double* edges, Py_ssize_t n_edges,
    Py_ssize_t n_cells
) noexcept nogil:
    """Cell of a row's number or category; the one after the last if it is missing."""
    cdef:
        double value
        int32_t code
    if column.kind == INT32:
        code = (<const int32_t*> (column.data + row * column.stride))[0]
        return code if 0 <= code < n_cells else n_cells
    value = number_at(column, row)
    return n_cells if isnan(value) else cell_of(edges, n_edges, value)


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
        Numbers of the rows.
    n_classes : int
        1 for targets.

    Returns
    -------
    counts : int32 array of shape (n_cells, n_classes)
    totals : float64 array of shape (n_cells,)
        Sums of the targets; 0 for classes.
    """
    cdef:
        Py_ssize_t n_rows = columns.n_rows
        int n_nodes = <int> parent.shape[0]
        bint has_labels = labels is not None
    if has_labels == (targets is not None):
        raise ValueError("give labels or targets")
    if leaves.shape[0] != n_rows or n_rows != (
            labels.shape[0] if has_labels else targets.shape[0]):
        raise ValueError("there is a leaf and a label or target for each row")
    check_cells(columns, parent, feature, edge_start, edges.shape[0], cell_start)
    if n_classes < 1:
        raise ValueError("there is at least one class")
    if n_rows and not 0 <= np.min(leaves) <= np.max(leaves) < n_nodes:
        raise ValueError("leaves are nodes")
    if has_labels and n_rows and not 0 <= np.min(labels) <= np.max(labels) < n_classes:
        raise ValueError("labels are classes")
    cdef:
        Py_ssize_t n_cells = cell_start[n_nodes]
        int32_t[:, ::1] counts = np.zeros((n_cells, n_classes), dtype=np.int32)
        double[::1] totals = np.zeros(n_cells)
        const double* first_edge = &edges[0] if edges.shape[0] else NULL
        Py_ssize_t row, cell
        int node
    with nogil:
        for row in range(n_rows):
            node = leaves[row]
            while node >= 0:
                if cell_start[node + 1] > cell_start[node]:
                    cell = cell_start[node] + cell_at(
                        &columns.column[feature[node]], row, first_edge + edge_start[node],
                        edge_start[node + 1] - edge_start[node],
                        cell_start[node + 1] - cell_start[node] - 1)
                    if has_labels:
                        counts[cell, labels[row]] += 1
                    else:
                        counts[cell, 0] += 1
                        totals[cell] += targets[row]
                node = parent[node]
    return np.asarray(counts), np.asarray(totals)


cdef int check_cells(
    Columns columns, const int32_t[::1] parent, const int32_t[::1] feature,
    const int64_t[::1] edge_start, Py_ssize_t n_edges, const int64_t[::1] cell_start
) except -1:
    """Refuse cells that a loop without checks would leave."""
    cdef:
        int n_nodes = <int> parent.shape[0], node, kind
        int64_t its_edges, its_cells
    if not feature.shape[0] == n_nodes == edge_start.shape[0] - 1 == cell_start.shape[0] - 1:
        raise ValueError("arrays of nodes have one entry for each node")
    if edge_start[0] != 0 or cell_start[0] != 0 or edge_start[n_nodes] != n_edges:
        raise ValueError("edges and cells start where those before end")
    for node in range(n_nodes):
        its_edges = edge_start[node + 1] - edge_start[node]
        its_cells = cell_start[node + 1] - cell_start[node]
        if not -1 <= parent[node] < node:
            raise ValueError("parents come before their children")
        if edge_start[node + 1] < edge_start[node] or cell_start[node + 1] < cell_start[node]:
            raise ValueError("edges and cells start where those before end")
        if its_cells == 0:
            continue
        if not 0 <= feature[node] < columns.n_columns:
            raise ValueError(f"there is no column {feature[node]}")
        kind = columns.column[feature[node]].kind
        if kind != INT32 and kind != FLOAT32 and kind != FLOAT64:
            raise ValueError(f"column {feature[node]} holds neither numbers nor categories")
        if kind != INT32 and its_cells != its_edges + 2:
            raise ValueError("cells are one more than the edges between them, and one")
    return 0
