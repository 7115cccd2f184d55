from typing import Any

from numpy.typing import NDArray

def thresholds_between(low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]: ...
def pieces_of_bins(
    branch_of_bin: NDArray[Any],
    low: NDArray[Any],
    high: NDArray[Any],
    n_rows: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def number_cuts(
    low: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
