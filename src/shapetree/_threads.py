"""Threads: how many to use, and how much work is worth starting one."""

from __future__ import annotations

import os
from functools import cache

from joblib import cpu_count

from shapetree._core.threads import max_threads

# Threads beyond the cores that one may ask for.
MAX_THREADS = 64
# Row visits between two chances for Ctrl-C: some tenths of a second.
VISITS_PER_CALL = 20_000_000
# Row visits that are worth starting a thread for.
VISITS_PER_THREAD = 250_000

_is_forked = False


def _note_fork() -> None:
    """Remember that this process is a copy of another, whose threads it does not have."""
    global _is_forked
    _is_forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def effective_threads(n_threads: int | None) -> int:
    """Number of threads to use; None stands for all cores that this process may use.

    A forked process gets one: OpenMP would wait for threads that only its parent has.
    """
    if _is_forked:
        return 1
    if n_threads is None:
        return min(max_threads(), _n_cores())
    return min(n_threads, max(MAX_THREADS, _n_cores()))


@cache
def _n_cores() -> int:
    return int(cpu_count())


def threads_for(n_visits: int, n_threads: int) -> int:
    """Threads worth starting for a number of visits of a row by a feature."""
    return n_threads if n_visits >= VISITS_PER_THREAD * n_threads else 1


def feature_chunks(n_features: int, n_rows: int) -> list[tuple[int, int]]:
    """Ranges of features that one call may take without holding up Ctrl-C."""
    size = max(1, VISITS_PER_CALL // max(n_rows, 1))
    if 0 < n_features <= size:
        return [(0, n_features)]
    return [(first, min(first + size, n_features)) for first in range(0, n_features, size)]
