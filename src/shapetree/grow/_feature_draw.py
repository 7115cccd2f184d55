"""Features that a node may split on, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shapetree._core.sampling import row_hashes


@dataclass(frozen=True)
class FeatureDraw:
    """Draws features for each node by a hash of its number: the same in whatever order.

    Attributes
    ----------
    n_features : int
    n_drawn : int
        How many of them a node may split on. A draw of more holds those of a draw of fewer.
    seeds : uint64 array of shape (n_trees,)
        Of the trees that grow together.
    """

    n_features: int
    n_drawn: int
    seeds: np.ndarray

    def drawing(self, n_drawn: int) -> FeatureDraw:
        """The same for more features or fewer."""
        return replace(self, n_drawn=n_drawn)

    def allowed(self, nodes: Sequence[int] | np.ndarray, trees: np.ndarray | int = 0) -> np.ndarray:
        """Which features nodes may split on, (n_nodes, n_features).

        Parameters
        ----------
        nodes : int array of shape (n_nodes,)
            Their numbers, each in its own tree.
        trees : int array of shape (n_nodes,)
            Which tree each is a node of.
        """
        if self.n_drawn >= self.n_features:
            return np.ones((len(nodes), self.n_features), dtype=bool)
        own = row_hashes(np.asarray(nodes, dtype=np.int64)) + self.seeds[trees]
        features = row_hashes(np.arange(self.n_features, dtype=np.int64))
        keys = row_hashes((own[:, None] + features).ravel().view(np.int64))
        keys = keys.reshape(len(nodes), self.n_features)
        last = np.partition(keys, self.n_drawn - 1, axis=1)[:, self.n_drawn - 1 : self.n_drawn]
        return np.asarray(keys <= last)
