from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets

def sum_grids(
    bins: Columns,
    targets: Targets,
    rows: NDArray[Any],
    offsets: NDArray[Any],
    group_of_bin: NDArray[Any],
    n_groups: int,
    pairs: NDArray[Any],
    cells: NDArray[Any],
    n_threads: int,
    in_order: bool = False,
) -> None: ...
