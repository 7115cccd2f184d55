"""Prediction with a fitted tree."""

from typing import Any

import numpy as np
import pandas as pd

from shapetree import ShapeTreeClassifier

from . import data

MAX_ROWS = 1_000_000


def fitted(table: data.Labelled) -> tuple[ShapeTreeClassifier, Any]:
    """A tree of depth 6, fitted to the first 100,000 rows, and the whole table."""
    X, y = table
    tree = ShapeTreeClassifier(max_depth=6, n_threads=1, random_state=0)
    return tree.fit(X[:100_000], y[:100_000]), X


class Predict:
    """Numbers in a NumPy array."""

    param_names = ("rows", "layout")
    params = ((1, 100_000, MAX_ROWS), ("float64", "float32", "columns"))

    def setup_cache(self) -> tuple[ShapeTreeClassifier, np.ndarray]:
        return fitted(data.classes(MAX_ROWS))

    def setup(self, cache: tuple[ShapeTreeClassifier, np.ndarray], rows: int, layout: str) -> None:
        self.tree, table = cache
        if layout == "columns":
            self.table = np.asfortranarray(table[:rows])
        else:
            self.table = table[:rows].astype(layout)

    def time_predict(self, cache: object, rows: int, layout: str) -> None:
        self.tree.predict(self.table)

    def time_predict_proba(self, cache: object, rows: int, layout: str) -> None:
        self.tree.predict_proba(self.table)

    def time_apply(self, cache: object, rows: int, layout: str) -> None:
        self.tree.apply(self.table)


class PredictCategories:
    """100,000 rows of a data frame, half of its columns categorical."""

    param_names = ("levels",)
    params = ((10, 1_000),)

    def setup_cache(self) -> dict[int, tuple[ShapeTreeClassifier, pd.DataFrame]]:
        return {levels: fitted(data.categories(100_000, levels)) for levels in self.params[0]}

    def setup(
        self, cache: dict[int, tuple[ShapeTreeClassifier, pd.DataFrame]], levels: int
    ) -> None:
        self.tree, self.table = cache[levels]

    def time_predict(self, cache: object, levels: int) -> None:
        self.tree.predict(self.table)
