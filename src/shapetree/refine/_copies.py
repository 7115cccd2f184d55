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
from shapetree._core.search import NO_BRANCH_MARK
from shapetree.data._binning import FeatureBins
from shapetree.grow._candidates import InnerTreeOptions


@dataclass(frozen=True)
class CopiesOptions:
    """How copies are told apart."""

    inner: InnerTreeOptions
    criterion: str  # "gini" or "entropy"


def split_by_copies(
    feature: FeatureBins,
    bins: np.ndarray,
    losses: np.ndarray,
    copies: np.ndarray,
    options: CopiesOptions,
) -> tuple[np.ndarray, list[float], list[int]] | None:
    """Fit an inner tree to the copies of rows that care; None if none of them has the feature.

    Parameters
    ----------
    bins : int array of shape (n,)
        Bins with rows that care, ascending; the missing one is the last.
    losses : array of shape (n, n_branches - 1)
        What their rows lose in branch 1, 2, .. beyond branch 0.
    copies : array of shape (n, n_branches + 1)
        Weight of the copies of each branch, and their number.

    Returns
    -------
    branch_of_bin : uint8 array of shape (n_bins + 1,)
    losses : list of float
        What the rows of each branch lose beyond branch 0.
    counts : list of int
        Bins of each branch.
    """
    n_branches = losses.shape[1] + 1
    n_known = int(np.searchsorted(bins, feature.n_bins))
    if n_known == 0:
        return None
    weights = copies[:n_known, :n_branches]
    counts = np.minimum(copies[:n_known, n_branches], np.iinfo(np.int32).max).astype(np.int32)
    piece, inner = np.arange(n_known), options.inner
    if feature.is_categorical:
        piece[counts < inner.min_rows] = n_known - 1  # rare categories are one
    else:
        stops = cut_into_pieces(
            Criterion(options.criterion, [n_branches]), weights, counts, method=inner.kind,
            max_leaves=inner.max_leaves, min_rows=inner.min_rows, max_depth=inner.max_depth,
        )  # fmt: skip
        piece = np.searchsorted(stops, piece, side="right")
    piece = np.append(piece, n_known)[: len(bins)]
    lost = np.zeros((n_known + 1, n_branches))
    np.add.at(lost[:, 1:], piece, losses)
    branches = lost.argmin(axis=1)[piece].astype(np.uint8)
    branch_of_bin = np.full(feature.n_bins + 1, NO_BRANCH_MARK, dtype=np.uint8)
    branch_of_bin[bins] = branches
    fill_gaps(branch_of_bin, feature.is_categorical)
    by_branch = np.column_stack([np.zeros(len(branches)), losses])
    own = by_branch[np.arange(len(branches)), branches]
    return (
        branch_of_bin,
        np.bincount(branches, own, minlength=n_branches).tolist(),
        np.bincount(branches, minlength=n_branches).tolist(),
    )
