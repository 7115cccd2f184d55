"""plot_path: accuracy against size, along a path of strengths."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shapetree.drawing._palette import branch_colour
from shapetree.drawing._ticks import round_powers
from shapetree.plot._colours import DARK, FAINT, GREY, PALE
from shapetree.plot._picture import Drawing, Picture, before_drawing, check_picture
from shapetree.plot._text_width import width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

# In points: what a point of the chart takes, between two places tried, and from where on a line
# leads to a label.
RADIUS, STEP, FAR = 5.0, 4.0, 12.0
# Up to this distance, labels keep away from bars, too.
NEAR = 30.0
# Numbers below the axis: their size, the least gap between two, in points, and the share of the
# axes' first width that a layout leaves at least.
TICK_SIZE, TICK_GAP, SHARE_OF_AXIS = 10.0, 8.0, 0.75
MARGIN = 0.08
# Most of the axes' width for words of the legend, and where it may stand.
LEGEND_SHARE = 0.6
CORNERS: tuple[Any, ...] = (
    "upper right",
    "lower right",
    "upper left",
    "lower left",
    "upper center",
    "lower center",
)
DIRECTIONS = [
    (1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0),
    (0.5, 1), (-0.5, 1), (0.5, -1), (-0.5, -1), (1, 0.5), (-1, 0.5), (1, -0.5), (-1, -0.5),
]  # fmt: skip
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
    would choose from the path is marked. What finds no free place in small axes, a label or
    the legend, is left out.

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
    check_picture(ax, title)
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
        self._path, self._score, self._unit, self._title = path, score, unit, title
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
    label = _wrapped(ax, "a strength, and the standard error of its score")
    ax.errorbar(
        sizes, scores, path["error"], fmt="o", color=LINE, ecolor=LINE, elinewidth=1.0, capsize=2.5,
        markersize=5, zorder=2, label=label,
    )  # fmt: skip
    ax.plot(
        sizes[is_chosen], scores[is_chosen], "o", color=CHOSEN, markersize=8, zorder=3,
        label=_wrapped(ax, "what would be chosen of them"),
    )  # fmt: skip
    legend = ax.legend(loc="upper right", fontsize=LABEL_SIZE, labelcolor=GREY)
    legend.get_frame().set(edgecolor="none", alpha=0.85)


def _wrapped(ax: Axes, words: str) -> str:
    """Words on as many lines as narrow axes need."""
    room = ax.get_window_extent().width * 72 / ax.figure.dpi * LEGEND_SHARE
    return "\n".join(textwrap.wrap(words, max(12, int(room / width("n", LABEL_SIZE)))))


def _draw_axes(ax: Axes, sizes: np.ndarray, unit: str, score: str) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    low, high = sizes.min(), sizes.max()
    if high > 10 * max(low, 1.0):
        ax.set_xscale("log")
        room = ax.get_window_extent().width * 72 / ax.figure.dpi * SHARE_OF_AXIS
        at_most = int(room / (width(f"{high:g}", TICK_SIZE) + TICK_GAP))
        ax.xaxis.set_major_locator(FixedLocator(round_powers(low / 2, high * 2, max(at_most, 2))))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        ax.set_xlim(low - max(1.0, MARGIN * (high - low)), high + max(1.0, MARGIN * (high - low)))
        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    # The lowest number could touch those below the other axis.
    ax.yaxis.set_major_locator(MaxNLocator("auto", prune="lower", steps=[1, 2, 2.5, 5, 10]))
    ax.set_xlabel(unit, color=DARK)
    ax.set_ylabel(f"{score}, on held-out rows", color=DARK)
    ax.grid(axis="y", color=FAINT)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", color=PALE, labelcolor=GREY)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.margins(x=MARGIN, y=0.12)


def _label(ax: Axes, path: dict[str, np.ndarray], sizes: np.ndarray) -> list[Any]:
    """Write each strength near its point; those at one place share a label, and none touch."""
    is_chosen = path["is_chosen"].astype(bool)
    together: dict[tuple[float, float], list[int]] = {}
    for number, place in enumerate(zip(sizes.tolist(), path["score"].tolist(), strict=True)):
        together.setdefault(place, []).append(number)
    texts = [
        ax.annotate(
            ", ".join(f"{path['strength'][number]:g}" for number in numbers),
            place,
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=LABEL_SIZE,
            color=CHOSEN if is_chosen[numbers].any() else GREY,
            arrowprops={"arrowstyle": "-", "color": PALE, "lw": 0.7, "shrinkA": 0, "shrinkB": 3},
            annotation_clip=False,
            in_layout=False,
        )
        for place, numbers in sorted(
            together.items(), key=lambda item: not is_chosen[item[1]].any()
        )
    ]
    points = np.stack([sizes, path["score"]], axis=1).astype(float)
    # Only then is the size of the axes known.
    before_drawing(ax, partial(_place, ax, tuple(texts), points, path["error"].astype(float)))
    return texts


def _place(
    ax: Axes, texts: Sequence[Any], points: np.ndarray, errors: np.ndarray, renderer: Any
) -> None:
    """Move each label to the nearest free place, the first ones first; hide those without one."""
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    point = renderer.points_to_pixels(1.0)
    room = ax.get_window_extent(renderer).padded(-point)
    radius, places = RADIUS * point, ax.transData.transform(points)
    taken = [Bbox([place - radius, place + radius]) for place in places]
    reach = np.stack([np.zeros_like(errors), errors], axis=1)
    lows, highs = (ax.transData.transform(points + sign * reach) for sign in (-1, 1))
    side = np.array([point, 0.0])
    bars = [Bbox([low - side, high + side]) for low, high in zip(lows, highs, strict=True)]
    taken += _place_legend(ax, taken, bars, renderer)
    for text in texts:
        extent = Text.get_window_extent(text, renderer)  # without the line that leads to it
        # A point to each side, and half of one above and below.
        size = (extent.width + 2 * point, extent.height + point)
        x, y = ax.transData.transform(text.xy).tolist()
        box = _free_box((x, y), size, room, [*taken, *bars], point, NEAR)
        box = box or _free_box((x, y), size, room, taken, point)
        text.set_visible(box is not None)
        if box is None:
            continue
        taken.append(box)
        offset = ((box.x0 - x) / point + 1, (box.y0 - y) / point + 0.5)
        if offset != text.xyann:
            text.xyann = offset
        across = max(box.x0 - x, x - box.x1, 0.0)
        up = max(box.y0 - y, y - box.y1, 0.0)
        text.arrow_patch.set_visible(math.hypot(across, up) > FAR * point)


def _place_legend(ax: Axes, points: list[Bbox], bars: list[Bbox], renderer: Any) -> list[Bbox]:
    """Move the legend to where it hides least; hide it rather than points. Returns its place."""
    legend: Any = ax.get_legend()
    best, least, place = CORNERS[0], math.inf, None
    for corner in CORNERS:
        legend.set_loc(corner)
        box = legend.get_window_extent(renderer).frozen()
        n_hidden = box.count_overlaps(bars)
        if n_hidden < least and not box.count_overlaps(points):
            best, least, place = corner, n_hidden, box
    legend.set_loc(best)
    legend.set_visible(place is not None)
    return [] if place is None else [place]


def _free_box(
    at: tuple[float, float],
    size: tuple[float, float],
    room: Bbox,
    taken: Sequence[Bbox],
    point: float,
    farthest: float = math.inf,
) -> Bbox | None:
    """The first of the boxes around a point, near ones first, that has a place to itself."""
    from matplotlib.transforms import Bbox

    wide, high = size
    most = min(math.hypot(room.width, room.height), farthest * point)
    for step in range(math.ceil(most / (STEP * point))):
        distance = (RADIUS + 1 + step * STEP) * point
        for across, up in DIRECTIONS:
            x = at[0] + across * (distance + wide / 2) - wide / 2
            y = at[1] + up * (distance + high / 2) - high / 2
            box = Bbox.from_bounds(x, y, wide, high)
            is_inside = room.x0 <= box.x0 and box.x1 <= room.x1
            is_inside = is_inside and room.y0 <= box.y0 and box.y1 <= room.y1
            if is_inside and not box.count_overlaps(taken):
                return box
    return None
