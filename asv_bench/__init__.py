"""The speed suite: asv benchmarks, and ratios to other libraries (`python -m asv_bench.ratios`)."""

import os

# Everyone runs on one thread unless told otherwise; this must stand before NumPy is imported.
os.environ["OMP_NUM_THREADS"] = "1"
