"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

PathLike: TypeAlias = str | os.PathLike[str]


def write_file(path: PathLike | None, content: str | bytes, what: str) -> None:
    """Write a file; if that fails, an older one of the same name stays as it is.

    Parameters
    ----------
    path : str or path-like, or None
        If it is None, nothing is written.
    content : str or bytes
        Text is written as UTF-8.
    what : str
        What is written, for the error message: "the page".
    """
    if path is None:
        return
    with new_file(path, what) as draft, open(draft, "xb") as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def new_file(path: PathLike, what: str) -> Iterator[Path]:
    """Where to write a file that takes its place when it is finished, or goes if that fails.

    Parameters
    ----------
    path : str or path-like
        The place.
    what : str
        What is written, for the error message: "the page".
    """
    path = writable_place(path, what)
    draft = path.with_name(f".{uuid4().hex}.tmp")
    try:
        yield draft
        if path.exists():
            os.chmod(draft, stat.S_IMODE(path.stat().st_mode))
        os.replace(draft, path)
    except OSError as error:
        raise type(error)(
            f"cannot write {what} to {path}: {error.strerror or error}; choose a path that you "
            "may write to"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def writable_place(path: PathLike, what: str) -> Path:
    """The file that a path stands for, which may be a symbolic link; an error if none can be there.

    See `new_file`.
    """
    path = Path(os.path.realpath(path))  # what a symbolic link points to
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {what} to {path}: it is a folder; name a file")
    if path.exists() and not path.is_file():
        raise OSError(
            f"cannot write {what} to {path}: it is not an ordinary file; name another one"
        )
    # The owner of a file may forbid to write it to everyone.
    if path.exists() and not (os.access(path, os.W_OK) and path.stat().st_mode & 0o222):
        raise PermissionError(f"cannot write {what} to {path}: it is read-only; name another file")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {what} to {path}: there is no folder {path.parent}; create it first"
        )
    return path


def read_text(text_or_path: Any) -> str:
    """JSON as it is given, or the text of a file; JSON starts with a brace."""
    if not isinstance(text_or_path, str | os.PathLike):
        kind = type(text_or_path).__name__
        raise TypeError(f"cannot read a model: expected JSON or the path of a file, got {kind}")
    if isinstance(text_or_path, str):
        text = text_or_path.lstrip("\ufeff \t\r\n")
        if not text or text.startswith("{"):
            return text
    path = Path(text_or_path)
    where = str(path)[:200]
    try:
        is_folder = path.is_dir()
        if path.is_char_device():
            raise OSError(f"cannot read a model from {where}: it is a device; name a file")
        content = b"" if is_folder else path.read_bytes()
    except ValueError:  # a path with a NUL
        raise ValueError("cannot read a model: this is neither JSON nor a path") from None
    except OSError as error:
        if error.strerror is None:
            raise
        raise type(error)(f"cannot read a model from {where}: {error.strerror}") from error
    if is_folder:
        raise IsADirectoryError(f"cannot read a model from {where}: it is a folder; name a file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"cannot read a model from {where}: it is not UTF-8 text") from None
