from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def partition_rows(
    bins: Columns,
    feature: int,
    branch_of_bin: NDArray[Any],
    rows: NDArray[Any],
    scratch: NDArray[Any],
    n_branches: int,
    n_threads: int,
) -> NDArray[Any]: ...
