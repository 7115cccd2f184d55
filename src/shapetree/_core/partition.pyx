"""Partition: note each row's branch, then order a node's rows by it."""

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from shapetree._core.columns cimport UINT32, Column, Columns, code_at


cdef bint look_up_branches(
    const Column* column, const uint8_t* branch_of_bin, Py_ssize_t n_bins, const int32_t* rows,
    Py_ssize_t n, Py_ssize_t n_rows, uint8_t* branch_of_row,
) noexcept nogil:
    """Note each row's branch; whether every row and bin exists."""
    cdef:
        Py_ssize_t i
        uint32_t code
    for i in range(n):
        if not 0 <= rows[i] < n_rows:
            return False
        code = code_at(column, rows[i])
        if code >= n_bins:
            return False
        branch_of_row[i] = branch_of_bin[code]
    return True


def branches_by_bin(
    Columns bins not None,                         # IN: columns of bins
    int feature,                                   # IN
    const uint8_t[::1] branch_of_bin not None,     # IN: branch of each of the feature's bins
    const int32_t[::1] rows not None,              # IN: the node's rows
    int n_threads,                                 # IN
):
    """Branch of each row under a shape function of one feature."""
    cdef:
        Py_ssize_t n = rows.shape[0], part_size, first, n_here
        int part
        uint8_t[::1] exists
        uint8_t[::1] branch
        const Column* column
    if not 0 <= feature < bins.n_columns or bins.column[feature].kind > UINT32:
        raise ValueError(f"{feature} is not a column of bins")
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    branch_of_row = np.empty(n, dtype=np.uint8)
    if n == 0:
        return branch_of_row
    if branch_of_bin.shape[0] == 0:
        raise IndexError("a row or a bin is out of range")
    branch = branch_of_row
    column = &bins.column[feature]
    part_size = (n + n_threads - 1) // n_threads
    found = np.ones(n_threads, dtype=np.uint8)
    exists = found
    for part in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
        first = min(part * part_size, n)
        n_here = min(part_size, n - first)
        exists[part] = n_here == 0 or look_up_branches(
            column, &branch_of_bin[0], branch_of_bin.shape[0], &rows[first], n_here, bins.n_rows,
            &branch[first])
    if not found.all():
        raise IndexError("a row or a bin is out of range")
    return branch_of_row


cdef bint count_branches(
    const uint8_t* branch_of_row, Py_ssize_t n, int n_branches, int64_t* count
) noexcept nogil:
    """Count the rows of each branch; whether every branch exists."""
    cdef Py_ssize_t i
    for i in range(n):
        if branch_of_row[i] >= n_branches:
            return False
        count[branch_of_row[i]] += 1
    return True


cdef void send_to_branches(
    const uint8_t* branch_of_row, const int32_t* rows, Py_ssize_t n, int64_t* position,
    int32_t* target,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        target[position[branch_of_row[i]]] = rows[i]
        position[branch_of_row[i]] += 1


def partition_rows(
    const uint8_t[::1] branch_of_row not None,     # IN: branch of each of the node's rows
    int32_t[::1] rows not None,                    # INOUT: the node's rows, put in order of branch
    int32_t[::1] scratch not None,                 # at least as long
    int n_branches,                                # IN
    int n_threads,                                 # IN
):
    """Sort the rows by branch, keeping their order within each; returns rows per branch.

        rows before:  a b a c b a      rows after:  a a a | b b | c

    1. Each thread counts the branches in its part of the rows.
    2. So every part knows where its rows of each branch will start.
    3. Each thread sends its rows there.
    """
    cdef:
        Py_ssize_t n = rows.shape[0], part_size, first, n_here
        int64_t[:, ::1] position      # (parts, branches)
        int part
        uint8_t[::1] exists
    if scratch.shape[0] < n or branch_of_row.shape[0] != n:
        raise ValueError("every row needs a branch, and scratch as much room as there are rows")
    if n_threads < 1 or not 1 <= n_branches <= 255:
        raise ValueError("n_threads must be at least 1, n_branches between 1 and 255")
    counts = np.zeros((n_threads, n_branches), dtype=np.int64)
    if n == 0:
        return counts.sum(axis=0)
    part_size = (n + n_threads - 1) // n_threads
    position = counts
    found = np.ones(n_threads, dtype=np.uint8)
    exists = found
    for part in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
        first = min(part * part_size, n)
        n_here = min(part_size, n - first)
        exists[part] = n_here == 0 or count_branches(
            &branch_of_row[first], n_here, n_branches, &position[part, 0])
    if not found.all():
        raise IndexError("a branch is out of range")
    totals = counts.sum(axis=0)
    starts = np.concatenate([[0], np.cumsum(counts.T)[:-1]]).reshape(n_branches, n_threads).T
    position = np.ascontiguousarray(starts)
    for part in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
        first = min(part * part_size, n)
        n_here = min(part_size, n - first)
        if n_here > 0:
            send_to_branches(
                &branch_of_row[first], &rows[first], n_here, &position[part, 0], &scratch[0])
    memcpy(&rows[0], &scratch[0], n * sizeof(int32_t))
    return totals
