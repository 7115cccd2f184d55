"""Console: the output of commands, as text or as JSON, and their errors."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
import rich.console
from rich import box
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from shapetree.tree._words import printable

MAX_TABLE_ROWS = 40
# Text between tabs and ends of lines, which a terminal may see as they are.
SEPARATING = re.compile(r"[^\t\n]+")
# Classes that are counted by name, and names in a list.
MAX_CLASSES, MAX_LISTED = 6, 8
# Errors of the library whose messages are meant for users.
FOR_USERS = (ValueError, TypeError, OSError, ImportError)


class Problem(Exception):
    """Something that stops a command; the message is one line."""

    exit_code = 1


class Misuse(Problem):
    """Options that make no sense, alone or together."""

    exit_code = 2


class Interrupted(Problem):
    """Ctrl-C."""

    exit_code = 130


def message_of(error: BaseException) -> str:
    """An error on one line."""
    words = " ".join(str(error).split())
    if isinstance(error, Problem):
        return words
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, FOR_USERS) and words:
        return words
    return f"unexpected {type(error).__name__}: {words or 'no message'} (--debug shows where)"


class Console:
    """The consoles of rich that the options `--json` and `--quiet` ask for.

    Results go to stdout; notes and progress to stderr, so that results can be piped.
    """

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.is_talkative = not (as_json or quiet)
        self._out = _rich_console(quiet=not self.is_talkative)
        self._err = _rich_console(quiet=quiet, stderr=True)
        self._notes: list[str] = []

    # --- for people ---

    def say(self, text: str = "", style: str = "") -> None:
        """Print a paragraph, which a terminal wraps."""
        self._out.print(Text(printable(text), style))

    def heading(self, text: str) -> None:
        """Print a heading after an empty line."""
        self.say()
        self.say(text, "bold")

    def lines(self, text: str) -> None:
        """Print lines as they are; a terminal cuts those that are too long."""
        is_cut = self._out.is_terminal
        self._out.print(
            Text("\n".join(map(printable, text.splitlines()))),
            no_wrap=True,
            overflow="ellipsis" if is_cut else "ignore",
            crop=is_cut,
            soft_wrap=False,
        )

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Print a table no wider than the terminal; if it is very long, only its first rows."""
        table = Table(*columns, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        for row in rows[:MAX_TABLE_ROWS]:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self._out.print(table, soft_wrap=False)
        if len(rows) > MAX_TABLE_ROWS:
            self.say(f"… and {len(rows) - MAX_TABLE_ROWS:,} more; --json lists them all")

    def note(self, text: str) -> None:
        """Print a note on stderr."""
        self._notes.append(text)
        self._err.print(Text(printable(f"note: {text}")))

    @property
    def shows_progress(self) -> bool:
        """Whether to show progress: on a terminal that people watch."""
        return self.is_talkative and self._err.is_terminal

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Show that something takes time; on a terminal only, and gone when it is done."""
        if not self.shows_progress:
            yield
        elif self._err.is_dumb_terminal or self._err.color_system is None:
            self._err.print(Text(printable(f"{what} …")))
            yield
        else:
            columns = (
                SpinnerColumn("line"),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
            )
            with Progress(*columns, console=self._err, transient=True) as bar:
                bar.add_task(printable(what), total=None)
                yield

    # --- for machines ---

    def result(self, content: Mapping[str, Any]) -> None:
        """Print the JSON document, with the notes, if it was asked for."""
        if self.as_json:
            document = plain({**content, "notes": self._notes})
            print(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2))

    def text(self, content: str) -> None:
        """Print a result that is already text, such as CSV."""
        if not self.as_json:
            if self._out.is_terminal:
                content = SEPARATING.sub(lambda line: printable(line[0]), content)
            sys.stdout.write(content if content.endswith("\n") else content + "\n")


def _rich_console(**options: Any) -> rich.console.Console:
    # Where colours are not wanted, rich would still write escape codes for bold.
    colors: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = rich.console.Console(color_system=colors, highlight=False, **options)
    # A terminal wraps paragraphs; in a pipe, each is a line.
    console.soft_wrap = not console.is_terminal
    return console


def complain(message: str) -> None:
    """Print an error, or that a command was interrupted, on one line."""
    print(f"shapetree: {printable(message)}", file=sys.stderr, flush=True)


# --- words ---


def listed(names: Iterable[object]) -> str:
    """Names in a row, the first few of many.

    >>> listed(["age", "sex"])
    'age, sex'
    """
    every = [str(name) for name in names]
    more = len(every) - MAX_LISTED
    shown = ", ".join(every[:MAX_LISTED])
    return f"{shown} and {more} more" if more > 0 else shown


def suggestion(name: str, known: Iterable[str]) -> str:
    """What a wrong name may have meant, or the names there are."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {listed(names)}"


def class_counts(labels: np.ndarray) -> str:
    """How many rows the most common classes have, in words.

    >>> class_counts(np.array(["no", "yes", "no"]))
    'no (2), yes (1)'
    """
    counts = Counter(labels.tolist()).most_common()
    shown = ", ".join(f"{label} ({count:,})" for label, count in counts[:MAX_CLASSES])
    more = len(counts) - MAX_CLASSES
    return f"{shown} and {more} rarer classes" if more > 0 else shown


def plain(value: Any) -> Any:
    """A value for JSON: numbers that are not finite become null.

    >>> plain({"a": (1.5, float("nan"))})
    {'a': [1.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
