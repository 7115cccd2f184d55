"""A tree as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shapetree.tree._fitted import HoldsTree, fitted_tree
from shapetree.tree._view import Bound, NodeView, Region, Segment, TreeView, view_of
from shapetree.tree._words import listing, weighted_sum

MAX_CATEGORIES = 8
MAX_REGIONS = 4


def export_text(
    estimator: HoldsTree,
    *,
    max_depth: int | None = None,
    digits: int = 6,
    feature_names: Sequence[str] | None = None,
    class_names: Any = None,
    target_name: str | None = None,
    units: Mapping[str, str] | None = None,
) -> str:
    """Write a fitted tree as text.

    The first line says what is predicted, if `y` had a name, and the score on rows that the tree
    has not seen, if it was evaluated. Every other line is a node: the values of its parent's
    feature, or the regions of its parent's pair of features, that lead to it, then what it predicts
    or what it splits on, and its number of training rows. Missing values are mentioned where
    training rows had them; elsewhere they go to the branch with the most rows.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        A fitted estimator.
    max_depth : int, optional
        Deepest level to show; the default shows all.
    digits : int, default=6
        Significant digits of numbers.
    feature_names : list of str, optional
        Names to show for the features, in the order of the columns.
    class_names : list of str, or mapping from class labels to names, optional
        Names to show for the classes, in the order of `classes_`.
    target_name : str, optional
        Name of the target; by default that of `y` in `fit`.
    units : mapping from str to str, optional
        Units of features or of the target, by name, which are shown beside the names.

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
    ├─ ≤ 0.8: setosa 100 %  [50 rows]
    ├─ (0.8, 1.75]: versicolor 91 %  [54 rows]
    └─ > 1.75: virginica 98 %  [46 rows]
    """
    require_options(max_depth, digits)
    view = view_of(fitted_tree(estimator, feature_names, class_names, target_name, units))
    return "\n".join([*_heading(view), *_lines(view, max_depth, digits)])


def _heading(view: TreeView) -> Iterator[str]:
    """What the tree predicts, and how well on rows that it has not seen, where this is known."""
    said = []
    if view.target_names is not None:
        said.append(f"Predicts {listing(view.target_names)}")
    if view.held_out is not None:
        said.append(view.scores_in_words()[0])
    if said:
        heading = "; ".join(said)
        yield heading[0].upper() + heading[1:]


def require_options(max_depth: int | None, digits: int) -> None:
    """Refuse options that are out of range."""
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must not be negative, got {max_depth}")
    if digits < 1:
        raise ValueError(f"digits must be at least 1, got {digits}")


def is_folded(node: NodeView, max_depth: int | None) -> bool:
    """Whether what is below a node is not shown."""
    return max_depth is not None and node.depth >= max_depth and not node.is_leaf


def summary(view: TreeView, node: NodeView, max_depth: int | None, digits: int) -> tuple[str, str]:
    """What a node splits on or predicts, and its number of rows."""
    content = (
        _prediction(view, node, digits)
        if node.is_leaf or is_folded(node, max_depth)
        else node.feature_words
    )
    rows = f"{node.n_rows:,} {'row' if node.n_rows == 1 else 'rows'}"
    return content, rows


def _lines(view: TreeView, max_depth: int | None, digits: int) -> Iterator[str]:
    """A line for each node, below its parent's."""
    # Nodes with what starts their own lines, and those below.
    pending = [(view.nodes[0], "", "")]
    while pending:
        node, start, indent = pending.pop()
        content, rows = summary(view, node, max_depth, digits)
        folded = is_folded(node, max_depth)
        yield f"{start}{content}  [{rows}]{' …' if folded else ''}"
        if folded:
            continue
        for branch, child in reversed(list(enumerate(node.children))):
            last = branch == len(node.children) - 1
            stem, more = ("└─ ", "   ") if last else ("├─ ", "│  ")
            its_start = f"{indent}{stem}{condition(node, branch, digits)}: "
            pending.append((view.nodes[child], its_start, indent + more))


def condition(node: NodeView, branch: int, digits: int) -> str:
    """Values that go to a branch, in words."""
    parts = [
        _interval(segment, digits) if segment.categories is None else _categories(segment)
        for segment in node.segments
        if segment.branch == branch
    ]
    regions = [region for region in node.regions if region.branch == branch]
    parts += [
        _region(region, (node.features[0].name, node.features[1].name), digits)
        for region in regions[:MAX_REGIONS]
    ]
    if len(regions) > MAX_REGIONS:
        parts.append(f"{len(regions) - MAX_REGIONS} more regions")
    if node.saw_missing and node.missing_branch == branch:
        parts.append("missing")
    return " or ".join(part for part in parts if part)


def _interval(segment: Segment, digits: int) -> str:
    low, high = f"{segment.low:.{digits}g}", f"{segment.high:.{digits}g}"
    if low == "-inf":
        return f"≤ {high}" if high != "inf" else "any number"
    return f"> {low}" if high == "inf" else f"({low}, {high}]"


def _categories(part: Segment | Bound) -> str:
    assert part.categories is not None
    shown = ", ".join(str(category) for category in part.categories[:MAX_CATEGORIES])
    more = len(part.categories) - MAX_CATEGORIES
    return f"{shown} and {more} more" if more > 0 else shown


def _region(region: Region, features: tuple[str, str], digits: int) -> str:
    """A region's bounds, in braces if there are several."""
    bounds = [_bound(bound, features, digits) for bound in region.bounds]
    return bounds[0] if len(bounds) == 1 else "{" + " and ".join(bounds) + "}"


def _bound(bound: Bound, features: tuple[str, str], digits: int) -> str:
    a, b = (f"{weight:.{digits}g}" for weight in bound.weights)
    quantity = weighted_sum((a, b), features)
    if bound.categories is not None:
        return f"{quantity} in {_categories(bound)}"
    low, high = f"{bound.low:.{digits}g}", f"{bound.high:.{digits}g}"
    if low == "-inf":
        return f"{quantity} ≤ {high}"
    return f"{quantity} > {low}" if high == "inf" else f"{low} < {quantity} ≤ {high}"


def _prediction(view: TreeView, node: NodeView, digits: int) -> str:
    """What a node predicts: each output's class and its share, or number."""
    if view.classes is None:
        return ", ".join(f"{number:.{digits}g}" for number in node.prediction)
    return ", ".join(
        f"{label} {100 * shares.max():.0f} %"
        for label, shares in zip(node.prediction, node.value, strict=True)
    )
