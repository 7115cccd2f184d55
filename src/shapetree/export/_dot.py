"""A tree as a graph, in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from shapetree._files import PathLike, write_file
from shapetree.drawing._palette import branch_colour, class_colour
from shapetree.export._text import is_folded, require_options, summary
from shapetree.tree._from_estimator import HoldsTree, fitted_tree
from shapetree.tree._view import NodeView, TreeView, view_of
from shapetree.tree._words import branch_words

# Control characters, which pictures cannot hold, as the signs for them.
CONTROLS = {code: 0x2400 + code for code in range(32) if code != ord("\n")}

OPENING = """\
digraph tree {
  node [shape=box, style=rounded, fontname="Helvetica"];
  edge [fontname="Helvetica", fontsize=11];
"""


def export_dot(
    estimator: HoldsTree,
    path: PathLike | None = None,
    *,
    max_depth: int | None = None,
    digits: int | None = None,
) -> str:
    r"""Write a fitted tree as a graph that Graphviz can draw.

    Nodes show the features that they split on and their number of training rows, leaves what they
    predict. Edges have the colours of branches and leaves those of classes, as in pictures and
    pages; an edge's label says which values go there, in the words of `export_text`.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        A fitted estimator.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written.
    max_depth : int, optional
        Deepest level to show; the default shows all.
    digits : int, optional
        Significant digits of thresholds; exact by default, see `export_text`.

    Returns
    -------
    str
        The graph's source.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> from shapetree.export import export_dot
    >>> iris = load_iris(as_frame=True)
    >>> species = iris.target_names[iris.target]
    >>> tree = ShapeTreeClassifier(max_depth=1, max_branches=2).fit(iris.data, species)
    >>> print(export_dot(tree))
    digraph tree {
      node [shape=box, style=rounded, fontname="Helvetica"];
      edge [fontname="Helvetica", fontsize=11];
      0 [label="petal width (cm)\n150 rows"];
      1 [label="setosa (100 % of rows, predicted 96 %)\n50 rows", color="#DDCC77", penwidth=2];
      2 [label="versicolor (50 %)\n100 rows", color="#AA4499", penwidth=2];
      0 -> 1 [label="≤ 0.8", color="#0072B2"];
      0 -> 2 [label="> 0.8", color="#E69F00"];
    }
    <BLANKLINE>
    """
    require_options(max_depth, digits)
    view = view_of(fitted_tree(estimator))
    lines = "".join(f"  {line};\n" for line in _lines(view, max_depth, digits))
    graph = f"{OPENING}{lines}}}\n"
    write_file(path, graph, "the graph")
    return graph


def _lines(view: TreeView, max_depth: int | None, digits: int | None) -> Iterator[str]:
    shown = [node for node in view.nodes if max_depth is None or node.depth <= max_depth]
    for node in shown:
        label = "\n".join(summary(view, node, max_depth, is_brief=True))
        more = " …" if is_folded(node, max_depth) else ""
        yield f"{node.number} [label={_quoted(label + more)}{_colour_of(view, node)}]"
    for node in shown:
        if not is_folded(node, max_depth):
            yield from _edges(node, digits)


def _edges(node: NodeView, digits: int | None) -> Iterator[str]:
    for branch, child in enumerate(node.children):
        label = _quoted(branch_words(node, branch, digits))
        yield f'{node.number} -> {child} [label={label}, color="{branch_colour(branch)}"]'


def _colour_of(view: TreeView, node: NodeView) -> str:
    """The colour of the class that a leaf predicts, for its border."""
    if not node.is_leaf or view.classes is None or view.n_outputs > 1:
        return ""
    number = view.classes[0].index(node.prediction[0])
    return f', color="{class_colour(number)}", penwidth=2'


def _quoted(text: str) -> str:
    """Text that is drawn as it is, neither read as an escape nor as an entity."""
    text = text.encode("utf-8", "replace").decode("utf-8").translate(CONTROLS)
    for special, written in {"\\": "\\\\", '"': '\\"', "&": "&amp;", "\n": "\\n"}.items():
        text = text.replace(special, written)
    return f'"{text}"'
