"""Binning alone: from the caller's table to one byte a value."""

import numpy as np

from shapetree.data._binning import bin_table
from shapetree.data._table import Table, read_table

from . import data


class Bin:
    """20 features on one thread."""

    param_names = ("rows", "layout", "max_bins")
    params = ((100_000, 1_000_000), ("float64", "float32", "columns"), (255, None))

    def setup_cache(self) -> np.ndarray:
        return data.curves(max(self.params[0]), np.float64)[0]

    def setup(self, numbers: np.ndarray, rows: int, layout: str, max_bins: int | None) -> None:
        if rows > 100_000 and max_bins is None:
            raise NotImplementedError("exact mode is meant for smaller tables")
        numbers = numbers[:rows]
        self.table: Table = read_table(
            np.asfortranarray(numbers) if layout == "columns" else numbers.astype(layout)
        )

    def time_bin(self, numbers: np.ndarray, rows: int, layout: str, max_bins: int | None) -> None:
        bin_table(self.table, None, max_bins, n_threads=1)


class BinWhole:
    """Whole numbers from 0 to 99, which keep a bin each."""

    def setup(self) -> None:
        random = np.random.default_rng(0)
        self.table = read_table(random.integers(100, size=(100_000, data.N_FEATURES)))

    def time_bin(self) -> None:
        bin_table(self.table, None, 255, n_threads=1)
