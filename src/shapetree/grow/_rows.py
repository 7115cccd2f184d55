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

    def of_branches(
        self, node: int, feature: int, offsets: np.ndarray, split: np.ndarray
    ) -> np.ndarray:
        """Sums of each branch of the node in some place, if its feature's bins are split so."""
        if self.sums is not None:
            base = offsets[self.first]
            sums = self.sums[node, offsets[feature] - base : offsets[feature + 1] - base]
            branches = split
        else:
            assert self.cells is not None
            start, n_cells, bin_of_cell, all_sums = self.cells
            at = int(start[node, feature - self.first])
            cells = slice(at, at + int(n_cells[node, feature - self.first]))
            sums, branches = all_sums[cells], split[bin_of_cell[cells]]
        n_branches = int(split[split != 255].max()) + 1
        return (branches == np.arange(n_branches)[:, None]).astype(np.float64) @ sums


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

    def histograms(self, nodes: np.ndarray, first: int, last: int) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1."""
        ...

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        ...
