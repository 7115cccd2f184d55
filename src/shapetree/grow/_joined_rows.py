"""Rows that several holders have between them, behind the interface of one.

Every answer is a sum over rows, or the least of them, the greatest, or a sample: answers of parts
of the rows are joined to the answer for all, bit for bit, in whatever order they are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from shapetree._core.histogram import join_cells
from shapetree.data._binning import BinnedTable
from shapetree.data._map_join import (
    ChangingParts,
    Inquiry,
    Join,
    MappedParts,
    Result,
    Then,
    add,
    run_inquiries,
)
from shapetree.data._targets import Goal, medians_of
from shapetree.grow._local import LocalRows
from shapetree.grow._row_holder import Histograms
from shapetree.grow._splits import Split

# Bytes of histograms that one call asks for: as few calls as memory allows.
CALL_BYTES = 2**27
# Inquiries whose questions are asked together; the grids of each may take some memory.
INQUIRIES_AT_ONCE = 8


def rows_of(part: Any) -> LocalRows:
    """The rows of a part, which may have more beside them while the tree is refined."""
    rows: LocalRows = part if isinstance(part, LocalRows) else part.rows
    return rows


class JoinedRows:
    """Rows of several holders; see `Rows`.

    Parameters
    ----------
    parts : ChangingParts
        The `LocalRows` of each, which never change: splits make others.
    binned, coarse : BinnedTable
        The bins of all rows, whose columns need not be there.
    goal : Goal
        That of all rows.
    n_threads : int
        Threads for what is done beside asking.
    """

    call_bytes = CALL_BYTES
    is_remote = True

    def __init__(
        self,
        parts: ChangingParts,
        binned: BinnedTable,
        coarse: BinnedTable | None,
        goal: Goal,
        n_threads: int,
    ) -> None:
        self.parts = parts
        self.binned = binned
        self.coarse = binned if coarse is None else coarse
        self.goal = goal
        self.n_threads = n_threads

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.binned.n_rows

    def run(self, inquiries: Sequence[Inquiry[Result]]) -> list[Result]:
        """Results of inquiries, some of them at once."""
        return run_inquiries(inquiries, MappedParts(self.parts, rows_of), INQUIRIES_AT_ONCE)

    def _ask(
        self, of: Callable[..., Any], join: Join, finish: Callable[..., Any] | None = None
    ) -> Any:
        return self.parts.ask(Then(rows_of, of), join, finish)

    def totals(self, nodes: np.ndarray) -> np.ndarray:
        """Sums of the channels over the rows of each node, (n_nodes, n_channels)."""
        return np.asarray(self._ask(partial(LocalRows.totals, nodes=nodes), add))

    def spreads(
        self, nodes: np.ndarray, centres: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and greatest target of each node, and how far all lie from a centre in sum."""
        of = partial(LocalRows.spreads, nodes=nodes, centres=centres)
        least, greatest, sums = self._ask(of, join_spreads)
        return least, greatest, sums

    def sums(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Sums of the targets of each node, (n_nodes, n_outputs), on grids of as many units."""
        return np.asarray(self._ask(partial(LocalRows.sums, nodes=nodes, units=units), add))

    def medians(self, nodes: np.ndarray) -> np.ndarray:
        """Medians of the targets of each node, (n_nodes, n_outputs)."""
        return self.medians_of(nodes.tolist(), False)

    def medians_of(self, nodes: list[int], standardised: bool) -> np.ndarray:
        """The same, of targets as they are or centred and scaled."""
        of = partial(LocalRows.targets_of, nodes=nodes, standardised=standardised)
        return np.asarray(self._ask(of, join_targets, medians_of_nodes))

    def histograms(self, nodes: np.ndarray, first: int, last: int, sparse: bool) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1."""
        if sparse:
            of = partial(LocalRows.cells, nodes=nodes, first=first, last=last)
            found = self._ask(of, join_sparse)
        else:
            sums = partial(LocalRows.histograms, nodes=nodes, first=first, last=last, sparse=False)
            found = self._ask(sums, join_histograms)
        assert isinstance(found, Histograms)
        return found

    def at_roots(self, draws: Sequence[np.ndarray]) -> JoinedRows:
        """The rows that are drawn for several trees, at the roots of these; see `Rows`."""
        self.parts.change(partial(LocalRows.at_roots, draws=draws))
        return self

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        self.parts.change(
            partial(LocalRows.after_split, nodes=nodes, first_child=first_child, splits=splits)
        )


# --- how answers are joined ---


def join_spreads(answers: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join least and greatest values, and sums."""
    least, greatest, sums = zip(*answers, strict=True)
    return np.min(least, axis=0), np.max(greatest, axis=0), add(sums)


def join_histograms(answers: list[Histograms]) -> Histograms:
    """Join sums by bin."""
    first = answers[0]
    return Histograms(first.first, first.last, add([each.sums for each in answers]))


def join_sparse(answers: list[Histograms]) -> Histograms:
    """Join sums of bins that hold rows."""
    first = answers[0]
    cells = [each.cells for each in answers if each.cells is not None]
    return Histograms(first.first, first.last, cells=join_cells(cells))


def join_targets(answers: list[Any]) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Join targets and weights of nodes' rows."""
    joined = []
    for parts in zip(*answers, strict=True):
        values, weights = zip(*parts, strict=True)
        joined.append(
            (np.concatenate(values), None if weights[0] is None else np.concatenate(weights))
        )
    return joined


def medians_of_nodes(targets: list[tuple[np.ndarray, np.ndarray | None]]) -> np.ndarray:
    """Medians of nodes' targets, (n_nodes, n_outputs)."""
    return np.array([medians_of(values, weights) for values, weights in targets])
