"""ShapeFunction: which branch a feature's values are sent to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapetree._binning import FeatureBins
from shapetree._core.search import NO_BRANCH_MARK


@dataclass(frozen=True)
class ShapeFunction:
    """A piecewise-constant map from one feature to branches 0 .. n_branches - 1.

    Attributes
    ----------
    feature : int
    n_branches : int
    upper : array of shape (n_pieces,) or None
        An ordered feature's piece p holds the values up to and including `upper[p]` that are above
        the piece before; the last bound is infinite. None for a categorical feature, whose piece
        p is its category p.
    branch_of_piece : int array of shape (n_pieces,)
    missing_branch : int
        Branch of missing values and unknown categories.
    saw_missing : bool
        Whether that branch was chosen from rows, rather than for being the largest.
    """

    feature: int
    n_branches: int
    upper: np.ndarray | None
    branch_of_piece: np.ndarray
    missing_branch: int
    saw_missing: bool


def shape_from_bins(
    feature: int,
    bins: FeatureBins,
    branch_of_bin: np.ndarray,
    n_branches: int,
    largest_branch: int,
) -> ShapeFunction:
    """Shape function in the feature's own values, from one over bins.

    Parameters
    ----------
    feature : int
    bins : FeatureBins
    branch_of_bin : array of shape (bins.n_bins + 1,)
        Ends with the missing bin; NO_BRANCH_MARK for bins that hold no row.
    n_branches : int
    largest_branch : int
        Where values go of which training saw none.
    """
    branch = branch_of_bin[:-1].astype(np.int32)
    saw_missing = bool(branch_of_bin[-1] != NO_BRANCH_MARK)
    missing_branch = int(branch_of_bin[-1]) if saw_missing else largest_branch
    upper = None
    if bins.is_categorical:
        branch[branch == NO_BRANCH_MARK] = largest_branch
    else:
        # A piece ends where the next bin with rows goes elsewhere, halfway between the two.
        held = (branch != NO_BRANCH_MARK).nonzero()[0]
        branch = branch[held]
        last = (branch[1:] != branch[:-1]).nonzero()[0]
        thresholds = bins.threshold_between(held[last], held[last + 1])
        upper = np.concatenate([thresholds, [np.inf]])
        branch = np.concatenate([branch[last], branch[-1:]])
    return ShapeFunction(feature, n_branches, upper, branch, missing_branch, saw_missing)
