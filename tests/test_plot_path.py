"""The picture of accuracy against size."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from shapetree import plot_path

PATH = {
    "strength": np.array([0.0, 0.3, 1.0, 3.0, 10.0]),
    "score": np.array([0.80, 0.86, 0.90, 0.88, 0.70]),
    "error": np.array([0.02, 0.02, 0.01, 0.01, 0.03]),
    "n_leaves": np.array([60, 40, 12, 6, 2]),
    "n_parts": np.array([300, 120, 30, 12, 3]),
    "is_chosen": np.array([False, False, True, False, False]),
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("size", ["leaves", "parts"])
@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_every_strength_is_drawn_where_it_belongs(size, kind):
    picture = plot_path(kind(PATH), size=size, title="A path")
    labels = {text.get_text(): text for text in picture.texts}
    for number, strength in enumerate(PATH["strength"]):
        place = labels[f"{strength:g}"].xy  # where its line leads
        assert place == (PATH[f"n_{size}"][number], PATH["score"][number])
    points = [line for line in picture.ax.lines if line.get_marker() == "o"]
    chosen = [line for line in points if len(line.get_xdata()) == 1]
    assert len(chosen) == 1
    assert chosen[0].get_ydata()[0] == 0.90
    assert picture.ax.get_xlabel() == size
    assert picture.ax.get_title(loc="left") == "A path"


def test_texts_stay_in_the_figure_and_apart():
    picture = plot_path(PATH)
    picture.figure.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in picture.texts]
    room = picture.figure.bbox
    assert all(room.x0 <= box.x0 and box.x1 <= room.x1 and box.y1 <= room.y1 for box in boxes)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


STRENGTHS = [0, 1e-5, 0.003, 0.01, 0.03, 0.1, 0.123456, 0.3, 0.5, 1, 1.5, 2, 3, 10, 100, 12345.678]


@pytest.mark.parametrize("seed", range(40))
def test_no_texts_of_random_paths_overlap(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, len(STRENGTHS))
    sizes = rng.integers(1, rng.choice([5, 20, 80, 2000]), n)
    path = {
        "strength": np.sort(rng.choice(STRENGTHS, n, replace=False)),
        "score": rng.normal(0.7, rng.choice([0.1, 0.02, 0.001]), n).round(rng.integers(1, 5)),
        "error": np.full(n, rng.choice([0.001, 0.01, 0.05])),
        "n_leaves": np.sort(sizes)[::-1],
        "n_parts": np.sort(sizes)[::-1] * 3,
        "is_chosen": np.arange(n) == rng.integers(n),
    }
    ax = None
    if seed % 4:
        _, ax = plt.subplots(figsize=(rng.uniform(3.5, 9), rng.uniform(2.5, 6)))
    picture = plot_path(path, ax=ax, title="A title" if seed % 2 else None)
    picture.figure.canvas.draw()
    texts = [text for text in picture.texts if text.get_visible()]
    if ax is None:
        assert len(texts) == len(picture.texts)
    legend, axes = picture.ax.get_legend(), picture.ax
    texts += legend.get_texts() if legend.get_visible() else []
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
        texts += [label for place, label in ticks if low <= place <= high]
        texts.append(axis.label)
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in texts]
    for (one, its), (other, others) in itertools.combinations(boxes, 2):
        assert not its.overlaps(others), (one, other)


def test_strengths_at_one_place_share_a_label():
    path = PATH | {"n_leaves": np.array([12, 12, 12, 6, 2]), "score": PATH["score"] * 0 + 0.9}
    labels = [text.get_text() for text in plot_path(path).texts]
    assert "0, 0.3, 1" in labels


def test_a_path_of_one_and_axes_of_ones_own():
    one = {name: column[2:3] for name, column in PATH.items()}
    _, ax = plt.subplots()
    picture = plot_path(one, ax=ax)
    assert picture.ax is ax
    assert repr(picture) == "<Picture, 6.4 x 4.8 inch>"
    assert picture._repr_html_() is None


def test_what_is_no_path_is_refused():
    with pytest.raises(ValueError, match="it has no 'is_chosen'"):
        plot_path({name: column for name, column in PATH.items() if name != "is_chosen"})
    with pytest.raises(ValueError, match="size must be 'leaves' or 'parts', got 'nodes'"):
        plot_path(PATH, size="nodes")
    with pytest.raises(TypeError, match="ax must be a matplotlib Axes"):
        plot_path(PATH, ax=3)
    with pytest.raises(TypeError, match="title must be"):
        plot_path(PATH, title=3)


def test_ticks_are_written_alike_and_labels_do_not_touch():
    path = {
        "strength": np.array([0, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]),
        "score": np.array([0.5505, 0.5505, 0.5516, 0.5654, 0.6284, 0.664, 0.6594, 0.5401]),
        "error": np.full(8, 0.01),
        "n_leaves": np.array([62, 72, 66, 69, 54, 9, 4, 1]),
        "n_parts": np.array([62, 72, 66, 69, 54, 9, 4, 1]),
        "is_chosen": np.arange(8) == 5,
    }
    picture = plot_path(path)
    figure = picture.figure
    figure.canvas.draw()
    ticks = {label.get_text() for label in picture.ax.get_xticklabels(which="both")} - {""}
    assert {"1", "2", "5", "10", "20", "50"} <= ticks
    assert not any("." in tick for tick in ticks if float(tick) >= 1)
    boxes = [Text.get_window_extent(text) for text in picture.texts]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
