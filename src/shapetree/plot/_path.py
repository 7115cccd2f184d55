"""plot_path: accuracy against size, along a path of strengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from shapetree.drawing._palette import branch_colour
from shapetree.plot._canvas import line_height
from shapetree.plot._checks import check_title
from shapetree.plot._colours import DARK, FAINT, GREY, PALE
from shapetree.plot._layout import Box
from shapetree.plot._picture import Drawing, Picture, check_axes, import_matplotlib
from shapetree.plot._text import width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

COLUMNS = ("strength", "score", "error", "n_leaves", "n_parts", "is_chosen")
SIZES = {"leaves": "n_leaves", "parts": "n_parts"}
INCHES = (6.4, 4.2)
LABEL_SIZE = 8.5
LINE, CHOSEN = branch_colour(0), branch_colour(4)


def plot_path(
    path: Mapping[str, Any], *, size: str = "leaves", ax: Any = None, title: str | None = None
) -> Picture:
    """Draw the result of `strength_path`: how good trees are on new rows, against their size.

    Each point is a strength. Bars are standard errors of its score: trees whose bars overlap are
    hard to tell apart, so the smallest among the best is a good pick. The one that `strength="cv"`
    would choose from the path is marked.

    Parameters
    ----------
    path : Bunch, DataFrame or mapping
        As `strength_path` returns it.
    size : {"leaves", "parts"}, default="leaves"
        How the size of a tree is measured.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    title : str, optional

    Returns
    -------
    Picture

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier, plot_path
    >>> X, y = load_iris(return_X_y=True)
    >>> picture = plot_path(ShapeTreeClassifier(strength=[0, 1, 100]).strength_path(X, y))
    >>> picture.ax.get_xlabel()
    'leaves'
    """
    import_matplotlib()
    check_axes(ax)
    check_title(title)
    if size not in SIZES:
        raise ValueError(f"size must be 'leaves' or 'parts', got {size!r}")
    missing = [name for name in COLUMNS if name not in path]
    if missing:
        raise ValueError(f"path must be what strength_path returns; it has no {missing[0]!r}")
    columns = {name: np.asarray(path[name]) for name in COLUMNS}
    return Picture(Chart(columns, str(path.get("score_name", "score")), size, title), ax)


class Chart(Drawing):
    """Scores against sizes, to be drawn."""

    def __init__(
        self, path: dict[str, np.ndarray], score: str, unit: str, title: str | None
    ) -> None:
        self._path = path
        self._score = score
        self._unit = unit
        self._title = title
        self.nodes = {}

    def make_axes(self, figure: Figure) -> Axes:
        """Axes in a figure of a usual size."""
        figure.set_size_inches(*INCHES)
        figure.set_facecolor("white")
        figure.set_layout_engine("constrained")
        return figure.add_subplot()

    def draw(self, ax: Axes) -> list[Text]:
        """Draw into axes; letters have the same size in all."""
        sizes = self._path[SIZES[self._unit]].astype(float)
        _draw_points(ax, self._path, sizes)
        _draw_axes(ax, sizes, self._unit, self._score)
        texts = _label(ax, self._path, sizes)
        if self._title is not None:
            texts.append(ax.set_title(self._title, loc="left", color=DARK, fontsize=11))
        return texts


def _draw_points(ax: Axes, path: dict[str, np.ndarray], sizes: np.ndarray) -> None:
    scores, is_chosen = path["score"], path["is_chosen"].astype(bool)
    ax.plot(sizes, scores, color=PALE, linewidth=1.2, zorder=1)
    ax.errorbar(
        sizes, scores, path["error"], fmt="o", color=LINE, ecolor=LINE, elinewidth=1.0, capsize=2.5,
        markersize=5, zorder=2, label="a strength, and the standard error of its score",
    )  # fmt: skip
    ax.plot(
        sizes[is_chosen], scores[is_chosen], "o", color=CHOSEN, markersize=8, zorder=3,
        label="what would be chosen of them",
    )  # fmt: skip
    ax.legend(frameon=False, fontsize=8.5, labelcolor=GREY)


def _draw_axes(ax: Axes, sizes: np.ndarray, unit: str, score: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if sizes.max() > 10 * max(sizes.min(), 1.0):
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(unit, color=DARK)
    ax.set_ylabel(f"{score}, on held-out rows", color=DARK)
    ax.grid(axis="y", color=FAINT)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", color=PALE, labelcolor=GREY)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.margins(x=0.08, y=0.12)


def _label(ax: Axes, path: dict[str, np.ndarray], sizes: np.ndarray) -> list[Any]:
    """Write each strength near its point; those at one place share a label, and none touch."""
    points = _in_points(ax, sizes, path["score"])
    taken = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in points.values()]
    chosen = set(np.flatnonzero(path["is_chosen"]).tolist())
    together: dict[tuple[float, float], list[int]] = {}
    for number, place in enumerate(zip(sizes.tolist(), path["score"].tolist(), strict=True)):
        together.setdefault(place, []).append(number)
    texts = []
    for (x, y), numbers in together.items():
        label = ", ".join(f"{path['strength'][number]:g}" for number in numbers)
        is_chosen = not chosen.isdisjoint(numbers)
        across, up = points[x, y]
        place, box = _free_place(across, up, width(label, LABEL_SIZE), taken)
        taken.append(box)
        texts.append(
            ax.annotate(
                label,
                (x, y),
                xytext=place,
                textcoords="offset points",
                fontsize=LABEL_SIZE,
                color=CHOSEN if is_chosen else GREY,
            )
        )
    return texts


def _in_points(
    ax: Axes, sizes: np.ndarray, scores: np.ndarray
) -> dict[tuple[float, float], tuple[float, float]]:
    """Where points lie in the axes, in the units of letters."""
    places = ax.transData.transform(np.stack([sizes, scores], axis=1)) * 72 / ax.figure.dpi
    return dict(
        zip(
            zip(sizes.tolist(), scores.tolist(), strict=True),
            map(tuple, places.tolist()),
            strict=True,
        )
    )


def _free_place(
    x: float, y: float, wide: float, taken: list[Box]
) -> tuple[tuple[float, float], Box]:
    """Where a label stands beside a point, and the box it fills, away from others if it can."""
    high = line_height(LABEL_SIZE)
    right, left = 6.0, -6.0 - wide
    steps = [6.0 + i * high for i in range(5)]
    places = [
        (across, up)
        for step in steps
        for up in (step, -step - high / 2)
        for across in (right, left)
    ]
    boxes = [Box(x + a, y + b, x + a + wide, y + b + high) for a, b in places]
    free = [i for i, box in enumerate(boxes) if not any(_touch(box, other) for other in taken)]
    best = free[0] if free else 0
    return places[best], boxes[best]


def _touch(one: Box, other: Box) -> bool:
    return one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1
