from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

class Columns:
    def __init__(self, arrays: Sequence[NDArray[Any] | None], n_rows: int) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
