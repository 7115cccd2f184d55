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
    keys : uint64 array of shape (n_features,)
        What stands for each feature: its number, or a hash of its values.
    seeds : uint64 array of shape (n_trees,)
        Of the trees that grow together.
    n_drawn : int or None
        How many of them a node may split on. A draw of more holds those of a draw of fewer. None
        draws each feature on its own, with a chance of one half, so that it does not matter which
        others there are.
    """

    keys: np.ndarray
    seeds: np.ndarray
    n_drawn: int | None = None

    def more(self) -> FeatureDraw | None:
        """What to draw where none of these features splits a node; None if these are all.

        Twice as many features, or all.
        """
        n_features = len(self.keys)
        if self.n_drawn is None:
            return replace(self, n_drawn=n_features)
        if self.n_drawn >= n_features:
            return None
        return replace(self, n_drawn=min(2 * self.n_drawn, n_features))

    def allowed(self, nodes: Sequence[int] | np.ndarray, trees: np.ndarray | int = 0) -> np.ndarray:
        """Which features nodes may split on, (n_nodes, n_features).

        Parameters
        ----------
        nodes : int array of shape (n_nodes,)
            Their numbers, each in its own tree.
        trees : int array of shape (n_nodes,)
            Which tree each is a node of.
        """
        shape = len(nodes), len(self.keys)
        if self.n_drawn is not None and self.n_drawn >= len(self.keys):
            return np.ones(shape, dtype=bool)
        own = row_hashes(np.asarray(nodes, dtype=np.int64)) + self.seeds[trees]
        drawn = row_hashes((own[:, None] + self.keys).ravel().view(np.int64)).reshape(shape)
        if self.n_drawn is None:
            return np.asarray(drawn < np.uint64(2**63))
        last = np.partition(drawn, self.n_drawn - 1, axis=1)[:, self.n_drawn - 1 : self.n_drawn]
        return np.asarray(drawn <= last)
