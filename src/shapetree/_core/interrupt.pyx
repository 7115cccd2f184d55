"""Ctrl-C in the middle of a long loop without the GIL.

The loop's main thread asks now and then whether a signal handler wants to raise. The exception is
kept until the loop has wound up, and raised from there.
"""

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1

cdef object raised = None


cdef bint signal_raised() noexcept with gil:
    """Run pending signal handlers; whether one of them raised."""
    global raised
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        raised = error
        return True
    return False


cdef object take_error():
    """The exception that a handler raised."""
    global raised
    error, raised = raised, None
    return error
