# Assignments: which branch each piece goes to.

from libc.stdint cimport int32_t

from shapetree._core.criterion cimport CriterionInfo
from shapetree._core.options cimport Options
from shapetree._core.threads cimport Arena, branch_t

ctypedef struct Pieces:
    int n_pieces
    const double* stats      # n_pieces x n_stats
    const int32_t* n_rows    # rows in each piece
    int root_cut             # pieces left of the inner tree's root threshold; 0 where there is none

cdef bint has_exact_assignment(const CriterionInfo* c) noexcept nogil

cdef double partition_loss(
    const CriterionInfo* c, const double* stats, const branch_t* branch, int n, int n_branches,
    double* sums,
) noexcept nogil

cdef void sort_by_key(const double* key, int32_t* order, int n) noexcept nogil

cdef void order_by_content(
    const CriterionInfo* c, const double* stats, int n, Arena* arena, int32_t* order
) noexcept nogil

cdef void assign_pieces(
    const CriterionInfo* c, Pieces pieces, const Options* options, Arena* arena, branch_t* out,
    bint* found,
) noexcept nogil
