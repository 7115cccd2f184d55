from typing import Any

from numpy.typing import ArrayLike, NDArray

from shapetree._core.criterion import Criterion

def polish_branches(
    criterion: Criterion,
    stats: ArrayLike,
    branch: ArrayLike,
    *,
    n_branches: int,
    penalty: float,
    categorical: bool = False,
    has_missing: bool = False,
    max_parts: int = ...,
) -> tuple[NDArray[Any], float]: ...
def cheapest_path(costs: ArrayLike, penalty: float, max_segments: int = ...) -> NDArray[Any]: ...
