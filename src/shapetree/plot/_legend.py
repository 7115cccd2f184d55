"""The header of a picture: its title, and what the colours of classes or numbers mean."""

from __future__ import annotations

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


def header_width(scene: Scene) -> float:
    """Width that a picture needs for its header."""
    if scene.view.classes is not None:
        return 150.0
    name = min(width(clean(scene.view.target_name or "target"), SIZE), MAX_LABEL)
    labels = sum(width(label, SIZE) for label in scene.targets.labels)
    return name + SCALE_WIDTH + labels + width(SPREAD, SIZE) + 42


def header(scene: Scene, title: str | None, room: float) -> Canvas:
    """Title, scores on unseen rows and legend of a picture of some width."""
    canvas, y, pitch = Canvas(), 0.0, line_height(SIZE) + 3
    if title is not None:
        canvas.text(0.0, y, title, TITLE_SIZE, room=room, bold=True)
        y += line_height(TITLE_SIZE) + 4
    caption = _caption(scene)
    if caption:
        canvas.text(0.0, y, caption[0].upper() + caption[1:], SIZE, room=room, colour=GREY)
        y += pitch
    draw = _draw_scale if scene.view.classes is None else _draw_classes
    canvas.height = draw(canvas, scene, y, room) + pitch + 6
    return canvas


def _caption(scene: Scene) -> str:
    """Scores on unseen rows and stability, where these are known."""
    held_out, stability = scene.view.held_out, scene.view.stability
    # Training scores alone say little, so pictures leave them out.
    if held_out is None and stability is None:
        return ""
    caption = ", ".join(scene.view.scores_in_words())
    if stability is not None and len(scene.view.nodes) > 1:
        caption += f"; k/{stability.n_resamples}: resamples with the same feature"
    return caption


def _draw_classes(canvas: Canvas, scene: Scene, y: float, room: float) -> float:
    """Draw the colours of the classes on as many lines as they need; gives the top of the last."""
    x = 0.0
    for colour, label in _named_classes(scene):
        shown = shorten(clean(label), min(MAX_LABEL, room - SWATCH - 8), SIZE)
        need = width(shown, SIZE) + SWATCH + 4
        if x and x + need > room:
            x, y = 0.0, y + line_height(SIZE) + 3
        left = x
        if colour is not None:
            canvas.rectangle(Box(x, y + 1.5, x + SWATCH, y + 1.5 + SWATCH), colour)
            left += SWATCH + 4
        canvas.text(left, y, shown, SIZE, colour=GREY if colour is None else DARK)
        x += need + 12
    return y


def _named_classes(scene: Scene) -> list[tuple[Colour | None, str]]:
    """The classes in their order, or the most frequent of them, after the target's name."""
    view, colours = scene.view, scene.palette.classes
    assert view.classes is not None
    counts = view.nodes[0].counts
    assert counts is not None
    kept = set(sorted(range(len(colours)), key=lambda i: -int(counts[i]))[:MAX_NAMED])
    named: list[tuple[Colour | None, str]] = [
        (colours[i], str(label)) for i, label in enumerate(view.classes[0]) if i in kept
    ]
    if len(named) < len(colours):
        named.append((None, f"and {len(colours) - len(named)} more"))
    return [(None, view.target_name), *named] if view.target_name else named


def _draw_scale(canvas: Canvas, scene: Scene, y: float, room: float) -> float:
    """Draw a colour scale of the target, with its range; gives its top."""
    low, high = scene.targets.labels
    name, x = shorten(clean(scene.view.target_name or "target"), MAX_LABEL, SIZE), 0.0
    for text in (name, low):
        canvas.text(x, y, text, SIZE, colour=GREY)
        x += width(text, SIZE) + 4
    step = SCALE_WIDTH / N_SHADES
    for i in range(N_SHADES):
        box = Box(x + i * step, y + 2.5, x + (i + 1) * step, y + 9.5)
        canvas.rectangle(box, scene.palette.shade((i + 0.5) / N_SHADES), width=0.2)
    x += SCALE_WIDTH + 4
    canvas.text(x, y, high, SIZE, colour=GREY)
    canvas.text(x + width(high, SIZE) + 12, y, SPREAD, SIZE, colour=GREY)
    return y
