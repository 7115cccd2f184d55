"""Shape functions of pairs over the columns of a table, ready to send rows to branches.

A cut sends a row up if `a * u + b * v > threshold`, where u and v are the two features' values in
the user's units, or the positions of their categories.
"""

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint8_t

from shapetree._core.columns cimport FLOAT32, FLOAT64, INT32, Columns
from shapetree._core.histogram cimport check_rows

cdef enum:
    ROWS_AT_ONCE = 8192    # that one thread takes


cdef class PairCuts:
    """A pair's shape function over the columns of a table, checked and ready to send rows.

    Parameters
    ----------
    columns : Columns
        The table: numbers, or codes of categories.
    first, second : int
        The pair.
    positions_a, positions_b : arrays
        Positions of the features' categories; empty for numbers.
    a, b, threshold : arrays (n_cuts,)
    low, high : int32 arrays (n_cuts,)
    branch : int32 array (n_pieces,)
    missing_branch : int
        All as in `shapetree.tree._shape.PairShape`.
    """

    def __init__(
        self, Columns columns not None, int first, int second, positions_a, positions_b,
        const double[::1] a not None, const double[::1] b not None,
        const double[::1] threshold not None, const int32_t[::1] low not None,
        const int32_t[::1] high not None, const int32_t[::1] branch not None, int missing_branch,
    ):
        cdef:
            const double[::1] place_a = np.ascontiguousarray(positions_a, dtype=np.float64)
            const double[::1] place_b = np.ascontiguousarray(positions_b, dtype=np.float64)
            int n_cuts = low.shape[0], n_pieces = branch.shape[0], f, i
        for f in (first, second):
            if not 0 <= f < columns.n_columns or (
                    columns.column[f].kind not in (INT32, FLOAT32, FLOAT64)):
                raise ValueError(f"the table has no column {f} of numbers or categories")
        if n_cuts == 0 or n_pieces == 0 or not (
                a.shape[0] == b.shape[0] == threshold.shape[0] == high.shape[0] == n_cuts):
            raise ValueError("the cuts' arrays differ in length")
        for i in range(n_cuts):
            for f in (low[i], high[i]):
                if not (i < f < n_cuts or -n_pieces <= f < 0):
                    raise ValueError("the cuts are not those of a tree")
        self._arrays = [columns, place_a, place_b, a, b, threshold, low, high, branch]
        self.least_branch = self.greatest_branch = missing_branch
        for i in range(n_pieces):
            self.least_branch = min(self.least_branch, branch[i])
            self.greatest_branch = max(self.greatest_branch, branch[i])
        self.cuts.first = &columns.column[first]
        self.cuts.second = &columns.column[second]
        self.cuts.n_a = place_a.shape[0]
        self.cuts.n_b = place_b.shape[0]
        self.cuts.place_a = &place_a[0] if self.cuts.n_a else NULL
        self.cuts.place_b = &place_b[0] if self.cuts.n_b else NULL
        self.cuts.a = &a[0]
        self.cuts.b = &b[0]
        self.cuts.threshold = &threshold[0]
        self.cuts.low = &low[0]
        self.cuts.high = &high[0]
        self.cuts.branch = &branch[0]
        self.cuts.missing_branch = missing_branch
        self.n_rows = columns.n_rows

    def branches(self, const int32_t[::1] rows not None, int n_threads):
        """Branch of each of the given rows."""
        cdef:
            Py_ssize_t k
            uint8_t[::1] out
        check_rows(rows, self.n_rows)
        if n_threads < 1:
            raise ValueError("n_threads must be at least 1")
        result = np.empty(rows.shape[0], dtype=np.uint8)
        if rows.shape[0]:
            out = result
            for k in prange(rows.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic",
                            chunksize=ROWS_AT_ONCE):
                out[k] = branch_by_cuts(&self.cuts, rows[k])
        return result
