"""Folds of the training rows: which are held out together, however rows and columns are ordered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from shapetree._core.sampling import row_hashes
from shapetree.fit._row_hashes import TargetCodes
from shapetree.fit._training_rows import BinnedRows, TrainingRows

# Equal rows are kept in one fold, unless there are more than this many and they make up more than
# this share of it: folds of few distinct rows would have nothing in common with each other.
HEAVY_ROWS, HEAVY_SHARE = 15, 1 / 32


# Default numbers of folds: more where rows are few, and fits take no time.
N_FOLDS, N_FOLDS_OF_MANY_ROWS, MANY_ROWS = 5, 3, 1_000


@dataclass(frozen=True, eq=False)
class Folds(Sequence[tuple[np.ndarray, np.ndarray]]):
    """For each fold, which rows to fit and which to hold out, as masks.

    Attributes
    ----------
    masks : list of tuples of two bool arrays of shape (n_rows,)
    group : int array of shape (n_rows,)
        The same number for rows that hold the same values, or belong to one group, in one fold.
    weights : array of shape (n_rows,)
    """

    masks: list[tuple[np.ndarray, np.ndarray]]
    group: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.masks)

    def __getitem__(self, fold: Any) -> Any:
        return self.masks[fold]


def folds_of(rows: BinnedRows, cv: Any, groups: np.ndarray | None, seed: int) -> Folds:
    """Folds of binned rows, all in this process, as the parameter `cv` says."""
    about = rows.rows
    n_rows = about.table.n_rows
    weights = np.ones(n_rows) if about.weights is None else about.weights
    if not isinstance(cv, Integral | None):
        return _split_by(check_cv(cv), about, groups, weights)
    n_folds = int(cv or (N_FOLDS if n_rows <= MANY_ROWS else N_FOLDS_OF_MANY_ROWS))
    if groups is None:
        contents = contents_of(rows)
    else:
        contents = np.unique(groups, return_inverse=True)[1].astype(np.uint64)
    of_row, group = deal_out(contents, about.strata, weights, n_folds, seed, groups is not None)
    n_found = len(np.unique(of_row))
    if cv is None:
        n_folds = min(n_folds, max(2, n_found))
    if n_found < n_folds:
        what = "distinct rows" if groups is None else "groups"
        raise ValueError(
            f"cross-validation with cv={n_folds} needs at least {n_folds} {what}, got "
            f"{n_rows} sample(s) and {len(np.unique(group))} {what}; use fewer folds, or give "
            "strength and shrinkage as numbers"
        )
    masks = [(of_row != fold, of_row == fold) for fold in range(n_folds)]
    return Folds(masks, group, weights)


def contents_of(rows: BinnedRows) -> np.ndarray:
    """A hash of what each row holds; all targets are in this process."""
    about = rows.rows
    target_codes = TargetCodes.of(about.targets, about.counts, about.classes is not None)
    return rows.backend.hashes(rows, target_codes)


def _split_by(
    splitter: Any, rows: TrainingRows, groups: np.ndarray | None, weights: np.ndarray
) -> Folds:
    """Folds that a scikit-learn splitter makes."""
    n_given, whole = rows.n_given, rows.whole()
    kept = rows.of_given(np.arange(n_given))
    kept_once = np.unique(kept)
    y = np.zeros(n_given) if rows.classes is None else np.zeros(n_given, dtype=np.int64)
    y[kept_once] = whole.targets[:, 0]
    all_groups = None
    if groups is not None and groups is not rows.row_of:  # which are kept together below
        all_groups = np.empty(n_given, dtype=groups.dtype)
        all_groups[kept] = groups
    masks = []
    for fold, each in enumerate(splitter.split(np.zeros((n_given, 1)), y, all_groups)):
        fitted, held_out = (np.isin(kept, indices) for indices in each)
        if not fitted.any() or not held_out.any():
            raise ValueError(f"cv makes a fold {fold} without rows to fit or to hold out")
        if rows.classes is not None:
            for labels, numbers in zip(rows.classes, rows.targets.T, strict=True):
                missing = np.setdiff1d(numbers, numbers[fitted]).astype(np.intp)
                if len(missing):
                    raise ValueError(
                        f"cv leaves no row of class {labels[missing[0]]} to fit in fold {fold}; "
                        "use a splitter that keeps every class, such as StratifiedKFold"
                    )
        masks.append((fitted, held_out))
    if not masks:
        raise ValueError("cv makes no folds; use a splitter that makes at least one")
    group = np.arange(len(kept)) if groups is None else np.unique(groups, return_inverse=True)[1]
    return Folds(masks, group, weights)


def deal_out(
    contents: np.ndarray,
    strata: np.ndarray,
    weights: np.ndarray,
    n_folds: int,
    seed: int,
    are_groups: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The fold and the group of each row: equal rows are together, and so are rows of a group.

    As many of every stratum go to each fold. Neither the order of the rows nor that of the columns
    matters.

    Parameters
    ----------
    contents : uint64 array of shape (n_rows,)
        A hash of each row, or the number of its group, equal where rows belong together.
    strata : int array of shape (n_rows,)
        Classes, or groups of numbers.
    weights : array of shape (n_rows,)
    are_groups : bool
        Whether contents are groups, which are never parted.
    """
    hashes, group = np.unique(contents, return_inverse=True)
    heavy = is_heavy(np.bincount(group, weights), n_folds) & (not are_groups)
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
    return fold[group], group


def is_heavy(weights: np.ndarray, n_folds: int) -> np.ndarray:
    """Which kinds of rows have very many equal ones, given what all of each kind weigh."""
    return np.asarray(weights > max(HEAVY_ROWS, HEAVY_SHARE * weights.sum() / n_folds))
