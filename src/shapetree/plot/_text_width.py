"""Text that fits: how wide it is, and how to make it shorter."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

# Share of its size that a line of text takes above and below its baseline.
ASCENT, DESCENT = 1.02, 0.28
# Renderers set letters on whole pixels, so text may come out wider than the font says.
SLACK, EXTRA = 1.08, 1.0
# Marks that a letter may carry; more of them would grow into other lines.
MAX_MARKS = 2
MAX_LACKING = 12  # characters that a warning names


def clean(value: Any) -> str:
    """A value as one line of printable text.

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


def families_for(text: str) -> list[str]:
    """Families of fonts for all characters of a text, the user's own first."""
    fonts = _fonts()
    others = dict.fromkeys(_other_font(character, fonts) for character in text)
    return [*_wanted_families(), *(name for name in others if name)]


def warn_of_lacking(texts: Iterable[str]) -> None:
    """Warn of characters that no font has, once for each."""
    fonts = _fonts()
    found = dict.fromkeys(each for each in "".join(texts) if _other_font(each, fonts) == "")
    lacking = [character for character in found if character not in _warned_of]
    if lacking:
        _warned_of.update(lacking)
        some = "".join(lacking[:MAX_LACKING]) + "…" * (len(lacking) > MAX_LACKING)
        warnings.warn(
            f"no font that matplotlib can use has the characters {some!r}, so boxes are drawn "
            "instead; install a font that has them, such as one of the Noto fonts",
            UserWarning,
            stacklevel=2,
        )


_warned_of: set[str] = set()


def _wanted_families() -> list[str]:
    from matplotlib import rcParams

    return list(rcParams["font.family"])


@lru_cache(maxsize=8192)
def _other_font(character: str, fonts: tuple[str, ...]) -> str | None:
    """Family of a font that has a character which the user's fonts lack.

    None if they have it or if it is not drawn, nothing if no font has it.
    """
    code = ord(character)
    if unicodedata.category(character)[0] in "CZ" or any(
        code in have for have in _own_codes(fonts)
    ):
        return None
    return next((name for name, have in _all_codes() if code in have), "")


@lru_cache(maxsize=8)
def _own_codes(fonts: tuple[str, ...]) -> list[frozenset[int]]:
    """Characters of the fonts that matplotlib takes for the user's families."""
    from matplotlib.font_manager import FontProperties, findfont

    paths = []
    for family in _wanted_families():
        with suppress(ValueError):
            paths.append(findfont(FontProperties(family=[family]), fallback_to_default=False))
    return [_codes_in(path) for path in paths or [findfont(FontProperties())]]


@lru_cache(maxsize=1)
def _all_codes() -> list[tuple[str, frozenset[int]]]:
    """Families of all regular fonts, and their characters."""
    from matplotlib.font_manager import fontManager

    known: dict[str, frozenset[int]] = {}
    for font in sorted(fontManager.ttflist, key=lambda font: (font.name, font.fname)):
        # Fonts of last resort have a box for every character.
        if font.style == "normal" and not font.name.startswith("Last Resort"):
            known.setdefault(font.name, _codes_in(font.fname))
    return list(known.items())


@lru_cache(maxsize=1024)
def _codes_in(path: str) -> frozenset[int]:
    """Characters that a font can draw; none if matplotlib can't read it."""
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(path)
        codes = frozenset(font.get_charmap())
        font.set_size(10, 72)
        # Fonts of pictures, such as those of emoji in colours, cannot be drawn.
        font.load_char(next(iter(codes)))
    except (OSError, RuntimeError, StopIteration):
        return frozenset()
    return codes


@lru_cache(maxsize=8192)
def _advance(character: str, bold: bool, fonts: tuple[str, ...]) -> float:
    """How far a character of size 1 moves the next."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    families = families_for(character)
    font = FontProperties(family=families, size=100, weight="bold" if bold else "normal")
    with warnings.catch_warnings():
        # Characters that no font has are warned of once, for the whole text.
        warnings.simplefilter("ignore")
        wide, without = (
            text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
            for text in (f"x{character}x", "xx")
        )
    return max((wide - without) / 100, 0.0)


def _fonts() -> tuple[str, ...]:
    """What matplotlib chooses its fonts by, which may change between two pictures."""
    from matplotlib import rcParams

    return (*rcParams["font.family"], *rcParams["font.sans-serif"], *rcParams["font.serif"])
