"""Threads: how many to use, and how much work is worth starting one."""

from __future__ import annotations

import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from joblib import cpu_count

from shapetree._core.threads import can_start, max_threads, start_team

# Most threads that a user may set, beyond the number of cores.
MAX_THREADS = 64
# Row visits between two chances for Ctrl-C: some tenths of a second.
VISITS_PER_CALL = 20_000_000
# Row visits that are worth starting a thread for.
VISITS_PER_THREAD = 250_000

Result = TypeVar("Result")

_is_forked = False
# How many threads OpenMP has started for the loops of each thread of Python's.
_team = threading.local()


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


def started_threads(n_threads: int | None) -> int:
    """The same, if so many threads can be started; otherwise one, and a warning."""
    wanted = effective_threads(n_threads)
    return wanted if _has_team(wanted) else 1


def _has_team(n_threads: int) -> bool:
    """Whether OpenMP has started so many threads, or can do so now; it warns if not.

    OpenMP itself would end the process.
    """
    if n_threads == 1 or getattr(_team, "size", 1) == n_threads:
        return True
    if not can_start(n_threads - 1):
        _warn_of_few(n_threads, "one thread")
        return False
    start_team(n_threads)
    _team.size = n_threads
    return True


def _warn_of_few(n_threads: int, started: str) -> None:
    warnings.warn(
        f"{n_threads} threads could not be started: a limit of memory or of processes is too "
        f"low. This runs on {started}, which takes longer. Raise the limit (ulimit -v, ulimit "
        "-u, or those of the container), or set n_threads=1.",
        RuntimeWarning,
        stacklevel=4,
    )


@cache
def _n_cores() -> int:
    return int(cpu_count())


def threads_for(n_visits: int, n_threads: int) -> int:
    """Threads worth starting for a number of visits of a row by a feature."""
    return n_threads if n_visits >= VISITS_PER_THREAD * n_threads and _has_team(n_threads) else 1


def feature_chunks(n_features: int, n_rows: int) -> list[tuple[int, int]]:
    """Ranges of features that one call may take without holding up Ctrl-C."""
    size = max(1, VISITS_PER_CALL // max(n_rows, 1))
    if 0 < n_features <= size:
        return [(0, n_features)]
    return [(first, min(first + size, n_features)) for first in range(0, n_features, size)]


def run_together(
    jobs: Sequence[Callable[[], Result]], n_threads: int, stop: threading.Event
) -> list[Result]:
    """Run jobs in threads; if one fails, or on Ctrl-C, the others are stopped.

    If some threads cannot be started, the others and this one do their jobs, with a warning.
    """
    n_threads = min(n_threads, len(jobs))
    if n_threads <= 1:
        return [job() for job in jobs]
    left = deque(enumerate(jobs))
    results: dict[int, Result] = {}

    def work() -> None:
        while left:
            try:
                number, job = left.popleft()
            except IndexError:  # another thread was first
                return
            try:
                results[number] = job()
            except BaseException:
                left.clear()
                raise

    with ThreadPoolExecutor(n_threads) as pool:
        workers: list[Future[None]] = []
        try:
            try:
                for _ in range(n_threads):
                    workers.append(pool.submit(work))
            except RuntimeError:
                _warn_of_few(n_threads, "fewer")
                work()
            for worker in workers:
                worker.result()
        except BaseException:
            stop.set()
            left.clear()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [results[number] for number in range(len(jobs))]
