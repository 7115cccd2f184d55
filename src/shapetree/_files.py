"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

PathLike: TypeAlias = str | os.PathLike[str]


def write_file(path: PathLike, content: str | bytes, what: str) -> None:
    """Write a file; if that fails, an older one of the same name stays as it is.

    Parameters
    ----------
    path : str or path-like
    content : str or bytes
        Text is written as UTF-8.
    what : str
        What is written, for the error message: "the page".
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {what} to {path}: it is a folder; name a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {what} to {path}: there is no folder {path.parent}; create it first"
        )
    try:
        _replace(path, content.encode("utf-8") if isinstance(content, str) else content)
    except OSError as error:
        raise type(error)(
            f"cannot write {what} to {path}: {error.strerror or error}; choose a path that you "
            "may write to"
        ) from error


def _replace(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with open(draft, "xb") as file:
            file.write(content)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
