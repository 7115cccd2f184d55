"""Peak memory of one fit in this process, as a multiple of its input: `python -m asv_bench.memory`.

The input is made in place, and everything is imported and used once before, so that nothing but the
input and the fit itself adds to the peak.
"""

import re
import resource
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from asv_bench.benchmarks import data
from shapetree import ShapeTreeClassifier

STATUS = Path("/proc/self/status")
TABLES = {"curves": partial(data.curves, dtype=np.float64), "sensors": data.sensors}


def status_bytes(field: str) -> int:
    """Read a field of this process's status, as Linux gives it."""
    found = re.search(rf"^{field}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


def peak_bytes() -> int:
    """Most memory that this process has ever held."""
    if STATUS.exists():
        # getrusage would count the parent's memory as well, if that was larger.
        return status_bytes("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def held_bytes() -> int:
    """Memory that this process holds now; at most the peak, where that is all one can know."""
    return status_bytes("VmRSS") if STATUS.exists() else peak_bytes()


WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"refine": None},
    "refined": {},
    "pairs": {"refine": None, "pairs": "auto"},
    "exact": {"refine": None, "max_bins": None},
    "ten branches": {"max_branches": 10},
}


def memory_of_fit(table: str, n_rows: int, n_threads: int, how: str) -> tuple[int, int]:
    """Peak bytes of a fit of float64 data, the data included, and bytes of the data alone."""
    make = TABLES[table]
    tree = ShapeTreeClassifier(max_depth=6, n_threads=n_threads, **WAYS[how])
    tree.fit(*make(1_000))
    before = held_bytes()
    X, y = make(n_rows)
    tree.fit(X, y)
    return peak_bytes() - before, X.nbytes


if __name__ == "__main__":
    table, n_rows, n_threads, how = sys.argv[1:]
    print(*memory_of_fit(table, int(n_rows), int(n_threads), how))
