"""Rows behind one interface: whoever can answer these questions can have a tree grown.

Nodes are named by numbers, the root by 0; rows stay where they are. Every answer is a sum over a
node's rows, or a bounded sample of them, so that the answers of several holders can be added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shapetree.grow._splits import Split

# Cells of a node and feature where bins are too many for a histogram, see `build_cells`.
Cells = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Histograms:
    """Sums of some nodes' rows by bin, for the features first..last-1.

    Attributes
    ----------
    first, last : int
    sums : array of shape (n_nodes, bins of these features, n_channels) or None
    cells : tuple of arrays or None
        In exact mode, the bins that hold rows alone, see `shapetree._core.histogram.build_cells`.
    """

    first: int
    last: int
    sums: np.ndarray | None
    cells: Cells | None = None


class Rows(Protocol):
    """Whoever holds binned training rows: this process, files, a cluster."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def totals(self, nodes: np.ndarray) -> np.ndarray:
        """Sums of the channels over the rows of each node, (n_nodes, n_channels)."""
        ...

    def spreads(
        self, nodes: np.ndarray, centres: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and greatest target of each node, and how far all lie from a centre in sum."""
        ...

    def medians(self, nodes: np.ndarray) -> np.ndarray:
        """Medians of the targets of each node, (n_nodes, n_outputs)."""
        ...

    def histograms(self, nodes: np.ndarray, first: int, last: int, sparse: bool) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1.

        If `sparse`, of bins that hold rows alone: where these are few, that is less work.
        """
        ...

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        ...
