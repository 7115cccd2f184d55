from typing import Any

from numpy.typing import ArrayLike, NDArray

from shapetree._core.criterion import Criterion

def cut_into_pieces(
    criterion: Criterion,
    stats: ArrayLike,
    n_rows: ArrayLike,
    *,
    method: str = "cart",
    max_leaves: int = 32,
    min_rows: int = 1,
    max_depth: int = ...,
    least_gain: float = 0.0,
) -> NDArray[Any]: ...
