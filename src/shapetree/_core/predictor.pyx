"""Predictor: send rows through a fitted tree."""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport isnan
from libc.stdint cimport int32_t, int64_t

from shapetree._core.columns cimport FLOAT64, INT32, NOT_GIVEN, Column, Columns


cdef inline int piece_of_number(const double* upper, int n_pieces, double value) noexcept nogil:
    """First piece whose upper bound is not below the value; the last one has none."""
    cdef int low = 0, high = n_pieces - 1, middle
    # Most shape functions have few pieces.
    if n_pieces <= 8:
        while low < high and value > upper[low]:
            low += 1
        return low
    while low < high:
        middle = (low + high) // 2
        if value > upper[middle]:
            low = middle + 1
        else:
            high = middle
    return low


def find_leaves(
    Columns columns not None,                       # IN: the table, or the columns that are used
    const int32_t[::1] feature not None,            # IN: (n_nodes,) -1 for leaves
    const int32_t[::1] first_child not None,        # IN: (n_nodes,)
    const int32_t[::1] missing_branch not None,     # IN: (n_nodes,)
    const int64_t[::1] piece_start not None,        # IN: (n_nodes + 1,)
    const double[::1] piece_upper not None,         # IN: (n_pieces,)
    const int32_t[::1] piece_branch not None,       # IN: (n_pieces,)
    int n_threads,
):
    """Leaf of each row.

    The arrays must be those of a valid tree (`TreeArrays` checks them): children come after their
    parents, branches lead to children, and categorical nodes have a piece for every category.
    """
    cdef:
        Py_ssize_t row
        int node, piece, n_pieces
        int32_t[::1] leaf
        double number
        const Column* column
        const char* at
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    used = np.unique(feature)
    for node in used[used >= 0]:
        if node >= columns.n_columns or columns.column[node].kind < INT32 or (
                columns.column[node].kind == NOT_GIVEN):
            raise ValueError(f"the tree needs column {node}, which was not given")
    leaves = np.zeros(columns.n_rows, dtype=np.int32)
    leaf = leaves
    for row in prange(columns.n_rows, nogil=True, num_threads=n_threads, schedule="static"):
        node = 0
        while feature[node] >= 0:
            column = &columns.column[feature[node]]
            at = column.data + row * column.stride
            n_pieces = <int> (piece_start[node + 1] - piece_start[node])
            if column.kind == INT32:
                piece = (<const int32_t*> at)[0]
                if piece >= n_pieces:
                    piece = -1
            else:
                number = (<const double*> at)[0] if column.kind == FLOAT64 else (
                    <const float*> at)[0]
                if isnan(number):
                    piece = -1
                else:
                    piece = piece_of_number(&piece_upper[piece_start[node]], n_pieces, number)
            node = first_child[node] + (
                missing_branch[node] if piece < 0 else piece_branch[piece_start[node] + piece])
        leaf[row] = node
    return leaves
