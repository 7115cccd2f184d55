"""The tables that the benchmarks fit, made from fixed seeds."""

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification, make_regression

Labelled: TypeAlias = tuple[Any, np.ndarray]

N_FEATURES = 20


def classes(n_rows: int, n_classes: int = 2) -> Labelled:
    """Clusters of points, three for each class; 8 of 20 features tell them apart."""
    return make_classification(
        n_rows,
        N_FEATURES,
        n_informative=8,
        n_classes=n_classes,
        n_clusters_per_class=3,
        random_state=0,
    )


def numbers(n_rows: int) -> Labelled:
    """A noisy number to predict, which 8 of 20 features tell."""
    return make_regression(n_rows, N_FEATURES, n_informative=8, noise=10.0, random_state=0)


def curves(n_rows: int, dtype: type = np.float32) -> Labelled:
    """Two classes that curves of three features separate; nothing beside the table is large."""
    table = np.empty((n_rows, N_FEATURES), dtype=dtype)
    np.random.default_rng(0).standard_normal(out=table, dtype=dtype)
    return table, (table[:, 0] ** 2 + table[:, 1] * table[:, 2] > 0.5).astype(np.int64)


def categories(n_rows: int, n_levels: int) -> Labelled:
    """Ten columns of numbers and ten of categories; two of these shift the odds of the class."""
    random = np.random.default_rng(0)
    numeric = random.standard_normal((n_rows, N_FEATURES // 2))
    codes = random.integers(n_levels, size=(n_rows, N_FEATURES // 2))
    effect = random.standard_normal((2, n_levels))
    score = numeric[:, 0] + effect[0, codes[:, 0]] + effect[1, codes[:, 1]]
    levels = [f"level {level}" for level in range(n_levels)]
    table = pd.DataFrame(numeric).add_prefix("number_")
    for column, column_codes in enumerate(codes.T):
        table[f"category_{column}"] = pd.Categorical.from_codes(column_codes, levels)
    return table, (score + random.standard_normal(n_rows) > 0).astype(np.int64)
