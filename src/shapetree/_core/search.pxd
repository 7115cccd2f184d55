# What searches for shape functions share, whether of one feature or of a pair.

from libc.stdint cimport int32_t, uint64_t

from shapetree._core.criterion cimport CriterionInfo
from shapetree._core.threads cimport branch_t

ctypedef struct Options:
    bint optimal_inner_tree
    int inner_max_leaves
    int inner_min_rows
    int inner_max_depth
    int assignment            # an AssignmentKind
    int max_parts             # segments of an axis, or regions of a plane
    int max_listed            # categories outside the largest group
    bint per_leaf             # whether candidates are ranked by their gain per leaf that they add
    int min_rows              # in a branch
    bint min_rows_is_soft     # whether cells may be joined all the same
    double min_weight         # of a branch
    int max_branches
    # All in units of impurity mass:
    double segment_penalty    # per segment beyond two
    double category_penalty   # per listed category beyond the first
    double branch_penalty     # per branch beyond the first
    double region_penalty     # per region of a pair beyond two, times log2 of the rows cut
    uint64_t seed

cdef Options options_of(dict limits) except *

cdef int number_branches(branch_t* branch, int n) noexcept nogil

cdef bint has_room(
    const branch_t* branch, const int32_t* n_rows, int n, int n_branches, int min_rows
) noexcept nogil

cdef double score_of(const Options* options, double gain, int n_branches) noexcept nogil

cdef double least_gain_of_cut(
    const CriterionInfo* c, const double* stats, double penalty
) noexcept nogil
