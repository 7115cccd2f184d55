"""Out-of-bag predictions: of rows by the trees that were not grown on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shapetree.data._table import Table
from shapetree.ensemble._draws import Draws
from shapetree.tree._fitted import FittedForest


def predict_left_out(
    forest: FittedForest, draws: Draws, n_threads: int, table: Table | None = None
) -> np.ndarray:
    """What the trees that have not seen a row predict for it on the mean.

    Parameters
    ----------
    forest : FittedForest
    draws : Draws
        The rows that it was fitted on.
    n_threads : int
    table : Table, optional
        Other values of the rows.

    Returns
    -------
    array of shape (n_rows, n_outputs, n_values)
        NaN for rows that all trees have seen.
    """
    n_rows = len(draws.binned.rows.targets)
    predicted = np.zeros((n_rows, *forest.trees.packed[0].value.shape[1:]))
    n_trees = np.zeros(n_rows)
    left_out = [np.packbits(draws.left_out(number)) for number in range(len(forest.trees))]
    table = draws.binned.rows.table if table is None else table
    for first, leaves in draws.binned.backend.leaves_in_forest(table, forest, n_threads):
        rows = slice(first, first + len(leaves))
        for number, tree in enumerate(forest.trees.packed):
            are_out = _bits(left_out[number], rows)
            predicted[rows][are_out] += tree.value[leaves[are_out, number]]
            n_trees[rows] += are_out
    with np.errstate(invalid="ignore"):
        predicted /= n_trees[:, None, None]
    return predicted


def _bits(packed: np.ndarray, rows: slice) -> np.ndarray:
    """Some of the flags that were packed, as booleans."""
    start = rows.start // 8
    bits = np.unpackbits(packed[start : (rows.stop + 7) // 8])
    return bits[rows.start - 8 * start : rows.stop - 8 * start].view(bool)


def permuted_scores(
    forest: FittedForest,
    draws: Draws,
    score: Callable[[np.ndarray], float],
    n_repeats: int,
    random: np.random.Generator,
    n_threads: int,
) -> np.ndarray:
    """Scores of rows by trees that have not seen them, if one feature's values change places.

    Parameters
    ----------
    forest : FittedForest
    draws : Draws
        The rows that it was fitted on.
    score : callable
        Scores what is predicted, as `predict_left_out` has it.
    n_repeats : int
    random : Generator
    n_threads : int

    Returns
    -------
    array of shape (n_features, n_repeats)
        NaN for features that no tree uses.
    """
    table = draws.binned.rows.table
    scores = np.full((len(forest.features), n_repeats), np.nan)
    for feature in forest.used_features:
        for repeat in range(n_repeats):
            columns = list(table.columns)
            column = columns[feature]
            assert column is not None
            columns[feature] = column[random.permutation(len(column))]
            moved = replace(table, columns=columns)
            scores[feature, repeat] = score(predict_left_out(forest, draws, n_threads, moved))
    return scores
