"""Splits under refinement: what they cost, and where they send what no row has shown them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shapetree._core.reduced import count_extra_parts, settle_empty_bins
from shapetree._core.search import BinSplit
from shapetree.data._binning import FeatureBins
from shapetree.grow._candidates import CATEGORY_SHARE, choice_share
from shapetree.grow._splits import PairSplit, Split, shape_of_split
from shapetree.tree._shape import PairShape, ShapeFunction, join_regions, with_branches

Bins = tuple[FeatureBins, ...]


def price_of_parts(split: Split, bins: Bins, part_penalty: float, category_penalty: float) -> float:
    """What a split pays for the parts that it has beyond those of CART's.

    For segments beyond two; or for regions beyond two, and for being a pair as for one more; or for
    categories beyond the first to be listed and for the choice among many, as shares of
    `category_penalty`.
    """
    if isinstance(split, PairSplit):
        return part_penalty * (len(split.cuts.branch_of_piece) - 1)
    known = bins[split.feature]
    n_extra = count_extra_parts(split.branch_of_bin, known.is_categorical)
    if not known.is_categorical:
        return part_penalty * n_extra
    return category_penalty * (CATEGORY_SHARE * n_extra + choice_share(known))


def smallest_part(split: Split, n_rows: np.ndarray, bins: Bins) -> int:
    """Fewest rows of a segment, of all categories of one branch, or of a region.

    Rows are given by bin or region, missing values last.
    """
    if isinstance(split, PairSplit):
        return int(n_rows[:-1].min())
    branches = split.branch_of_bin[:-1]
    segment = branches.astype(np.intp)
    if not bins[split.feature].is_categorical:
        segment = np.append(0, np.cumsum(branches[1:] != branches[:-1]))
    sizes = np.bincount(segment, n_rows[:-1])
    return int(sizes[np.unique(segment)].min())


def keeping(split: Split, kept: list[int], largest: int) -> Split:
    """Drop the branches that no row takes; what they had goes to the largest, one of `kept`."""
    number = np.full(256, largest, dtype=np.uint8)
    number[kept] = np.arange(len(kept))
    if isinstance(split, BinSplit):
        return BinSplit(split.feature, len(kept), number[split.branch_of_bin])
    return PairSplit(join_regions(with_branches(split.cuts, number.astype(np.int32), len(kept))))


def without_gaps(split: Split, largest: int, bins: Bins) -> Split:
    """Send bins for which growth saw no row where the finished shape function will send them."""
    if isinstance(split, PairSplit):
        return PairSplit(split.cuts.with_largest_branch(largest))
    return _settled_bins(split, None, largest, bins[split.feature])


def settled(split: Split, n_rows: np.ndarray, largest: int, bins: Bins) -> Split:
    """Send what holds no rows where the finished shape function will send it.

    Rows of the node are given by bin or region, missing values last; `largest` is the branch with
    the most. It is the very split that was given if nothing changes.
    """
    if isinstance(split, PairSplit):
        pair = _of_rows(split.cuts, n_rows, largest)
        return split if pair.missing_branch == split.cuts.missing_branch else PairSplit(pair)
    return _settled_bins(split, n_rows, largest, bins[split.feature])


def _settled_bins(
    split: BinSplit, n_rows: np.ndarray | None, largest: int, bins: FeatureBins
) -> BinSplit:
    branches = settle_empty_bins(split.branch_of_bin, n_rows, bins.low, bins.high, largest)
    return split if branches is None else BinSplit(split.feature, split.n_branches, branches)


def finished_shape(
    split: Split, n_rows: np.ndarray, largest: int, bins: Bins
) -> ShapeFunction | PairShape:
    """A split in the features' own values, as training on the rows that it splits would have it.

    Thresholds lie between bins with rows; missing values go to the largest branch if no
    row lacks the feature. Categories without rows keep the branch they had when they had some.
    Parameters are those of `settled`.
    """
    if isinstance(split, PairSplit):
        return _of_rows(split.cuts, n_rows, largest)
    return shape_of_split(split, bins, largest, n_rows)


def _of_rows(pair: PairShape, n_rows: np.ndarray, largest: int) -> PairShape:
    saw_missing = bool(n_rows[-1] > 0)
    return replace(pair, saw_missing=saw_missing).with_largest_branch(largest)


def split_of(shape: ShapeFunction | PairShape, bins: Bins) -> Split:
    """The split that a shape function makes of bins.

    A bin of an ordered feature goes where its smallest value goes.
    """
    if isinstance(shape, PairShape):
        return PairSplit(shape)
    known = bins[shape.feature]
    branches = np.full(known.n_bins + 1, shape.missing_branch, dtype=np.uint8)
    if shape.upper is None:
        n_known = min(known.n_bins, len(shape.branch_of_piece))
        branches[:n_known] = shape.branch_of_piece[:n_known]
    else:
        assert known.low is not None
        branches[:-1] = shape.branch_of_piece[np.searchsorted(shape.upper, known.low)]
    return BinSplit(shape.feature, shape.n_branches, branches)
