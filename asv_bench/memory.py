"""Peak memory of one fit in this process, as a multiple of its input: `python -m asv_bench.memory`.

The input is made in place, and everything is imported and used once before, so that nothing but the
input and the fit itself adds to the peak.
"""

import re
import resource
import sys
from pathlib import Path

import numpy as np

from asv_bench.benchmarks.data import curves
from shapetree import ShapeTreeClassifier

STATUS = Path("/proc/self/status")


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


def memory_of_fit(n_rows: int, n_threads: int) -> tuple[int, int]:
    """Peak bytes of a fit of float64 data, the data included, and bytes of the data alone."""
    tree = ShapeTreeClassifier(max_depth=6, n_threads=n_threads)
    tree.fit(*curves(1_000, np.float64))
    before = held_bytes()
    X, y = curves(n_rows, np.float64)
    tree.fit(X, y)
    return peak_bytes() - before, X.nbytes


if __name__ == "__main__":
    print(*memory_of_fit(*map(int, sys.argv[1:])))
