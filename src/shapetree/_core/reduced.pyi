from typing import Any

from numpy.typing import NDArray

def cheapest_shapes(
    starts: NDArray[Any],
    n_cells: NDArray[Any],
    bin_of_cell: NDArray[Any],
    losses: NDArray[Any],
    n_bins: NDArray[Any],
    categorical: NDArray[Any],
    n_branches: NDArray[Any],
    bounds: NDArray[Any],
    order: NDArray[Any],
    *,
    segment_penalty: NDArray[Any] | float,
    category_penalty: NDArray[Any] | float,
    choice_penalty: NDArray[Any] | float,
    max_segments: int,
    max_listed: int,
    only_best: bool,
    n_threads: int,
) -> tuple[NDArray[Any], list[float]]: ...
def cheapest_shape(
    bin_of_cell: NDArray[Any],
    losses: NDArray[Any],
    n_bins: int,
    categorical: bool,
    n_branches: int,
    *,
    segment_penalty: float,
    category_penalty: float,
    max_segments: int,
    max_listed: int,
) -> tuple[NDArray[Any], list[float], list[int]]: ...
def fill_gaps(branch_of_bin: NDArray[Any], categorical: bool) -> None: ...
def count_extra_parts(branch_of_bin: NDArray[Any], categorical: bool) -> int: ...
def settle_empty_bins(
    branch_of_bin: NDArray[Any],
    n_rows: NDArray[Any] | None,
    low: NDArray[Any] | None,
    high: NDArray[Any] | None,
    largest_branch: int,
) -> NDArray[Any] | None: ...

class ReducedProblem:
    number: int
    n_rows: int
    n_care: int
    n_branches: int
    below: list[float]
    first: float
    price: float
    part_penalty: float
    leaf_penalty: float
    tolerance: float
    to_beat: float
    bound: float
    may_improve: bool
    only_branch: int

    def objective(self, penalty: float, losses: list[float], counts: list[int]) -> float: ...

class ReducedProblems:
    each: list[ReducedProblem]
    are_open: bool
    wanted: NDArray[Any]
    n_branches: NDArray[Any]
    bounds: NDArray[Any]
    segment_penalties: NDArray[Any]

def reduced_problems(
    nodes: list[int],
    children: list[list[int]],
    part_penalties: list[float],
    penalties: list[float],
    sizes: list[int],
    sums: NDArray[Any],
    n_care: NDArray[Any],
    least: NDArray[Any],
    price: float,
    leaf_penalty: float,
) -> ReducedProblems: ...
