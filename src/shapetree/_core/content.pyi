from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def hash_contents(bins: Columns, rows: NDArray[Any]) -> NDArray[Any]: ...
def hash_targets(targets: NDArray[Any]) -> NDArray[Any]: ...
def hash_rows(
    bins: Columns, targets: NDArray[Any], times: NDArray[Any] | None = None
) -> NDArray[Any]: ...
