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
def lay_out_axes(
    feature: NDArray[Any],
    value_start: NDArray[Any],
    values: NDArray[Any],
    threshold_start: NDArray[Any],
    thresholds: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def edges_of_cells(
    bound_start: NDArray[Any], bounds: NDArray[Any], cells: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]: ...
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
    cells: NDArray[Any],
    targets: NDArray[Any] | None,
    n_nodes: int,
    n_cells: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def sum_targets(
    leaves: NDArray[Any], targets: NDArray[Any], exponent: NDArray[Any], unit: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def sum_squares(
    leaves: NDArray[Any],
    targets: NDArray[Any],
    exponent: NDArray[Any],
    centre: NDArray[Any],
    reach: NDArray[Any],
    unit: NDArray[Any],
) -> NDArray[Any]: ...
def add_up(
    parent: NDArray[Any],
    counts: NDArray[Any],
    mean: NDArray[Any] | None,
    deviation: NDArray[Any] | None,
) -> NDArray[Any]: ...
def deviations(values: NDArray[Any]) -> NDArray[Any]: ...
def extents(columns: Columns, features: NDArray[Any], n_threads: int = 1) -> NDArray[Any]: ...
