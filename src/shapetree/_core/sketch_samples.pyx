"""Samples of the rows of all nodes, chosen by the hashes of the rows' numbers."""

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t

from shapetree._core.columns cimport FLOAT32, FLOAT64, INT32, Column, Columns, number_at
from shapetree._core.node_checks cimport check_counts, check_nodes
from shapetree._core.sampling cimport hash_of


cdef Py_ssize_t choose_rows(
    const int32_t[::1] leaves, const int32_t[::1] parent, const uint64_t[::1] limit,
    int64_t first_row, Py_ssize_t first, Py_ssize_t last, int32_t* chosen
) noexcept nogil:
    """Choose those of some rows that are looked at for a node; returns how many there are."""
    cdef:
        Py_ssize_t row, n = 0
        int up
    for row in range(first, last):
        up = parent[leaves[row]]
        if up >= 0:
            chosen[n] = <int32_t> row
            n += hash_of(<uint64_t> (first_row + row)) <= limit[up]
    return n


cdef void put_values(
    Columns columns, const int32_t[::1] leaves, const int32_t[::1] parent,
    const int32_t[::1] feature, const uint64_t[::1] limit, int64_t first_row,
    const int32_t* chosen, Py_ssize_t first, Py_ssize_t last, int64_t* place, double* values,
) noexcept nogil:
    """Put the values of some chosen rows to the next places of their nodes; NULL: count them."""
    cdef:
        Py_ssize_t i, row
        int up
        uint64_t its_hash
        double value
    for i in range(first, last):
        row = chosen[i]
        its_hash = hash_of(<uint64_t> (first_row + row))
        up = parent[leaves[row]]
        while up >= 0 and its_hash <= limit[up]:
            if feature[up] >= 0:
                value = number_at(&columns.column[feature[up]], row)
                if value == value:
                    if values != NULL:
                        values[place[up]] = value
                    place[up] += 1
            up = parent[up]


cdef object share_places(counts):
    """From what every thread has counted of each node to where it puts it, in place.

    Returns where all that belongs to a node starts, and where the last ends.
    """
    n_nodes = counts.shape[1]
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    counts[:] = starts[:n_nodes] + np.cumsum(counts, axis=0) - counts
    return starts


def sample_values(
    Columns columns not None,
    const int32_t[::1] leaves not None,
    const int32_t[::1] parent not None,
    const int32_t[::1] feature not None,
    const uint64_t[::1] limit not None,
    int64_t first_row=0,
    int n_threads=1,
):
    """Numbers of a sample of each node's rows.

    Parameters
    ----------
    columns : Columns
        Numbers.
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    parent, feature : int32 arrays of shape (n_nodes,)
        The root's parent is -1, all others' come before them. Of nodes whose feature is -1,
        nothing is wanted.
    limit : uint64 array of shape (n_nodes,)
        Rows whose numbers have hashes up to it are looked at; no node's is above those of its
        children.
    first_row : int
        Number of the first row in the whole of the data.
    n_threads : int

    Returns
    -------
    start : int64 array of shape (n_nodes + 1,)
        Where the numbers of each node start, and where the last end.
    values : float64 array
        All that are not missing, in the order of the rows.
    """
    cdef:
        Py_ssize_t n_rows = columns.n_rows, n_nodes = parent.shape[0], part
        int32_t[::1] chosen
        int64_t[::1] first, last, start
        int64_t[:, ::1] place
        int up
        double[::1] values
    check_nodes(columns, leaves, parent, feature)
    if limit.shape[0] != n_nodes:
        raise ValueError("arrays of nodes have one entry for each node")
    if not 0 <= first_row <= 2**62:
        raise ValueError("rows are out of range")
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    for up in feature:
        if up >= 0 and columns.column[up].kind != FLOAT32 and columns.column[up].kind != FLOAT64:
            raise ValueError(f"column {up} does not hold numbers")
    # Every thread looks through some rows for those that are looked at at all, and counts them.
    first = np.arange(n_threads + 1, dtype=np.int64) * n_rows // n_threads
    last = np.zeros(n_threads, dtype=np.int64)
    chosen = np.empty(n_rows + 1, dtype=np.int32)
    places = np.zeros((n_threads, n_nodes + 8), dtype=np.int64)
    place = places
    with nogil:
        for part in prange(n_threads, num_threads=n_threads, schedule="static"):
            last[part] = first[part] + choose_rows(
                leaves, parent, limit, first_row, first[part], first[part + 1],
                &chosen[first[part]])
            put_values(
                columns, leaves, parent, feature, limit, first_row, &chosen[0], first[part],
                last[part], &place[part, 0], NULL)
    starts = share_places(places[:, :n_nodes])
    start = starts
    found = np.empty(start[n_nodes] + 1)
    values = found
    with nogil:
        for part in prange(n_threads, num_threads=n_threads, schedule="static"):
            put_values(
                columns, leaves, parent, feature, limit, first_row, &chosen[0], first[part],
                last[part], &place[part, 0], &values[0])
    return starts, found[:start[n_nodes]]


cdef inline bint is_known(const Column* column, Py_ssize_t row) noexcept nogil:
    """Whether a row has a number, or the code of a category."""
    cdef double value
    if column.kind == INT32:
        return (<const int32_t*> (column.data + row * column.stride))[0] != -1
    value = number_at(column, row)
    return value == value


cdef Py_ssize_t choose_points(
    Columns columns, const int32_t[::1] leaves, const int32_t[::1] parent,
    const int32_t[:, ::1] pairs, const uint64_t[::1] limit, int64_t first_row, Py_ssize_t first,
    Py_ssize_t last, const int32_t[::1] row_counts, int32_t* chosen, int64_t* count,
    int64_t* missing,
) noexcept nogil:
    """Choose rows for the nodes they pass, and count these by node; returns how many there are."""
    cdef:
        Py_ssize_t row, n = 0
        int up
        uint64_t its_hash
        bint is_chosen
    for row in range(first, last):
        its_hash = hash_of(<uint64_t> (first_row + row))
        is_chosen = False
        up = parent[leaves[row]]
        while up >= 0:
            if pairs[up, 0] >= 0:
                if not (is_known(&columns.column[pairs[up, 0]], row)
                        and is_known(&columns.column[pairs[up, 1]], row)):
                    missing[up] += row_counts[row] if row_counts is not None else 1
                elif its_hash <= limit[up]:
                    count[up] += 1
                    is_chosen = True
            up = parent[up]
        chosen[n] = <int32_t> row
        n += is_chosen
    return n


cdef void put_points(
    Columns columns, const int32_t[::1] leaves, const int32_t[::1] parent,
    const int32_t[:, ::1] pairs, const uint64_t[::1] limit, int64_t first_row,
    const int32_t* chosen, Py_ssize_t n, int64_t* place, int32_t* rows,
) noexcept nogil:
    """Put chosen rows to the next places of their nodes."""
    cdef:
        Py_ssize_t i
        int32_t row
        int up
        uint64_t its_hash
    for i in range(n):
        row = chosen[i]
        its_hash = hash_of(<uint64_t> (first_row + row))
        up = parent[leaves[row]]
        while up >= 0:
            if pairs[up, 0] >= 0 and its_hash <= limit[up] and (
                    is_known(&columns.column[pairs[up, 0]], row)
                    and is_known(&columns.column[pairs[up, 1]], row)):
                rows[place[up]] = row
                place[up] += 1
            up = parent[up]


def sample_points(
    Columns columns not None,
    const int32_t[::1] leaves not None,
    const int32_t[::1] parent not None,
    const int32_t[:, ::1] pairs not None,
    const uint64_t[::1] limit not None,
    int64_t first_row=0,
    int n_threads=1,
    const int32_t[::1] row_counts=None,
):
    """A sample of each node's rows that have both features of the node's pair.

    Parameters
    ----------
    columns : Columns
        Numbers, or codes of categories.
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    parent : int32 array of shape (n_nodes,)
        The root's parent is -1, all others' come before them.
    pairs : int32 array of shape (n_nodes, 2)
        The node's features; of nodes where the first is negative, nothing is wanted.
    limit : uint64 array of shape (n_nodes,)
        Rows whose numbers have hashes up to it are chosen.
    first_row : int
        Number of the first row in the whole of the data.
    n_threads : int
    row_counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for 1.

    Returns
    -------
    start : int64 array of shape (n_nodes + 1,)
        Where the rows of each node start, and where the last end.
    rows : int32 array
        Places of rows in the columns, ascending within a node.
    n_missing : int64 array of shape (n_nodes,)
        How many of the node's rows lack either feature.
    """
    cdef:
        Py_ssize_t n_rows = columns.n_rows, n_nodes = parent.shape[0], part, node
        int side
        int32_t[::1] chosen, rows
        int64_t[::1] first, n_chosen, start
        int64_t[:, ::1] place, missing
    if pairs.shape[0] != n_nodes or pairs.shape[1] != 2 or limit.shape[0] != n_nodes:
        raise ValueError("arrays of nodes have one entry for each node")
    for side in range(2):
        check_nodes(columns, leaves, parent, np.ascontiguousarray(pairs[:, side]))
    for node in range(n_nodes):
        for side in range(2 if pairs[node, 0] >= 0 else 0):
            if pairs[node, side] < 0 or columns.column[pairs[node, side]].kind not in (
                    INT32, FLOAT32, FLOAT64):
                raise ValueError(f"column {pairs[node, side]} holds neither numbers nor codes")
    if not 0 <= first_row <= 2**62 or n_threads < 1:
        raise ValueError("rows or n_threads are out of range")
    check_counts(row_counts, n_rows)
    # Every thread chooses from a part of the rows.
    first = np.arange(n_threads + 1, dtype=np.int64) * n_rows // n_threads
    n_chosen = np.zeros(n_threads, dtype=np.int64)
    chosen = np.empty(n_rows + 1, dtype=np.int32)
    places = np.zeros((n_threads, n_nodes + 8), dtype=np.int64)
    lacking = np.zeros((n_threads, n_nodes + 8), dtype=np.int64)
    place, missing = places, lacking
    for part in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
        n_chosen[part] = choose_points(
            columns, leaves, parent, pairs, limit, first_row, first[part], first[part + 1],
            row_counts, &chosen[first[part]], &place[part, 0], &missing[part, 0])
    starts = share_places(places[:, :n_nodes])
    start = starts
    found = np.empty(start[n_nodes] + 1, dtype=np.int32)
    rows = found
    for part in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
        put_points(
            columns, leaves, parent, pairs, limit, first_row, &chosen[first[part]],
            n_chosen[part], &place[part, 0], &rows[0])
    return starts, found[:start[n_nodes]], lacking.sum(axis=0)[:n_nodes]
