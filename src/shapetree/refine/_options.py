"""How a tree is refined."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shapetree.data._targets import Prices
from shapetree.refine._copies import CopiesOptions


@dataclass(frozen=True)
class RefineOptions:
    """How a tree is refined.

    Attributes
    ----------
    max_sweeps : int
    many_rows : float
        Weight of a node from which on its extra parts cost more, see `parts_price`.
    prices : Prices
        What each leaf beyond the first, and each segment or region beyond two, must earn.
    max_segments : int
        Most segments of an axis, or regions of a plane.
    max_listed : int
        Most categories that have to be listed.
    min_segment_rows : int
        Fewest rows of a segment, where there are more than two.
    min_samples_split : int
    min_samples_leaf : int
    min_weight_leaf : float
    least_rows : int
        Rows below which leaves join others when all is done.
    copies : CopiesOptions or None
        How the paper's step is made; None for the exact one.
    """

    max_sweeps: int
    prices: Prices
    max_segments: int
    max_listed: int
    min_segment_rows: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: float
    least_rows: int = 1
    many_rows: float = math.inf
    copies: CopiesOptions | None = None

    @property
    def limits_rows(self) -> bool:
        """Whether anything needs more rows than it has by itself."""
        return (
            self.min_segment_rows > 1
            or self.min_samples_split > 2
            or self.min_samples_leaf > 1
            or self.min_weight_leaf > 0
        )
