"""How a tree is refined."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shapetree.data._targets import Prices
from shapetree.refine._copies import CopiesOptions


@dataclass(frozen=True)
class RefineOptions:
    """How a tree is refined."""

    max_sweeps: int
    prices: Prices  # what each leaf beyond the first, and each part beyond two, must earn
    max_segments: int  # of an axis, or regions of a plane
    max_listed: int  # categories that have to be listed
    min_segment_rows: int  # where there are more than two segments
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: float
    least_rows: int = 1  # below which leaves join others when all is done
    many_rows: float = math.inf  # weight of a node from which on parts cost more, see `parts_price`
    copies: CopiesOptions | None = None  # how the paper's step is made; None for the exact one

    @property
    def limits_rows(self) -> bool:
        """Whether anything needs more rows than it has by itself."""
        return (
            self.min_segment_rows > 1
            or self.min_samples_split > 2
            or self.min_samples_leaf > 1
            or self.min_weight_leaf > 0
        )
