# Pairs of features, and how their inner trees start.

from libc.stdint cimport int32_t

ctypedef struct Start:
    # How an inner tree starts.
    int orientation          # of its first cut; -1 for the best one
    double share             # of weight below that cut
    bint framed              # whether all cuts are parallel or perpendicular to it

cdef int check_pairs(const int32_t[:, ::1] pairs, int n_features) except -1
