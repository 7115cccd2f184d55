"""Pictures of trees as the content of a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from shapetree import plot_node, plot_tree
from shapetree.cli._model import Tree
from shapetree.cli._outputs import check_ending
from shapetree.plot._picture import import_matplotlib

ENDINGS = (".png", ".svg", ".pdf")
DPI = 200


def check_picture(path: Path | None) -> None:
    """Refuse a name that is not a picture's; say now if matplotlib is missing."""
    check_ending(path, ENDINGS)
    if path is not None:
        import_matplotlib()
        import matplotlib

        # No window is needed, and there may be no screen at all.
        matplotlib.use("Agg")


def picture_of_tree(tree: Tree, path: Path, **options: Any) -> bytes:
    """A tree as a picture, in the format that the path's ending says."""
    return _content(plot_tree(tree, **options), path)


def picture_of_node(tree: Tree, node: int, path: Path, **options: Any) -> bytes:
    """One node as a picture."""
    return _content(plot_node(tree, node, **options), path)


def _content(picture: Any, path: Path) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format=path.suffix[1:].lower(), dpi=DPI)
    return buffer.getvalue()
