# What searches for shape functions share, whether of one feature or of a pair.

from libc.stdint cimport int32_t

from shapetree._core.criterion cimport CriterionInfo
from shapetree._core.options cimport Options
from shapetree._core.threads cimport branch_t

cdef Options options_of(dict limits) except *

cdef int number_branches(branch_t* branch, int n) noexcept nogil

cdef bint has_room(
    const branch_t* branch, const int32_t* n_rows, int n, int n_branches, int min_rows
) noexcept nogil

cdef double score_of(const Options* options, double gain, int n_branches) noexcept nogil

cdef double least_gain_of_cut(
    const CriterionInfo* c, const double* stats, double penalty
) noexcept nogil
