"""Draw the README's pictures: toy problems, and the shape trees that solve them.

    python examples/picture.py docs

Needs matplotlib.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import ConnectionPatch
from toys import make_checkerboard, make_plus_sign

from shapetree import ShapeTreeClassifier
from shapetree._view import NodeView, TreeView, view_of

COLOURS = ("#0072B2", "#E69F00")  # safe for the colour-blind
LEFT, WIDTH, HEIGHT = 0.0, 4.4, 0.42


def draw_data(ax: Axes, X, y) -> None:
    for label in (0, 1):
        ax.scatter(*X[y == label].T, s=5, color=COLOURS[label], label=f"class {label}", lw=0)
    low, high = np.round(X.min()), np.round(X.max())
    ax.set(xlim=(low, high), ylim=(low, high), xlabel="x0", ylabel="x1", aspect="equal")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncol=2, frameon=False, markerscale=3)


def draw_strip(ax: Axes, node: NodeView, colour_of_branch: list[str], x: float, y: float) -> None:
    """A node's shape function: its feature's axis, coloured by branch."""
    for segment in node.segments:
        low, high = max(segment.low, 0), min(segment.high, 1)
        ax.barh(
            y, (high - low) * WIDTH, HEIGHT, x + low * WIDTH, color=colour_of_branch[segment.branch]
        )
        if segment.high < 1:
            ax.text(
                x + high * WIDTH, y - 0.34, f"{segment.high:.2f}", ha="center", va="top", size=9
            )
    rows = f"{node.n_rows:,} rows"
    ax.text(x, y + 0.3, f"{node.features[0]}", ha="left", va="bottom", weight="bold")
    ax.text(x + WIDTH, y + 0.3, rows, ha="right", va="bottom", color="0.4", size=9)


def draw_leaf(ax: Axes, node: NodeView, x: float, y: float) -> None:
    label = node.prediction[0]
    share = node.value[0].max()
    box = {"boxstyle": "round,pad=0.5", "fc": COLOURS[label], "ec": "none", "alpha": 0.3}
    words = f"class {label}\n{share:.0%} of {node.n_rows:,}"
    ax.text(x, y, words, ha="center", va="top", size=10, bbox=box)


def connect(ax: Axes, start: tuple[float, float], stop: tuple[float, float], colour: str) -> None:
    ax.add_artist(ConnectionPatch(start, stop, "data", "data", color=colour, lw=3, alpha=0.7))


def draw_tree(ax: Axes, view: TreeView) -> None:
    """The plus sign's tree: a root, and below one of its branches a second node."""
    root = view.nodes[0]
    inner = next(child for child in root.children if not view.nodes[child].is_leaf)
    colours = ["#56B4E9" if child == inner else COLOURS[1] for child in root.children]
    draw_strip(ax, root, colours, LEFT, 3.6)
    for branch, child in enumerate(root.children):
        if child == inner:
            connect(ax, (1.2, 3.0), (1.2, 2.45), colours[branch])
        else:
            connect(ax, (3.8, 3.0), (5.3, 2.35), colours[branch])
            draw_leaf(ax, view.nodes[child], 5.3, 2.2)
    node = view.nodes[inner]
    leaves = [view.nodes[child] for child in node.children]
    leaf_colours = [COLOURS[leaf.prediction[0]] for leaf in leaves]
    draw_strip(ax, node, leaf_colours, LEFT, 1.75)
    for leaf, colour, x in zip(leaves, leaf_colours, (1.0, 3.4), strict=True):
        connect(ax, (x, 1.12), (x, 0.65), colour)
        draw_leaf(ax, leaf, x, 0.5)
    ax.set(xlim=(-0.1, 6.3), ylim=(-0.35, 4.3))
    ax.axis("off")


def draw_plane(ax: Axes, tree: ShapeTreeClassifier) -> None:
    """A pair's shape function: the plane of both features, coloured by branch."""
    side = np.linspace(-1, 1, 600)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    label = tree.predict(points).reshape(600, 600)
    for number in (0, 1):
        ax.contourf(side, side, label == number, [0.5, 1.5], colors=[COLOURS[number]], alpha=0.55)
    node = view_of(tree).nodes[0]
    ax.set(xlabel=node.features[0], ylabel=node.features[1], aspect="equal")
    ax.set_title(f"one node, {len(node.regions)} regions", size=10, color="0.3")


def draw_plus_sign(path: Path) -> None:
    X, y = make_plus_sign()
    tree = ShapeTreeClassifier(max_branches=2, max_bins=None).fit(X, y)
    figure, (data, picture) = plt.subplots(
        1, 2, figsize=(10, 4.2), width_ratios=(1, 1.45), layout="constrained"
    )
    draw_data(data, X, y)
    draw_tree(picture, view_of(tree))
    figure.savefig(path, dpi=140)


def draw_checkerboard(path: Path) -> None:
    X, y = make_checkerboard()
    tree = ShapeTreeClassifier(pairs="auto", max_branches=2, max_depth=1).fit(X, y)
    figure, (data, picture) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    draw_data(data, X, y)
    draw_plane(picture, tree)
    figure.savefig(path, dpi=140)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    draw_plus_sign(folder / "plus_sign.png")
    draw_checkerboard(folder / "checkerboard.png")
