"""The commands, put together with typer."""

from __future__ import annotations

import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import shapetree
from shapetree.cli._demo import demo
from shapetree.cli._evaluate import evaluate
from shapetree.cli._explain import explain
from shapetree.cli._export import export
from shapetree.cli._fit import fit
from shapetree.cli._inspect import inspect as inspect_model
from shapetree.cli._options import AsJson, Debug, Option, Quiet
from shapetree.cli._plot import plot
from shapetree.cli._predict import predict
from shapetree.cli._problems import Interrupted, message_of
from shapetree.cli._voice import Voice, complain

if TYPE_CHECKING:
    import typer
    from typer.core import TyperGroup

COMMANDS = (fit, predict, evaluate, explain, plot, export, inspect_model, demo)
SHARED = {"as_json": AsJson, "quiet": Quiet, "debug": Debug}

EXAMPLES = """For example:

\b
  shapetree demo
  shapetree fit data.csv --target price -o model.json --html report.html
  shapetree predict model.json new.csv -o predictions.csv
  shapetree explain model.json new.csv --row 1
"""


def make_app() -> typer.Typer:
    """The command with all its subcommands."""
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    import rich  # noqa: F401
    import typer

    app = typer.Typer(
        cls=_group_class(),
        # Plain help: it reads the same on every terminal, and fits 80 columns.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        invoke_without_command=True,
        epilog=EXAMPLES,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_for_typer(_root, {}))
    for command in COMMANDS:
        summary, examples = _help_of(command)
        app.command(command.__name__, help=summary, epilog=examples)(_command(command))
    return app


def _root(
    context: typer.Context,
    version: Annotated[bool, Option("Print the version and exit.", ("--version",))] = False,
) -> None:
    """Decision trees that you can show: fit, explain, draw and export them."""
    if version:
        print(f"shapetree {shapetree.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def _help_of(command: Callable[..., None]) -> tuple[str, str]:
    """What a command's docstring says before and from its examples on."""
    summary, examples = inspect.cleandoc(command.__doc__ or "").split("For example:\n")
    return summary.strip(), f"For example:\n\n\b\n{examples}"


def _command(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options that all commands share."""

    def speak(as_json: bool, quiet: bool, debug: bool, **given: Any) -> None:
        command(Voice(as_json, quiet), **given)
        # Now rather than when Python exits, so that typer notices a closed pipe.
        sys.stdout.flush()

    return _for_typer(command, SHARED, speak)


def _for_typer(
    function: Callable[..., None],
    shared: dict[str, Any],
    run: Callable[..., None] | None = None,
) -> Callable[..., None]:
    """A function with the signature of another as typer wants it."""
    import typer

    hints = get_type_hints(function, localns={"typer": typer}, include_extras=True)
    parameters = [
        parameter.replace(
            annotation=_annotation(hints[name], parameter.default),
            kind=inspect.Parameter.KEYWORD_ONLY,
        )
        for name, parameter in inspect.signature(function).parameters.items()
        if hints[name] is not Voice
    ]
    parameters += [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=_annotation(hint, False),
        )
        for name, hint in shared.items()
    ]

    def call(**given: Any) -> None:
        (run or function)(**given)

    call.__doc__ = function.__doc__
    call.__name__ = function.__name__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _annotation(hint: Any, default: Any) -> Any:
    """A parameter's type with typer's description instead of ours."""
    kind, *described = get_args(hint) or (hint,)
    if not described or not hasattr(described[0], "for_typer"):
        return hint
    has_default = not (
        default is None or default is inspect.Parameter.empty or isinstance(default, bool)
    )
    return Annotated[kind, described[0].for_typer(has_default)]


def _group_class() -> type[TyperGroup]:
    """A group of commands that says what went wrong on one line."""
    from typer.core import TyperGroup

    class Commands(TyperGroup):
        def main(  # type: ignore[override]
            self,
            args: Sequence[str] | None = None,
            standalone_mode: bool = True,
            **extra: Any,
        ) -> Any:
            given = list(sys.argv[1:] if args is None else args)
            _never_stumble_over_signs()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = _exit_code(
                    lambda: super(Commands, self).main(args=given, standalone_mode=False, **extra),
                    "--debug" in given,
                )
            if standalone_mode:
                sys.exit(code)
            return code

        def invoke(self, ctx: Any) -> Any:
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as error:
                # Typer would end without a word.
                raise Interrupted("interrupted; no file is half-written") from error

    return Commands


def _exit_code(run: Callable[[], Any], shows_traceback: bool) -> int:
    """Run a command; say what went wrong, if anything did."""
    try:
        code = run()
    except Exception as error:
        if shows_traceback:
            traceback.print_exc()
        kind = "" if isinstance(error, Interrupted) else "error: "
        complain(kind + (_usage_message(error) or message_of(error)))
        return int(getattr(error, "exit_code", 1))
    return code if isinstance(code, int) else 0


def _usage_message(error: Exception) -> str | None:
    """What typer says about wrong usage, and where to read more; None for other errors."""
    speak = getattr(error, "format_message", None)
    if speak is None:
        return None
    context = getattr(error, "ctx", None)
    where = "" if context is None else f" See {context.command_path} --help."
    return " ".join(str(speak()).split()) + where


def _never_stumble_over_signs() -> None:
    """Print a question mark for characters that an old terminal lacks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
