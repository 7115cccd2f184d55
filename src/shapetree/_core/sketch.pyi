from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def lay_out_axes(
    columns: Columns,
    leaves: NDArray[Any],
    parent: NDArray[Any],
    feature: NDArray[Any],
    limit: NDArray[Any],
    threshold_start: NDArray[Any],
    thresholds: NDArray[Any],
    n_threads: int = 1,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
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
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def count_targets(
    leaves: NDArray[Any],
    parent: NDArray[Any],
    cells: NDArray[Any],
    n_cells: int,
    targets: NDArray[Any] | None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def deviations(columns: Columns, features: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]: ...
