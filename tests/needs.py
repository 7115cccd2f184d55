"""Programs that some tests need, and the packages that bring them."""

import shutil
from pathlib import Path

import pytest

BROWSERS = ["chromium", "chromium-browser", "google-chrome"]


def path_of_browser():
    """Path of a browser that Playwright can drive, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def path_in_postgres(name):
    """Path of one of PostgreSQL's programs, or None; Debian does not put them on the PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(installed[-1]) if installed else None)


# What each is called, where it is, and which package of Debian brings it.
PROGRAMS = {
    "a browser": (path_of_browser, "chromium"),
    "Graphviz": (lambda: shutil.which("dot"), "graphviz"),
    "Java": (lambda: shutil.which("java"), "default-jre-headless"),
    "Node.js": (lambda: shutil.which("node"), "nodejs"),
    "PostgreSQL": (lambda: path_in_postgres("initdb"), "postgresql"),
}
# Spark is too large for an extra of the tests; `make test` installs it where Java is.
EVERYWHERE = set(PROGRAMS) - {"Java"}


def is_here(name):
    """Whether a program is installed."""
    return PROGRAMS[name][0]() is not None


def needs(name):
    """A mark of tests that are skipped without a program."""
    return pytest.mark.skipif(not is_here(name), reason=f"needs {name}")


def absent():
    """Names of programs that are not installed, with the packages that bring them."""
    return {name: package for name, (_, package) in PROGRAMS.items() if not is_here(name)}
