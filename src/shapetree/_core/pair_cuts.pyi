from typing import Any

from numpy.typing import ArrayLike, NDArray

from shapetree._core.columns import Columns

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
