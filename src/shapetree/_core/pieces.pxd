# Shape functions of pairs, ready to send rows to branches.

from libc.stdint cimport int32_t

from shapetree._core.columns cimport Column, projection, side_at

ctypedef struct Cuts:
    # A pair's shape function, as in `shapetree.tree._shape.PairShape`.
    const Column* first
    const Column* second
    const double* place_a
    const double* place_b
    int n_a
    int n_b
    const double* a
    const double* b
    const double* threshold
    const int32_t* low
    const int32_t* high
    const int32_t* branch
    int missing_branch


cdef inline int branch_by_cuts(const Cuts* cuts, Py_ssize_t row) noexcept nogil:
    cdef:
        double u = side_at(cuts.first, row, cuts.place_a, cuts.n_a)
        double v = side_at(cuts.second, row, cuts.place_b, cuts.n_b)
        int at = 0
    if u != u or v != v:
        return cuts.missing_branch
    while at >= 0:
        at = (cuts.high[at] if projection(cuts.a[at], u, cuts.b[at], v) > cuts.threshold[at]
              else cuts.low[at])
    return cuts.branch[-1 - at]


cdef class PairCuts:
    cdef Cuts cuts
    cdef Py_ssize_t n_rows
    cdef int least_branch
    cdef int greatest_branch
    cdef list _arrays        # keeps the memory alive
