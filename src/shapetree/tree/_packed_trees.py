"""Trees of a forest in few bytes, laid out when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np

from shapetree._core.predictor import TreeLayout
from shapetree.tree._arrays import TreeArrays, links_of
from shapetree.tree._shape import CUT_ARRAYS, starts, without_pairs

# Numbers are kept as they are; where parts of arrays start follows from their sizes.
_OF_NODES = (
    *("n_branches", "feature", "second_feature", "missing_branch", "saw_missing"),
    *("n_node_samples", "weighted_n_node_samples", "impurity"),
)
_OF_PARTS = ("piece_upper", "piece_branch", *CUT_ARRAYS, "position")
_STARTS = ("piece_start", "cut_start", "position_start")


class PackedTree:
    """A tree without what follows from the rest, and its numbers in the smallest types for them.

    It takes about a third of the bytes of a `TreeArrays`.
    """

    def __init__(self, tree: TreeArrays) -> None:
        self.value = tree.value
        arrays = {name: getattr(tree, name) for name in (*_OF_NODES, *_OF_PARTS)}
        if np.array_equal(tree.weighted_n_node_samples, tree.n_node_samples):
            del arrays["weighted_n_node_samples"]
        arrays |= {name: np.diff(getattr(tree, name)) for name in _STARTS}
        # Of nodes it is known how many there are, so that one number is enough if all are the same.
        for name in arrays.keys() - set(_OF_PARTS):
            if (arrays[name] == arrays[name][0]).all():
                arrays[name] = arrays[name][:1]
        self._arrays = {name: _narrow(array) for name, array in arrays.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {"value": self.value, "_arrays": self._arrays}

    def unpacked(self) -> TreeArrays:
        """The tree itself."""
        n_nodes = len(self.value)
        arrays = {name: self._arrays[name] for name in _OF_PARTS}
        for name in _OF_NODES:
            given = self._arrays.get(name, self._arrays["n_node_samples"])
            arrays[name] = np.broadcast_to(given, n_nodes)
        for name in _STARTS:
            n_parts = 2 * n_nodes if name == "position_start" else n_nodes
            arrays[name] = starts(np.broadcast_to(self._arrays[name], n_parts))
        if len(arrays["cut_a"]) == 0:
            arrays |= without_pairs(n_nodes)
        arrays |= links_of(arrays["n_branches"].astype(np.int32))
        return TreeArrays.unchecked(None, **arrays, value=self.value)

    @cached_property
    def layout(self) -> TreeLayout:
        """The tree laid out for the walk of rows, as long as it is kept."""
        return TreeLayout(self.unpacked())


class PackedTrees(Sequence[TreeArrays]):
    """Trees, each of which is unpacked whenever it is read."""

    def __init__(self, trees: Iterable[TreeArrays | PackedTree]) -> None:
        self.packed = tuple(
            tree if isinstance(tree, PackedTree) else PackedTree(tree) for tree in trees
        )

    def __len__(self) -> int:
        return len(self.packed)

    @overload
    def __getitem__(self, number: int) -> TreeArrays: ...

    @overload
    def __getitem__(self, number: slice) -> PackedTrees: ...

    def __getitem__(self, number: int | slice) -> TreeArrays | PackedTrees:
        if isinstance(number, slice):
            return PackedTrees(self.packed[number])
        return self.packed[number].unpacked()


def _narrow(array: np.ndarray) -> np.ndarray:
    """Whole numbers and flags in the smallest type for them."""
    if array.dtype.kind == "f" or len(array) == 0:
        return array
    ends = map(np.min_scalar_type, (array.min(), array.max()))
    return array.astype(np.result_type(*ends))
