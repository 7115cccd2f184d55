# Ctrl-C in the middle of a long loop without the GIL.

cdef bint signal_raised() noexcept with gil

cdef object take_error()
