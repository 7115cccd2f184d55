"""Columns that may be larger than memory: up to a budget in memory, and beyond it in a file.

The file has no name from the moment it exists (where the system can do that), so that nothing is
left behind, whatever ends the process.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import tempfile
import threading
import weakref
from collections.abc import Sequence

import numpy as np

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS |= {f"{unit}I": 2 ** (10 * power) for power, unit in enumerate("KMGT", start=1)}
# Columns in a file start at multiples of so many bytes.
ALIGNMENT = 64


def bytes_of(memory: object) -> int:
    """A budget in bytes, given as a number or like "200MB" or "1.5 GiB".

    Examples
    --------
    >>> bytes_of("200MB"), bytes_of("1.5 GiB"), bytes_of(4096)
    (200000000, 1610612736, 4096)
    """
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", memory.upper())
        if found and found[2] in UNITS:
            return int(float(found[1]) * UNITS[found[2]])
    elif isinstance(memory, int | np.integer) and not isinstance(memory, bool) and memory >= 0:
        return int(memory)
    raise ValueError(
        f"memory must be a number of bytes or a text like '500MB' or '2GB', got {memory!r}"
    )


class Store:
    """Room for columns; `budget` is how many bytes of memory all of them may take together."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._used = 0
        self._lock = threading.Lock()

    def columns(self, n_rows: int, dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
        """Columns to be filled, as many of them in memory as fit in."""
        columns = [self._in_memory(n_rows, dtype) for dtype in dtypes]
        others = [d for d, column in zip(dtypes, columns, strict=True) if column is None]
        in_file = iter(_columns_in_file(n_rows, others))
        return [next(in_file) if column is None else column for column in columns]

    def _in_memory(self, n_rows: int, dtype: np.dtype) -> np.ndarray | None:
        """A column in memory, which is freed when nothing refers to it any more; None if full."""
        size = n_rows * dtype.itemsize
        with self._lock:
            if self._used + size > self._budget:
                return None
            self._used += size
        column = np.empty(n_rows, dtype)
        weakref.finalize(column, self._free, size)
        return column

    def _free(self, size: int) -> None:
        with self._lock:
            self._used -= size


def room_for(store: Store | None, n_rows: int, dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
    """Columns to be filled, in memory if there is no store."""
    if store is None:
        return [np.empty(n_rows, dtype) for dtype in dtypes]
    return store.columns(n_rows, dtypes)


def _columns_in_file(n_rows: int, dtypes: list[np.dtype]) -> list[np.ndarray]:
    """Columns in one file that has no name; it goes when the last of them does."""
    starts, size = [], 0
    for dtype in dtypes:
        starts.append(size)
        size += -(-n_rows * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    if size == 0:
        return [np.empty(n_rows, dtype) for dtype in dtypes]
    with tempfile.TemporaryFile(prefix="shapetree-") as file:
        _reserve(file.fileno(), size)
        mapped = mmap.mmap(file.fileno(), size)
    return [
        np.frombuffer(mapped, dtype, n_rows, start)
        for dtype, start in zip(dtypes, starts, strict=True)
    ]


def _reserve(file: int, size: int) -> None:
    """Take the room on disk now: writing to a map whose file cannot grow would end the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            os.ftruncate(file, size)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(
            error.errno,
            f"there is no room for {_in_words(size)} of bins in {tempfile.gettempdir()}; make "
            "room there, set TMPDIR to another folder, or give more memory",
        ) from error


def _in_words(size: int) -> str:
    """A number of bytes in words.

    Examples
    --------
    >>> _in_words(1_500_000_000), _in_words(20_000)
    ('1.5 GB', '20.0 kB')
    """
    unit, name = next(((u, n) for u, n in ((1e9, "GB"), (1e6, "MB")) if size >= u), (1e3, "kB"))
    return f"{size / unit:,.1f} {name}"
