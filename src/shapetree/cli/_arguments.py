"""Arguments and options that several commands share, and the files that they write."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from shapetree._files import writable_place, write_file
from shapetree.cli._console import Misuse, Problem

STANDARD = Path("-")  # standard input or output
FORMATS = (
    "A file with column names: CSV, Parquet, Feather, JSON lines or Excel; may be compressed "
    "(.gz). - for stdin."
)

ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A model written by `shapetree fit` or `to_json`; - for stdin."
    ),
]
Data = Annotated[Path, typer.Argument(metavar="DATA", help=FORMATS)]
DataOrFolder = Annotated[
    Path, typer.Argument(metavar="DATA", help=f"{FORMATS} Or a folder of Parquet files.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of a CSV file, such as latin-1.")]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Separator of the values in a CSV file; by default detected from its first line."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only the result and errors.")]
# Looked for where errors are printed.
Debug = Annotated[bool, typer.Option("--debug", help="Show where errors come from.", hidden=True)]


def names_in(text: str | None) -> list[str]:
    """Names in a comma-separated list.

    >>> names_in("age, sex"), names_in(None)
    (['age', 'sex'], [])
    """
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def settings_in(texts: list[str] | None, option: str) -> dict[str, str]:
    """Texts like `name=value` as a dictionary."""
    settings: dict[str, str] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise Misuse(f"{option} takes name=value, got {text!r}")
        settings[name.strip()] = value.strip()
    return settings


def value_in(text: str) -> Any:
    """A parameter's value: JSON, `None`, or else the text itself.

    >>> value_in("0.5"), value_in("None"), value_in("gini")
    (0.5, None, 'gini')
    """
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


# --- files that commands read and write: checked before the work, written in one piece after it ---


def check_inputs(*inputs: Path | None) -> None:
    """Refuse to read standard input twice."""
    if sum(path == STANDARD for path in inputs) > 1:
        raise Misuse("standard input (-) can be read only once; name a file for the other")


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None]) -> None:
    """Refuse outputs that cannot be written, or that would overwrite something in use."""
    taken = {path.resolve(): "it is read by this command" for path in inputs if path is not None}
    for path in outputs:
        if path is None or path == STANDARD:
            continue
        _check_place(path)
        if path.resolve() in taken:
            raise Misuse(f"cannot write to {path}: {taken[path.resolve()]}")
        taken[path.resolve()] = "two outputs have this name"


def _check_place(path: Path) -> None:
    place = writable_place(path, "the result")
    try:
        with tempfile.TemporaryFile(dir=place.parent):
            pass
    except OSError as error:
        raise Problem(f"cannot write to {path}: {error.strerror or error}") from error


def check_ending(path: Path | None, endings: Iterable[str]) -> None:
    """Refuse a file name whose ending does not say what to write."""
    known = list(endings)
    if path is not None and not path.name.lower().endswith(tuple(known)):
        raise Misuse(
            f"cannot tell what to write to {path}; its name must end in {' or '.join(known)}"
        )


def write_outputs(contents: dict[Path, str | bytes]) -> list[str]:
    """Write files, one after the other, and give their names."""
    for path, content in contents.items():
        write_file(path, content, "the result")
    return [str(path) for path in contents]
