"""Histograms of a level's nodes: sibling histograms by subtraction, in pieces that fit memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shapetree.grow._nodes import GrowingNode
from shapetree.grow._rows import Histograms, Rows

# Memory that the histograms of one call may take, and those that wait for the next level.
MAX_BYTES = 2**21
MAX_WAITING_BYTES = 2**22
# Bins of nodes whose shape functions are found together, and fewest nodes that are: enough for
# threads to share.
MAX_BINS_TOGETHER = 2**24
MIN_NODES_TOGETHER = 4
# Visits of a row by a feature that take as long as subtracting one sum.
VISITS_PER_DIFFERENCE = 0.5
# Bins for each row beyond which those without rows are left out.
BINS_PER_CELL = 2


class LevelHistograms:
    """Has the histograms of one level after another summed.

    Parameters
    ----------
    rows : Rows
    offsets : list of int
        Where each feature's bins start in a histogram, and the end.
    n_channels : int
    exact : bool
        Whether bins are too many for histograms of all of them.
    whole : bool
        Whether every node's histogram is read as a whole, as pairs do.
    """

    def __init__(
        self, rows: Rows, offsets: list[int], n_channels: int, exact: bool, whole: bool
    ) -> None:
        self._rows = rows
        self._offsets = offsets
        self._n_sums = offsets[-1] * n_channels
        self._exact = exact
        self._whole = whole

    def batches(self, nodes: list[GrowingNode]) -> Iterator[list[GrowingNode]]:
        """Nodes that are searched together: all, unless their shape functions would fill memory."""
        size = max(MIN_NODES_TOGETHER, MAX_BINS_TOGETHER // self._offsets[-1])
        for first in range(0, len(nodes), size):
            yield nodes[first : first + size]

    def parts(
        self, nodes: list[GrowingNode], keep: bool
    ) -> Iterator[tuple[list[GrowingNode], Histograms]]:
        """The histograms of some nodes, a part of the nodes or of the features at a time.

        Parameters
        ----------
        nodes : list of GrowingNode
        keep : bool
            Whether children will want them, to subtract from.
        """
        bytes_of_node = 8 * self._n_sums
        if self._exact or bytes_of_node > MAX_BYTES or self._are_small(nodes):
            yield from self._by_features(nodes)
            return
        keep &= bytes_of_node * len(nodes) <= MAX_WAITING_BYTES
        size = max(1, MAX_BYTES // max(bytes_of_node, 1))
        for first in range(0, len(nodes), size):
            some = nodes[first : first + size]
            histograms = self._of(some)
            if (keep or self._whole) and histograms.sums is not None:
                for node, sums in zip(some, histograms.sums, strict=True):
                    node.histogram = sums
            yield some, histograms
        for node in nodes:
            if node.parent is not None:
                node.parent.histogram = None

    def _are_small(self, nodes: list[GrowingNode]) -> bool:
        """Whether most bins of most nodes hold no row."""
        n_rows = sum(node.statistics.n_rows for node in nodes)
        n_bins = len(nodes) * self._offsets[-1]
        return not self._whole and BINS_PER_CELL * n_rows * (len(self._offsets) - 1) < n_bins

    def _by_features(
        self, nodes: list[GrowingNode]
    ) -> Iterator[tuple[list[GrowingNode], Histograms]]:
        """Histograms of as many features at a time as fit in memory."""
        n_features = len(self._offsets) - 1
        numbers = np.array([node.number for node in nodes], dtype=np.int32)
        n_rows = sum(node.statistics.n_rows for node in nodes)
        n_cells = min(n_rows * n_features, len(nodes) * self._offsets[-1])
        n_sums = n_cells * self._n_sums // max(self._offsets[-1], 1)
        size = max(1, n_features * MAX_BYTES // max(8 * n_sums, 1))
        for first in range(0, n_features, size):
            last = min(first + size, n_features)
            yield nodes, self._rows.histograms(numbers, first, last, sparse=True)

    def _of(self, nodes: list[GrowingNode]) -> Histograms:
        """Histograms of all features; the largest sibling's by subtraction if that is cheaper."""
        n_features = len(self._offsets) - 1
        wanted = {id(node) for node in nodes}
        by_difference: list[GrowingNode] = []
        for node in nodes:
            parent = node.parent
            if parent is None or parent.histogram is None:
                continue
            sizes = [child.statistics.n_rows for child in parent.below]
            if node is not parent.below[sizes.index(max(sizes))]:
                continue
            unwanted = sum(
                size
                for child, size in zip(parent.below, sizes, strict=True)
                if id(child) not in wanted
            )
            saved = (node.statistics.n_rows - unwanted) * n_features
            if saved > len(sizes) * self._n_sums * VISITS_PER_DIFFERENCE:
                by_difference.append(node)
        differing = {id(node) for node in by_difference}
        direct = [node for node in nodes if id(node) not in differing]
        siblings = [
            child
            for node in by_difference
            if node.parent is not None
            for child in node.parent.below
            if id(child) not in wanted
        ]
        numbers = np.array([node.number for node in direct + siblings], dtype=np.int32)
        histograms = self._rows.histograms(numbers, 0, n_features, sparse=False)
        if not by_difference:
            return histograms
        assert histograms.sums is not None
        place = {id(node): i for i, node in enumerate(direct + siblings)}
        sums = np.empty((len(nodes), *histograms.sums.shape[1:]))
        for i, node in enumerate(nodes):
            if id(node) not in differing:
                sums[i] = histograms.sums[place[id(node)]]
                continue
            assert node.parent is not None
            sums[i] = node.parent.histogram
            for child in node.parent.below:
                if child is not node:
                    sums[i] -= histograms.sums[place[id(child)]]
        return Histograms(0, n_features, sums)
