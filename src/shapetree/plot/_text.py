"""Text that fits: how wide it is, and how to make it shorter."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from shapetree.tree._digits import exact, rounded

# Share of its size that a line of text takes above and below its baseline.
ASCENT, DESCENT = 1.02, 0.28
# Renderers set letters on whole pixels, so text may come out wider than the font says.
SLACK, EXTRA = 1.08, 1.0
# Marks that a letter may carry; more of them would grow into other lines.
MAX_MARKS = 2
# Characters of a plain number that powers of ten may shorten.
LONG_NUMBER = 7


def clean(value: Any) -> str:
    """A value as one line of printable text.

    Examples
    --------
    >>> clean("  much   room"), clean(3)
    ('much room', '3')
    """
    kept: list[str] = []
    marks = 0
    for character in " ".join(str(value).split()):
        kind = unicodedata.category(character)
        marks = marks + 1 if kind[0] == "M" else 0
        if marks > MAX_MARKS or kind == "Cc":
            continue
        kept.append("\N{REPLACEMENT CHARACTER}" if kind == "Cs" else character)
    return "".join(kept)


def width(text: str, size: float, bold: bool = False) -> float:
    """Width that a line of text needs, in points."""
    if not text:
        return 0.0
    fonts = _fonts()
    return sum(_advance(character, bold, fonts) for character in text) * size * SLACK + EXTRA


def shorten(text: str, room: float, size: float, bold: bool = False) -> str:
    """The text, or its start and its end where that is all there is room for; perhaps nothing."""
    if width(text, size, bold) <= room:
        return text

    def cut(kept: int) -> str:
        return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"

    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if width(cut(middle), size, bold) <= room:
            fits = middle
        else:
            too_long = middle
    return cut(fits) if width(cut(fits), size, bold) <= room else ""


def number(value: float, digits: int = 3) -> str:
    """A number to some digits, in powers of ten where that is shorter.

    Examples
    --------
    >>> number(0.25), number(123456.0, 6), number(1e15), number(1.5e-12)
    ('0.25', '123456', '1e15', '1.5e-12')
    """
    plain = rounded(value, digits)
    if len(plain) <= LONG_NUMBER or "e" in plain or plain in ("inf", "-inf", "nan"):
        return plain
    mantissa, exponent = f"{float(plain):.{max(digits, 1) - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    powers = f"{mantissa}e{int(exponent)}"
    return powers if len(powers) < len(plain) else plain


def distinct(values: list[float], digits: int = 3) -> list[str]:
    """Ascending numbers in as few digits as tell neighbours apart.

    Examples
    --------
    >>> distinct([0.12341, 0.12349]), distinct([1.0, 2.0])
    (['0.1234', '0.1235'], ['1', '2'])
    """
    for more in range(digits, 18):
        labels = [number(value, more) for value in values]
        if len(set(labels)) == len(set(values)):
            return labels
    return [exact(value) for value in values]


@lru_cache(maxsize=8192)
def _advance(character: str, bold: bool, fonts: tuple[str, ...]) -> float:
    """How far a character of size 1 moves the next."""
    measure = _measurer(bold, fonts)
    return max(measure(f"x{character}x") - measure("xx"), 0.0)


@lru_cache(maxsize=8)
def _measurer(bold: bool, fonts: tuple[str, ...]) -> Callable[[str], float]:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=100, weight="bold" if bold else "normal")

    def measure(text: str) -> float:
        with warnings.catch_warnings():
            # Drawing the text warns of a character that the font lacks; once is enough.
            warnings.simplefilter("ignore")
            return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])

    return lambda text: measure(text) / 100


def _fonts() -> tuple[str, ...]:
    """What matplotlib chooses its fonts by, which may change between two pictures."""
    from matplotlib import rcParams

    return (*rcParams["font.family"], *rcParams["font.sans-serif"], *rcParams["font.serif"])
