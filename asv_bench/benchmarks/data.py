"""The tables that the benchmarks fit, made from fixed seeds."""

import random
from itertools import combinations
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


def gazes(n_rows: int) -> Labelled:
    """14 columns of whole and 13 of real numbers; pairs of them tell three classes, with noise."""
    random = np.random.default_rng(0)
    table = random.standard_normal((n_rows, 27))
    scores = table[:, [0, 5, 10]] * table[:, 14:17] + table[:, [11, 12, 13]] * table[:, 20:23]
    y = np.argmax(scores + random.standard_normal((n_rows, 3)), axis=1)
    table[:, :14] = np.round(table[:, :14] * np.geomspace(1, 100, 14))
    return table, y


def prices(n_rows: int) -> Labelled:
    """Seven columns of numbers and one of seven categories; pairs of them tell two classes."""
    random = np.random.default_rng(0)
    numeric = random.random((n_rows, 7))
    numeric[:, 1] = np.floor(48 * numeric[:, 1])
    days = random.integers(7, size=n_rows)
    hour, daily = numeric[:, 1] / 48, np.cos(days)
    score = numeric[:, 2] - numeric[:, 3] + daily * np.sin(2 * np.pi * hour)
    score += np.sin(8 * numeric[:, 0]) * (numeric[:, 4] - 0.5)
    table = pd.DataFrame(numeric).add_prefix("number_")
    table["day"] = pd.Categorical.from_codes(days, [f"day {day}" for day in range(7)])
    return table, (score + 0.3 * random.standard_normal(n_rows) > 0).astype(np.int64)


def sensors(n_rows: int) -> Labelled:
    """Eight measures of each of 16 sensors, which tell six classes; all in place, like `curves`."""
    random = np.random.default_rng(0)
    table = np.empty((n_rows, 128))
    random.standard_normal(out=table)
    y = random.integers(6, size=n_rows)
    levels = random.standard_normal((n_rows, 16)) + random.standard_normal((6, 16))[y]
    for measure in range(8):
        table[:, measure::8] += (measure + 1) * levels
    return table, y


def some_pairs(n_features: int, n_pairs: int) -> list[tuple[int, int]]:
    """Pairs of features that may interact, drawn at random without repeats."""
    return random.Random(0).sample(list(combinations(range(n_features), 2)), n_pairs)
