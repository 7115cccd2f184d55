from typing import Any

from numpy.typing import ArrayLike, NDArray

from shapetree._core.columns import Columns
from shapetree._core.criterion import Criterion
from shapetree._core.histogram import Targets

class PairFitter:
    gains: NDArray[Any]
    penalised_gains: NDArray[Any]
    n_branches: NDArray[Any]
    missing_branch: NDArray[Any]
    n_nodes: NDArray[Any]
    a: NDArray[Any]
    b: NDArray[Any]
    threshold: NDArray[Any]
    low: NDArray[Any]
    branch: NDArray[Any]
    def __init__(
        self,
        criterion: Criterion,
        columns: Columns,
        scales: ArrayLike,
        slopes: ArrayLike,
        *,
        exact: bool = False,
        inner_max_leaves: int = 32,
        inner_min_rows: int = 1,
        inner_max_depth: int = ...,
        assignment: str = "auto",
        min_rows: int = 1,
        min_weight: float = 0.0,
    ) -> None: ...
    def fit(
        self,
        pairs: NDArray[Any],
        starts: NDArray[Any],
        offsets: NDArray[Any],
        positions: NDArray[Any],
        targets: Targets,
        rows: NDArray[Any],
        *,
        max_branches: int,
        region_penalty: float,
        branch_penalty: float,
        seed: int,
        n_threads: int,
    ) -> None: ...

class PairCuts:
    def __init__(
        self,
        columns: Columns,
        first: int,
        second: int,
        positions_a: ArrayLike,
        positions_b: ArrayLike,
        a: NDArray[Any],
        b: NDArray[Any],
        threshold: NDArray[Any],
        low: NDArray[Any],
        high: NDArray[Any],
        branch: NDArray[Any],
        missing_branch: int,
    ) -> None: ...
    def branches(self, rows: NDArray[Any], n_threads: int) -> NDArray[Any]: ...
