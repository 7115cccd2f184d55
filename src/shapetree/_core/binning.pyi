from typing import Any

from numpy.typing import NDArray

from shapetree._core.columns import Columns

def find_bins(
    columns: Columns,
    features: NDArray[Any],
    rows: NDArray[Any] | None,
    weights: NDArray[Any] | None,
    max_bins: int,
    n_threads: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def sort_values(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]: ...
def group_values(
    values: NDArray[Any], weights: NDArray[Any] | None, max_bins: int
) -> tuple[NDArray[Any], NDArray[Any]]: ...

class Lookups:
    def __init__(self, ends: list[NDArray[Any]], n_rows: int) -> None: ...
    @property
    def n_features(self) -> int: ...

def bin_columns(
    columns: Columns,
    features: NDArray[Any],
    lookups: Lookups,
    bins: list[NDArray[Any]],
    start: int,
    stop: int,
    n_threads: int,
) -> None: ...
