"""`shapetree export`: a tree in other languages and formats."""

from __future__ import annotations

import inspect
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import shapetree.export
from shapetree.cli._model import Tree, read_model
from shapetree.cli._options import Model, Option, settings_in, value_in
from shapetree.cli._outputs import check_outputs, none_if_standard, write_outputs
from shapetree.cli._problems import Misuse, Problem, listed, message_of
from shapetree.cli._voice import Voice


class Format(StrEnum):
    """What a tree can be exported to."""

    SQL = "sql"
    PYTHON = "python"
    ONNX = "onnx"
    DOT = "dot"
    JS = "js"
    TEXT = "text"
    HTML = "html"
    JSON = "json"


ENDINGS = {
    ".sql": Format.SQL,
    ".py": Format.PYTHON,
    ".onnx": Format.ONNX,
    ".dot": Format.DOT,
    ".gv": Format.DOT,
    ".js": Format.JS,
    ".mjs": Format.JS,
    ".txt": Format.TEXT,
    ".html": Format.HTML,
    ".json": Format.JSON,
}


def export(
    voice: Voice,
    model: Model,
    to: Annotated[
        Format | None,
        Option("Format; by default, the file's ending decides.", ("--to",)),
    ] = None,
    output: Annotated[
        Path | None,
        Option("Write to this file instead of the screen.", ("--output", "-o"), "FILE"),
    ] = None,
    dialect: Annotated[
        str | None, Option("SQL dialect, such as sqlite.", ("--dialect",), "NAME")
    ] = None,
    options: Annotated[
        list[str] | None,
        Option("Any other option of the exporter; may be repeated.", ("--option",), "NAME=VALUE"),
    ] = None,
) -> None:
    """Write a tree as code, as a page, or for other programs.

    For example:
      shapetree export model.json --to text
      shapetree export model.json --to sql --dialect sqlite -o tree.sql
      shapetree export model.json -o tree.onnx
      shapetree export model.json -o report.html --option title="Who leaves"
    """
    output = none_if_standard(output)
    form = _format(to, output)
    if form is Format.ONNX and output is None:
        raise Misuse("ONNX is binary; name a file with -o")
    settings = {name: value_in(text) for name, text in settings_in(options, "--option").items()}
    if dialect is not None:
        settings["dialect"] = dialect
    exporter = _exporter(form)
    _check_settings(form, exporter, settings)
    check_outputs([output], [model])
    tree = read_model(model)
    with voice.progress(f"Exporting to {form}"):
        content = _content(exporter, tree, settings)
    record: dict[str, Any] = {"model": str(model), "format": form}
    if output is None:
        voice.text(str(content))
        record["content"] = content
    else:
        record["written"] = write_outputs({output: content})
        voice.say(f"Wrote {output}")
    voice.result(record)


def _format(to: Format | None, output: Path | None) -> Format:
    if to is not None:
        return to
    if output is None:
        raise Misuse(f"choose a format: --to {listed(Format)}")
    form = ENDINGS.get(output.suffix.lower())
    if form is None:
        raise Misuse(f"cannot tell the format from {output}; add --to {listed(Format)}")
    return form


def _exporter(form: Format) -> Any:
    if form is Format.JSON:
        return shapetree.export_json
    exporter = getattr(shapetree.export, f"export_{form}", None)
    if exporter is None:
        raise Problem(f"this version of shapetree cannot export to {form}")
    return exporter


def _check_settings(form: Format, exporter: Any, settings: dict[str, Any]) -> None:
    known = list(inspect.signature(exporter).parameters)[1:]
    known = [name for name in known if name not in ("path", "X", "y")]
    for name in settings:
        if name not in known:
            option = "--dialect" if name == "dialect" else f"--option {name}"
            others = f"; its options are {listed(known)}" if known else ""
            raise Misuse(f"an export to {form} has no option {option}{others}")


def _content(exporter: Any, tree: Tree, settings: dict[str, Any]) -> str | bytes:
    """What an exporter returns, as the content of a file."""
    try:
        result = exporter(tree, **settings)
    except (ValueError, TypeError) as error:
        # Without settings, it must be the tree that cannot be exported.
        raise (Misuse if settings else Problem)(message_of(error)) from error
    serialise = getattr(result, "SerializeToString", None)
    return serialise() if serialise is not None else result
