from typing import Any, NamedTuple

from numpy.typing import ArrayLike, NDArray

from shapetree._core.columns import Columns
from shapetree._core.criterion import Criterion
from shapetree._core.histogram import Targets

class PairFits(NamedTuple):
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

class PairFitter:
    def __init__(
        self,
        criterion: Criterion,
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
        columns: Columns,
        scales: NDArray[Any],
        offsets: NDArray[Any],
        positions: NDArray[Any],
        targets: Targets,
        rows: NDArray[Any],
        pairs: NDArray[Any],
        starts: NDArray[Any],
        *,
        max_branches: int,
        region_penalty: float,
        branch_penalty: float,
        seed: int,
        n_threads: int,
        scale: float = 1.0,
    ) -> PairFits: ...
