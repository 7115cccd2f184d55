from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def sample_values(
    columns: Columns,
    leaves: NDArray[Any],
    parent: NDArray[Any],
    feature: NDArray[Any],
    limit: NDArray[Any],
    first_row: int = 0,
    n_threads: int = 1,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def sample_points(
    columns: Columns,
    leaves: NDArray[Any],
    parent: NDArray[Any],
    pairs: NDArray[Any],
    limit: NDArray[Any],
    first_row: int = 0,
    n_threads: int = 1,
    row_counts: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
