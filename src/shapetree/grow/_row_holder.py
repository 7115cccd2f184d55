"""The interface of a holder of rows: a tree can be grown on any that answers these questions.

Nodes are named by numbers, the root by 0; rows stay where they are. Every answer is a sum over a
node's rows, or a bounded sample of them, so that the answers of several holders can be added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shapetree._core.histogram import LevelRows
from shapetree.data._binning import BinnedTable
from shapetree.data._map_join import Inquiry, Result
from shapetree.data._targets import Goal
from shapetree.grow._splits import Split

# Cells of a node and feature where bins are too many for a histogram, see `build_cells`.
Cells = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Histograms:
    """Sums of some nodes' rows by bin, for the features first..last-1.

    Attributes
    ----------
    sums : array of shape (n_nodes, bins of these features, n_channels) or None
    cells : tuple of arrays or None
        The bins that hold rows alone, see `shapetree._core.histogram.build_cells`.
    rows : LevelRows or None
        Rows at hand, to be summed when they are searched.
    """

    first: int
    last: int
    sums: np.ndarray | None = None
    cells: Cells | None = None
    rows: LevelRows | None = None


class Rows(Protocol):
    """A holder of binned training rows: in this process, in files or on a cluster."""

    binned: BinnedTable  # whose columns may be remote
    coarse: BinnedTable  # the bins that pairs are screened with
    goal: Goal  # what the rows add to sums
    n_threads: int
    # Whether a question takes a message, so that it is better not to ask for what is known.
    is_remote: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def call_bytes(self) -> int:
        """Bytes of histograms that one call should ask for at most."""
        ...

    def run(self, inquiries: Sequence[Inquiry[Result]]) -> list[Result]:
        """Results of inquiries that ask functions of `LocalRows`.

        A remote holder answers the questions of several of them at once.
        """
        ...

    def totals(self, nodes: np.ndarray) -> np.ndarray:
        """Sums of the channels over the rows of each node, (n_nodes, n_channels)."""
        ...

    def spreads(
        self, nodes: np.ndarray, centres: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and greatest target of each node, and how far all lie from a centre in sum."""
        ...

    def sums(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Sums of the targets of each node, (n_nodes, n_outputs), on grids of as many units."""
        ...

    def medians(self, nodes: np.ndarray) -> np.ndarray:
        """Medians of the targets of each node, (n_nodes, n_outputs)."""
        ...

    def histograms(self, nodes: np.ndarray, first: int, last: int, sparse: bool) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1.

        If `sparse`, of bins that hold rows alone: where these are few, that is less work. Rows at
        hand are summed only when they are searched, if histograms are not to be kept.
        """
        ...

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        ...

    def at_roots(self, draws: Sequence[np.ndarray]) -> Rows:
        """The rows that are drawn for several trees, at the roots of these.

        A remote holder keeps no other place of its rows.

        Parameters
        ----------
        draws : sequence of int32 arrays
            Numbers of rows in the whole data, ascending, each as often as it is drawn.
        """
        ...
