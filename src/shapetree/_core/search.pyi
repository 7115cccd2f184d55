from typing import Any

from numpy.typing import ArrayLike, NDArray

from shapetree._core.criterion import Criterion

NO_BRANCH_MARK: int

class NodeSearch:
    def __init__(
        self,
        criterion: Criterion,
        n_bins: ArrayLike,
        categorical: ArrayLike,
        *,
        inner_tree: str = "cart",
        inner_max_leaves: int = 32,
        inner_min_rows: int = 1,
        inner_max_depth: int = ...,
        assignment: str = "auto",
        max_parts: int = ...,
        max_listed: int = ...,
        per_leaf: bool = False,
        min_rows: int = 1,
        min_weight: float = 0.0,
    ) -> None: ...
    @property
    def n_features(self) -> int: ...
    def search(
        self,
        histograms: NDArray[Any] | None,
        cells: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]] | None,
        first: int,
        last: int,
        *,
        max_branches: int,
        segment_penalty: NDArray[Any],
        category_penalty: NDArray[Any],
        branch_penalty: NDArray[Any],
        seed: NDArray[Any],
        allowed: NDArray[Any] | None,
        gains: NDArray[Any],
        penalised_gains: NDArray[Any],
        n_branches: NDArray[Any],
        branch_of_bin: NDArray[Any],
        n_threads: int,
    ) -> None: ...

def best_features(scores: NDArray[Any], ties: NDArray[Any], order: NDArray[Any]) -> list[int]: ...
