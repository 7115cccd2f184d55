from typing import Any

from numpy.typing import ArrayLike, NDArray

def losses_of_classes(
    counts: NDArray[Any], starts: NDArray[Any], score_share: float, anchor: float
) -> NDArray[Any]: ...

class LeafLosses:
    n_rows: int
    n_outputs: int
    n_columns: int
    def __init__(
        self,
        labels: ArrayLike | None,
        values: ArrayLike | None,
        weights: ArrayLike | None,
        n_columns: int,
        absolute: bool = False,
        anchors: ArrayLike | None = None,
    ) -> None: ...
    @property
    def width(self) -> int: ...
