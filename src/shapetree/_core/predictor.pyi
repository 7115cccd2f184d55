from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def find_leaves(columns: Columns, arrays: Any, n_threads: int) -> NDArray[Any]: ...
