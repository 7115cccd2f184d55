"""`shapetree export` and `plot`: a model in other languages and formats, and pictures of it."""

from __future__ import annotations

import inspect
import io
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import shapetree
from shapetree import plot_node, plot_tree
from shapetree.cli._arguments import (
    STANDARD,
    AsJson,
    Debug,
    Model,
    Quiet,
    check_ending,
    check_outputs,
    settings_in,
    value_in,
    write_outputs,
)
from shapetree.cli._console import Console, Misuse, Problem, listed, message_of
from shapetree.cli._models import Model as AnyModel
from shapetree.cli._models import Tree, read_model, read_tree
from shapetree.plot._picture import import_matplotlib

PICTURES = (".png", ".svg", ".pdf")
DPI = 200


Format = StrEnum("Format", ["sql", "python", "onnx", "dot", "js", "text", "html", "json"])
ENDINGS = {f".{form}": form for form in Format} | {
    ".py": Format.python,
    ".gv": Format.dot,
    ".mjs": Format.js,
    ".txt": Format.text,
}


def export(
    model: Model,
    to: Annotated[
        Format | None, typer.Option(help="Format; by default, the file's ending decides.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file instead of the screen."),
    ] = None,
    dialect: Annotated[str | None, typer.Option(help="SQL dialect, such as sqlite.")] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="Any other option of the exporter; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a model as code, as a page, or for other programs.

    For example:
      shapetree export model.json --to text
      shapetree export model.json --to sql --dialect sqlite -o tree.sql
      shapetree export model.json -o tree.onnx
      shapetree export model.json -o report.html --option title="Who leaves"
    """
    console = Console(as_json, quiet)
    output = None if output == STANDARD else output
    form = _format(to, output)
    if form is Format.onnx and output is None:
        raise Misuse("ONNX is binary; name a file with -o")
    settings = {name: value_in(text) for name, text in settings_in(options, "--option").items()}
    if dialect is not None:
        settings["dialect"] = dialect
    exporter = getattr(shapetree, f"export_{form}")
    known = list(inspect.signature(exporter).parameters)[1:]
    known = [name for name in known if name not in ("path", "X", "y")]
    for name in settings:
        if name not in known:
            option = "--dialect" if name == "dialect" else f"--option {name}"
            others = f"; its options are {listed(known)}" if known else ""
            raise Misuse(f"an export to {form} has no option {option}{others}")
    check_outputs([output], [model])
    is_drawn = form in (Format.text, Format.dot, Format.html)
    estimator = read_tree(model, f"export --to {form}") if is_drawn else read_model(model)
    with console.progress(f"Exporting to {form}"):
        content = _content(exporter, estimator, settings)
    record: dict[str, Any] = {"model": str(model), "format": form}
    if output is None:
        console.text(str(content))
        record["content"] = content
    else:
        record["written"] = write_outputs({output: content})
        console.say(f"Wrote {output}")
    console.result(record)


def _format(to: Format | None, output: Path | None) -> Format:
    if to is not None:
        return to
    if output is None:
        raise Misuse(f"choose a format: --to {listed(Format)}")
    form = ENDINGS.get(output.suffix.lower())
    if form is None:
        raise Misuse(f"cannot tell the format from {output}; add --to {listed(Format)}")
    return form


def _content(exporter: Any, model: AnyModel, settings: dict[str, Any]) -> str | bytes:
    """What an exporter returns, as the content of a file."""
    try:
        result = exporter(model, **settings)
    except (ValueError, TypeError) as error:
        # Without settings, it must be the model that cannot be exported.
        raise (Misuse if settings else Problem)(message_of(error)) from error
    serialise = getattr(result, "SerializeToString", None)
    return serialise() if serialise is not None else result


# --- pictures ---


def plot(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .png, .svg or .pdf.")],
    node: Annotated[int | None, typer.Option(min=0, help="Draw only this node, in detail.")] = None,
    start: Annotated[
        int | None, typer.Option("--from", min=0, help="Draw the tree below this node.")
    ] = None,
    max_depth: Annotated[int | None, typer.Option(min=0, help="Number of levels to draw.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the picture.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draw a tree, or one of its nodes.

    For example:
      shapetree plot model.json -o tree.png
      shapetree plot model.json -o tree.pdf --max-depth 2 --title "Who leaves"
      shapetree plot model.json -o root.svg --node 0
    """
    console = Console(as_json, quiet)
    if node is not None and (start is not None or max_depth is not None):
        raise Misuse("--node draws one node; leave out --from and --max-depth")
    check_picture(output)
    check_outputs([output], [model])
    tree = read_tree(model, "plot")
    with console.progress("Drawing"):
        if node is None:
            content = picture_of_tree(
                tree, output, node=start or 0, max_depth=max_depth, title=title
            )
        else:
            content = _content_of(plot_node(tree, node, title=title), output)
    written = write_outputs({output: content})
    console.say(f"Wrote {output}")
    console.result({"model": str(model), "written": written})


def check_picture(path: Path | None) -> None:
    """Refuse a name that is not a picture's; say now if matplotlib is missing."""
    check_ending(path, PICTURES)
    if path is not None:
        import_matplotlib()
        import matplotlib

        # No window is needed, and there may be no screen at all.
        matplotlib.use("Agg")


def picture_of_tree(tree: Tree, path: Path, **options: Any) -> bytes:
    """A tree as a picture, in the format of the path's ending."""
    return _content_of(plot_tree(tree, **options), path)


def _content_of(picture: Any, path: Path) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format=path.suffix[1:].lower(), dpi=DPI)
    return buffer.getvalue()
