"""Statistics of the rows of several nodes, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shapetree._core.criterion import NodeStatistics


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of the rows of nodes; entry i is a `NodeStatistics`."""

    n_rows: np.ndarray
    weight: np.ndarray  # sum of the rows' weights
    impurity: np.ndarray  # the mean one, in units of the goal's criterion
    # Shares of the classes, or means or medians; (n_nodes, n_outputs, n_values).
    value: np.ndarray

    @classmethod
    def of(cls, node: NodeStatistics) -> Statistics:
        """Those of a single node."""
        numbers = np.array([node.n_rows]), np.array([node.weight]), np.array([node.impurity])
        return cls(*numbers, node.value[None])

    @classmethod
    def joined(cls, parts: Sequence[Statistics]) -> Statistics:
        """Those of the nodes of all parts, one part after another."""
        names = "n_rows", "weight", "impurity", "value"
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return len(self.n_rows)

    def __getitem__(self, node: int) -> NodeStatistics:
        return NodeStatistics(
            self.n_rows.item(node),
            self.weight.item(node),
            self.impurity.item(node),
            self.value[node],
        )

    def __iter__(self) -> Iterator[NodeStatistics]:
        return map(self.__getitem__, range(len(self)))

    def take(self, nodes: np.ndarray | slice) -> Statistics:
        """Those of some of the nodes."""
        return Statistics(
            self.n_rows[nodes], self.weight[nodes], self.impurity[nodes], self.value[nodes]
        )
