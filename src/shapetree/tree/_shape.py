"""Shape functions: which branch the values of a feature, or of a pair of features, are sent to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from shapetree._core.pieces import pieces_of_bins
from shapetree._core.search import NO_BRANCH_MARK
from shapetree.data._binning import FeatureBins


@dataclass(frozen=True, slots=True)
class ShapeFunction:
    """A piecewise-constant map from one feature to branches 0 .. n_branches - 1."""

    feature: int
    n_branches: int
    # An ordered feature's piece p holds the values up to and including `upper[p]` that are above
    # the piece before; the last bound is infinite. None for a categorical feature, whose piece p is
    # its category p. Shape (n_pieces,).
    upper: np.ndarray | None
    branch_of_piece: np.ndarray  # shape (n_pieces,)
    missing_branch: int  # branch of missing values and unknown categories
    saw_missing: bool  # whether rows decided on that branch; otherwise it is just the largest


# What a pair has an entry of for each of its cuts.
CUT_ARRAYS = "cut_a", "cut_b", "cut_threshold", "cut_low", "cut_high"

Shape = TypeVar("Shape", bound="ShapeFunction | PairShape")


def shape_from_bins(
    feature: int,
    bins: FeatureBins,
    branch_of_bin: np.ndarray,
    n_branches: int,
    largest_branch: int,
    n_rows: np.ndarray | None = None,
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
        Where values go if training saw none like them.
    n_rows : int array of shape (bins.n_bins + 1,), optional
        Rows of each bin, if all have a branch. Categories without rows keep theirs.
    """
    saw_missing = bool(branch_of_bin[-1] != NO_BRANCH_MARK if n_rows is None else n_rows[-1] > 0)
    missing_branch = int(branch_of_bin[-1]) if saw_missing else largest_branch
    upper = None
    if bins.low is None or bins.high is None:
        branch = branch_of_bin[:-1].astype(np.int32)
        branch[branch == NO_BRANCH_MARK] = largest_branch
    else:
        ends, branch = pieces_of_bins(branch_of_bin, bins.low, bins.high, n_rows)
        if bins.is_whole:
            ends = np.floor(ends)  # parts whole numbers in the same way
        if bins.has_places:
            branch = branch[np.searchsorted(ends, bins.low)]
        else:
            upper = ends
    return ShapeFunction(feature, n_branches, upper, branch, missing_branch, saw_missing)


@dataclass(frozen=True)
class PairShape:
    """A piecewise-constant map from a pair of features to branches 0 .. n_branches - 1.

    Its pieces are the regions that an inner tree cuts the plane into. Cut 0 comes first; a cut
    sends a point up if `cut_a * u + cut_b * v > cut_threshold`, where u and v are the first and the
    second feature's values, or the positions of their categories. Infinite values count as the
    greatest finite ones.
    """

    # The pair of features.
    first: int
    second: int
    n_branches: int
    # `cut_a` is 0 or 1. Shape (n_cuts,).
    cut_a: np.ndarray
    cut_b: np.ndarray
    cut_threshold: np.ndarray
    # Where points go that are not, or are, above the cut: to a later cut c, or to piece p, written
    # as -1 - p. Shape (n_cuts,).
    cut_low: np.ndarray
    cut_high: np.ndarray
    branch_of_piece: np.ndarray  # shape (n_cuts + 1,)
    # For a categorical feature, its categories' places in the node's own order, NaN for those that
    # count as missing; empty for an ordered feature.
    positions: tuple[np.ndarray, np.ndarray]
    missing_branch: int  # branch of rows that lack either feature
    saw_missing: bool  # whether rows decided on that branch; otherwise it is just the largest

    def with_largest_branch(self, largest_branch: int) -> PairShape:
        """Send missing values to the largest branch, unless rows have decided where to."""
        return self if self.saw_missing else replace(self, missing_branch=largest_branch)


def with_branches(shape: Shape, new_branch: np.ndarray, n_branches: int) -> Shape:
    """Send to branch `new_branch[b]` what went to branch b."""
    return replace(
        shape,
        n_branches=n_branches,
        branch_of_piece=new_branch[shape.branch_of_piece].astype(np.int32),
        missing_branch=int(new_branch[shape.missing_branch]),
    )


def join_pieces(shape: ShapeFunction | PairShape) -> ShapeFunction | PairShape:
    """Make one piece of neighbours that go to one branch; each category keeps its own."""
    if isinstance(shape, PairShape):
        return join_regions(shape)
    return shape if shape.upper is None else _join_intervals(shape, shape.upper)


def _join_intervals(shape: ShapeFunction, upper: np.ndarray) -> ShapeFunction:
    """Keep the last of neighbouring pieces that go to one branch."""
    branch = shape.branch_of_piece
    last = np.append(branch[1:] != branch[:-1], True)
    return replace(shape, upper=upper[last], branch_of_piece=branch[last])


def join_regions(shape: PairShape) -> PairShape:
    """Leave out cuts with the same branch on both sides, except the first: a pair needs one."""
    branch = shape.branch_of_piece
    low, high = shape.cut_low.copy(), shape.cut_high.copy()
    region_of: dict[int, int] = {}  # in place of a cut that is left out
    for cut in range(len(low) - 1, -1, -1):
        low[cut] = region_of.get(low[cut], low[cut])
        high[cut] = region_of.get(high[cut], high[cut])
        both_regions = low[cut] < 0 and high[cut] < 0
        if cut > 0 and both_regions and branch[-1 - low[cut]] == branch[-1 - high[cut]]:
            region_of[cut] = low[cut]
    cuts = np.setdiff1d(np.arange(len(low)), list(region_of))
    targets = np.stack([low[cuts], high[cuts]])
    regions = np.unique(-1 - targets[targets < 0])
    cut_low, cut_high = np.where(
        targets < 0, -1 - np.searchsorted(regions, -1 - targets), np.searchsorted(cuts, targets)
    )
    return replace(
        shape,
        cut_a=shape.cut_a[cuts],
        cut_b=shape.cut_b[cuts],
        cut_threshold=shape.cut_threshold[cuts],
        cut_low=cut_low.astype(np.int32),
        cut_high=cut_high.astype(np.int32),
        branch_of_piece=branch[regions],
    )


def flatten_shapes(shapes: list[ShapeFunction | PairShape | None]) -> dict[str, np.ndarray]:
    """Lay out the nodes' shape functions, None for leaves, as `TreeArrays` keeps them."""
    pieces = [_NOTHING if shape is None else shape.branch_of_piece for shape in shapes]
    n_pieces = [len(branches) for branches in pieces]
    uppers = [
        shape.upper
        if isinstance(shape, ShapeFunction) and shape.upper is not None
        else np.full(n, np.nan)
        for shape, n in zip(shapes, n_pieces, strict=True)
        if shape is not None
    ]
    return {
        "feature": np.array([_first_feature(shape) for shape in shapes]),
        "missing_branch": np.array([shape.missing_branch if shape else -1 for shape in shapes]),
        "saw_missing": np.array([shape is not None and shape.saw_missing for shape in shapes]),
        "piece_start": starts(n_pieces),
        "piece_upper": np.concatenate([_NOTHING, *uppers]),
        "piece_branch": np.concatenate(pieces),
        **_flatten_pairs([shape if isinstance(shape, PairShape) else None for shape in shapes]),
    }


def _flatten_pairs(pairs: list[PairShape | None]) -> dict[str, np.ndarray]:
    """What only pairs have; None for nodes that split on one feature, or not at all."""
    if not any(pairs):
        return without_pairs(len(pairs))
    positions = [
        place for pair in pairs for place in (pair.positions if pair else (_NOTHING, _NOTHING))
    ]

    def of_cuts(name: str) -> np.ndarray:
        return np.concatenate([getattr(pair, name) if pair else _NOTHING for pair in pairs])

    return {
        "second_feature": np.array([pair.second if pair else -1 for pair in pairs]),
        "cut_start": starts([len(pair.cut_a) if pair else 0 for pair in pairs]),
        **{name: of_cuts(name) for name in CUT_ARRAYS},
        "position_start": starts([len(place) for place in positions]),
        "position": np.concatenate(positions),
    }


def without_pairs(n_nodes: int) -> dict[str, np.ndarray]:
    """The same for a tree without pairs."""
    return {
        "second_feature": np.full(n_nodes, -1),
        # Zeros that are not written take no memory.
        "cut_start": np.zeros(n_nodes + 1, dtype=np.int64),
        "position_start": np.zeros(2 * n_nodes + 1, dtype=np.int64),
        **dict.fromkeys((*CUT_ARRAYS, "position"), _NOTHING),
    }


_NOTHING = np.empty(0)


def _first_feature(shape: ShapeFunction | PairShape | None) -> int:
    if shape is None:
        return -1
    return shape.first if isinstance(shape, PairShape) else shape.feature


def starts(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each of some parts starts when they stand one after another, and the end."""
    found = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=found[1:])
    return found
