# Inner trees of pairs that start from a given cut of the plane.

from libc.stdint cimport int32_t

from shapetree._core.grid cimport Start
from shapetree._core.pair_tree cimport PairTree
from shapetree._core.points cimport Points
from shapetree._core.search cimport Options

cdef void grow_from(
    Points* points, PairTree* tree, Start start, int32_t** sorted_order, const Options* options
) noexcept nogil
