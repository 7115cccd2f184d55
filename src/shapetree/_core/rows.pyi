import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.pair_cuts import PairCuts

class NodeRows:
    n_rows: int
    order: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    def __init__(self, n_rows: int, rows: np.ndarray | None = None) -> None: ...
    def copy(self) -> NodeRows: ...
    def sizes(self, n_nodes: int) -> list[int]: ...
    def renumber(self) -> np.ndarray: ...
    def split(
        self,
        bins: Columns,
        nodes: np.ndarray,
        first_child: np.ndarray,
        n_branches: np.ndarray,
        ways: list[tuple[int, np.ndarray] | PairCuts],
        n_threads: int,
    ) -> None: ...

def spreads_of(
    rows: NodeRows,
    nodes: np.ndarray,
    y: np.ndarray,
    standardised: np.ndarray,
    weights: np.ndarray | None,
    centres: np.ndarray,
    absolute: bool,
    unit: float,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
