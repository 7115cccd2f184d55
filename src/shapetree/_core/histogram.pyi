from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

class Targets:
    def __init__(
        self,
        labels: NDArray[Any] | None,
        values: NDArray[Any] | None,
        weights: NDArray[Any] | None,
        n_stats: int,
        unit: float = 0.0,
        counts: NDArray[Any] | None = None,
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def n_stats(self) -> int: ...
    @property
    def n_channels(self) -> int: ...
    def take(self, rows: NDArray[Any]) -> Targets: ...
    @staticmethod
    def joined(parts: list[Targets]) -> Targets: ...
    def totals(self, rows: NDArray[Any]) -> NDArray[Any]: ...
    def totals_by(
        self, rows: NDArray[Any], groups: NDArray[Any], n_groups: int
    ) -> NDArray[Any]: ...

def build_histograms(
    bins: Columns,
    targets: Targets,
    order: NDArray[Any],
    starts: NDArray[Any],
    stops: NDArray[Any],
    offsets: NDArray[Any],
    histograms: NDArray[Any],
    first: int,
    last: int,
    n_threads: int,
    in_order: bool = False,
) -> None: ...
def build_cells(
    bins: Columns,
    targets: Targets,
    order: NDArray[Any],
    starts: NDArray[Any],
    stops: NDArray[Any],
    offsets: NDArray[Any],
    first: int,
    last: int,
    n_threads: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def join_cells(
    parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def sum_nodes(
    targets: Targets,
    order: NDArray[Any],
    starts: NDArray[Any],
    stops: NDArray[Any],
    n_threads: int = 1,
) -> NDArray[Any]: ...
