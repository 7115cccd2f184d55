"""The command `shapetree`: trees from a file to a report, without writing Python.

Typer, rich, pandas and pyarrow come with the extra `cli`; nothing here is imported without need.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

NEEDED = ("typer", "rich", "pandas", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 for success, 1 for trouble with files, 2 for wrong usage."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(f"shapetree: error: {missing[0]} is missing; pip install 'shapetree[cli]'")
    try:
        from shapetree.cli._app import make_app

        app = make_app()
    except KeyboardInterrupt:
        sys.exit(130)
    app(None if arguments is None else list(arguments), prog_name="shapetree")
