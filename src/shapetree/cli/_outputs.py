"""Files that a command writes: checked before its work, written in one piece after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from shapetree._files import is_read_only, write_file
from shapetree.cli._problems import Misuse, Problem


def none_if_standard(output: Path | None) -> Path | None:
    """No file if "-" was given, which stands for standard output."""
    return None if output == Path("-") else output


def check_inputs(*inputs: Path | None) -> None:
    """Refuse to read standard input twice."""
    if sum(path == Path("-") for path in inputs) > 1:
        raise Misuse("standard input (-) can be read only once; name a file for the other")


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuse outputs that cannot be written, or that would overwrite something in use."""
    taken = {path.resolve(): "it is read by this command" for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        _check_place(path)
        if path.resolve() in taken:
            raise Misuse(f"cannot write to {path}: {taken[path.resolve()]}")
        taken[path.resolve()] = "two outputs have this name"


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise Problem(f"cannot write to {path}: it is a folder; name a file")
    if path.exists() and not path.is_file():
        # Files are written by replacing them, which must not happen to a device.
        raise Problem(f"cannot write to {path}: it is not an ordinary file")
    if is_read_only(path):
        raise Problem(f"cannot write to {path}: it is read-only")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise Problem(f"cannot write to {path}: there is no folder {folder}")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise Problem(f"cannot write to {path}: {reason}") from error


def check_ending(path: Path | None, endings: Iterable[str]) -> None:
    """Refuse a file name whose ending does not say what to write."""
    known = list(endings)
    if path is not None and not path.name.lower().endswith(tuple(known)):
        raise Misuse(
            f"cannot tell what to write to {path}; its name must end in {' or '.join(known)}"
        )


def write_outputs(contents: dict[Path, str | bytes]) -> list[str]:
    """Write files, one after the other, and give their names."""
    for path, content in contents.items():
        write_file(path, content, "the result")
    return [str(path) for path in contents]
