from typing import Any

from numpy.typing import NDArray

def count_targets(
    leaves: NDArray[Any],
    cells: NDArray[Any],
    targets: NDArray[Any] | None,
    n_nodes: int,
    n_cells: int,
    n_threads: int = 1,
    row_counts: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def sum_targets(
    leaves: NDArray[Any],
    targets: NDArray[Any],
    exponent: NDArray[Any],
    unit: NDArray[Any],
    row_counts: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def sum_squares(
    leaves: NDArray[Any],
    targets: NDArray[Any],
    exponent: NDArray[Any],
    centre: NDArray[Any],
    reach: NDArray[Any],
    unit: NDArray[Any],
    row_counts: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def add_up(
    parent: NDArray[Any],
    counts: NDArray[Any],
    mean: NDArray[Any] | None,
    deviation: NDArray[Any] | None,
) -> NDArray[Any]: ...
