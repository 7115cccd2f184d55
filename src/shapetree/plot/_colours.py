"""Colours of branches, classes and numbers; safe for the colour-blind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from shapetree.tree._view import TreeView

Colour = tuple[float, float, float]

# Branches have the strong colours of Okabe and Ito, classes the muted ones of Paul Tol.
BRANCHES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#555555")
CLASSES = (
    "#CC6677", "#332288", "#DDCC77", "#117733", "#88CCEE",
    "#882255", "#44AA99", "#999933", "#AA4499", "#661100",
)  # fmt: skip
NUMBERS = "BuPu"

DARK: Colour = (0.13, 0.13, 0.15)
GREY: Colour = (0.42, 0.43, 0.46)
PALE: Colour = (0.80, 0.81, 0.83)
FAINT: Colour = (0.93, 0.93, 0.94)
WHITE: Colour = (1.0, 1.0, 1.0)
OTHERS: Colour = (0.74, 0.75, 0.77)
# The lightest shades would not be seen on white.
LIGHTEST = 0.18
# Colours from which on a map is not a list of colours for classes, but a scale.
CONTINUOUS = 64


@dataclass(frozen=True)
class Group:
    """Classes that share a colour.

    Attributes
    ----------
    colour : Colour
    classes : list of int
        Their numbers.
    label : str
    """

    colour: Colour
    classes: list[int]
    label: str


@dataclass(frozen=True)
class Palette:
    """All colours of a picture.

    Attributes
    ----------
    branches : tuple of Colour
    groups : tuple of Group
        Of classes, in the order they are stacked in; none for numbers.
    classes : tuple of Colour
        Colour of every class.
    shade : function from a share in [0, 1] to a Colour
        For numbers, from the least to the greatest.
    """

    branches: tuple[Colour, ...]
    groups: tuple[Group, ...]
    classes: tuple[Colour, ...]
    shade: Callable[[float], Colour]


def palette_for(
    view: TreeView, branch_colors: Any, class_colors: Any, cmap: Any, n_branches: int
) -> Palette:
    """Choose the colours of a picture, the user's own where given."""
    branches = _branch_colours(branch_colors, n_branches)
    shades = _colour_map(NUMBERS if cmap is None else cmap)
    if view.classes is None:
        if class_colors is not None:
            raise ValueError("class_colors was given, but this tree predicts numbers; use cmap")
        return Palette(branches, (), (), _shader(shades, cmap is None))
    labels = view.classes[0]
    if class_colors is not None:
        classes = _class_colours(class_colors, labels)
        groups = _one_each(labels, classes)
    elif cmap is not None:
        classes = _sampled(shades, len(labels))
        groups = _one_each(labels, classes)
    else:
        classes, groups = _default_classes(view, labels)
    return Palette(branches, groups, classes, _shader(shades, True))


def blend(colour: Colour, share: float, other: Colour = WHITE) -> Colour:
    """A colour mixed with a share of another."""
    r, g, b = ((1 - share) * a + share * o for a, o in zip(colour, other, strict=True))
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


def _read_all(colours: Any, parameter: str) -> list[Colour]:
    if isinstance(colours, str) or not isinstance(colours, Iterable):
        raise ValueError(f"{parameter} must be a list of colours, got {colours!r}")
    return [_read(colour, parameter) for colour in colours]


def _branch_colours(given: Any, n_branches: int) -> tuple[Colour, ...]:
    if given is None:
        cycle = [rgb(colour) for colour in BRANCHES]
        # Branches beyond the colours there are repeat them, paler with every round.
        return tuple(
            blend(cycle[i % len(cycle)], min(0.35 * (i // len(cycle)), 0.7))
            for i in range(n_branches)
        )
    colours = _read_all(given, "branch_colors")
    if len(colours) < n_branches:
        raise ValueError(
            f"branch_colors has {len(colours)} colours, but nodes here have up to {n_branches} "
            "branches; give one for each"
        )
    return tuple(colours)


def _class_colours(given: Any, labels: tuple[Any, ...]) -> tuple[Colour, ...]:
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in labels]
        if unknown:
            raise ValueError(
                f"class_colors names {unknown[0]!r}, which is not a class; the classes are "
                f"{_some_of(labels)}"
            )
        lacking = [label for label in labels if label not in given]
        if lacking:
            raise ValueError(f"class_colors has no colour for {lacking[0]!r}; give one")
        return tuple(_read(given[label], "class_colors") for label in labels)
    colours = _read_all(given, "class_colors")
    if len(colours) < len(labels):
        raise ValueError(
            f"class_colors has {len(colours)} colours, but there are {len(labels)} classes; "
            "give one for each"
        )
    return tuple(colours[: len(labels)])


def _some_of(labels: Sequence[Any]) -> str:
    return ", ".join(map(repr, labels[:8])) + (", …" if len(labels) > 8 else "")


def _one_each(labels: tuple[Any, ...], colours: tuple[Colour, ...]) -> tuple[Group, ...]:
    return tuple(
        Group(colour, [i], str(label))
        for i, (label, colour) in enumerate(zip(labels, colours, strict=True))
    )


def _default_classes(
    view: TreeView, labels: tuple[Any, ...]
) -> tuple[tuple[Colour, ...], tuple[Group, ...]]:
    """A colour each for the most frequent classes; the others share one if they are too many."""
    counts = view.nodes[0].counts
    if len(labels) <= len(CLASSES) or counts is None:
        named = list(range(len(labels)))
    else:
        named = sorted(np.argsort(-counts, kind="stable")[: len(CLASSES) - 1].tolist())
    colours = [OTHERS] * len(labels)
    for place, i in enumerate(named):
        colours[i] = rgb(CLASSES[place % len(CLASSES)])
    groups = [Group(colours[i], [i], str(labels[i])) for i in named]
    rest = [i for i in range(len(labels)) if i not in set(named)]
    if rest:
        groups.append(Group(OTHERS, rest, f"{len(rest)} others"))
    return tuple(colours), tuple(groups)


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


def _shader(cmap: Any, is_darkened: bool) -> Callable[[float], Colour]:
    least = LIGHTEST if is_darkened else 0.0
    return lambda share: rgb(cmap(least + (1 - least) * share))
