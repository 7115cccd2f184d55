from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def branches_by_bin(
    bins: Columns,
    feature: int,
    branch_of_bin: NDArray[Any],
    rows: NDArray[Any],
    n_threads: int,
) -> NDArray[Any]: ...
def partition_rows(
    branch_of_row: NDArray[Any],
    rows: NDArray[Any],
    scratch: NDArray[Any],
    n_branches: int,
    n_threads: int,
) -> NDArray[Any]: ...
