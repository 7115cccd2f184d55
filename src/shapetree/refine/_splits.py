"""Shape functions of a tree under refinement: over the bins of the training rows, or by cuts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.pair_cuts import PairCuts
from shapetree._core.partition import branches_by_bin
from shapetree._core.search import NO_BRANCH_MARK
from shapetree.data._binning import BinnedTable
from shapetree.grow._candidates import CATEGORY_SHARE
from shapetree.grow._pairs import cuts_of
from shapetree.tree._shape import (
    PairShape,
    ShapeFunction,
    join_regions,
    shape_from_bins,
    with_branches,
)


@dataclass(frozen=True)
class BinSplit:
    """A shape function of one feature as the branch of each bin, the missing one last."""

    feature: int
    branch_of_bin: np.ndarray
    is_categorical: bool

    @cached_property
    def extra_parts(self) -> float:
        """Segments beyond two; or categories beyond the first to be listed, at their price."""
        branches = self.branch_of_bin[:-1]
        if self.is_categorical:
            n_listed = len(branches) - np.bincount(branches, minlength=1).max()
            return CATEGORY_SHARE * max(n_listed - 1, 0)
        n_switches = int(np.count_nonzero(branches[1:] != branches[:-1]))
        return float(max(n_switches - 1, 0))

    def branches(self, binned: BinnedTable, rows: np.ndarray, n_threads: int) -> np.ndarray:
        """Branch of each of the given rows."""
        return branches_by_bin(binned.columns, self.feature, self.branch_of_bin, rows, n_threads)

    def equals(self, other: Split) -> bool:
        """Whether another split sends every bin to the same branch."""
        return (
            isinstance(other, BinSplit)
            and self.feature == other.feature
            and np.array_equal(self.branch_of_bin, other.branch_of_bin)
        )

    def smallest_segment(self, binned: BinnedTable, rows: np.ndarray) -> int:
        """Fewest rows of a segment, or of all categories of one branch."""
        branches = self.branch_of_bin[:-1]
        segment = branches.astype(np.intp)
        if not self.is_categorical:
            segment = np.append(0, np.cumsum(branches[1:] != branches[:-1]))
        codes = binned.columns.array(self.feature)[rows]
        n_rows = np.bincount(codes, minlength=len(branches) + 1)[:-1]
        sizes = np.bincount(segment, n_rows)
        return int(sizes[np.unique(segment)].min())

    def keeping(self, kept: list[int], largest: int) -> BinSplit:
        """Drop the branches that no row takes; their bins go to the largest, a number of `kept`."""
        number = np.full(256, largest, dtype=np.uint8)
        number[kept] = np.arange(len(kept))
        return replace(self, branch_of_bin=number[self.branch_of_bin])


@dataclass(frozen=True)
class PairSplit:
    """A shape function of a pair, ready to send the training rows."""

    shape: PairShape
    columns: Columns

    @cached_property
    def cuts(self) -> PairCuts:
        """What sends rows to branches."""
        return cuts_of(self.shape, self.columns)

    @property
    def extra_parts(self) -> float:
        """Regions beyond two, and one more for being a pair."""
        return float(len(self.shape.branch_of_piece) - 1)

    def branches(self, binned: BinnedTable, rows: np.ndarray, n_threads: int) -> np.ndarray:
        """Branch of each of the given rows."""
        return self.cuts.branches(rows, n_threads)

    def equals(self, other: Split) -> bool:
        """Whether another split has the same cuts and branches."""
        return isinstance(other, PairSplit) and all(
            np.array_equal(getattr(self.shape, name), getattr(other.shape, name), equal_nan=True)
            for name in ("cut_a", "cut_b", "cut_threshold", "branch_of_piece", "missing_branch")
        )

    def smallest_segment(self, binned: BinnedTable, rows: np.ndarray) -> int:
        """Fewest rows of a region."""
        n_regions = len(self.shape.branch_of_piece)
        sizes = np.bincount(regions_of(self.shape, self.columns, rows), minlength=n_regions + 1)
        return int(sizes[:n_regions].min())

    def keeping(self, kept: list[int], largest: int) -> PairSplit:
        """Drop the branches that no row takes; their regions go to the largest."""
        number = np.full(256, largest, dtype=np.int32)
        number[kept] = np.arange(len(kept))
        shape = join_regions(with_branches(self.shape, number, len(kept)))
        return replace(self, shape=shape)


Split = BinSplit | PairSplit


def regions_of(shape: PairShape, columns: Columns, rows: np.ndarray) -> np.ndarray:
    """Region of each row under a pair's shape function; after the last, for missing values."""
    n_regions = len(shape.branch_of_piece)
    numbered = replace(
        shape, branch_of_piece=np.arange(n_regions, dtype=np.int32), missing_branch=n_regions
    )
    return cuts_of(numbered, columns).branches(rows, 1)


def split_of(shape: ShapeFunction | PairShape, binned: BinnedTable, columns: Columns) -> Split:
    """A tree's shape function, for the training rows.

    A bin of an ordered feature goes where its smallest value goes.
    """
    if isinstance(shape, PairShape):
        return PairSplit(shape, columns)
    bins = binned.features[shape.feature]
    branches = np.full(bins.n_bins + 1, shape.missing_branch, dtype=np.uint8)
    if shape.upper is None:
        n_known = min(bins.n_bins, len(shape.branch_of_piece))
        branches[:n_known] = shape.branch_of_piece[:n_known]
    else:
        assert bins.low is not None
        branches[:-1] = shape.branch_of_piece[np.searchsorted(shape.upper, bins.low)]
    return BinSplit(shape.feature, branches, bins.is_categorical)


def shape_of_split(
    split: Split, n_branches: int, rows: np.ndarray, weights: np.ndarray | None, binned: BinnedTable
) -> ShapeFunction | PairShape:
    """A split in the features' own values, as training on the rows that it splits would have it.

    Thresholds lie halfway between bins with rows; missing values go to the largest branch if no row
    lacks the feature.
    """
    branches = split.branches(binned, rows, 1)
    largest = int(np.bincount(branches, weights).argmax())
    if isinstance(split, PairSplit):
        return _pair_shape(split.shape, largest, rows, binned)
    bins = binned.features[split.feature]
    codes = binned.columns.array(split.feature)[rows]
    held = np.bincount(codes, minlength=bins.n_bins + 1) > 0
    if bins.is_categorical:
        # Categories without rows keep the branch they were given when they had some.
        held[:-1] = True
    branch_of_bin = np.where(held, split.branch_of_bin, NO_BRANCH_MARK)
    return shape_from_bins(split.feature, bins, branch_of_bin, n_branches, largest)


def _pair_shape(shape: PairShape, largest: int, rows: np.ndarray, binned: BinnedTable) -> PairShape:
    saw_missing = False
    for feature, positions in zip((shape.first, shape.second), shape.positions, strict=True):
        codes = binned.columns.array(feature)[rows]
        is_missing = codes == binned.features[feature].n_bins
        if len(positions):
            is_missing |= np.isnan(np.append(positions, np.nan))[np.minimum(codes, len(positions))]
        saw_missing |= bool(is_missing.any())
    return replace(shape, saw_missing=saw_missing).with_largest_branch(largest)
