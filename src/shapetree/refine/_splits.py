"""Shape functions of a tree under refinement: over the bins of the training rows, or by cuts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.oblique import PairCuts
from shapetree._core.reduced import count_extra_parts, settle_empty_bins
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
        n_extra = count_extra_parts(self.branch_of_bin, self.is_categorical)
        return (CATEGORY_SHARE if self.is_categorical else 1.0) * n_extra

    def smallest_segment(self, n_rows: np.ndarray) -> int:
        """Fewest rows of a segment, or of all categories of one branch, given rows of the bins."""
        branches = self.branch_of_bin[:-1]
        segment = branches.astype(np.intp)
        if not self.is_categorical:
            segment = np.append(0, np.cumsum(branches[1:] != branches[:-1]))
        sizes = np.bincount(segment, n_rows[:-1])
        return int(sizes[np.unique(segment)].min())

    def keeping(self, kept: list[int], largest: int) -> BinSplit:
        """Drop the branches that no row takes; their bins go to the largest, a number of `kept`."""
        number = np.full(256, largest, dtype=np.uint8)
        number[kept] = np.arange(len(kept))
        return replace(self, branch_of_bin=number[self.branch_of_bin])

    def settled(self, n_rows: np.ndarray, largest: int, binned: BinnedTable) -> BinSplit:
        """Send bins without rows where the finished shape function will send their values.

        Parameters
        ----------
        n_rows : int array of shape (n_bins + 1,)
            Rows of the node in each bin.
        largest : int
            The branch with the most rows.
        binned : BinnedTable

        Returns
        -------
        BinSplit
            This very one if nothing changes.
        """
        bins = binned.features[self.feature]
        branches = settle_empty_bins(self.branch_of_bin, n_rows, bins.low, bins.high, largest)
        return self if branches is None else replace(self, branch_of_bin=branches)

    def shape(
        self, n_branches: int, n_rows: np.ndarray, largest: int, binned: BinnedTable
    ) -> ShapeFunction:
        """The split in the feature's own values, as training on the rows that it splits has it.

        Thresholds lie halfway between bins with rows; missing values go to the largest branch if
        no row lacks the feature.
        """
        held = n_rows > 0
        if self.is_categorical:
            # Categories without rows keep the branch they were given when they had some.
            held[:-1] = True
        branches = np.where(held, self.branch_of_bin, NO_BRANCH_MARK)
        bins = binned.features[self.feature]
        return shape_from_bins(self.feature, bins, branches, n_branches, largest)


@dataclass(frozen=True)
class PairSplit:
    """A shape function of a pair, ready to send the training rows."""

    pair: PairShape
    columns: Columns

    @cached_property
    def cuts(self) -> PairCuts:
        """What sends rows to branches."""
        return cuts_of(self.pair, self.columns)

    @property
    def extra_parts(self) -> float:
        """Regions beyond two, and one more for being a pair."""
        return float(len(self.pair.branch_of_piece) - 1)

    def smallest_segment(self, n_rows: np.ndarray) -> int:
        """Fewest rows of a region, given rows of the regions and of missing values."""
        return int(n_rows[:-1].min())

    def keeping(self, kept: list[int], largest: int) -> PairSplit:
        """Drop the branches that no row takes; their regions go to the largest."""
        number = np.full(256, largest, dtype=np.int32)
        number[kept] = np.arange(len(kept))
        return replace(self, pair=join_regions(with_branches(self.pair, number, len(kept))))

    def settled(self, n_rows: np.ndarray, largest: int, binned: BinnedTable) -> PairSplit:
        """Send missing values to the largest branch if no row lacks a feature."""
        pair = self._of_rows(n_rows, largest)
        return self if pair.missing_branch == self.pair.missing_branch else replace(self, pair=pair)

    def shape(
        self, n_branches: int, n_rows: np.ndarray, largest: int, binned: BinnedTable
    ) -> PairShape:
        """The split as training on the rows that it splits would have it."""
        return self._of_rows(n_rows, largest)

    def _of_rows(self, n_rows: np.ndarray, largest: int) -> PairShape:
        saw_missing = bool(n_rows[-1] > 0)
        return replace(self.pair, saw_missing=saw_missing).with_largest_branch(largest)


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
