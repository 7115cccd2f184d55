"""A tree as text."""

from __future__ import annotations

from collections.abc import Iterator

from shapetree.tree._evaluation import held_out_words
from shapetree.tree._from_estimator import HoldsTree, fitted_tree
from shapetree.tree._view import NodeView, TreeView, view_of
from shapetree.tree._words import branch_words, listing, n_rows_words, outcome_words, printable


def export_text(
    estimator: HoldsTree,
    *,
    max_depth: int | None = None,
    digits: int | None = None,
) -> str:
    """Write a fitted tree as text.

    The first line says what is predicted, if `y` had a name, and the score on rows that the tree
    has not seen, if it was evaluated, with the fidelity to its teacher, if an estimator taught it.
    Every other line is a node: the values of its parent's feature, or the regions of its parent's
    pair of features, that lead to it, then what it predicts or what it splits on, and its number of
    training rows. If a pair has many regions, some are only counted; `rules` and `shape_table` list
    them all. Missing values are mentioned where training rows had them; elsewhere they go to the
    branch with the most rows. Shares are those of the rows; where weights or shrinkage make the
    tree predict something else, that is shown as well. Beside a share or a mean of rows stands the
    interval that holds that of all such rows, at a level of 95 %, and if the tree was evaluated,
    what the new rows tell of the leaf. After `stability`, lines also say in how many resamples the
    same feature was chosen, or the same was predicted.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        A fitted estimator.
    max_depth : int, optional
        Deepest level to show; the default shows all.
    digits : int, optional
        Significant digits of thresholds. By default they are exact, and as short as possible
        without moving a training row.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier, export_text
    >>> iris = load_iris(as_frame=True)
    >>> species = iris.target_names[iris.target]
    >>> tree = ShapeTreeClassifier(max_depth=1).fit(iris.data, species)
    >>> print(export_text(tree))
    petal width (cm)  [150 rows]
    ├─ ≤ 0.8: setosa (100 % of rows, 93 to 100 %; predicted 96 %)  [50 rows]
    ├─ (0.8, 1.75]: versicolor (91 % of rows, 80 to 96 %; predicted 88 %)  [54 rows]
    └─ > 1.75: virginica (98 % of rows, 89 to 99.6 %; predicted 94 %)  [46 rows]
    """
    require_options(max_depth, digits)
    view = view_of(fitted_tree(estimator))
    return "\n".join(map(printable, [*_heading(view), *_lines(view, max_depth, digits)]))


def _heading(view: TreeView) -> Iterator[str]:
    """What the tree predicts, and how well on rows that it has not seen, where this is known."""
    said = []
    if view.target_names is not None:
        said.append(f"Predicts {listing(view.target_names)}")
    if view.held_out is not None:
        said += held_out_words(view.held_out, view.classes is not None)
    if view.stability is not None:
        said.append(view.stability.words)
    if said:
        heading = "; ".join(said)
        yield heading[0].upper() + heading[1:]
    if view.single_leaf_words is not None:
        yield view.single_leaf_words


def require_options(max_depth: int | None, digits: int | None) -> None:
    """Refuse options that are out of range."""
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must not be negative, got {max_depth}")
    if digits is not None and digits < 1:
        raise ValueError(f"digits must be at least 1, got {digits}")


def is_folded(node: NodeView, max_depth: int | None) -> bool:
    """Whether what is below a node is not shown."""
    return max_depth is not None and node.depth >= max_depth and not node.is_leaf


def summary(
    view: TreeView, node: NodeView, max_depth: int | None, is_brief: bool = False
) -> tuple[str, str]:
    """What a node splits on or predicts, and its number of rows."""
    predicts = node.is_leaf or is_folded(node, max_depth)
    content = outcome_words(view, node, is_brief) if predicts else node.feature_words
    return content, n_rows_words(node.n_rows)


def _lines(view: TreeView, max_depth: int | None, digits: int | None) -> Iterator[str]:
    """A line for each node, below its parent's."""
    # Nodes with what starts their own lines, and those below.
    pending = [(view.nodes[0], "", "")]
    while pending:
        node, start, indent = pending.pop()
        content, rows = summary(view, node, max_depth)
        folded = is_folded(node, max_depth)
        stable = None if folded else view.stability_words(node)
        rows = rows if stable is None else f"{rows}; {stable}"
        yield f"{start}{content}  [{rows}]{' …' if folded else ''}"
        if folded:
            continue
        for branch, child in reversed(list(enumerate(node.children))):
            last = branch == len(node.children) - 1
            stem, more = ("└─ ", "   ") if last else ("├─ ", "│  ")
            its_start = f"{indent}{stem}{branch_words(node, branch, digits)}: "
            pending.append((view.nodes[child], its_start, indent + more))
