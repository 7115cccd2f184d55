from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def extents(columns: Columns, features: NDArray[Any], n_threads: int = 1) -> NDArray[Any]: ...
def deviations(values: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]: ...
