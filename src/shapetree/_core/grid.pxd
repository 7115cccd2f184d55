# One pair's grid: cells as the points of an inner tree.

from libc.stdint cimport int32_t, uint8_t

from shapetree._core.criterion cimport CriterionInfo
from shapetree._core.pair_tree cimport PairShape, PairTree
from shapetree._core.search cimport Options
from shapetree._core.threads cimport Arena

cdef enum:
    N_GROUPS = 32            # of a feature at most
    STRIDE = N_GROUPS + 1    # of a table of cells: the last group holds the missing values
    N_BUCKETS = 32           # of a projection

ctypedef struct Grid:
    # One pair's cells that hold rows, as the points of an inner tree.
    const CriterionInfo* c
    int n_cells
    double* stats            # n_cells x n_stats
    int32_t* n_rows
    int32_t* order           # cells in the order of the tree's leaves
    int32_t* scratch
    int n_orientations
    int first_active         # orientations first_active..stop_active-1 may be cut along
    int stop_active
    uint8_t* bucket          # n_cells x n_orientations: where a cell lies along each
    # What cuts are chosen by: weight, then statistics (means for absolute error), then rows if
    # these have weights and must be counted.
    double* planes           # n_cells x plane_stride
    int n_planes
    int plane_stride
    int n_values
    int rows_plane
    double least_rows        # in that plane, on either side of a cut
    double* missing          # statistics of the rows that lack either feature
    int n_missing
    int min_rows
    double region_penalty
    Arena* arena

cdef int check_pairs(const int32_t[:, ::1] pairs, int n_features) except -1

cdef void fill_planes(Grid* grid) noexcept nogil

ctypedef struct Start:
    # How an inner tree starts.
    int orientation          # of its first cut; -1 for the best one
    double share             # of weight below that cut
    bint framed              # whether all cuts are parallel or perpendicular to it

cdef void grow_on_grid(
    Grid* grid, double information, const Options* options, PairTree* tree, PairShape* best,
    Start* start,
) noexcept nogil

cdef void grow_from_all_crossings(
    Grid* grid, const Options* options, PairTree* tree, PairShape* best, Start* start
) noexcept nogil
