from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns
from shapetree._core.leaf_losses import LeafLosses
from shapetree._core.pair_cuts import PairCuts
from shapetree._core.rows import NodeRows

class RoutedRows:
    n_nodes: int
    max_branches: int
    n_rows: int
    def __init__(self, bins: Columns, rows: NodeRows, n_nodes: int, max_branches: int) -> None: ...
    def set_leaf(self, node: int) -> None: ...
    def set_bins(
        self, node: int, children: Sequence[int], feature: int, branch_of_bin: NDArray[Any]
    ) -> None: ...
    def set_cuts(self, node: int, children: Sequence[int], cuts: PairCuts) -> None: ...
    def send(self, nodes: NDArray[Any], n_threads: int) -> None: ...
    def stand_at(self, rows: NodeRows) -> None: ...
    def stand_in_order(self, n_threads: int) -> NDArray[Any]: ...
    def pieces_below(
        self,
        node: int,
        weights: NDArray[Any] | None,
        row_counts: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], NDArray[Any] | None, dict[int, NDArray[Any]]]: ...
    def piece_counts(self, nodes: NDArray[Any], n_threads: int) -> list[NDArray[Any]]: ...
    def branch_counts(
        self, node: int, split_at: tuple[int, NDArray[Any]] | PairCuts, n_branches: int
    ) -> list[int]: ...
    def leaf_sums(
        self, leaves: NDArray[Any], losses: LeafLosses, n_threads: int
    ) -> NDArray[Any]: ...
    def leaf_ranges(
        self, leaves: NDArray[Any], losses: LeafLosses, n_threads: int
    ) -> NDArray[Any]: ...
    def leaf_totals(
        self,
        leaves: NDArray[Any],
        losses: LeafLosses,
        table: NDArray[Any],
        anchors: NDArray[Any],
        n_threads: int,
    ) -> NDArray[Any]: ...
    def branch_losses(
        self,
        nodes: NDArray[Any],
        losses: LeafLosses,
        table: NDArray[Any],
        anchors: NDArray[Any],
        n_threads: int,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
    def room_for_cells(
        self, first: int, offsets: NDArray[Any], wanted: NDArray[Any], max_cells: int
    ) -> tuple[int, int, tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]]: ...
    def loss_cells(
        self,
        first: int,
        last: int,
        offsets: NDArray[Any],
        starts: NDArray[Any],
        n_cells: NDArray[Any],
        bin_of_cell: NDArray[Any],
        losses: NDArray[Any],
        first_feature: int,
        last_feature: int,
        n_threads: int,
        wanted: NDArray[Any] | None = None,
    ) -> None: ...
    def care_sets(self) -> list[tuple[NDArray[Any], NDArray[Any]]]: ...
