from typing import Any

from numpy.typing import NDArray

def cheapest_shapes(
    histogram: NDArray[Any],
    offsets: NDArray[Any],
    categorical: NDArray[Any],
    costs: NDArray[Any],
    branch_of_bin: NDArray[Any],
    *,
    segment_penalty: float,
    category_penalty: float,
    max_segments: int,
    bound: float,
    n_threads: int,
) -> None: ...
