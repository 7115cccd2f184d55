from numpy.typing import ArrayLike

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
