"""The paper's step of refinement: inner trees over copies of the rows that care.

A row is copied to every branch in which it loses least, and the copies' branches are their classes.
An inner tree for each feature tells them apart, and its pieces go where their rows lose least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapetree._core.criterion import Criterion
from shapetree._core.inner_tree import cut_into_pieces
from shapetree._core.reduced import fill_gaps
from shapetree._core.search import NO_BRANCH_MARK, BinSplit
from shapetree.grow._candidates import InnerTreeOptions


@dataclass(frozen=True)
class CopiesOptions:
    """How copies are told apart.

    Attributes
    ----------
    inner : InnerTreeOptions
    criterion : {"gini", "entropy"}
    """

    inner: InnerTreeOptions
    criterion: str


@dataclass(frozen=True)
class CareBins:
    """A feature's bins with rows of a node that care, ascending; the missing one is the last.

    Attributes
    ----------
    feature, n_bins : int
        The feature, and its bins apart from the missing one.
    is_categorical : bool
    bins : int array of shape (n,)
    losses : array of shape (n, n_branches - 1)
        What their rows lose in branch 1, 2, .. beyond branch 0.
    copies : array of shape (n, n_branches + 1)
        Weight of the copies of each branch, and their number.
    """

    feature: int
    n_bins: int
    is_categorical: bool
    bins: np.ndarray
    losses: np.ndarray
    copies: np.ndarray


@dataclass(frozen=True)
class StepFound:
    """A split on one feature.

    Attributes
    ----------
    split : BinSplit
    losses : list of float
        What the rows of each branch lose beyond branch 0.
    counts : list of int
        Bins of each branch.
    """

    split: BinSplit
    losses: list[float]
    counts: list[int]


def split_by_copies(care: CareBins, options: CopiesOptions) -> StepFound | None:
    """Fit an inner tree to the copies; None if no row that cares has the feature."""
    n_branches = care.losses.shape[1] + 1
    n_known = int(np.searchsorted(care.bins, care.n_bins))
    if n_known == 0:
        return None
    piece = np.append(_pieces(care, n_known, n_branches, options), n_known)[: len(care.bins)]
    lost = np.zeros((n_known + 1, n_branches))
    np.add.at(lost[:, 1:], piece, care.losses)
    branches = lost.argmin(axis=1)[piece].astype(np.uint8)
    branch_of_bin = np.full(care.n_bins + 1, NO_BRANCH_MARK, dtype=np.uint8)
    branch_of_bin[care.bins] = branches
    fill_gaps(branch_of_bin, care.is_categorical)
    own = np.column_stack([np.zeros(len(branches)), care.losses])[
        np.arange(len(branches)), branches
    ]
    return StepFound(
        BinSplit(care.feature, n_branches, branch_of_bin),
        np.bincount(branches, own, minlength=n_branches).tolist(),
        np.bincount(branches, minlength=n_branches).tolist(),
    )


def _pieces(care: CareBins, n_known: int, n_branches: int, options: CopiesOptions) -> np.ndarray:
    """The piece of each bin without missing values; rare categories are one."""
    weights = care.copies[:n_known, :n_branches]
    counts = np.minimum(care.copies[:n_known, n_branches], np.iinfo(np.int32).max)
    if care.is_categorical:
        piece = np.arange(n_known)
        piece[counts < options.inner.min_rows] = n_known - 1
        return piece
    inner = options.inner
    stops = cut_into_pieces(
        Criterion(options.criterion, [n_branches]), weights, counts.astype(np.int32),
        method=inner.kind, max_leaves=inner.max_leaves, min_rows=inner.min_rows,
        max_depth=inner.max_depth,
    )  # fmt: skip
    return np.searchsorted(stops, np.arange(n_known), side="right")
