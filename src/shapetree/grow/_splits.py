"""Splits: where a node sends the bins of one feature, or the plane of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.pair_cuts import PairCuts
from shapetree.data._binning import FeatureBins
from shapetree.tree._shape import PairShape, ShapeFunction, shape_from_bins


class BinSplit(NamedTuple):
    """A shape function of one feature as the branch of each bin.

    Attributes
    ----------
    feature : int
    n_branches : int
    branch_of_bin : uint8 array of shape (n_bins + 1,)
        The missing bin comes last; NO_BRANCH_MARK for bins that hold no row of the node.
    """

    feature: int
    n_branches: int
    branch_of_bin: np.ndarray

    @property
    def features(self) -> tuple[int, ...]:
        """The feature that it splits on."""
        return (self.feature,)

    def shape(
        self,
        bins: tuple[FeatureBins, ...],
        largest_branch: int,
        n_rows: np.ndarray | None = None,
    ) -> ShapeFunction:
        """The split in the feature's own values; see `shape_from_bins`."""
        return shape_from_bins(
            self.feature, bins[self.feature], self.branch_of_bin, self.n_branches, largest_branch,
            n_rows,
        )  # fmt: skip


@dataclass(frozen=True)
class PairSplit:
    """A shape function of a pair by its cuts, in the features' own values."""

    cuts: PairShape

    @property
    def n_branches(self) -> int:
        """Number of branches."""
        return self.cuts.n_branches

    @property
    def features(self) -> tuple[int, ...]:
        """The features that it splits on."""
        return self.cuts.first, self.cuts.second

    def shape(self, bins: tuple[FeatureBins, ...], largest_branch: int) -> PairShape:
        """The split; missing values go to the largest branch if it has seen none."""
        return self.cuts.with_largest_branch(largest_branch)


Split = BinSplit | PairSplit


def cuts_of(shape: PairShape, columns: Columns) -> PairCuts:
    """A pair's shape function, ready to send a table's rows to branches."""
    return PairCuts(
        columns, shape.first, shape.second, *shape.positions,
        shape.cut_a, shape.cut_b, shape.cut_threshold, shape.cut_low, shape.cut_high,
        shape.branch_of_piece, shape.missing_branch,
    )  # fmt: skip


def regions_of(shape: PairShape, columns: Columns) -> PairCuts:
    """The same, ready to tell the rows' regions; that of missing values comes last."""
    n_regions = len(shape.branch_of_piece)
    return PairCuts(
        columns, shape.first, shape.second, *shape.positions,
        shape.cut_a, shape.cut_b, shape.cut_threshold, shape.cut_low, shape.cut_high,
        np.arange(n_regions, dtype=np.int32), n_regions,
    )  # fmt: skip
