# Points of a pair's plane: the rows of a node that have both features, cut along orientations.

from libc.float cimport DBL_MAX
from libc.stdint cimport int32_t, uint8_t

from shapetree._core.arena cimport Arena
from shapetree._core.columns cimport projection
from shapetree._core.criterion cimport CriterionInfo
from shapetree._core.histogram cimport NodeTargets
from shapetree._core.pair_tree cimport PairNode, PairTree

ctypedef struct Points:
    # Rows of one node that have both features, as the points of an inner tree.
    const CriterionInfo* c
    const NodeTargets* targets
    int n
    const int32_t* place     # of each point among the node's rows
    int32_t* label           # of each point, if it counts for one statistic only; else NULL
    double* weight           # of each point; NULL if all weigh 1
    const double* u
    const double* v
    int n_orientations
    int first_active         # orientations first_active..stop_active-1 may be cut along
    int stop_active
    const double* a
    const double* b
    int32_t** order          # points along each orientation, leaf by leaf of the tree
    uint8_t* is_above
    int32_t* scratch
    int min_rows
    bint exact
    double region_penalty
    double scale             # rows of the node for each that was looked at
    Arena* arena


cdef inline double finite(double value) noexcept nogil:
    """A number, infinite ones as the greatest finite ones."""
    return min(max(value, -DBL_MAX), DBL_MAX)


cdef inline double along(const Points* points, int orientation, int point) noexcept nogil:
    """Where a point lies; finite, so that a finite threshold parts it from any other place."""
    return finite(projection(points.a[orientation], points.u[point], points.b[orientation],
                             points.v[point]))

cdef void find_cut(void* context, PairTree* tree, int leaf) noexcept nogil

cdef void set_threshold(const Points* points, PairNode* node) noexcept nogil

cdef void part_points(void* context, PairTree* tree, int leaf) noexcept nogil

cdef void plant(Points* points, PairTree* tree) noexcept nogil

cdef void copy_orders(const Points* points, int32_t** order) noexcept nogil

cdef void sort_points(Points* points, int orientation, Arena* arena) noexcept nogil
