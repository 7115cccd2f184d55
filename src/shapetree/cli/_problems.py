"""What can go wrong, each in one line."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# Errors of the library whose messages are meant for users.
SPOKEN = (ValueError, TypeError, OSError, ImportError)
MAX_LISTED = 8


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
    if isinstance(error, SPOKEN) and words:
        return words
    return f"unexpected {type(error).__name__}: {words or 'no message'} (--debug shows where)"


def listed(names: Iterable[object]) -> str:
    """Names in a row, the first few of many.

    Examples
    --------
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
