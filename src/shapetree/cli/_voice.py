"""Voice: everything that a command says, to people or to machines."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

import numpy as np

from shapetree.tree._words import printable

if TYPE_CHECKING:
    from rich.console import Console

MAX_TABLE_ROWS = 40
# Text between tabs and ends of lines, which a terminal may see as they are.
SEPARATING = re.compile(r"[^\t\n]+")
# Characters between two columns, and the fewest that a cell is shortened to.
GAP = 2
LEAST_WIDTH = 8
# Classes that are counted by name.
MAX_CLASSES = 6


@dataclass(frozen=True)
class Head:
    """Head of a table's column; cells of a flexible column are shortened if space is short."""

    title: str
    is_number: bool = False
    is_flexible: bool = False


class Voice:
    """Speaks on stdout and stderr as the options `--json` and `--quiet` ask for.

    Results go to stdout; notes and progress to stderr, so that results can be piped.
    """

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.is_quiet = quiet
        self.is_talkative = not (as_json or quiet)
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)
        self._notes: list[str] = []

    # --- for people ---

    def say(self, text: str = "", indent: str = "") -> None:
        """Print a paragraph; a terminal shows it wrapped, its further lines indented."""
        if self.is_talkative:
            self._print(_wrapped(printable(text), self._out, indent))

    def heading(self, text: str) -> None:
        """Print a heading after an empty line."""
        if self.is_talkative:
            self._print("")
            self._print(printable(text), "bold")

    def lines(self, text: str) -> None:
        """Print lines as they are; a terminal cuts those that are too long."""
        if not self.is_talkative:
            return
        for line in text.splitlines():
            shown = printable(line)
            self._print(_shortened(shown, self._out.width) if self._out.is_terminal else shown)

    def _print(self, text: str, style: str | None = None) -> None:
        from rich.text import Text

        self._out.print(Text(text, style or ""), soft_wrap=True, highlight=False)

    def table(self, heads: Sequence[Head], rows: Sequence[Sequence[str]]) -> None:
        """Print a table no wider than the terminal; if it is very long, only its first rows."""
        if not self.is_talkative:
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        shown = [[printable(cell) for cell in row] for row in rows[:MAX_TABLE_ROWS]]
        widths = _widths(heads, shown, self._out.width)
        table = Table(
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            show_edge=False,
            header_style="bold",
        )
        for head, width in zip(heads, widths, strict=True):
            justify: Literal["left", "right"] = "right" if head.is_number else "left"
            table.add_column(head.title, justify=justify, width=width, no_wrap=True)
        for row in shown:
            cells = [_shortened(cell, width) for cell, width in zip(row, widths, strict=True)]
            table.add_row(*map(Text, cells))
        self._out.print(table)
        if len(rows) > MAX_TABLE_ROWS:
            self.say(f"… and {len(rows) - MAX_TABLE_ROWS:,} more; --json lists them all")

    def note(self, text: str) -> None:
        """Print a note on stderr."""
        self._notes.append(text)
        if not self.is_quiet:
            print(_wrapped(printable(f"note: {text}"), self._err), file=sys.stderr, flush=True)

    @property
    def shows_progress(self) -> bool:
        """Whether somebody may be watching."""
        return self.is_talkative and self._err.is_terminal

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Show that something takes time; on a terminal only, and gone when it is done."""
        if not self.shows_progress:
            yield
            return
        if self._err.is_dumb_terminal or self._err.color_system is None:
            self._err.print(f"{what} …", markup=False, highlight=False)
            yield
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn("line"),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._err, transient=True) as bar:
            bar.add_task(what, total=None)
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


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    if os.environ.get("NO_COLOR"):
        # Rich would still write escape codes for bold.
        return Console(file=stream, color_system=None, no_color=True)
    return Console(file=stream)


def _widths(heads: Sequence[Head], rows: Sequence[Sequence[str]], available: int) -> list[int]:
    """Widths of columns; the widest flexible one gives way until all fit."""
    from rich.cells import cell_len

    cells = zip(*([head.title for head in heads], *rows), strict=True)
    widths = [max(map(cell_len, column)) for column in cells]
    flexible = [j for j, head in enumerate(heads) if head.is_flexible]
    excess = sum(widths) + GAP * (len(widths) - 1) - available
    while excess > 0 and flexible:
        widest = max(flexible, key=lambda j: widths[j])
        if widths[widest] <= LEAST_WIDTH:
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def _wrapped(text: str, console: Console, indent: str = "") -> str:
    """Text in lines that fit a terminal; pipes get it on one line."""
    if not console.is_terminal:
        return text
    return textwrap.fill(text, console.width, subsequent_indent=indent, break_on_hyphens=False)


def _shortened(text: str, width: int) -> str:
    """A line cut to a number of characters of a terminal."""
    from rich.text import Text

    line = Text(text)
    line.truncate(width, overflow="ellipsis")
    return line.plain


def complain(message: str) -> None:
    """Print an error, or that a command was interrupted, on one line."""
    print(f"shapetree: {printable(message)}", file=sys.stderr, flush=True)


def class_counts(labels: np.ndarray) -> str:
    """How many rows the most common classes have, in words.

    Examples
    --------
    >>> class_counts(np.array(["no", "yes", "no"]))
    'no (2), yes (1)'
    """
    counts = Counter(labels.tolist()).most_common()
    shown = ", ".join(f"{label} ({count:,})" for label, count in counts[:MAX_CLASSES])
    more = len(counts) - MAX_CLASSES
    return f"{shown} and {more} rarer classes" if more > 0 else shown


def plain(value: Any) -> Any:
    """A value as JSON knows it: numbers that are not finite become null.

    Examples
    --------
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
