# Inner trees: one feature's bins in order, cut into pieces.

from libc.stdint cimport int32_t

from shapetree._core.criterion cimport CriterionInfo
from shapetree._core.threads cimport Arena

ctypedef struct Bins:
    # The bins of one feature that hold rows of the node, in order of the feature.
    int n_bins
    const double* stats      # n_bins x n_stats
    const int32_t* n_rows    # rows in each bin

ctypedef struct Cut:
    int position        # first bin of the right side; -1 where no cut is possible
    double gain
    double left         # impurity of either side
    double right

ctypedef struct Scan:
    # What every search for a cut of one feature needs.
    const CriterionInfo* c
    Bins bins
    int min_rows
    const double* prefix    # rows of n_bins + 1 prefix sums: of weights, then of each statistic
    bint exact              # whether these are whole numbers, or labels' counts: sums are exact
    double* loss
    double* left
    double* right

cdef void prepare_scan(
    const CriterionInfo* c, Bins bins, int min_rows, Arena* arena, Scan* scan
) noexcept nogil

cdef Cut best_cut(Scan* scan, int start, int stop) noexcept nogil

cdef void sum_interval(Scan* scan, int start, int stop, double* total) noexcept nogil

cdef int inner_cart(
    Scan* scan, int max_leaves, int max_depth, double least_gain, Arena* arena,
    int32_t* piece_stop, int* root_cut,
) noexcept nogil

cdef int optimal_intervals(
    const CriterionInfo* c, Bins bins, int max_leaves, int min_rows, double least_gain,
    Arena* arena, int32_t* piece_stop,
) noexcept nogil

cdef void sum_bins(
    const CriterionInfo* c, const double* stats, int start, int stop, double* total
) noexcept nogil
