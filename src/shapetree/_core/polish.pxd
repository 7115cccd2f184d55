# Polish: trade a shape function's impurity against its complexity.

from libc.stdint cimport int32_t

from shapetree._core.criterion cimport CriterionInfo
from shapetree._core.inner_tree cimport Scan
from shapetree._core.threads cimport Arena, branch_t

ctypedef struct Cells:
    # What a shape function sends to branches: a feature's bins, or its categories, of one node.
    int n_cells              # without the missing cell
    bint has_missing         # whether one more row of `stats` holds the missing values
    bint categorical         # cells without order
    const double* stats      # (n_cells + has_missing) x n_stats

ctypedef struct Segments:
    # A shape function of an ordered feature; neighbours go to different branches.
    int n
    int32_t* stop            # end of each segment, in cells
    branch_t* branch
    branch_t missing         # branch of the missing cell

ctypedef struct Axis:
    # The cells of an ordered feature, and room to polish its shape functions.
    Scan scan                # without the missing cell
    bint has_missing         # whether the statistics of the missing cell follow those of the others
    double penalty           # of a segment beyond two
    int max_segments
    double* prices           # k x n_stats
    double* costs            # n_cells x k, unless there are two statistics
    int32_t* came_entered    # n_cells x k
    branch_t* came_branch    # n_cells x k
    Segments trial

cdef Segments take_segments(Arena* arena, int n_cells) noexcept nogil

cdef void copy_segments(const Segments* source, Segments* target) noexcept nogil

cdef bint same_segments(const Segments* a, const Segments* b) noexcept nogil

cdef int number_segments(const Axis* axis, Segments* shape) noexcept nogil

cdef double segments_loss(
    Axis* axis, const Segments* shape, int k, double* sums
) noexcept nogil

cdef void take_room_to_polish(Axis* axis, int max_branches, Arena* arena) noexcept nogil

cdef bint polish_segments(
    Axis* axis, int k, double* objective, double* sums, Segments* shape, const Segments* settled,
    Arena* arena,
) noexcept nogil

cdef int extra_parts(Cells cells, const branch_t* branch) noexcept nogil

cdef int n_listed(Cells cells, const branch_t* branch) noexcept nogil

cdef void find_cheapest_path(
    const double* costs, int n, int k, double penalty, int max_segments, Arena* arena,
    branch_t* branch,
) noexcept nogil

cdef bint polish_categories(
    const CriterionInfo* c, Cells cells, int k, double penalty, int max_listed, double* objective,
    Arena* arena, branch_t* branch,
) noexcept nogil
