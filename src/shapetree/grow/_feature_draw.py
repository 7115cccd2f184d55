"""Features that a node may split on, drawn at random.

A draw says which features are allowed, and what to draw `more` where none of these splits a node.
"""

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

    def more(self) -> FeatureDraw | None:
        """The same for twice as many features; None if these are all there are."""
        if self.n_drawn >= self.n_features:
            return None
        return replace(self, n_drawn=min(2 * self.n_drawn, self.n_features))

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


@dataclass(frozen=True)
class HalfDraw:
    """Draws each feature for each node with a chance of one half, by what the feature holds.

    Neither the order of features matters, nor constant ones, as each is drawn on its own.

    Attributes
    ----------
    keys : uint64 array of shape (n_features,)
        What stands for each feature, such as a hash of its values.
    seeds : uint64 array of shape (n_trees,)
        Of the trees that grow together.
    draws_all : bool
        Whether all features are drawn, after half of them split no node.
    """

    keys: np.ndarray
    seeds: np.ndarray
    draws_all: bool = False

    def more(self) -> HalfDraw | None:
        """The same for all features; None if these are drawn already."""
        return None if self.draws_all else replace(self, draws_all=True)

    def allowed(self, nodes: Sequence[int] | np.ndarray, trees: np.ndarray | int = 0) -> np.ndarray:
        """Which features nodes may split on, see `FeatureDraw.allowed`."""
        if self.draws_all:
            return np.ones((len(nodes), len(self.keys)), dtype=bool)
        own = row_hashes(np.asarray(nodes, dtype=np.int64)) + self.seeds[trees]
        number = row_hashes((own[:, None] + self.keys).ravel().view(np.int64))
        return np.asarray(number.reshape(len(nodes), len(self.keys)) < np.uint64(2**63))
