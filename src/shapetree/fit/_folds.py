"""Folds of the training rows: which are held out together, however rows and columns are ordered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from shapetree._core.columns import Columns
from shapetree._core.sampling import hash_rows, hash_targets, keys_of_columns, row_hashes
from shapetree.data._binning import BinnedTable, FeatureBins
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
    return hashes_of_rows(rows.binned, about.targets, about.counts, target_codes)


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
    n_folds : int
    seed : int
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


@dataclass(frozen=True)
class TargetCodes:
    """What stands for the targets of rows, whatever their names and units.

    Attributes
    ----------
    values : list of arrays
        The distinct values of each output.
    codes : list of arrays
        Of each value: its rank, or how many rows have it if it is a class.
    """

    values: list[np.ndarray]
    codes: list[np.ndarray]

    @classmethod
    def of(cls, targets: np.ndarray, weights: np.ndarray | None, has_classes: bool) -> TargetCodes:
        """Those of all rows; weights may say how often a row is there."""
        times = weights if weights_are_counts(weights) else None
        found = [np.unique(column, return_inverse=True) for column in targets.T]
        codes = [
            np.bincount(ranks, times) if has_classes else np.arange(len(values))
            for values, ranks in found
        ]
        return cls([values for values, _ in found], codes)

    def hashes(self, targets: np.ndarray) -> np.ndarray:
        """A hash of the targets of each row."""
        each = zip(self.values, self.codes, targets.T, strict=True)
        codes = [codes[np.searchsorted(values, column)] for values, codes, column in each]
        return np.asarray(hash_targets(np.stack(codes, axis=1)))


@singledispatch
def hashes_of_rows(
    binned: BinnedTable, targets: np.ndarray, weights: np.ndarray | None, target_codes: TargetCodes
) -> np.ndarray:
    """A hash of each row's bins, the same for rows that are repeated and for weights that say so.

    Targets tell columns and categories apart, wherever these stand and whatever their names are;
    see `keys_of_columns`.

    Parameters
    ----------
    binned : BinnedTable
    targets : array of shape (n_rows, n_outputs)
    weights : array of shape (n_rows,) or None
    target_codes : TargetCodes
    """
    own, times = target_codes.hashes(targets), times_of(weights, weights_are_counts(weights))
    profiles = profiles_of_categories(binned.columns, binned.features, own, times)
    columns = recoded(binned.columns, codes_of_categories(profiles))
    return hash_rows(columns, keys_of_columns(columns, own, times))


def profiles_of_categories(
    columns: Columns,
    features: tuple[FeatureBins, ...],
    targets: np.ndarray,
    times: np.ndarray | None,
) -> dict[int, np.ndarray]:
    """What each category of a feature holds, by the hashes of targets; those of parts add up."""
    mixed = row_hashes(targets.view(np.int64))
    if times is not None:
        mixed = mixed * times
    profiles = {}
    for number, feature in enumerate(features):
        if feature.is_categorical:
            profiles[number] = np.zeros(feature.n_bins + 1, dtype=np.uint64)
            np.add.at(profiles[number], columns.array(number), mixed)
    return profiles


def codes_of_categories(profiles: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """For the bins of categorical features, numbers that their names do not decide."""
    codes = {}
    for number, profile in profiles.items():
        ranks = np.unique(profile[:-1], return_inverse=True)[1]
        # Missing values have their own bin.
        codes[number] = np.append(ranks, len(ranks)).astype(np.min_scalar_type(len(ranks)))
    return codes


def recoded(columns: Columns, codes: dict[int, np.ndarray]) -> Columns:
    """Columns with other numbers for the bins of some of them."""
    if not codes:
        return columns
    arrays = [columns.array(number) for number in range(columns.n_columns)]
    for number, table in codes.items():
        arrays[number] = table[arrays[number]]
    return Columns(arrays, columns.n_rows)


def weights_are_counts(weights: np.ndarray | None) -> bool:
    """Whether weights say how often a row is there."""
    return weights is not None and bool((weights == np.rint(weights)).all())


def times_of(weights: np.ndarray | None, are_counts: bool) -> np.ndarray | None:
    """How often each row is there; None if once."""
    if not are_counts:
        return None
    assert weights is not None
    return np.minimum(weights, 2.0**53).astype(np.uint64)
