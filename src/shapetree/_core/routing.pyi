from typing import Any

from numpy.typing import ArrayLike, NDArray

from shapetree._core.columns import Columns
from shapetree._core.pair_cuts import PairCuts

class LeafLosses:
    n_rows: int
    n_outputs: int
    def __init__(
        self,
        labels: ArrayLike | None,
        values: ArrayLike | None,
        weights: ArrayLike | None,
        absolute: bool = False,
    ) -> None: ...
    def sums(self, leaves: NDArray[Any], n_nodes: int) -> NDArray[Any]: ...
    def total(self, leaves: NDArray[Any], table: NDArray[Any]) -> float: ...

class Router:
    n_nodes: int
    def __init__(
        self,
        bins: Columns,
        first_child: NDArray[Any],
        n_branches: NDArray[Any],
        feature: NDArray[Any],
        branch_of_bin: list[NDArray[Any] | None],
        cuts: list[PairCuts | None],
    ) -> None: ...
    def leaves(self, rows: NDArray[Any], start: NDArray[Any], n_threads: int) -> NDArray[Any]: ...
    def branch_losses(
        self,
        at: NDArray[Any],
        now: NDArray[Any],
        losses: LeafLosses,
        table: NDArray[Any],
        others: NDArray[Any],
        cares: NDArray[Any],
        n_threads: int,
    ) -> NDArray[Any]: ...
