"""Loops over rows, bins and cells, compiled and without the GIL."""

import os

# OpenMP reads its settings when it is loaded. Threads that sleep while they wait cost a few
# microseconds; threads that spin, as they do by default, make a fit twice as slow as on one thread
# when other processes keep the cores busy. A setting of the user takes precedence, and threads of
# other libraries are left as they are.
_WAITING = "OMP_WAIT_POLICY"
if _WAITING in os.environ:
    from shapetree._core import threads
else:
    os.environ[_WAITING] = "PASSIVE"
    try:
        from shapetree._core import threads
    finally:
        del os.environ[_WAITING]

__all__ = ["threads"]
