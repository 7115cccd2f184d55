from typing import Any

from numpy.typing import NDArray

class SortWorkspace:
    def __init__(self, n_rows: int, with_order: bool) -> None: ...

def sort_values(
    values: NDArray[Any], with_order: bool, workspace: SortWorkspace | None = None
) -> tuple[NDArray[Any], NDArray[Any] | None]: ...
def group_values(
    values: NDArray[Any], weights: NDArray[Any] | None, max_bins: int
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def bin_values(values: NDArray[Any], upper: NDArray[Any], bins: NDArray[Any]) -> None: ...
