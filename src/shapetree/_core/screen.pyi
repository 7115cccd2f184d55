from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapetree._core.criterion import Criterion

START: np.dtype[Any]
ALL_GROUPS: int

class Groups(NamedTuple):
    of_bin: NDArray[Any]
    n_of_feature: NDArray[Any]
    centres: NDArray[Any]
    positions: NDArray[Any]
    rough_of_bin: NDArray[Any]
    n_rough: int

class GridScreen:
    def __init__(
        self,
        criterion: Criterion,
        n_bins: ArrayLike,
        categorical: ArrayLike,
        bin_values: ArrayLike,
        cosines: ArrayLike,
        sines: ArrayLike,
        *,
        inner_max_leaves: int = 32,
        inner_min_rows: int = 1,
        inner_max_depth: int = ...,
        assignment: str = "auto",
        min_rows: int = 1,
        min_weight: float = 0.0,
    ) -> None: ...
    def groups(self, histogram: NDArray[Any], n_threads: int) -> Groups: ...
    def losses(self, cells: NDArray[Any], noise: float, n_threads: int) -> NDArray[Any]: ...
    def screen(
        self,
        pairs: NDArray[Any],
        cells: NDArray[Any],
        groups: Groups,
        information: NDArray[Any] | None,
        *,
        max_branches: int,
        region_penalty: float,
        branch_penalty: float,
        seed: int,
        n_threads: int,
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...
