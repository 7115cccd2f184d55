"""How a tree is refined."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RefineOptions:
    """How a tree is refined.

    Attributes
    ----------
    max_sweeps : int
    many_rows : float
        Weight of a node from which on its extra parts cost more, see `parts_price`.
    penalty : float
        What each segment beyond two and each branch beyond the first must earn, in penalty units.
    max_segments : int
    min_segment_rows : int
        Fewest rows of a segment, where there are more than two.
    min_samples_split : int
    min_samples_leaf : int
    min_weight_leaf : float
    least_leaf : float
        Weight below which leaves join others when all is done.
    """

    max_sweeps: int
    penalty: float
    max_segments: int
    min_segment_rows: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: float
    least_leaf: float = 0.0
    many_rows: float = math.inf

    @property
    def limits_rows(self) -> bool:
        """Whether anything needs more rows than it has by itself."""
        return (
            self.min_segment_rows > 1
            or self.min_samples_split > 2
            or self.min_samples_leaf > 1
            or self.min_weight_leaf > 0
        )
