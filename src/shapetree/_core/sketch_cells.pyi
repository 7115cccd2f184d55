from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def count_cells(
    columns: Columns,
    leaves: NDArray[Any],
    parent: NDArray[Any],
    feature: NDArray[Any],
    edge_start: NDArray[Any],
    edges: NDArray[Any],
    cell_start: NDArray[Any],
    labels: NDArray[Any] | None,
    targets: NDArray[Any] | None,
    n_classes: int,
    n_threads: int = 1,
    row_counts: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
