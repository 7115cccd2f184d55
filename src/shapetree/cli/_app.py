"""The commands, put together with typer, and what they say when something goes wrong."""

from __future__ import annotations

import shlex
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from contextlib import chdir
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.datasets import load_wine
from typer.core import TyperGroup

import shapetree
from shapetree._files import write_file
from shapetree.cli._arguments import AsJson, Debug, Quiet
from shapetree.cli._console import Console, Interrupted, Problem, complain, message_of
from shapetree.cli._fit import fit
from shapetree.cli._predict import evaluate, predict
from shapetree.cli._show import explain, export, inspect, plot

EXAMPLES = """For example:

\b
  shapetree demo
  shapetree fit data.csv --target price -o model.json --html report.html
  shapetree predict model.json new.csv -o predictions.csv
  shapetree explain model.json new.csv --row 1
"""


SESSION = (
    "fit wine.csv -t cultivar --depth 2 --test-size 0.5 -o model.json",
    "inspect model.json",
    "predict model.json wine.csv --proba -o predictions.csv",
    "explain model.json wine.csv --row 1",
    "explain model.json wine.csv --row 1 --set proline=600",
    "plot model.json -o tree.png",
    "plot model.json --node 0 -o root.svg",
    "export model.json -o report.html",
    "export model.json --dialect sqlite -o tree.sql",
)


def make_app() -> typer.Typer:
    """The command with all its subcommands."""
    app = typer.Typer(
        cls=Commands,
        # Plain help: it reads the same on every terminal, and fits 80 columns.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        invoke_without_command=True,
        epilog=EXAMPLES,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_root)
    for command in COMMANDS:
        summary, examples = cleandoc(command.__doc__ or "").split("For example:\n")
        epilog = f"For example:\n\n\b\n{examples}"
        app.command(command.__name__, help=summary.strip(), epilog=epilog)(command)
    return app


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Decision trees that you can show: fit, explain, draw and export them."""
    if version:
        print(f"shapetree {shapetree.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


class Commands(TyperGroup):
    """A group of commands whose errors are one line."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run a command, and end with its exit code."""
        given = list(sys.argv[1:] if args is None else args)
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # A question mark for characters that an old terminal lacks.
                stream.reconfigure(errors="replace")
        code: Any = 0
        try:
            with warnings.catch_warnings(action="ignore"):
                code = super().main(args=given, standalone_mode=False, **extra)
        except Exception as error:
            if "--debug" in given:
                traceback.print_exc()
            complain(_message_of(error))
            code = getattr(error, "exit_code", 1)
        code = code if isinstance(code, int) else 0
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            result = super().invoke(ctx)
            # Now rather than when Python exits, so that typer notices a closed pipe.
            sys.stdout.flush()
            return result
        except KeyboardInterrupt as error:
            # Typer would end without a word.
            raise Interrupted("interrupted; no file is half-written") from error


def _message_of(error: Exception) -> str:
    """What to say of an error; if typer found wrong usage, also where to read more."""
    if isinstance(error, Interrupted):
        return str(error)
    # Typer's own errors are those of click, or of its copy of click.
    if not hasattr(error, "format_message"):
        return f"error: {message_of(error)}"
    context = getattr(error, "ctx", None)
    where = "" if context is None else f" See {context.command_path} --help."
    return f"error: {' '.join(error.format_message().split())}{where}"


# --- demo ---


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="Folder for the files; by default a new one."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run through all commands, from a data file to a report.

    For example:
      shapetree demo
      shapetree demo wine
    """
    console = Console(as_json, quiet)
    place = _make_folder(folder)
    _write_data(place / "wine.csv")
    with chdir(place):
        for line in SESSION:
            console.heading(f"$ shapetree {line}")
            _run(line, console)
    files = sorted(path.name for path in place.iterdir())
    console.heading(f"All files are in {place}")
    console.say(", ".join(files))
    console.say(f"Open {place / 'report.html'} in a browser")
    console.result({"folder": str(place), "files": files, "session": list(SESSION)})


def _make_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="shapetree-"))
    if folder.exists() and not folder.is_dir():
        raise Problem(f"{folder} is not a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise Problem(f"{folder} is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _write_data(path: Path) -> None:
    wine = load_wine(as_frame=True)
    names = {"od280/od315_of_diluted_wines": "dilution"}
    table = wine.data.rename(columns=names)
    table["cultivar"] = wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    write_file(path, table.to_csv(index=False, lineterminator="\n"), "the data")


def _run(line: str, console: Console) -> None:
    words = shlex.split(line) + ([] if console.is_talkative else ["--quiet"])
    code = make_app()(words, prog_name="shapetree", standalone_mode=False)
    if code:
        raise Problem(f"the demo stopped at: shapetree {line}")


COMMANDS = (fit, predict, evaluate, explain, plot, export, inspect, demo)
