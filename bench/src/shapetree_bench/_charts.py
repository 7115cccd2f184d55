"""Pictures of the report, in SVG: colours are the page's, or their own where there is no page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

from shapetree_bench._statistics import Ranks

COLOURS = (
    *("#1f5fbf", "#c2541b", "#1a7f64", "#8a4fbf", "#b3860b", "#c03a68", "#2f93b5", "#6b7280"),
    *("#7a5a36", "#4d7c0f"),
)
INK, SOFT, LINE = "var(--ink,#1d2430)", "var(--soft,#5c6675)", "var(--line,#e3e7ee)"
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
# Room for a label's letter, in pixels.
LETTER = 6.4
# So many different values are marked on a logarithmic axis themselves.
MAX_OWN_TICKS = 4
# Between the names of two lines.
NAME_GAP = 13.0


def colour(number: int) -> str:
    """A colour of the page's palette."""
    number %= len(COLOURS)
    return f"var(--s{number},{COLOURS[number]})"


@dataclass
class Series:
    """A line with marks: a method's points by depth.

    Attributes
    ----------
    name : str
    points : list of (x, y, what is seen when pointing at it)
    colour : str
    is_hollow : bool
        Whether marks are rings.
    is_square : bool
        Whether marks are squares instead.
    is_strong : bool
        Whether it is to be seen before others.
    is_dashed : bool
        For what was not measured here.
    is_level : bool
        Whether only the height of its one point counts.
    """

    name: str
    points: list[tuple[float, float, str]]
    colour: str
    is_hollow: bool = False
    is_strong: bool = False
    is_dashed: bool = False
    is_level: bool = False
    is_square: bool = False


@dataclass
class Canvas:
    """Elements of a picture, and its size."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" style="{style}"/>'
        )

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="M{steps}" style="fill:none;{style}"/>')

    def dot(self, x: float, y: float, radius: float, style: str, title: str) -> None:
        self.parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" style="{style}">'
            f"<title>{escape(title)}</title></circle>"
        )

    def bar(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        style: str,
        title: str,
        corner: float = 2,
    ) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{corner}"'
            f' style="{style}"><title>{escape(title)}</title></rect>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        anchor: str = "start",
        style: str = "",
        size: float = 12,
    ) -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
            f' style="font-size:{size}px;fill:{SOFT};{style}">{escape(words)}</text>'
        )

    def svg(self, title: str) -> str:
        """The picture."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f}'
            f' {self.height:.0f}" width="{self.width:.0f}" height="{self.height:.0f}" role="img"'
            f' style="font-family:{FONT}"><title>{escape(title)}</title>{"".join(self.parts)}</svg>'
        )


@dataclass(frozen=True)
class Axis:
    """A scale from values to pixels, and the values that are marked on it."""

    low: float
    high: float
    start: float
    stop: float
    ticks: Sequence[float]
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._position(self.low), self._position(self.high)
        share = (self._position(value) - low) / (high - low or 1)
        return self.start + share * (self.stop - self.start)

    def _position(self, value: float) -> float:
        return math.log(value) if self.is_log else value


def linear_axis(values: Sequence[float], start: float, stop: float, n_ticks: int = 5) -> Axis:
    """An axis that has room for all values, with round numbers on it."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 1
    low, high = low - room, high + room
    step = _round_step((high - low) / n_ticks)
    first = math.ceil(low / step) * step
    ticks = [first + i * step for i in range(int((high - first) / step) + 1)]
    return Axis(low, high, start, stop, ticks)


def _round_step(step: float) -> float:
    size = 10 ** math.floor(math.log10(step))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= step)


# What is marked on a logarithmic axis whose ends have less than this ratio.
_FACTORS: dict[float, tuple[float, ...]] = {
    15: (1, 1.5, 2, 3, 4, 5, 6, 8),
    3000: (1, 2, 5),
    math.inf: (1,),
}


def log_axis(values: Sequence[float], start: float, stop: float) -> Axis:
    """The same, for values of many sizes."""
    low, high = min(values) / 1.2, max(values) * 1.2
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = next(each for ratio, each in _FACTORS.items() if high / low < ratio)
    ticks = [10.0**power * factor for power in powers for factor in factors]
    # Few values, such as numbers of leaves, are marked themselves.
    few = sorted(set(values)) if len(set(values)) <= MAX_OWN_TICKS else ticks
    return Axis(low, high, start, stop, [t for t in few if low <= t <= high], is_log=True)


# Lines


def draw_lines(
    canvas: Canvas,
    box: tuple[float, float, float, float],
    title: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    is_log: bool = False,
) -> None:
    """Draw lines with their names at their ends into a box (left, top, right, bottom).

    A series that is level lies beyond the axis, and is drawn from side to side.
    """
    left, top, right, bottom = box
    right -= LETTER * max(len(each.name) for each in series) + 16  # for names
    xs = [x for each in series if not each.is_level for x, _, _ in each.points]
    across = (log_axis if is_log else _axis_of_numbers)(xs, left, right)
    up = linear_axis([y for each in series for _, y, _ in each.points], bottom, top + 26)
    heading = ": ".join(filter(None, (title, y_label)))
    canvas.text(left - 34, top + 8, heading, style=f"font-weight:600;fill:{INK}", size=13)
    _draw_axes(canvas, across, up, x_label)
    for each in series:
        if each.is_level:
            height = up(each.points[0][1])
            style = f"stroke:{each.colour};stroke-width:1.3;stroke-dasharray:2 4"
            canvas.line(left, height, right, height, style)
        else:
            _draw_series(canvas, each, across, up)
    ends = [(up(each.points[-1][1]), each) for each in series]
    for y, each in _apart(ends, top + 20, bottom):
        x = right - 5 if each.is_level else across(each.points[-1][0])
        _draw_name(canvas, each, (x + 5, up(each.points[-1][1])), (right + 4, y))


def _axis_of_numbers(values: Sequence[float], start: float, stop: float) -> Axis:
    """A linear axis; of whole numbers, such as depths, each is marked."""
    low, high = min(values), max(values)
    if any(value != int(value) for value in values):
        return linear_axis(values, start, stop)
    ticks = [float(value) for value in range(int(low), int(high) + 1)]
    return Axis(low - 0.15, high + 0.15, start, stop, ticks)


def _draw_axes(canvas: Canvas, across: Axis, up: Axis, x_label: str) -> None:
    left, right, bottom = across.start, across.stop, up.start
    for tick in up.ticks:
        canvas.line(left, up(tick), right, up(tick), f"stroke:{LINE}")
        canvas.text(left - 6, up(tick) + 4, f"{tick:.4g}", "end", size=11)
    for tick in across.ticks:
        canvas.line(across(tick), bottom, across(tick), bottom + 4, f"stroke:{SOFT}")
        canvas.text(across(tick), bottom + 16, f"{tick:,g}", "middle", size=11)
    canvas.text((left + right) / 2, bottom + 32, x_label, "middle", size=11)


def _draw_name(
    canvas: Canvas, series: Series, end: tuple[float, float], place: tuple[float, float]
) -> None:
    """Write a name, to which a thin line leads, because it may have had to give way to others."""
    canvas.path([end, place], f"stroke:{series.colour};opacity:.35")
    x, y = place
    weight = "font-weight:600;" if series.is_strong else ""
    canvas.text(x + 4, y + 4, series.name, style=f"{weight}fill:{series.colour}", size=11.5)


def _draw_series(canvas: Canvas, series: Series, across: Axis, up: Axis) -> None:
    width = 2.4 if series.is_strong else 1.5
    dashes = "stroke-dasharray:4 3;" if series.is_dashed else ""
    places = [(across(x), up(y)) for x, y, _ in series.points]
    if len(places) > 1:
        canvas.path(places, f"stroke:{series.colour};stroke-width:{width};{dashes}")
    radius = 3.6 if series.is_strong else 2.9
    fill = "var(--paper,#fff)" if series.is_hollow else series.colour
    for (x, y), (_, _, title) in zip(places, series.points, strict=True):
        style = f"fill:{fill};stroke:{series.colour};stroke-width:1.4"
        if series.is_square:
            side = 2 * radius
            canvas.bar(x - radius, y - radius, side, side, style, title, corner=0)
        else:
            canvas.dot(x, y, radius, style, title)


def _apart(
    ends: list[tuple[float, Series]], top: float, bottom: float
) -> list[tuple[float, Series]]:
    """Heights of names that do not touch and stay within bounds, near where they belong."""
    ends = sorted(ends, key=lambda end: end[0])
    heights: list[float] = []
    for y, _ in ends:
        heights.append(max(y, heights[-1] + NAME_GAP if heights else top))
    limit = bottom
    for number in reversed(range(len(heights))):
        heights[number] = min(heights[number], limit)
        limit = heights[number] - NAME_GAP
    return [(y, each) for y, (_, each) in zip(heights, ends, strict=True)]


def panels(
    charts: Sequence[tuple[str, Sequence[Series]]],
    x_label: str,
    y_label: str,
    n_columns: int,
    *,
    is_log: bool = False,
    size: tuple[float, float] = (430, 300),
) -> str:
    """Several charts side by side."""
    width, height = size
    # Every line's name needs its place.
    height = max(height, NAME_GAP * max(len(series) for _, series in charts) + 90)
    n_columns = min(n_columns, len(charts))
    n_rows = -(-len(charts) // n_columns)
    canvas = Canvas(width * n_columns, height * n_rows + 6)
    for number, (title, series) in enumerate(charts):
        left, top = width * (number % n_columns), height * (number // n_columns) + 8
        box = (left + 44, top, left + width - 4, top + height - 54)
        draw_lines(canvas, box, title, series, x_label, y_label, is_log=is_log)
    return canvas.svg(f"{y_label} by {x_label}")


# Dots


@dataclass(frozen=True)
class Dots:
    """A value for each row of a picture, and their median."""

    name: str
    values: Sequence[float]
    colour: str
    median: float


def dot_plot(panels: Sequence[tuple[str, Sequence[Dots]]], rows: Sequence[str]) -> str:
    """Values of several series by row, on both sides of 0, in panels side by side."""
    room = LETTER * max(map(len, rows)) + 16
    width, step, top = 400.0, 19.0, 44.0
    canvas = Canvas(room + width * len(panels), top + step * len(rows) + 52)
    bottom = top + step * len(rows)
    for number, name in enumerate(rows):
        y = top + step * (number + 0.5)
        canvas.line(room, y, canvas.width - 10, y, f"stroke:{LINE}")
        canvas.text(room - 8, y + 4, name, "end", f"fill:{INK}")
    for panel, (title, series) in enumerate(panels):
        left = room + width * panel + 14
        values = [value for each in series for value in each.values]
        axis = linear_axis([*values, 0.0], left, left + width - 34, 6)
        canvas.text(left, 16, title, style=f"font-weight:600;fill:{INK}", size=13)
        for tick in axis.ticks:
            is_zero = abs(tick) < 1e-12
            line = f"stroke:{INK if is_zero else LINE}"
            canvas.line(axis(tick), top - 6, axis(tick), bottom, line)
            canvas.text(axis(tick), bottom + 16, f"{tick:.4g}", "middle", size=11)
        for each in series:
            for number, value in enumerate(each.values):
                y = top + step * (number + 0.5)
                words = f"{rows[number]}, {each.name}: {value:+.3g}"
                canvas.dot(axis(value), y, 4.2, f"fill:{each.colour};opacity:.85", words)
            x = axis(each.median)
            corners = [(x - 5, top - 14), (x + 5, top - 14), (x, top - 5), (x - 5, top - 14)]
            canvas.path(corners, f"stroke:{each.colour};stroke-width:2")
    x = room + 14
    for each in panels[0][1]:
        canvas.dot(x, bottom + 38, 4.2, f"fill:{each.colour}", each.name)
        canvas.text(x + 9, bottom + 42, each.name, style=f"fill:{each.colour}")
        x += LETTER * len(each.name) + 44
    return canvas.svg("Differences from CART by dataset")


# Critical differences


def critical_difference(ranks: Ranks, colour_of: Callable[[str], str]) -> str:
    """Mean ranks on one axis; bars join methods that do not differ."""
    names = list(ranks.ranks.index)
    n_methods = len(names)
    half = -(-n_methods // 2)
    cliques = ranks.cliques()
    room = LETTER * (max(map(len, names)) + 8) + 40
    width, top = 960.0, 64.0
    first = top + 22 + 9 * len(cliques)
    canvas = Canvas(width, first + 20 * half + 12)
    step = -(-n_methods // 20)
    ticks = [float(i) for i in range(1, n_methods + 1, step)]
    axis = Axis(1, n_methods, room, width - room, ticks)
    canvas.line(axis(1), top, axis(n_methods), top, f"stroke:{INK};stroke-width:1.5")
    for tick in axis.ticks:
        canvas.line(axis(tick), top - 5, axis(tick), top, f"stroke:{INK}")
        canvas.text(axis(tick), top - 10, f"{tick:.0f}", "middle", size=11)
    span = min(axis(1 + ranks.critical_difference), axis(n_methods)) - axis(1)
    canvas.line(axis(1), 22, axis(1) + span, 22, f"stroke:{INK};stroke-width:2")
    for end in (axis(1), axis(1) + span):
        canvas.line(end, 18, end, 26, f"stroke:{INK};stroke-width:2")
    words = f"critical difference {ranks.critical_difference:.2f}"
    canvas.text(axis(1) + span + 8, 26, words, size=11)
    for number, (name, rank) in enumerate(ranks.ranks.items()):
        is_left = number < half
        row = number if is_left else n_methods - 1 - number
        y = first + 20 * row + 8
        x = axis(float(rank))
        edge = room - 30 if is_left else width - room + 30
        tone = colour_of(str(name))
        canvas.path([(x, top), (x, y), (edge, y)], f"stroke:{tone};stroke-width:1.3;opacity:.8")
        anchor, shift = ("end", -6) if is_left else ("start", 6)
        label = f"{name}  {rank:.2f}" if not is_left else f"{rank:.2f}  {name}"
        canvas.text(edge + shift, y + 4, label, anchor, f"fill:{tone};font-weight:500", 12)
    for number, (best, worst) in enumerate(cliques):
        y = top + 12 + 9 * number
        ends = axis(float(ranks.ranks[best])) - 3, axis(float(ranks.ranks[worst])) + 3
        canvas.line(*(ends[0], y, ends[1], y), f"stroke:{INK};stroke-width:4;stroke-linecap:round")
    return canvas.svg("Mean ranks of methods")


# Ratios


def ratio_bars(ratios: Sequence[tuple[str, float, str]], colour_of: Callable[[str], str]) -> str:
    """Bars from 1 to each ratio, on a logarithmic axis."""
    room = LETTER * max(len(name) for name, _, _ in ratios) + 20
    width, height = 900.0, 22.0 * len(ratios) + 40
    canvas = Canvas(width, height)
    values = [value for _, value, _ in ratios]
    axis = log_axis([*values, 1.0], room, width - 60)
    for tick in axis.ticks:
        is_one = math.isclose(tick, 1.0)
        canvas.line(axis(tick), 4, axis(tick), height - 30, f"stroke:{INK if is_one else LINE}")
        canvas.text(axis(tick), height - 14, f"{tick:,g}", "middle", size=11)
    for number, (name, value, title) in enumerate(ratios):
        y = 8 + 22 * number
        start, stop = sorted((axis(1.0), axis(value)))
        canvas.bar(start, y, max(stop - start, 1.5), 13, f"fill:{colour_of(name)}", title)
        canvas.text(room - 12, y + 11, name, "end", f"fill:{INK}")
        canvas.text(stop + 6, y + 11, f"{value:.3g}", size=11)
    return canvas.svg("Times to fit, as multiples of CART's")
