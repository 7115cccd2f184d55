from typing import Any

from numpy.typing import NDArray

def pieces_of_bins(
    branch_of_bin: NDArray[Any], low: NDArray[Any], high: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]: ...
