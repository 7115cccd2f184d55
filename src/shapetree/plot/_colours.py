"""The colours of a picture: those of all pictures, or the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from shapetree.drawing._palette import branch_colour, class_colour, number_colour
from shapetree.tree._view import TreeView

Colour = tuple[float, float, float]

DARK: Colour = (0.13, 0.13, 0.15)
GREY: Colour = (0.42, 0.43, 0.46)
PALE: Colour = (0.80, 0.81, 0.83)
FAINT: Colour = (0.93, 0.93, 0.94)
WHITE: Colour = (1.0, 1.0, 1.0)
# Colours from which on a map is not a list of colours for classes, but a scale.
CONTINUOUS = 64


@dataclass(frozen=True)
class Palette:
    """All colours of a picture."""

    branches: tuple[Colour, ...]
    classes: tuple[Colour, ...]  # none for numbers
    shade: Callable[[float], Colour]  # of numbers: from a share, 0 for the least and 1 at most


def palette_for(
    view: TreeView, branch_colors: Any, class_colors: Any, cmap: Any, n_branches: int
) -> Palette:
    """Choose the colours of a picture, the user's own where given."""
    if branch_colors is None:
        branches = tuple(rgb(branch_colour(branch)) for branch in range(n_branches))
    else:
        needs = f"nodes here have up to {n_branches} branches"
        branches = _read_all(branch_colors, "branch_colors", n_branches, needs)
    shades = None if cmap is None else _colour_map(cmap)
    if view.classes is None:
        if class_colors is not None:
            raise ValueError("class_colors was given, but this tree predicts numbers; use cmap")
        return Palette(branches, (), _shade if shades is None else lambda x: rgb(shades(x)))
    labels = view.classes[0]
    if isinstance(class_colors, Mapping):
        classes = _by_class(class_colors, labels)
    elif class_colors is not None:
        needs = f"there are {len(labels)} classes"
        classes = _read_all(class_colors, "class_colors", len(labels), needs)
    elif shades is not None:
        classes = _sampled(shades, len(labels))
    else:
        classes = tuple(rgb(class_colour(number)) for number in range(len(labels)))
    return Palette(branches, classes, _shade)


def blend(colour: Colour, share: float) -> Colour:
    """A colour mixed with a share of white."""
    r, g, b = ((1 - share) * a + share * o for a, o in zip(colour, WHITE, strict=True))
    return r, g, b


@lru_cache(maxsize=256)
def rgb(colour: Any) -> Colour:
    """Red, green and blue of a colour that matplotlib knows; ValueError if it doesn't."""
    from matplotlib.colors import to_rgb

    r, g, b = to_rgb(colour)
    return r, g, b


def _read(colour: Any, parameter: str) -> Colour:
    try:
        return rgb(tuple(colour) if isinstance(colour, list | np.ndarray) else colour)
    except (ValueError, TypeError):
        raise ValueError(
            f"{parameter} has {colour!r}, which is not a colour; use a name such as 'teal', "
            "a string such as '#0072B2', or red, green and blue from 0 to 1"
        ) from None


def _read_all(colours: Any, parameter: str, n_needed: int, needs: str) -> tuple[Colour, ...]:
    if isinstance(colours, str) or not isinstance(colours, Iterable):
        raise ValueError(f"{parameter} must be a list of colours, got {colours!r}")
    known = tuple(_read(colour, parameter) for colour in colours)
    if len(known) < n_needed:
        raise ValueError(f"{parameter} has {len(known)} colours, but {needs}; give one for each")
    return known[:n_needed]


def _by_class(given: Mapping[Any, Any], labels: tuple[Any, ...]) -> tuple[Colour, ...]:
    unknown = [key for key in given if key not in labels]
    if unknown:
        some = ", ".join(map(repr, labels[:8])) + (", …" if len(labels) > 8 else "")
        raise ValueError(
            f"class_colors names {unknown[0]!r}, which is not a class; the classes are {some}"
        )
    lacking = [label for label in labels if label not in given]
    if lacking:
        raise ValueError(f"class_colors has no colour for {lacking[0]!r}; give one")
    return tuple(_read(given[label], "class_colors") for label in labels)


def _colour_map(cmap: Any) -> Any:
    import matplotlib
    from matplotlib.colors import Colormap

    if isinstance(cmap, Colormap):
        return cmap
    if not isinstance(cmap, str) or cmap not in matplotlib.colormaps:
        raise ValueError(
            f"cmap is {cmap!r}, which is not a colour map; list(matplotlib.colormaps) has the "
            "names of all, such as 'viridis'"
        )
    return matplotlib.colormaps[cmap]


def _sampled(cmap: Any, n_colours: int) -> tuple[Colour, ...]:
    """Colours of a map for classes: the first ones of a list, else evenly spaced ones."""
    is_list = hasattr(cmap, "colors") and n_colours <= cmap.N < CONTINUOUS
    if is_list:
        return tuple(rgb(cmap(i)) for i in range(n_colours))
    return tuple(rgb(cmap(share)) for share in np.linspace(0.05, 0.95, n_colours).tolist())


def _shade(share: float) -> Colour:
    return rgb(number_colour(share))
