from typing import Any

from numpy.typing import NDArray

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
