"""The interface of a holder of rows: a tree can be grown on any that answers these questions.

Nodes are named by numbers, the root by 0; rows stay where they are. Every answer is a sum over a
node's rows, or a bounded sample of them, so that the answers of several holders can be added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets
from shapetree._core.sampling import row_hashes
from shapetree.data._binning import BinnedTable
from shapetree.data._targets import Goal
from shapetree.grow._splits import Split

Result = TypeVar("Result")

# Rows that hold the same values are kept on one side when a node's rows are halved, unless they
# weigh more than this share of the node: few values could not be halved otherwise.
HEAVY_SHARE = 1 / 32
# Cells of a node and feature where bins are too many for a histogram, see `build_cells`.
Cells = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
# Rows of either half to fit on and of the other to see what that is worth.
Halving = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


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


@dataclass(frozen=True)
class Sample:
    """Some of a node's rows, with their own values.

    Attributes
    ----------
    features : tuple of int
        Those that were asked for.
    columns : Columns
        Numbers, or codes of categories, of each of them.
    bins : Columns
        Bins of further features that were asked for.
    targets : Targets
    weights : array of shape (n_rows,)
    content : uint64 array of shape (n_rows,) or None
        The same for rows with the same bins in all features of the data; None if not asked for.
    scale : float
        Weight of the node for each unit of weight here.
    """

    features: tuple[int, ...]
    columns: Columns
    bins: Columns
    targets: Targets
    weights: np.ndarray
    content: np.ndarray | None
    scale: float

    def with_scale(self, scale: float) -> Sample:
        """The same rows, which stand for more."""
        return replace(self, scale=scale)

    @property
    def rows(self) -> np.ndarray:
        """Numbers of all rows."""
        return np.arange(self.columns.n_rows, dtype=np.int32)

    def halvings(self, n_ways: int) -> Iterator[Halving]:
        """Ways to halve the rows, independent of each other.

        Neither the order of the rows nor how often one is repeated changes them.
        """
        assert self.content is not None
        distinct, number = np.unique(self.content, return_inverse=True)
        weight = np.bincount(number, self.weights, minlength=len(distinct))
        is_heavy = (weight > HEAVY_SHARE * weight.sum())[number]
        keys = distinct.view(np.int64)
        for _ in range(n_ways):
            # Every other one by the hashes of contents, then by the hashes of these.
            keys = row_hashes(keys).view(np.int64)
            side = np.empty(len(distinct), dtype=np.int32)
            side[np.argsort(keys)] = np.arange(len(distinct)) % 2
            one, other = (
                np.flatnonzero(is_heavy | (side[number] == half)).astype(np.int32)
                for half in (0, 1)
            )
            yield (one, other), (other, one)


class RowsOfNode(Protocol):
    """The rows of one node, as a search for pairs sees them."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        ...

    def totals(self) -> np.ndarray:
        """Sums of channels."""
        ...

    def histogram(self, own_bins: bool = False) -> np.ndarray:
        """Sums of channels by bin, over the bins that pairs are screened with, or all features'."""
        ...

    def grids(
        self,
        pairs: np.ndarray,
        group_of_bin: np.ndarray,
        n_groups: int,
        max_rows: int | None = None,
    ) -> np.ndarray:
        """Sums of channels by the groups of each pair's features.

        Parameters
        ----------
        pairs : int array of shape (n_pairs, 2)
        group_of_bin : uint8 array of shape (total bins,)
        n_groups : int
            All groups are below it.
        max_rows : int, optional
            Most rows to sum, a sample of all.

        Returns
        -------
        array of shape (n_pairs, n_groups**2, n_channels)
        """
        ...

    def sample(
        self, features: tuple[int, ...], max_rows: int, binned: tuple[int, ...] | None = None
    ) -> Sample:
        """All rows, or a number of them chosen by a hash of their numbers.

        Parameters
        ----------
        features : tuple of int
            Features whose own values are wanted.
        max_rows : int
        binned : tuple of int, optional
            Features whose bins are wanted, and with them a hash of every row's content.
        """
        ...

    def branch_counts(self, split: Split) -> np.ndarray:
        """Rows in each branch of a split."""
        ...


class Rows(Protocol):
    """A holder of binned training rows: in this process, in files or on a cluster."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def call_bytes(self) -> int:
        """Bytes of histograms that one call should ask for at most."""
        ...

    @property
    def is_far(self) -> bool:
        """Whether a question takes a message, so that it is better not to ask for what is known."""
        ...

    def together(self, jobs: Sequence[Callable[[], Result]]) -> list[Result]:
        """Results of jobs that ask for nodes of a level, and send no rows.

        A remote holder may answer several of them at once.
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

        If `sparse`, of bins that hold rows alone: where these are few, that is less work.
        """
        ...

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        ...

    def at(self, node: int, n_rows: int) -> RowsOfNode:
        """The rows of one node, which count as so many."""
        ...


class HeldRows(Rows, Protocol):
    """Rows with their bins and goal, as a fit has them.

    Attributes
    ----------
    binned, coarse : BinnedTable
        Their bins, and those that pairs are screened with; the columns may be elsewhere.
    goal : Goal
    n_threads : int
    """

    @property
    def binned(self) -> BinnedTable:
        """The rows' bins."""
        ...

    @property
    def coarse(self) -> BinnedTable:
        """The bins that pairs are screened with."""
        ...

    @property
    def goal(self) -> Goal:
        """What the rows add to sums."""
        ...

    @property
    def n_threads(self) -> int:
        """Number of threads to use."""
        ...

    def at_roots(self, draws: Sequence[np.ndarray]) -> HeldRows:
        """The rows that are drawn for several trees, at the roots of these.

        A remote holder keeps no other place of its rows.

        Parameters
        ----------
        draws : sequence of int32 arrays
            Numbers of rows in the whole data, ascending, each as often as it is drawn.
        """
        ...
