# Polish: trade a shape function's impurity against its complexity.

from shapetree._core.arena cimport Arena, branch_t
from shapetree._core.criterion cimport CriterionInfo

ctypedef struct Cells:
    # What a shape function sends to branches: a feature's bins, or its categories, of one node.
    int n_cells              # without the missing cell
    bint has_missing         # whether one more row of `stats` holds the missing values
    bint categorical         # cells without order
    const double* stats      # (n_cells + has_missing) x n_stats

cdef int extra_parts(Cells cells, const branch_t* branch) noexcept nogil

cdef void find_cheapest_path(
    const double* costs, int n, int k, double penalty, Arena* arena, branch_t* branch
) noexcept nogil

cdef double polish(
    const CriterionInfo* c, Cells cells, int n_branches, double penalty, Arena* arena,
    branch_t* branch,
) noexcept nogil
