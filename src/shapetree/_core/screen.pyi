from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapetree._core.columns import Columns
from shapetree._core.criterion import Criterion
from shapetree._core.histogram import Targets

START: np.dtype[Any]

class GridScreen:
    def __init__(
        self,
        criterion: Criterion,
        bins: Columns,
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
    @property
    def positions(self) -> NDArray[Any]: ...
    def prepare(
        self, histogram: NDArray[Any], targets: Targets, rows: NDArray[Any], n_threads: int
    ) -> None: ...
    def weigh(
        self, pairs: NDArray[Any], gains: NDArray[Any], noise: float, n_threads: int
    ) -> None: ...
    def screen(
        self,
        pairs: NDArray[Any],
        information: NDArray[Any],
        gains: NDArray[Any],
        starts: NDArray[Any],
        *,
        max_branches: int,
        region_penalty: float,
        branch_penalty: float,
        seed: int,
        n_threads: int,
    ) -> None: ...

def crossed_losses(
    criterion: Criterion,
    targets: Targets,
    branches: NDArray[Any],
    n_branches: int,
    pairs: NDArray[Any],
    rows: NDArray[Any],
    losses: NDArray[Any],
    n_threads: int,
) -> None: ...
