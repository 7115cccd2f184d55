"""The header of a picture: its title, and what the colours of classes or numbers mean."""

from __future__ import annotations

from dataclasses import dataclass

from shapetree.plot._canvas import Canvas, line_height
from shapetree.plot._colours import DARK, GREY, Colour
from shapetree.plot._layout import Box
from shapetree.plot._scene import Scene
from shapetree.plot._text_width import clean, shorten, width

SIZE, TITLE_SIZE = 8.0, 11.0
SWATCH = 8.0
MAX_NAMED = 10
MAX_LABEL = 150.0
SCALE_WIDTH = 90.0
N_SHADES = 45
SPREAD = "± standard deviation of the rows"


@dataclass(frozen=True)
class _Entry:
    colour: Colour | None
    label: str
    x: float
    line: int


class Header:
    """Title, scores on unseen rows and legend above a picture.

    Parameters
    ----------
    scene : Scene
    title : str or None
    room : float
        Width of the picture.
    """

    def __init__(self, scene: Scene, title: str | None, room: float) -> None:
        self._scene = scene
        self._title = title
        self._room = room
        self._entries = self._place_entries() if scene.view.classes is not None else []
        n_lines = 1 + max((entry.line for entry in self._entries), default=0)
        self._pitch = line_height(SIZE) + 3
        self._title_height = 0.0 if title is None else line_height(TITLE_SIZE) + 4
        # Training scores alone say little, so pictures leave them out.
        has_caption = scene.view.held_out is not None or scene.view.stability is not None
        self._caption = ", ".join(scene.view.scores_in_words()) if has_caption else ""
        stability = scene.view.stability
        if stability is not None and len(scene.view.nodes) > 1:
            self._caption += f"; k/{stability.n_resamples}: resamples with the same feature"
        n_lines += 1 if self._caption else 0
        self.height = self._title_height + n_lines * self._pitch + 6

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        """Draw it below and right of a point."""
        if self._title is not None:
            canvas.text(x, y, self._title, TITLE_SIZE, room=self._room, bold=True)
        y += self._title_height
        if self._caption:
            words = self._caption[0].upper() + self._caption[1:]
            canvas.text(x, y, words, SIZE, room=self._room, colour=GREY)
            y += self._pitch
        if self._scene.view.classes is None:
            self._draw_scale(canvas, x, y)
            return
        for entry in self._entries:
            left, top = x + entry.x, y + entry.line * self._pitch
            if entry.colour is not None:
                swatch = Box(left, top + 1.5, left + SWATCH, top + 1.5 + SWATCH)
                canvas.rectangle(swatch, entry.colour)
                left += SWATCH + 4
            colour = GREY if entry.colour is None else DARK
            room = width(entry.label, SIZE)
            canvas.text(left, top, entry.label, SIZE, room=room, colour=colour)

    def _place_entries(self) -> list[_Entry]:
        named = self._named()
        entries: list[_Entry] = []
        x, line = 0.0, 0
        for colour, label in named:
            shown = shorten(clean(label), min(MAX_LABEL, self._room - SWATCH - 8), SIZE)
            need = width(shown, SIZE) + SWATCH + 4
            if x and x + need > self._room:
                x, line = 0.0, line + 1
            entries.append(_Entry(colour, shown, x, line))
            x += need + 12
        return entries

    def _named(self) -> list[tuple[Colour | None, str]]:
        """The classes in their order, or the most frequent of them, after the target's name."""
        view, colours = self._scene.view, self._scene.palette.classes
        assert view.classes is not None
        counts = view.nodes[0].counts
        assert counts is not None
        kept = set(sorted(range(len(colours)), key=lambda i: -int(counts[i]))[:MAX_NAMED])
        named: list[tuple[Colour | None, str]] = [
            (colours[i], str(label)) for i, label in enumerate(view.classes[0]) if i in kept
        ]
        if len(named) < len(colours):
            named.append((None, f"and {len(colours) - len(named)} more"))
        return [(None, self._target_name), *named] if self._target_name else named

    @property
    def _target_name(self) -> str:
        return self._scene.view.target_name or ""

    def _draw_scale(self, canvas: Canvas, x: float, y: float) -> None:
        """A colour scale of the target, with its range."""
        low, high = self._scene.targets.labels
        name = shorten(clean(self._target_name or "target"), MAX_LABEL, SIZE)
        for text in (name, low):
            canvas.text(x, y, text, SIZE, room=width(text, SIZE), colour=GREY)
            x += width(text, SIZE) + 4
        step = SCALE_WIDTH / N_SHADES
        for i in range(N_SHADES):
            box = Box(x + i * step, y + 2.5, x + (i + 1) * step, y + 9.5)
            canvas.rectangle(box, self._scene.palette.shade((i + 0.5) / N_SHADES), width=0.2)
        x += SCALE_WIDTH + 4
        canvas.text(x, y, high, SIZE, room=width(high, SIZE), colour=GREY)
        x += width(high, SIZE) + 12
        canvas.text(x, y, SPREAD, SIZE, room=width(SPREAD, SIZE), colour=GREY)

    @staticmethod
    def least_width(scene: Scene) -> float:
        """Width that a picture needs for it."""
        if scene.view.classes is not None:
            return 150.0
        name = min(width(clean(scene.view.target_name or "target"), SIZE), MAX_LABEL)
        labels = sum(width(label, SIZE) for label in scene.targets.labels)
        return name + SCALE_WIDTH + labels + width(SPREAD, SIZE) + 42
