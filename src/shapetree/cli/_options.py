"""How commands describe their arguments and options, without typer at hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from shapetree.cli._problems import Misuse


@dataclass(frozen=True)
class Argument:
    """A positional value."""

    help: str
    metavar: str

    def for_typer(self, has_default: bool) -> Any:
        """The same in typer's terms."""
        import typer

        return typer.Argument(help=self.help, metavar=self.metavar, show_default=False)


@dataclass(frozen=True)
class Option:
    """A named value; without names, it has that of the parameter."""

    help: str
    names: tuple[str, ...] = ()
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    is_hidden: bool = False

    def for_typer(self, has_default: bool) -> Any:
        """The same in typer's terms."""
        import typer

        return typer.Option(
            *self.names,
            help=self.help,
            metavar=self.metavar,
            min=self.least,
            max=self.most,
            hidden=self.is_hidden,
            show_default=has_default,
        )


Model = Annotated[
    Path, Argument("A model written by `shapetree fit` or `to_json`; - for stdin.", "MODEL")
]
Data = Annotated[
    Path,
    Argument(
        "A file with column names: CSV, Parquet, Feather, JSON lines or Excel; may be compressed "
        "(.gz). - for stdin.",
        "DATA",
    ),
]
DataOrParts = Annotated[
    Path,
    Argument(
        "A file with column names: CSV, Parquet, Feather, JSON lines or Excel; may be compressed "
        "(.gz). - for stdin. Or a folder of Parquet files.",
        "DATA",
    ),
]
Encoding = Annotated[
    str, Option("Encoding of a CSV file, such as latin-1.", ("--encoding",), "NAME")
]
Separator = Annotated[
    str | None,
    Option("Separator of the values in a CSV file; by default detected from its first line.",
           ("--separator",), "CHARACTER"),
]  # fmt: skip
AsJson = Annotated[bool, Option("Print one JSON document instead of text.", ("--json",))]
Quiet = Annotated[bool, Option("Print only the result and errors.", ("--quiet",))]
Debug = Annotated[bool, Option("Show where errors come from.", ("--debug",), is_hidden=True)]


def names_in(text: str | None) -> list[str]:
    """Names in a comma-separated list.

    Examples
    --------
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

    Examples
    --------
    >>> value_in("0.5"), value_in("None"), value_in("gini")
    (0.5, None, 'gini')
    """
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    try:
        return json.loads(text)
    except ValueError:
        return text
