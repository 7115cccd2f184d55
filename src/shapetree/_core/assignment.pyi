from typing import Any

from numpy.typing import ArrayLike, NDArray

from shapetree._core.criterion import Criterion

KINDS: dict[str, int]

def assign(
    criterion: Criterion,
    stats: ArrayLike,
    n_rows: ArrayLike | None = None,
    *,
    max_branches: int = 2,
    kind: str = "auto",
    min_rows: int = 1,
    root_cut: int = 0,
    seed: int = 1,
) -> dict[int, NDArray[Any]]: ...
