# Inner trees of pairs: a plane cut into regions, and the regions sent to branches.

from shapetree._core.criterion cimport CriterionInfo
from shapetree._core.options cimport Options
from shapetree._core.threads cimport Arena, branch_t

cdef enum:
    FIRST_AXIS = 0            # the orientation that reads the first feature alone
    SECOND_AXIS = 1           # and the second; all others are oblique
    INNER = 255               # mark of a node that is cut
    HIDDEN = 254              # mark of a node below a region
    MAX_REGIONS = 120         # of an inner tree whose size the user does not limit

ctypedef struct PairNode:
    int low                   # the child below the cut, the one above follows it; -1 for a leaf
    int depth
    int start                 # its points are start..stop-1
    int stop
    int n_rows
    # The cut: the one made, or the best that could be.
    int orientation           # -1 where no cut is possible
    int position              # first point above it
    double threshold          # in projected values
    double gain
    double price              # what a cut of it must earn
    double least_gain         # of a cut that is tried at all

ctypedef struct PairTree:
    int n_nodes
    int room                  # most nodes
    PairNode* nodes           # children come after their parents
    double* stats             # room x n_stats

ctypedef struct PairShape:
    # The best way so far to send a tree's regions to branches.
    double objective          # impurity plus penalties
    double loss
    int n_branches
    branch_t* branch          # of every region; INNER or HIDDEN for other nodes
    int missing_branch        # -1 if no row lacks a feature

# Describe a leaf (statistics and rows) and find its best cut; reorder a leaf's points by its cut
# and say where those above it start.
ctypedef void (*FindCut)(void* points, PairTree* tree, int leaf) noexcept nogil
ctypedef void (*MakeCut)(void* points, PairTree* tree, int leaf) noexcept nogil

cdef Options options_for_pairs(const Options* options, node) except *

cdef int max_leaves_of(const Options* options) noexcept nogil

cdef void take_tree(
    const CriterionInfo* c, const Options* options, Arena* arena, PairTree* tree
) noexcept nogil

cdef void plant(PairTree* tree, int n_points) noexcept nogil

cdef void set_price(
    const CriterionInfo* c, double region_penalty, double scale, PairTree* tree, int node
) noexcept nogil

cdef bint can_pay(const CriterionInfo* c, const PairTree* tree, int node) noexcept nogil

cdef void add_children(PairTree* tree, int node) noexcept nogil

cdef void grow(
    PairTree* tree, const Options* options, void* points, FindCut find, MakeCut make
) noexcept nogil

cdef void choose_branches(
    const CriterionInfo* c, const PairTree* tree, const double* missing, int n_missing,
    const Options* options, Arena* arena, PairShape* best,
) noexcept nogil
