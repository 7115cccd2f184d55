"""Partition: order a node's rows by branch."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t

from shapetree._core.columns cimport UINT32, Columns, code_at


def partition_rows(
    Columns bins not None,                         # IN: columns of bins
    int feature,                          # IN
    const uint8_t[::1] branch_of_bin not None,     # IN: branch of each of the feature's bins
    int32_t[::1] rows not None,                    # INOUT: the node's rows, put in order of branch
    int32_t[::1] scratch not None,                 # at least as long
    int n_branches,                       # IN
):
    """Sort the rows by branch, keeping their order within each; returns rows per branch.

        rows before:  a b a c b a      rows after:  a a a | b b | c
    """
    cdef:
        Py_ssize_t i, n = rows.shape[0]
        Py_ssize_t n_bins = branch_of_bin.shape[0]
        int64_t[::1] position
        uint32_t code
        int32_t row
        int branch
        bint inside = True
    if not 0 <= feature < bins.n_columns or bins.column[feature].kind > UINT32:
        raise ValueError(f"{feature} is not a column of bins")
    if scratch.shape[0] < n:
        raise ValueError("scratch is shorter than rows")
    counts = np.zeros(n_branches, dtype=np.int64)
    position = np.zeros(n_branches + 1, dtype=np.int64)
    with nogil:
        for i in range(n):
            row = rows[i]
            if not 0 <= row < bins.n_rows:
                inside = False
                break
            code = code_at(&bins.column[feature], row)
            if code >= n_bins or branch_of_bin[code] >= n_branches:
                inside = False
                break
            position[branch_of_bin[code] + 1] += 1
    if not inside:
        raise IndexError("a row, a bin or a branch is out of range")
    counts[:] = position[1:]
    with nogil:
        for branch in range(n_branches):
            position[branch + 1] += position[branch]
        for i in range(n):
            branch = branch_of_bin[code_at(&bins.column[feature], rows[i])]
            scratch[position[branch]] = rows[i]
            position[branch] += 1
        rows[:] = scratch[:n]
    return counts
