"""How many threads the loops may use."""

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define shapetree_max_threads() omp_get_max_threads()
    #else
    #define shapetree_max_threads() 1
    #endif
    """
    int shapetree_max_threads() nogil


def max_threads():
    """Threads that OpenMP would use, which the environment may limit."""
    return shapetree_max_threads()
