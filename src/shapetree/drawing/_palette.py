"""The colours of branches, classes and numbers, the same in pictures, graphs and pages.

They are told apart by the colour-blind, and seen on white paper as well as on a dark screen.
"""

from __future__ import annotations

# Branches have strong colours, after Okabe and Ito, and classes muted ones, after Paul Tol.
BRANCHES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8A6D3B", "#7F7F7F")
CLASSES = (
    *("#DDCC77", "#AA4499", "#88CCEE", "#999933", "#882255"),
    *("#44AA99", "#CC6677", "#6655BB", "#117733"),
)
# From the least to the greatest number.
NUMBERS = ("#C6D6EA", "#9EBCDA", "#8C96C6", "#8C6BB1", "#88419D", "#6E016B")
# How later rounds through a palette differ from the first: towards black or white.
ROUNDS = (0.0, -0.3, 0.35, -0.5, 0.55, -0.15, 0.18, -0.4, 0.45, -0.22, 0.27, -0.08)


def branch_colour(branch: int) -> str:
    """Colour of a branch.

    >>> branch_colour(0), branch_colour(8)
    ('#0072B2', '#00507D')
    """
    return _repeated(BRANCHES, branch)


def class_colour(number: int) -> str:
    """Colour of the class with a number, in the order of the tree's classes."""
    return _repeated(CLASSES, number)


def number_colour(share: float) -> str:
    """Colour of a number, given its place between the least, 0, and the greatest, 1."""
    place = min(max(share, 0.0), 1.0) * (len(NUMBERS) - 1)
    start = min(int(place), len(NUMBERS) - 2)
    return _mixed(NUMBERS[start], NUMBERS[start + 1], place - start)


def _repeated(palette: tuple[str, ...], number: int) -> str:
    shade = ROUNDS[number // len(palette) % len(ROUNDS)]
    other = "#000000" if shade < 0 else "#FFFFFF"
    return _mixed(palette[number % len(palette)], other, abs(shade))


def _mixed(one: str, other: str, share: float) -> str:
    """A colour between two."""
    channels = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + share * (b - a)):02X}" for a, b in channels)


def _channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
