"""Folds of the training rows: which are held out together, however rows and columns are ordered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from scipy.stats import rankdata

from shapetree._core.content import hash_rows, hash_targets, keys_of_columns
from shapetree._core.sampling import row_hashes
from shapetree.data._binning import BinnedTable

# Equal rows are kept in one fold, unless there are more than this many and they make up more than
# this share of it: folds of few distinct rows would have nothing in common with each other.
HEAVY_ROWS, HEAVY_SHARE = 30, 1 / 32
# Numeric targets are dealt out to folds in this many groups of similar size.
N_STRATA = 10


@dataclass(frozen=True, eq=False)
class Folds:
    """Which rows are held out together.

    Attributes
    ----------
    of_row : int array of shape (n_rows,)
        The fold of each row.
    group : int array of shape (n_rows,)
        The same number for rows that hold the same values and are in one fold.
    weights : array of shape (n_rows,)
    n_folds : int
    """

    of_row: np.ndarray
    group: np.ndarray
    weights: np.ndarray
    n_folds: int

    def held_out(self, fold: int) -> np.ndarray:
        """Which rows are in a fold, as a mask."""
        return self.of_row == fold

    @property
    def are_filled(self) -> bool:
        """Whether there are rows in every fold."""
        return len(np.unique(self.of_row)) == self.n_folds


def make_folds(
    contents: np.ndarray,
    strata: np.ndarray,
    weights: np.ndarray | None,
    n_folds: int,
    seed: int,
) -> Folds:
    """Deal rows out to folds: as many of every stratum to each, and equal rows together.

    Neither the order of the rows nor that of the columns matters.

    Parameters
    ----------
    contents : uint64 array of shape (n_rows,)
        A hash of each row, equal where rows are.
    strata : int array of shape (n_rows,)
        Classes, or groups of numbers.
    weights : array of shape (n_rows,) or None
    n_folds : int
    seed : int
    """
    weights = np.ones(len(strata)) if weights is None else weights
    hashes, group = np.unique(contents, return_inverse=True)
    least = max(HEAVY_ROWS, HEAVY_SHARE * weights.sum() / n_folds)
    heavy = np.bincount(group, weights) > least
    if heavy.any():
        # Of very many equal rows, each stands for itself; equals with equal targets are alike.
        is_single = np.flatnonzero(heavy[group])
        is_single = is_single[np.lexsort((strata[is_single], group[is_single]))]
        group[is_single] = len(hashes) + np.arange(len(is_single))
        hashes = np.concatenate([hashes, np.arange(len(is_single), dtype=np.uint64)])
    stratum = np.zeros(len(hashes), dtype=np.int64)
    np.maximum.at(stratum, group, strata)
    mixed = row_hashes((hashes + np.uint64(seed)).view(np.int64))
    order = np.lexsort((mixed, stratum))
    order = order[np.bincount(group, minlength=len(hashes))[order] > 0]
    fold = np.zeros(len(hashes), dtype=np.int64)
    fold[order] = np.arange(len(order)) % n_folds
    return Folds(fold[group], group, weights, n_folds)


def strata_of(targets: np.ndarray, has_classes: bool) -> np.ndarray:
    """Classes, or groups of numbers from the least to the greatest, by the first output."""
    first = targets[:, 0]
    if has_classes:
        return first.astype(np.int64)
    rank = rankdata(first, method="max") - 1
    return (rank * N_STRATA // len(first)).astype(np.int64)


@singledispatch
def hashes_of_rows(
    binned: BinnedTable,
    targets: np.ndarray,
    weights: np.ndarray | None,
    with_targets: bool = False,
) -> np.ndarray:
    """A hash of each row's bins, the same for rows that are repeated and for weights that say so.

    Targets tell columns apart, wherever these stand; see `keys_of_columns`.

    Parameters
    ----------
    binned : BinnedTable
    targets : array of shape (n_rows, n_outputs)
    weights : array of shape (n_rows,) or None
    with_targets : bool
        Whether rows of other targets have other hashes, too.
    """
    own = hash_targets(targets)
    keys = keys_of_bins(binned, own, weights, weights_are_counts(weights))
    hashes = hash_rows(binned.columns, keys)
    return hashes ^ own if with_targets else hashes


def weights_are_counts(weights: np.ndarray | None) -> bool:
    """Whether weights say how often a row is there."""
    return weights is not None and bool((weights == np.rint(weights)).all())


def keys_of_bins(
    binned: BinnedTable, targets: np.ndarray, weights: np.ndarray | None, are_counts: bool
) -> np.ndarray:
    """What tells columns apart, by the hashes of targets; keys of parts add up to those of all."""
    times = None
    if are_counts:
        assert weights is not None
        times = np.minimum(weights, 2.0**53).astype(np.uint64)
    return keys_of_columns(binned.columns, targets, times)
