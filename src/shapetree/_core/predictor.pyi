from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

class TreeLayout:
    def __init__(self, arrays: Any) -> None: ...

def find_leaves(columns: Columns, layout: TreeLayout, n_threads: int) -> NDArray[Any]: ...
