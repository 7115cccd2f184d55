# What a search for shape functions may do in a node, whether of one feature or of a pair.

from libc.stdint cimport uint64_t

cdef enum AssignmentKind:
    AUTO = 0                  # exact where that is cheap, else several starts, then descent
    COORDINATE_DESCENT = 1    # the better of root split and k-means, then descent
    KMEANS = 2                # k-means alone
    RANDOM = 3                # a random start, then descent

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
