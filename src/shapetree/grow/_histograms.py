"""Histograms of a level's nodes: sibling histograms by subtraction, in pieces that fit memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from shapetree._core.histogram import room_for_sums
from shapetree.grow._nodes import GrownTree, Level
from shapetree.grow._row_holder import Histograms, Rows

# Calls whose histograms may wait for the next level.
CALLS_THAT_WAIT = 2
# Bins of nodes whose shape functions are found together, and fewest nodes that are: enough for
# threads to share.
MAX_BINS_TOGETHER = 2**22
MIN_NODES_TOGETHER = 4
# Visits of a row by a feature that take as long as subtracting one sum.
VISITS_PER_DIFFERENCE = 0.5
# Bins for each row beyond which those without rows are left out.
BINS_PER_CELL = 2
# Rows of a node at hand, for each sum of a feature's histogram, from which on its histogram is kept
# as a whole for its children. Smaller nodes are summed as they are searched, by the features that
# they may be split on.
ROWS_PER_SUM = 16


@dataclass(frozen=True, eq=False)
class Request:
    """Histograms to ask a holder of rows for, and the nodes of a level that they tell of.

    Attributes
    ----------
    nodes : int array
        Their places in the level.
    asked : tuple
        Arguments of `Rows.histograms`.
    differing : dict of int to range
        Nodes whose histograms are differences from their parents', with their families.
    kept : set of int
        Nodes whose histograms children will want.
    """

    nodes: np.ndarray
    asked: tuple[np.ndarray, int, int, bool]
    differing: dict[int, range] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)


class LevelHistograms:
    """Says which histograms of one level after another have to be summed, and makes the others.

    Parameters
    ----------
    tree : GrownTree
        Whose nodes these are.
    offsets : list of int
        Where each feature's bins start in a histogram, and the end.
    exact : bool
        Whether bins are too many for histograms of all of them.
    whole : bool
        Whether every node's histogram is read as a whole, as pairs do.

    Attributes
    ----------
    kept : dict
        Histograms of some nodes, for their children to subtract from.
    """

    def __init__(
        self,
        rows: Rows,
        tree: GrownTree,
        offsets: list[int],
        n_channels: int,
        exact: bool,
        whole: bool,
    ) -> None:
        self._rows = rows
        self._tree = tree
        self._offsets = offsets
        self._n_features = len(offsets) - 1
        self._n_sums = offsets[-1] * n_channels
        self._exact = exact
        self._whole = whole
        self._max_bytes = rows.call_bytes
        self.kept: dict[int, np.ndarray] = {}

    def batches(self, level: Level) -> Iterator[slice]:
        """Nodes that are searched together: all, unless their shape functions would fill memory.

        Or their histograms, where all of these are kept until then.
        """
        size = max(MIN_NODES_TOGETHER, MAX_BINS_TOGETHER // self._offsets[-1])
        keeps_all = self._whole and not self._exact and 0 < 8 * self._n_sums <= self._max_bytes
        if keeps_all:
            size = min(size, self._max_bytes // (8 * self._n_sums))
        for first in range(0, len(level), size):
            some = slice(first, min(first + size, len(level)))
            yield some
            if keeps_all and 8 * self._n_sums * len(self.kept) > CALLS_THAT_WAIT * self._max_bytes:
                for number in level.numbers[some].tolist():
                    self.kept.pop(number, None)

    def requests(self, level: Level, keep: bool) -> Iterator[Request]:
        """What to ask for the histograms of some nodes, a part of the nodes or features at a time.

        The next request comes after the histograms of the one before were made.

        Parameters
        ----------
        keep : bool
            Whether children will want them, to subtract from.
        """
        numbers, are_large = level.numbers, self._are_large(level)
        are_whole = are_large.copy()
        parents = self._parents(numbers) if self.kept else []
        if self.kept:
            are_whole |= [parent in self.kept for parent in parents]
        if self._rows.is_remote and not are_whole.all():
            yield from self._by_features(level)
            return
        if not are_whole.all():
            nodes = np.flatnonzero(~are_whole)
            yield Request(nodes, (numbers[nodes], 0, self._n_features, True))
        whole = np.flatnonzero(are_whole)
        bytes_of_node = 8 * self._n_sums
        keep &= bytes_of_node * int(are_large.sum()) <= CALLS_THAT_WAIT * self._max_bytes
        size = max(1, self._max_bytes // max(bytes_of_node, 1))
        for first in range(0, len(whole), size):
            some = whole[first : first + size]
            kept = some[are_large[some]] if keep or self._whole else some[:0]
            differing, summed = self._differing(numbers[some])
            asked = summed, 0, self._n_features, False
            yield Request(some, asked, differing, set(numbers[kept].tolist()))
        for parent in self.kept.keys() & parents:
            del self.kept[parent]

    def completed(
        self, level: Level, request: Request, found: Histograms
    ) -> Iterator[tuple[np.ndarray, Histograms]]:
        """Places of a request's nodes in the level, and their histograms, made of those found."""
        parts = [(request.nodes, found)]
        if request.differing:
            parts = self._with_differences(level, request, found)
        for nodes, histograms in parts:
            if request.kept:
                assert histograms.sums is not None
                numbers = level.numbers[nodes].tolist()
                for number, sums in zip(numbers, histograms.sums, strict=True):
                    if number in request.kept:
                        self.kept[number] = sums
            yield nodes, histograms

    def _are_large(self, level: Level) -> np.ndarray:
        """Which nodes' histograms are worth being kept as a whole, for children to subtract from.

        The histograms of these children are summed as a whole, too, whatever their size.
        """
        n_rows = level.statistics.n_rows
        if self._exact or 8 * self._n_sums > self._max_bytes:
            return np.zeros(len(level), dtype=bool)
        if self._whole:
            return np.ones(len(level), dtype=bool)
        if self._rows.is_remote:
            n_bins = len(level) * self._offsets[-1]
            are_small = BINS_PER_CELL * int(n_rows.sum()) * self._n_features < n_bins
            return np.full(len(level), not are_small)
        return np.asarray(n_rows * self._n_features >= ROWS_PER_SUM * self._n_sums)

    def _parents(self, numbers: np.ndarray) -> list[int]:
        """Parents of nodes; -1 for roots, and for children that are only tried."""
        parent, n_nodes = self._tree.parent, self._tree.n_nodes
        return [parent[number] if number < n_nodes else -1 for number in numbers.tolist()]

    def _by_features(self, level: Level) -> Iterator[Request]:
        """Sums of bins that hold rows, for as many features at a time as fit in memory."""
        n_rows = int(level.statistics.n_rows.sum())
        n_cells = min(n_rows * self._n_features, len(level) * self._offsets[-1])
        n_sums = n_cells * self._n_sums // max(self._offsets[-1], 1)
        size = max(1, self._n_features * self._max_bytes // max(8 * n_sums, 1))
        for first in range(0, self._n_features, size):
            last = min(first + size, self._n_features)
            yield Request(np.arange(len(level)), (level.numbers, first, last, True))

    def _differing(self, numbers: np.ndarray) -> tuple[dict[int, range], np.ndarray]:
        """Nodes whose histograms come by subtraction, with their families; and which to sum.

        Of siblings the largest, where that is cheaper.
        """
        tree, n_features = self._tree, self._n_features
        wanted = set(numbers.tolist())
        differing: dict[int, range] = {}
        unwanted: list[int] = []
        each = zip(numbers.tolist(), self._parents(numbers), strict=True) if self.kept else ()
        for number, parent in each:
            if parent not in self.kept:
                continue
            family = tree.children(parent)
            sizes = tree.n_rows[family.start : family.stop]
            if number != family[sizes.index(max(sizes))]:
                continue
            others = [child for child in family if child not in wanted]
            saved = tree.n_rows[number] - sum(tree.n_rows[child] for child in others)
            if saved * n_features > len(sizes) * self._n_sums * VISITS_PER_DIFFERENCE:
                differing[number] = family
                unwanted += others
        is_summed = [number not in differing for number in numbers.tolist()]
        return differing, np.append(numbers[is_summed], np.array(unwanted, dtype=np.int32))

    def _with_differences(
        self, level: Level, request: Request, found: Histograms
    ) -> list[tuple[np.ndarray, Histograms]]:
        """The histograms that were summed, and those that differ from their parents' by these."""
        assert found.sums is not None
        nodes, differing = request.nodes, request.differing
        differs = np.array([n in differing for n in level.numbers[nodes].tolist()], dtype=bool)
        sums_of = dict(zip(request.asked[0].tolist(), found.sums, strict=True))
        sums = room_for_sums(len(differing), *found.sums.shape[1:])
        for own, number in zip(sums, differing, strict=True):
            first, *others = [child for child in differing[number] if child != number]
            np.subtract(self.kept[self._tree.parent[number]], sums_of[first], out=own)
            for child in others:
                own -= sums_of[child]
        n_wanted = len(nodes) - len(differing)
        summed = replace(found, sums=found.sums[:n_wanted])
        return [(nodes[~differs], summed), (nodes[differs], replace(found, sums=sums))]
