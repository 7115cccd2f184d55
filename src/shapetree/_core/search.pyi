from typing import Any

from numpy.typing import ArrayLike, NDArray

from shapetree._core.columns import Columns
from shapetree._core.criterion import Criterion
from shapetree._core.histogram import Targets

NO_BRANCH_MARK: int

class NodeSearch:
    def __init__(
        self,
        criterion: Criterion,
        bins: Columns,
        n_bins: ArrayLike,
        categorical: ArrayLike,
        *,
        inner_tree: str = "cart",
        inner_max_leaves: int = 32,
        inner_min_rows: int = 1,
        inner_max_depth: int = ...,
        assignment: str = "auto",
        min_rows: int = 1,
        min_weight: float = 0.0,
    ) -> None: ...
    @property
    def gains(self) -> NDArray[Any]: ...
    @property
    def penalised_gains(self) -> NDArray[Any]: ...
    @property
    def n_branches(self) -> NDArray[Any]: ...
    @property
    def branch_of_bin(self) -> NDArray[Any]: ...
    def search(
        self,
        histogram: NDArray[Any] | None,
        targets: Targets,
        rows: NDArray[Any],
        first: int,
        last: int,
        *,
        max_branches: int,
        segment_penalty: float,
        category_penalty: float,
        branch_penalty: float,
        seed: int,
        n_threads: int,
    ) -> None: ...
