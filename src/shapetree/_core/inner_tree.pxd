# Inner trees: one feature's bins in order, cut into pieces.

from libc.stdint cimport int32_t

from shapetree._core.arena cimport Arena
from shapetree._core.criterion cimport CriterionInfo

ctypedef struct Bins:
    # The bins of one feature that hold rows of the node, in order of the feature.
    int n_bins
    const double* stats      # n_bins x n_stats
    const int32_t* n_rows    # rows in each bin

cdef int inner_cart(
    const CriterionInfo* c, Bins bins, int max_leaves, int min_rows, int max_depth,
    double least_gain, Arena* arena, int32_t* piece_stop, int* root_cut,
) noexcept nogil

cdef int optimal_intervals(
    const CriterionInfo* c, Bins bins, int max_leaves, int min_rows, double least_gain,
    Arena* arena, int32_t* piece_stop,
) noexcept nogil

cdef void sum_bins(
    const CriterionInfo* c, const double* stats, int start, int stop, double* total
) noexcept nogil
