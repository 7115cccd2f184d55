"""Peers whose manners differ from scikit-learn's, with a coat over them.

Nothing of a peer is imported before one is made.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

# How its authors show the search for thresholds: those of 100 small boosted trees, all of them.
_THRESHOLDS = {
    "learning_rate": 0.1,
    "n_estimators": 100,
    "max_depth": 3,
    "random_state": 0,
    "column_elimination": False,
}


class Split(BaseEstimator):
    """LicketySPLIT on the thresholds that a boosted ensemble likes, as its authors advise."""

    def __init__(self, task: str, max_depth: int) -> None:
        self.task = task
        self.max_depth = max_depth

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        import licketysplit

        kind = "Classifier" if self.task == "classification" else "Regressor"
        self.binarizer_ = licketysplit.ThresholdGuessBinarizer(**_THRESHOLDS)
        binary = self.binarizer_.fit_transform(X, y)
        # Its own regularisation, and its own choice of thresholds.
        self.tree_ = getattr(licketysplit, f"LicketySPLIT{kind}")(depth_budget=self.max_depth)
        self.tree_.fit(binary, y)
        self.leaf_counts_ = self._leaf_counts(np.asarray(binary, dtype=bool))
        return self

    def _leaf_counts(self, binary: np.ndarray) -> list[int]:
        counts = []
        for path in self.tree_.leaf_paths():
            inside = np.ones(len(binary), dtype=bool)
            for step in path:
                inside &= binary[:, abs(step) - 1] == (step > 0)
            counts.append(int(inside.sum()))
        return counts

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.tree_.classes_)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.tree_.predict(self.binarizer_.transform(X)))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.tree_.predict_proba(self.binarizer_.transform(X)))
