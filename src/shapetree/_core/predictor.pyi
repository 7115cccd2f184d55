from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def find_leaves(
    columns: Columns,
    feature: NDArray[Any],
    first_child: NDArray[Any],
    missing_branch: NDArray[Any],
    piece_start: NDArray[Any],
    piece_upper: NDArray[Any],
    piece_branch: NDArray[Any],
    n_threads: int,
) -> NDArray[Any]: ...
