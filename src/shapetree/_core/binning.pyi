from typing import Any

from numpy.typing import NDArray

def sort_values(
    values: NDArray[Any], with_order: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]: ...
def group_values(
    values: NDArray[Any], weights: NDArray[Any] | None, max_bins: int
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def bin_values(values: NDArray[Any], upper: NDArray[Any], bins: NDArray[Any]) -> None: ...
