"""How stable a tree is: what trees fitted to resamples of its rows have in common with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shapetree.tree._arrays import TreeArrays
from shapetree.tree._digits import percent, rounded

if TYPE_CHECKING:
    import pandas as pd


class NodeStability(NamedTuple):
    """Results of the resamples for a node."""

    # Of classes, the share of its rows' predictions that are the same as the tree's; of numbers,
    # for each output, how far they are from the tree's, as a root mean square. Only trees that have
    # not drawn a row are asked of it; NaN if all have drawn all rows.
    values: tuple[float, ...]
    # Resamples that split more than half of its rows on the same feature, or pair, in one node;
    # None for a leaf.
    same_feature: int | None = None
    # Those of them in which such a node sends at least 90 % of its rows the same way.
    similar_split: int | None = None


class RowStability(NamedTuple):
    """Results of the resamples for each row."""

    # What rows are called. Shape (n_rows,).
    index: Any
    # Resamples that have not drawn it; 0 for rows of weight zero. Shape (n_rows,).
    n_resamples: np.ndarray
    # As `NodeStability` has it. Shape (n_rows, n_outputs), or (n_rows, 1) for classes.
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Stability:
    """How stable a fitted tree is, by trees fitted to halves of its rows.

    `print` it, or use `to_frame()` for the nodes and `rows_to_frame()` for the rows.

    Attributes
    ----------
    n_resamples : int
        Number of halves that a tree was fitted to.
    nodes : tuple of NodeStability
        For each node of the tree.
    has_classes : bool
        Whether the tree predicts classes.
    features : tuple of str
        What each node splits on; empty for leaves.
    n_rows : tuple of int
        Training rows of each node.
    outputs : tuple of str
        Names of the targets, if there are several.
    rows : RowStability or None
        For each row; None in a fitted tree and its model file, which hold nothing of single rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target_names[iris.target])
    >>> stability = tree.stability(iris.data, iris.target_names[iris.target], n_resamples=10)
    >>> len(stability.to_frame()), len(stability.rows_to_frame())
    (8, 150)
    """

    n_resamples: int
    nodes: tuple[NodeStability, ...]
    has_classes: bool
    features: tuple[str, ...]
    n_rows: tuple[int, ...]
    outputs: tuple[str, ...] = ()
    rows: RowStability | None = None

    @classmethod
    def of_tree(
        cls,
        tree: TreeArrays,
        has_classes: bool,
        names: Sequence[str],
        targets: Sequence[str] | None,
        n_resamples: int,
        nodes: Sequence[NodeStability],
        rows: RowStability | None = None,
    ) -> Stability:
        """Results of the resamples for a tree, by the names of its features and targets."""
        used = [[names[j] for j in tree.features_of(node)] for node in range(tree.node_count)]
        n_outputs = tree.value.shape[1]
        outputs = tuple(targets or map(str, range(n_outputs))) if n_outputs > 1 else ()
        return cls(
            n_resamples=n_resamples,
            nodes=tuple(nodes),
            has_classes=has_classes,
            features=tuple(" and ".join(its) for its in used),
            n_rows=tuple(tree.n_node_samples.tolist()),
            outputs=outputs,
            rows=rows,
        )

    @property
    def agreement(self) -> float:
        """Share of predictions that are the same as the tree's; only of classes."""
        if not self.has_classes:
            raise AttributeError("predicted numbers have no agreement; use deviation")
        return self.nodes[0].values[0]

    @property
    def deviation(self) -> float | np.ndarray:
        """How far predicted numbers are from the tree's, as a root mean square, by output."""
        if self.has_classes:
            raise AttributeError("predicted classes have no deviation; use agreement")
        values = self.nodes[0].values
        return values[0] if len(values) == 1 else np.array(values)

    @property
    def _columns(self) -> list[str]:
        if self.has_classes:
            return ["agreement"]
        return [f"deviation_{name}" for name in self.outputs] if self.outputs else ["deviation"]

    def to_frame(self) -> pd.DataFrame:
        """A row for each node.

        Returns
        -------
        DataFrame
            `feature` that it splits on, `n_rows` of training, and of the `n_resamples`, how many
            split more than half of these rows on the `same_feature` in one node, and how many of
            them have a `similar_split` there: one that sends at least 90 % of the rows the same
            way, whatever its branches are called. `agreement`, or `deviation` for numbers, as for
            the rows.
        """
        import pandas as pd

        counts = [[node.same_feature, node.similar_split] for node in self.nodes]
        frame = pd.DataFrame({"feature": list(self.features), "n_rows": list(self.n_rows)})
        for place, name in enumerate(("same_feature", "similar_split")):
            frame[name] = pd.array([its[place] for its in counts], dtype="Int64")
        for place, name in enumerate(self._columns):
            frame[name] = [node.values[place] for node in self.nodes]
        return frame.rename_axis("node")

    def rows_to_frame(self) -> pd.DataFrame:
        """A row for each row that the tree was fitted to.

        Returns
        -------
        DataFrame
            `n_resamples` that have not drawn the row, and what share of their trees predicts the
            same class as the tree, in every output, as `agreement`; or how far the predicted
            numbers are from the tree's, as a root mean square, as `deviation`.
        """
        import pandas as pd

        if self.rows is None:
            raise ValueError(
                "a fitted tree keeps nothing of single rows; use what its method stability returns"
            )
        frame = pd.DataFrame({"n_resamples": self.rows.n_resamples}, index=self.rows.index)
        for place, name in enumerate(self._columns):
            frame[name] = self.rows.values[:, place]
        return frame

    @property
    def words(self) -> str:
        """All predictions, in words.

        Examples
        --------
        >>> Stability(50, (NodeStability((0.932,)),), True, ("",), (80,)).words
        'agreement with 50 resamples 93 %'
        >>> Stability(50, (NodeStability((4.183,)),), False, ("",), (80,)).words
        'predictions ± 4.18 in 50 resamples'
        """
        n_resamples, values = self.n_resamples, self.nodes[0].values
        if self.has_classes:
            return f"agreement with {n_resamples:,} resamples {percent(values[0])}"
        said = ", ".join(rounded(its, 3) for its in values)
        return f"predictions ± {said} in {n_resamples:,} resamples"

    def node_words(self, node: int) -> str:
        """One node, in words: a split, or the predictions of a leaf.

        Examples
        --------
        >>> nodes = NodeStability((0.9,), 46, 31), NodeStability((0.95,)), NodeStability((0.8,))
        >>> known = Stability(50, nodes, True, ("age", "", ""), (80, 50, 30))
        >>> known.node_words(0)
        'same feature in 46 of 50 resamples, similar split in 31'
        >>> known.node_words(1)
        'same prediction in 95 % of resamples'
        """
        its = self.nodes[node]
        if its.same_feature is not None:
            return (
                f"same feature in {its.same_feature:,} of {self.n_resamples:,} resamples, similar "
                f"split in {its.similar_split:,}"
            )
        if np.isnan(its.values).all():
            return "not asked of resamples"
        if self.has_classes:
            return f"same prediction in {percent(its.values[0])} of resamples"
        return f"± {', '.join(rounded(values, 3) for values in its.values)} in resamples"

    def mark(self, node: int) -> str:
        """Resamples that choose a node's feature, where there is little room."""
        return f"{self.nodes[node].same_feature}/{self.n_resamples}"

    def __repr__(self) -> str:
        return f"Stability: {self.words}\n{self.to_frame()}"

    def _repr_html_(self) -> str:
        return f"<p>Stability: {self.words}</p>{self.to_frame()._repr_html_()}"
