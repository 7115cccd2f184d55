"""Splits: where a node sends the bins of one feature, or the plane of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from shapetree._core.search import BinSplit
from shapetree.data._binning import FeatureBins
from shapetree.tree._shape import PairShape, ShapeFunction, shape_from_bins


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


Split: TypeAlias = BinSplit | PairSplit


def shape_of_split(
    split: Split,
    bins: tuple[FeatureBins, ...],
    largest_branch: int,
    n_rows: np.ndarray | None = None,
) -> ShapeFunction | PairShape:
    """A split in the features' own values.

    Parameters
    ----------
    largest_branch : int
        Where values go if training saw none like them.
    n_rows : int array, optional
        Rows of each bin, see `shape_from_bins`.
    """
    if isinstance(split, PairSplit):
        return split.cuts.with_largest_branch(largest_branch)
    return shape_from_bins(
        split.feature, bins[split.feature], split.branch_of_bin, split.n_branches, largest_branch,
        n_rows,
    )  # fmt: skip


def number_cuts(low: list[int]) -> tuple[list[int], list[int], np.ndarray, np.ndarray]:
    """Number the cuts and regions of a binary tree, each from low to high.

    Parameters
    ----------
    low : list of int
        The child below a node's cut, the one above follows it; -1 for regions.

    Returns
    -------
    cuts, regions : lists of int
        Nodes that are cuts, and nodes that are regions, in their new order.
    cut_low, cut_high : int32 arrays of shape (n_cuts,)
        Where points go that are not, or are, above a cut: to cut c, or to region p, written as
        -1 - p.
    """
    cuts: list[int] = []
    regions: list[int] = []
    number = [0] * len(low)
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if low[node] < 0:
            number[node] = -1 - len(regions)
            regions.append(node)
        else:
            number[node] = len(cuts)
            cuts.append(node)
            waiting += [low[node] + 1, low[node]]
    cut_low = np.array([number[low[cut]] for cut in cuts], dtype=np.int32)
    cut_high = np.array([number[low[cut] + 1] for cut in cuts], dtype=np.int32)
    return cuts, regions, cut_low, cut_high
