"""Checks of arguments that plot_tree and plot_node share."""

from __future__ import annotations

from typing import Any

from shapetree.data._names import is_index
from shapetree.plot._picture import check_axes, import_matplotlib
from shapetree.tree._fitted import FittedTree
from shapetree.tree._view import TreeView, view_of


def view_to_draw(fitted: FittedTree, X: Any, y: Any, ax: Any) -> TreeView:
    """The view of a tree; an error that gives the reason if it cannot be drawn."""
    import_matplotlib()
    check_axes(ax)
    view = view_of(fitted, X, y)
    if view.n_outputs > 1:
        raise ValueError(
            f"a picture shows one target, but this tree has {view.n_outputs}; fit a tree for "
            "each, or use export_text"
        )
    view.require_counts("a picture")
    return view


def check_depth(max_depth: Any) -> None:
    """Refuse a depth that is no number of levels."""
    if max_depth is None:
        return
    if not is_index(max_depth):
        raise TypeError(f"max_depth must be None or a whole number, got {max_depth!r}")
    if int(max_depth) < 0:
        raise ValueError(f"max_depth must be 0 or more, got {max_depth}")


def check_direction(direction: Any) -> None:
    """Refuse what is no direction."""
    if direction not in (None, "down", "right"):
        raise ValueError(f"direction must be 'down', 'right' or None, got {direction!r}")


def check_title(title: Any) -> None:
    """Refuse what is no title."""
    if not (title is None or isinstance(title, str)):
        raise TypeError(f"title must be None or a string, got {title!r}")
