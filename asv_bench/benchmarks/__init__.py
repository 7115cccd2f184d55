"""Benchmarks for asv; run `asv run -E existing:same` in the folder above."""

import os

# Everyone runs on one thread unless told otherwise; this must stand before NumPy is imported.
os.environ["OMP_NUM_THREADS"] = "1"
