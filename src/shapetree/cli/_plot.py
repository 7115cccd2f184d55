"""`shapetree plot`: a picture of a tree or of a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from shapetree.cli._model import read_model
from shapetree.cli._options import Model, Option
from shapetree.cli._outputs import check_outputs, write_outputs
from shapetree.cli._pictures import check_picture, picture_of_node, picture_of_tree
from shapetree.cli._problems import Misuse
from shapetree.cli._voice import Voice


def plot(
    voice: Voice,
    model: Model,
    output: Annotated[Path, Option("A .png, .svg or .pdf.", ("--output", "-o"), "FILE")],
    node: Annotated[
        int | None, Option("Draw only this node, in detail.", ("--node",), "N", least=0)
    ] = None,
    start: Annotated[
        int | None, Option("Draw the tree below this node.", ("--from",), "N", least=0)
    ] = None,
    max_depth: Annotated[
        int | None, Option("Number of levels to draw.", ("--max-depth",), "N", least=0)
    ] = None,
    title: Annotated[str | None, Option("Title of the picture.", ("--title",), "TEXT")] = None,
) -> None:
    """Draw a tree, or one of its nodes.

    For example:
      shapetree plot model.json -o tree.png
      shapetree plot model.json -o tree.pdf --max-depth 2 --title "Who leaves"
      shapetree plot model.json -o root.svg --node 0
    """
    if node is not None and (start is not None or max_depth is not None):
        raise Misuse("--node draws one node; leave out --from and --max-depth")
    check_picture(output)
    check_outputs([output], [model])
    tree = read_model(model)
    with voice.progress("Drawing"):
        if node is not None:
            content = picture_of_node(tree, node, output, title=title)
        else:
            content = picture_of_tree(
                tree, output, node=start or 0, max_depth=max_depth, title=title
            )
    written = write_outputs({output: content})
    voice.say(f"Wrote {output}")
    voice.result({"model": str(model), "written": written})
