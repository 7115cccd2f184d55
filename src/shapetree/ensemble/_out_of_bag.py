"""Out-of-bag predictions: of rows by the trees that were not grown on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shapetree.data._stored import StoredTable
from shapetree.data._table import Table
from shapetree.ensemble._draws import Draws
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._forest import FittedForest
from shapetree.tree._predictor import leaves_of


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
    predicted = np.zeros((n_rows, *forest.trees[0].value.shape[1:]))
    n_trees = np.zeros(n_rows)
    for number, tree in enumerate(forest.trees):
        left_out = draws.left_out(number)
        leaves = _leaves(tree, draws, table, n_threads)
        predicted[left_out] += tree.value[leaves[left_out]]
        n_trees += left_out
    with np.errstate(invalid="ignore"):
        predicted /= n_trees[:, None, None]
    return predicted


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


def _leaves(tree: TreeArrays, draws: Draws, table: Table | None, n_threads: int) -> np.ndarray:
    """Leaves of all rows; where their values are not at hand, by their bins."""
    if table is None:
        table = draws.binned.rows.table
    if isinstance(table, StoredTable):
        return draws.binned.leaves(tree, n_threads)
    return leaves_of(tree, table, n_threads)
