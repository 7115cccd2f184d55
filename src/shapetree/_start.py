"""What must be set before all else is imported: that Ctrl-C ends the command without a traceback.

The command can say so itself only after it has started, which takes a second.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

COMMANDS = ("shapetree", "shapetree.exe", "shapetree.cli")


def _report(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)


if any(Path(argument).name in COMMANDS for argument in sys.orig_argv[1:3]):
    sys.excepthook = _report
