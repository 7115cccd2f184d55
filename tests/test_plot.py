"""Pictures: nothing overlaps or is cut off, and what they show is what the tree does."""

import gc
import io
import re
import subprocess
import sys
import warnings
import weakref
from itertools import product

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from data import PLAIN, make_tree

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.transforms import Bbox
from sklearn.exceptions import NotFittedError

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.drawing._palette import branch_colour, class_colour
from shapetree.drawing._plane_map import map_of
from shapetree.drawing._scales import scale_of
from shapetree.export import export_dot
from shapetree.plot import plot_node, plot_tree
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._view import view_of
from shapetree.tree._words import readable

FREE = {
    **PLAIN,
    "max_parts": None,
    "refine": None,
    "segment_penalty": 0.0,
    "leaf_penalty": 0.0,
}
ODD_NAMES = [
    "a" * 200,
    "long name with many words " * 8,
    "$x_1^2$ \\alpha",
    "under_score $ % & # {~^}",
    "שם של תכונה",
    "اسم الميزة طويل جدا هنا",
    "特徴量の名前 😀🎉",
    "two\nlines\tand tabs",
]


@pytest.fixture(autouse=True)
def _close_figures():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no font that matplotlib can use")
        yield
    plt.close("all")


def noise(n_classes=3, n_rows=600, names=None, seed=0):
    """Features and classes with enough chance in them that trees grow deep."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 8)), columns=names or [f"x{i}" for i in range(8)])
    waves = np.sin(3 * X.iloc[:, 0]) + X.iloc[:, 1] ** 2 + rng.normal(scale=0.8, size=n_rows)
    bounds = np.quantile(waves, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(bounds, waves)


def people(n_rows=500, seed=0):
    """Categories with long names, missing values, and numbers of very different size."""
    rng = np.random.default_rng(seed)
    cities = [f"a town whose name is the long number {i}" for i in range(20)] + ["x", "$y$", ""]
    X = pd.DataFrame(
        {
            "town": rng.choice(cities, n_rows),
            "job": rng.choice(["cook", "nurse", None], n_rows),
            "income": np.exp(rng.normal(0, 4, n_rows)),
            "age": rng.integers(18, 90, n_rows).astype(float),
        }
    )
    X.loc[rng.random(n_rows) < 0.2, "age"] = np.nan
    score = X["town"].str.len() % 3 + (X["age"].fillna(80) > 50) + (X["income"] > 3)
    score += (X["job"] == "cook") * 2 + rng.normal(scale=0.4, size=n_rows)
    return X, np.digitize(score, [2, 4])


@pytest.fixture(scope="module")
def fitted():
    return make_tree(ShapeTreeClassifier, max_depth=2, max_branches=3, **FREE).fit(*noise())


def boxes_of(picture):
    """Boxes of the texts and of the nodes, in pixels."""
    renderer = picture.figure.canvas.get_renderer()
    picture.figure.draw_without_rendering()
    texts = [text.get_window_extent(renderer) for text in visible(picture)]
    nodes = [
        Bbox(picture.ax.transData.transform([box[:2], box[2:]])) for box in picture.nodes.values()
    ]
    texts, nodes = ([ordered(box) for box in boxes] for boxes in (texts, nodes))
    return np.reshape(texts, (-1, 4)), np.array(nodes)


def visible(picture):
    return [text for text in picture.texts if text.get_visible()]


def ordered(box):
    return [min(box.x0, box.x1), min(box.y0, box.y1), max(box.x0, box.x1), max(box.y0, box.y1)]


def overlaps(some, others):
    """By how much boxes reach into others, both ways at least; a matrix."""
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    return (high - low).min(axis=2)


def check(picture, slack=0.6):
    """Assert that texts and nodes keep apart and inside; letters lie on whole pixels."""
    texts, nodes = boxes_of(picture)
    words = [text.get_text() for text in visible(picture)]
    width, height = picture.figure.canvas.get_width_height()
    inside = (texts[:, :2] >= -slack).all(axis=1) & (texts[:, 2:] <= [width, height]).all(axis=1)
    assert inside.all(), [w for w, good in zip(words, inside, strict=True) if not good]
    among = overlaps(texts, texts)
    np.fill_diagonal(among, -1)
    pairs = [(words[i], words[j]) for i, j in np.argwhere(among > slack)]
    assert not pairs, pairs
    apart = overlaps(nodes, nodes)
    np.fill_diagonal(apart, -1)
    assert (apart <= 1e-6).all()
    touching = overlaps(texts, nodes) > slack
    assert (touching.sum(axis=1) <= 1).all()
    for i, node in np.argwhere(touching):
        low, high = texts[i][:2] - nodes[node][:2], nodes[node][2:] - texts[i][2:]
        assert min(*low, *high) >= -slack, words[i]
    assert all(not text.get_parse_math() for text in picture.texts)
    assert np.isfinite(texts).all()


def check_both(tree, **arguments):
    """Check a tree's pictures in both directions and those of some nodes."""
    for direction in ("down", "right"):
        check(plot_tree(tree, direction=direction, **arguments))
    leaves = np.flatnonzero(tree.tree_.n_branches == 0)
    for node in {0, int(leaves[0]), int(leaves[-1])}:
        check(plot_node(tree, node, **arguments))


# --- nothing overlaps ---


@pytest.mark.parametrize(
    ("depth", "n_branches"),
    [*product([1, 2, 3], [2, 3, 4]), *product([4], [2, 4]), (5, 3), (6, 2)],
)
def test_texts_keep_apart_at_every_depth(depth, n_branches):
    tree = make_tree(ShapeTreeClassifier, max_depth=depth, max_branches=n_branches, **FREE).fit(
        *noise()
    )
    if depth < 4:
        check_both(tree)
    else:
        check(plot_tree(tree))


@pytest.mark.parametrize("n_classes", [12, 30, 100])
def test_texts_keep_apart_with_many_classes(n_classes):
    X, y = noise(n_classes, n_rows=900)
    labels = np.array([f"class number {i} with a rather long name" for i in range(n_classes)])
    check_both(make_tree(ShapeTreeClassifier, max_depth=3, **FREE).fit(X, labels[y]))


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_texts_keep_apart_with_odd_names():
    X, y = noise(len(ODD_NAMES), n_rows=900, names=ODD_NAMES)
    tree = make_tree(ShapeTreeClassifier, max_depth=3, **FREE).fit(X, np.array(ODD_NAMES)[y])
    check_both(tree, title=ODD_NAMES[1])
    check(plot_tree(tree, row=X.iloc[0]))


def test_long_names_keep_their_ends():
    X, y = noise(names=["start" + "a" * 200 + "end", *"bcdefgh"])
    tree = make_tree(ShapeTreeClassifier, max_depth=1, **FREE).fit(X[X.columns[:1]], y)
    name = next(text.get_text() for text in plot_tree(tree).texts if "start" in text.get_text())
    assert name.endswith("end")
    assert "…" in name


@pytest.mark.parametrize("pairs", [0, "auto"])
def test_texts_keep_apart_with_categories_and_missing_values(pairs):
    X, y = people()
    tree = make_tree(ShapeTreeClassifier, max_depth=3, pairs=pairs, **FREE).fit(X, y)
    check_both(tree)
    check(plot_tree(tree, row=X.iloc[0]))


def test_texts_keep_apart_with_pairs_of_numbers():
    X, y = noise()
    X *= [1e-12, 1e15, 1, 1, 1, 1, 1, 1]
    for columns in ([0, 1], [1, 0]):
        tree = make_tree(ShapeTreeClassifier, max_depth=2, pairs=1, **FREE).fit(
            X.iloc[:, columns], y
        )
        check_both(tree)


@pytest.mark.parametrize(("scale", "shift"), [(1e-12, 0.0), (1e15, 0.0), (1.0, 1e9), (1e-12, 1e-3)])
def test_texts_keep_apart_with_numbers_of_any_size(scale, shift):
    X, y = noise(n_classes=50)
    values = (X * scale + shift).to_numpy()
    tree = make_tree(ShapeTreeRegressor, max_depth=3, **FREE).fit(values, y * scale + shift)
    check_both(tree)


def test_texts_keep_apart_with_many_thresholds():
    x = np.linspace(0, 1, 3000)[:, None]
    for n_bars in (2, 5, 9, 20):
        y = np.cos(2 * np.pi * n_bars * x[:, 0]) < 0
        check_both(ShapeTreeClassifier(max_branches=2, max_depth=1, max_bins=None).fit(x, y))


def test_a_lone_leaf_has_a_picture():
    check_both(ShapeTreeClassifier().fit(np.zeros((9, 2)), ["a"] * 9))
    check_both(ShapeTreeRegressor().fit(np.zeros((9, 2)), np.full(9, 2.5)))


@pytest.mark.parametrize("size", [(7.0, 4.0), (4.0, 8.0), (20.0, 12.0)])
@pytest.mark.parametrize("layout", ["none", "constrained", "tight"])
def test_a_drawing_fits_axes_of_any_size(fitted, size, layout):
    # Enough pixels for letters that are smaller than they should be.
    figure, axes = plt.subplots(2, 2, figsize=size, layout=layout, dpi=1500 / size[0])
    picture = plot_tree(fitted, ax=axes[0, 1])
    check(picture, slack=1.0)
    assert picture.figure is figure
    renderer = figure.canvas.get_renderer()
    area = axes[0, 1].get_window_extent(renderer)
    _, nodes = boxes_of(picture)
    assert (nodes[:, :2] >= [area.x0 - 0.5, area.y0 - 0.5]).all()
    assert (nodes[:, 2:] <= [area.x1 + 0.5, area.y1 + 0.5]).all()


def test_letters_too_small_to_draw_are_left_out(fitted):
    _, ax = plt.subplots(figsize=(0.8, 0.8))
    picture = plot_tree(fitted, ax=ax)
    check(picture)
    assert not visible(picture)


def test_letters_follow_the_size_of_the_figure(fitted):
    picture = plot_tree(fitted)
    picture.figure.set_size_inches(picture.figure.get_size_inches() / 2)
    check(picture, slack=1.5)


# --- what is shown ---


def words_of(picture):
    return [text.get_text() for text in picture.texts]


def test_every_node_is_drawn_once():
    tree = make_tree(ShapeTreeClassifier, max_depth=4, **FREE).fit(*noise())
    picture = plot_tree(tree)
    assert sorted(picture.nodes) == list(range(tree.tree_.node_count))
    assert f"{tree.tree_.node_count} nodes" in repr(picture)


def test_a_part_of_a_tree():
    tree = make_tree(ShapeTreeClassifier, max_depth=4, **FREE).fit(*noise())
    child = tree.tree_.children(0)[1]
    picture = plot_tree(tree, node=child, max_depth=1)
    assert sorted(picture.nodes) == sorted([child, *tree.tree_.children(child)])
    assert any(word.endswith("…") for word in words_of(picture))
    assert list(plot_tree(tree, max_depth=0).nodes) == [0]


def test_names_thresholds_and_classes_are_written():
    X = pd.DataFrame({"size": np.arange(40.0)})
    tree = make_tree(ShapeTreeClassifier, **PLAIN).fit(
        X, np.where(X["size"] < 12, "small", "large")
    )
    for picture in (plot_tree(tree), plot_node(tree)):
        assert {"size", "11"} <= set(words_of(picture))
        assert sum("small" in word for word in words_of(picture)) == 2
    assert "100 % of 12" in words_of(plot_tree(tree))


def test_neighbouring_thresholds_look_different():
    x = np.concatenate([np.full(20, 1.00001), np.full(20, 1.00002), np.full(20, 1.00003)])[:, None]
    tree = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1, max_branches=2).fit(
        x, np.repeat([0, 1, 0], 20)
    )
    expected = {readable(threshold) for threshold in thresholds_of(tree)} | {"1.00001", "1.00003"}
    for picture in (plot_tree(tree), plot_node(tree)):
        assert expected <= set(words_of(picture))
    assert len(expected) == 4


def test_numbers_are_written_with_their_deviation():
    y = np.repeat([1.0, 3.0, 10.0, 14.0], 25)
    tree = make_tree(ShapeTreeRegressor, **PLAIN, max_depth=1, max_branches=2).fit(y[:, None], y)
    assert {"2 ± 1", "12 ± 2", "n = 50"} <= set(words_of(plot_tree(tree)))


def test_other_rows_are_counted_instead():
    X, y = noise()
    tree = make_tree(ShapeTreeClassifier, max_depth=2, **FREE).fit(X, y)
    assert "n = 40" in words_of(plot_tree(tree, X[:40], y[:40]))
    assert "n = 40" in words_of(plot_node(tree, 0, X[:40], y[:40]))
    few = plot_tree(tree, X[:1], y[:1])
    assert "no rows" in words_of(few)
    check(few)


def test_shares_are_those_of_the_rows_whatever_their_weights():
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    y = np.array([0] * 5 + [1] * 5 + [1] * 10)
    tree = make_tree(ShapeTreeClassifier, **PLAIN, class_weight={0: 3, 1: 1}, max_depth=1).fit(X, y)
    assert "50 % of 10, weighted 75 %" in words_of(plot_tree(tree))
    assert {"50 %, weighted 75 %", "50 %, weighted 25 %"} <= set(words_of(plot_node(tree, 1)))


def rows_of_all_kinds(X, i):
    frame = X.iloc[[i]]
    return [
        X.iloc[i],
        X.iloc[i].to_numpy(),
        X.iloc[i].tolist(),
        frame,
        frame.to_numpy(),
        frame.to_dict("records")[0],
        pl.from_pandas(frame),
        frame[frame.columns[::-1]],
    ]


def test_a_row_may_be_of_any_kind():
    X, y = people()
    tree = make_tree(ShapeTreeClassifier, max_depth=3, **FREE).fit(X, y)
    drawn = {tuple(words_of(plot_tree(tree, row=row))) for row in rows_of_all_kinds(X, 3)}
    assert len(drawn) == 1


def colours_of(picture):
    """All colours of shapes."""
    return {
        tuple(np.round(colour[:3], 3))
        for piece in picture.ax.collections
        for colour in piece.get_facecolor()
    }


def test_a_row_fades_what_it_does_not_pass():
    X, y = noise()
    tree = make_tree(ShapeTreeClassifier, max_depth=2, **FREE).fit(X, y)
    row = X.iloc[[0]]
    path = tree.decision_path(row).indices
    picture = plot_tree(tree, row=row)
    dark = {text.get_color() for text in picture.texts}
    assert len(dark) > len({text.get_color() for text in plot_tree(tree).texts})
    asides = [word for word in words_of(picture) if word.startswith("= ")]
    assert len(asides) == len(path) - 1
    check(picture)


def test_a_row_with_missing_or_unknown_values_is_drawn():
    X, y = people()
    for pairs in (0, "auto"):
        tree = make_tree(ShapeTreeClassifier, max_depth=3, pairs=pairs, **FREE).fit(X, y)
        for row in ([None] * 4, ["nowhere", "pilot", np.inf, -np.inf]):
            check(plot_tree(tree, row=row))


def test_own_colours_are_used():
    X, y = noise(2)
    tree = make_tree(ShapeTreeClassifier, max_depth=1, max_branches=2, **FREE).fit(X, y)
    for arguments in (
        {"branch_colors": ["red", "lime"]},
        {"class_colors": {0: "red", 1: "lime"}},
        {"class_colors": ["#ff0000", (0, 1, 0)]},
        {"cmap": mpl.colors.ListedColormap(["red", "lime"])},
    ):
        for picture in (plot_tree(tree, **arguments), plot_node(tree, **arguments)):
            assert {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)} <= colours_of(picture)
    numbers = ShapeTreeRegressor(max_depth=1).fit(X, y)
    assert colours_of(plot_tree(numbers, cmap="hot")) != colours_of(plot_tree(numbers))


def test_the_most_frequent_classes_are_named():
    X, y = noise(40, n_rows=1500)
    words = words_of(plot_tree(make_tree(ShapeTreeClassifier, max_depth=2, **FREE).fit(X, y)))
    assert "and 30 more" in words


def test_a_class_has_one_colour_whatever_rows_are_shown():
    X, y = noise(12, n_rows=1500)
    tree = make_tree(ShapeTreeClassifier, max_depth=2, **FREE).fit(X, y)
    rare = y == 11
    pictures = [plot_node(tree), plot_node(tree, 0, X[rare], y[rare])]
    assert rgb(class_colour(11)) in colours_of(pictures[0])
    assert rgb(class_colour(11)) in colours_of(pictures[1])


def rgb(colour):
    return tuple(np.round(mpl.colors.to_rgb(colour), 3))


def test_pictures_and_graphs_have_the_same_colours():
    X, y = noise(3)
    tree = make_tree(ShapeTreeClassifier, max_depth=2, max_branches=3, **FREE).fit(X, y)
    graph = export_dot(tree)
    branches = set(re.findall(r'-> .* color="(#\w{6})"', graph))
    classes = set(re.findall(r'^ +\d+ \[.* color="(#\w{6})"', graph, re.MULTILINE))
    assert branches == {branch_colour(branch) for branch in range(3)}
    assert classes <= {class_colour(number) for number in range(3)}
    assert len(classes) > 1
    drawn = colours_of(plot_tree(tree))
    assert {rgb(colour) for colour in branches | classes} <= drawn
    svg = plot_tree(tree)._repr_html_().upper()
    assert all(colour in svg for colour in branches | classes)


# --- axes ---


def close_thresholds(n_rows=4000, n_bumps=3):
    """A number with thresholds close to each other, far from either end."""
    rng = np.random.default_rng(0)
    x = rng.gamma(4.0, 1.0, n_rows).round(3)
    y = x.copy()
    for i in range(n_bumps):
        y[(x > 3.5 + 0.1 * i) & (x < 3.53 + 0.1 * i)] += 9
    return pd.DataFrame({"x": x}), y


def test_a_strip_is_true_to_scale():
    X, y = close_thresholds()
    tree = make_tree(ShapeTreeRegressor, max_depth=1, max_branches=3, **FREE).fit(X, y)
    segments = tree.shape_table(0)
    colours = [rgb(branch_colour(branch)) for branch in range(3)]
    for picture in (plot_node(tree), plot_tree(tree)):
        (x0, y0, x1, y1) = picture.nodes[0]
        parts = [box for box, colour in rectangles(picture) if colour in colours]
        strip = [b for b in parts if x0 <= b[0] and b[2] <= x1 and y0 <= b[1] and b[3] <= y1]
        bottom = max(box[1] for box in strip if box[2] - box[0] > 30)
        strip = sorted(box for box in strip if box[1] == bottom)
        assert len(strip) == len(segments)
        left, right = strip[0][0], strip[-1][2]
        unit = (right - left) / (X["x"].max() - X["x"].min())
        inner = [left + unit * (high - X["x"].min()) for high in thresholds_of(tree)]
        for box, low, high in zip(strip, [left, *inner], [*inner, right], strict=True):
            # Narrow segments are drawn as a line, which has a width.
            assert box[0] == pytest.approx(low, abs=0.5)
            assert box[2] == pytest.approx(high, abs=0.5)


def thresholds_of(tree, node=0):
    pieces = tree.tree_.pieces(node)
    return tree.tree_.piece_upper[pieces][:-1].tolist()


def rectangles(picture):
    """Corners and colours of all shapes with four corners."""
    for piece in picture.ax.collections:
        for path, colour in zip(piece.get_paths(), piece.get_facecolor(), strict=False):
            if len(path.vertices) == 5:
                (a, b), (c, d) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                yield (float(a), float(b), float(c), float(d)), tuple(np.round(colour[:3], 3))


@pytest.mark.parametrize("scale", ["auto", "linear", "log", "quantile"])
@pytest.mark.parametrize("n_bumps", [1, 3, 8])
def test_every_threshold_and_both_ends_are_written(scale, n_bumps):
    X, y = close_thresholds(n_bumps=n_bumps)
    tree = make_tree(ShapeTreeRegressor, max_depth=1, max_branches=3, max_bins=None, **FREE).fit(
        X, y
    )
    expected = {readable(threshold) for threshold in thresholds_of(tree)}
    node = view_of(fitted_tree(tree)).nodes[0]
    expected |= {label for _, label in scale_of(node, scale).end_labels}
    for picture in (plot_node(tree, scale=scale), plot_tree(tree, scale=scale)):
        check(picture)
        words = set(words_of(picture))
        assert expected <= words or any("plot_node" in word for word in words)
    assert expected <= set(words_of(plot_node(tree, scale=scale)))


def test_what_a_small_card_leaves_out_is_said():
    x = np.linspace(0, 1, 6000)[:, None]
    y = np.cos(2 * np.pi * 60 * x[:, 0]) < 0
    tree = make_tree(ShapeTreeClassifier, max_branches=2, max_depth=1, max_bins=None, **FREE).fit(
        x, y
    )
    left_out = [word for word in words_of(plot_tree(tree)) if "plot_node" in word]
    (n_left,) = (int(re.search(r"and (\d+) more", word)[1]) for word in left_out)
    shown = {readable(t) for t in thresholds_of(tree)} & set(words_of(plot_tree(tree)))
    assert len(shown) + n_left == len(thresholds_of(tree))
    assert {readable(t) for t in thresholds_of(tree)} <= set(words_of(plot_node(tree)))


def test_a_title_says_that_an_axis_is_not_linear():
    x = np.exp(np.random.default_rng(0).normal(0, 3, 900))
    tree = ShapeTreeClassifier(max_depth=1).fit(pd.DataFrame({"income": x}), x > 3)
    for draw in (plot_tree, plot_node):
        assert "income (log scale)" in words_of(draw(tree))
        assert "income" in words_of(draw(tree, scale="linear"))
        assert "income (by rows)" in words_of(draw(tree, scale="quantile"))


# --- pairs ---


def test_both_features_of_a_pair_are_named_and_maps_have_north_at_the_top():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (900, 2)), columns=["Latitude", "Longitude"])
    tree = make_tree(ShapeTreeClassifier, max_depth=1, pairs=1, **FREE).fit(
        X, X.product(axis=1) > 0
    )
    for draw in (plot_tree, plot_node):
        title = "Longitude \N{MULTIPLICATION SIGN} Latitude"
        assert {title, "Longitude →", "Latitude ↑"} <= set(words_of(draw(tree)))
        assert {"Latitude →", "Longitude ↑"} <= set(words_of(draw(tree, swap=True)))
    for picture in (plot_tree(tree, swap=True), plot_node(tree, swap=True)):
        check(picture)


def many_kinds(n_kinds=40, n_rows=4000):
    """A pair whose categories each have a threshold of their own."""
    rng = np.random.default_rng(0)
    kind, x = rng.integers(0, n_kinds, n_rows), rng.uniform(size=n_rows)
    X = pd.DataFrame({"x": x, "kind": [f"kind {i}" for i in kind]})
    return X, x > np.linspace(0.1, 0.9, n_kinds)[rng.permutation(n_kinds)][kind]


def test_all_categories_of_a_large_map_are_named_and_those_of_a_small_one_counted():
    X, y = many_kinds()
    tree = ShapeTreeClassifier(
        max_depth=1, pairs=[("x", "kind")], search=SearchOptions(pair_penalty=0.0)
    ).fit(X, y)
    assert len(tree.shape_table(0).feature.unique()) == 1
    large, small = words_of(plot_node(tree)), words_of(plot_tree(tree))
    assert set(X["kind"]) <= set(large)
    assert "40 values" in small
    check(plot_node(tree))
    check(plot_tree(tree))


def test_lines_between_branches_do_not_hide_thin_areas():
    X, y = many_kinds()
    intricate = ShapeTreeClassifier(
        max_depth=1, pairs=[("x", "kind")], search=SearchOptions(pair_penalty=0.0)
    ).fit(X, y)
    view = view_of(fitted_tree(intricate))
    assert map_of(view.nodes[0], False).line_width < 0.5
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    plain = ShapeTreeClassifier(max_depth=1, max_branches=2, pairs="auto").fit(X, X.a > X.b)
    view = view_of(fitted_tree(plain))
    assert map_of(view.nodes[0], False).line_width == 1.0


def test_a_branch_of_a_pair_is_one_shape():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (2000, 2)), columns=["a", "b"])
    y = (X["a"] ** 2 + X["b"] ** 2 > 0.5).astype(int)
    tree = make_tree(ShapeTreeClassifier, max_depth=1, max_branches=2, pairs=1, **FREE).fit(X, y)
    assert tree.tree_.pieces(0).stop > 4
    picture = plot_node(tree)
    (areas,) = [c for c in picture.ax.collections if type(c).__name__ == "PathCollection"]
    assert len(areas.get_paths()) == 2


# --- figures ---


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_pictures_are_saved(kind, tmp_path):
    X, y = people()
    picture = plot_tree(make_tree(ShapeTreeClassifier, max_depth=2, pairs="auto", **FREE).fit(X, y))
    picture.save(tmp_path / f"tree.{kind}")
    assert (tmp_path / f"tree.{kind}").stat().st_size > 2000
    picture.save(tmp_path / f"tight.{kind}", bbox_inches="tight")


def test_notebooks_show_a_picture_once():
    tree = make_tree(ShapeTreeClassifier, max_depth=1, **FREE).fit(*noise())
    picture = plot_tree(tree)
    assert "<svg" in picture._repr_html_()
    assert "<svg" in picture._repr_html_()
    assert not plt.get_fignums()
    _, ax = plt.subplots()
    assert plot_tree(tree, ax=ax)._repr_html_() is None


def test_pictures_leave_no_figure_open(fitted, tmp_path):
    with warnings.catch_warnings(), plt.rc_context({"figure.max_open_warning": 2}):
        warnings.simplefilter("error")
        for draw in (plot_tree, plot_node) * 2:
            draw(fitted).save(tmp_path / "picture.png", dpi=20)
    assert not plt.get_fignums()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        plot_tree(fitted).show()
    assert not plt.get_fignums()


def test_a_picture_is_freed_with_its_last_name(fitted):
    figure = weakref.ref(plot_tree(fitted).figure)
    gc.collect()
    assert figure() is None


def test_axes_that_are_given_are_drawn_on_and_stay_open(fitted):
    figure, ax = plt.subplots()
    picture = plot_tree(fitted, ax=ax)
    assert (picture.ax, picture.figure) == (ax, figure)
    assert ax.collections
    assert plt.get_fignums() == [figure.number]


def test_pictures_do_without_pyplot():
    script = (
        "import sys\n"
        "from shapetree import ShapeTreeClassifier, plot_tree\n"
        "picture = plot_tree(ShapeTreeClassifier().fit([[0.0], [1.0]] * 20, [0, 1] * 20))\n"
        "picture._repr_html_()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# --- letters ---


def test_letters_that_no_font_has_are_warned_of_once():
    X = pd.DataFrame({"\ue123": np.arange(40.0)})
    y = np.where(X["\ue123"] < 12, "\U00012000\U00012001", "plain")
    tree = ShapeTreeClassifier().fit(X, y)
    with pytest.warns(UserWarning, match="install a font") as said:
        picture = plot_tree(tree)
    assert len(said) == 1
    assert "\U00012000\U00012001" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture.save(io.BytesIO(), format="png")
        plot_tree(tree)


def test_letters_are_taken_from_another_font_if_it_has_them():
    with mpl.rc_context({"font.family": "STIXSizeOneSym"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = ShapeTreeClassifier().fit(np.arange(40.0)[:, None], np.arange(40) < 12)
        picture = plot_tree(tree)
        check(picture)
    families = {name for text in picture.texts for name in text.get_fontfamily()}
    assert len(families) > 1


def test_large_trees_stay_drawable():
    X, y = noise(10, n_rows=1200)
    tree = make_tree(ShapeTreeClassifier, max_depth=None, max_branches=2, **FREE).fit(X, y)
    picture = plot_tree(tree, direction="down")
    assert picture.ax.get_xlim()[1] > 72 * 95
    assert max(picture.figure.get_size_inches()) <= 100.001


def test_few_artists_are_made():
    tree = make_tree(ShapeTreeClassifier, max_depth=6, **FREE).fit(*noise(10))
    picture = plot_tree(tree)
    assert len(picture.ax.collections) < 12
    assert len(picture.texts) < 12 * len(picture.nodes) + 20


# --- bad input ---


def removed_axes():
    _, ax = plt.subplots()
    ax.remove()
    return ax


def cleared_axes():
    figure, ax = plt.subplots()
    figure.clear()
    return ax


def polar_axes():
    return plt.subplots(subplot_kw={"projection": "polar"})[1]


@pytest.mark.parametrize("plot", [plot_tree, plot_node])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"node": 1.0}, TypeError, "node must be the number of a node"),
        ({"node": True}, TypeError, "node must be the number of a node"),
        ({"node": 999}, ValueError, "node is 999, but the tree's nodes are 0 to"),
        ({"node": -1}, ValueError, "node is -1"),
        ({"X": [[0.0] * 8]}, ValueError, "X was given without y"),
        ({"y": [1]}, ValueError, "y was given without X"),
        ({"X": [[0.0] * 3], "y": [1]}, ValueError, "3 features"),
        ({"cmap": "no such map"}, ValueError, "cmap is 'no such map'"),
        ({"branch_colors": ["red", "blue", "no such"]}, ValueError, "branch_colors has 'no such'"),
        ({"branch_colors": ["red"]}, ValueError, "branch_colors has 1 colours"),
        ({"branch_colors": "red"}, ValueError, "branch_colors must be a list"),
        ({"branch_colors": 3}, ValueError, "branch_colors must be a list"),
        ({"class_colors": ["red", "blue"]}, ValueError, "class_colors has 2 colours"),
        ({"class_colors": {0: "red"}}, ValueError, "class_colors has no colour for 1"),
        ({"class_colors": {"a": "red"}}, ValueError, "class_colors names 'a'"),
        ({"class_colors": [None, 1, 2]}, ValueError, "class_colors has None"),
        ({"ax": "here"}, TypeError, "ax must be a matplotlib Axes"),
        ({"row": [1.0, 2.0]}, ValueError, "row has 2 values, but the tree was fitted on 8"),
        ({"row": np.zeros((2, 8))}, ValueError, "row must hold one value for each feature"),
        ({"row": {"x0": 1.0}}, ValueError, "row has no value for the feature 'x1'"),
        ({"row": pd.DataFrame(np.zeros((2, 8)))}, ValueError, "a table of 2 rows"),
        ({"title": 3}, TypeError, "title must be"),
        ({"scale": "square"}, ValueError, "scale must be 'auto', 'linear', 'log' or 'quantile'"),
        ({"scale": None}, ValueError, "scale must be"),
        ({"swap": "yes"}, TypeError, "swap must be True or False"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_bad_arguments_are_refused(fitted, plot, arguments, error, message):
    with pytest.raises(error, match=message):
        plot(fitted, **arguments)
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("make", "message"),
    [(removed_axes, "removed"), (cleared_axes, "removed"), (polar_axes, "projection 'polar'")],
)
def test_unusable_axes_are_refused(fitted, make, message):
    with pytest.raises(ValueError, match=message):
        plot_tree(fitted, ax=make())


def test_insets_and_subfigures_are_usable(fitted):
    _, ax = plt.subplots(figsize=(8, 8))
    check(plot_tree(fitted, ax=ax.inset_axes([0.1, 0.1, 0.8, 0.8])))
    figure = plt.figure(figsize=(8, 8))
    part = figure.subfigures(1, 2)[1]
    picture = plot_tree(fitted, ax=part.add_subplot())
    assert picture.figure is figure
    check(picture, slack=1.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"direction": "up"}, ValueError, "direction must be"),
        ({"max_depth": -1}, ValueError, "max_depth must be"),
        ({"max_depth": 1.5}, TypeError, "max_depth must be"),
    ],
)
def test_bad_shapes_of_trees_are_refused(fitted, arguments, error, message):
    with pytest.raises(error, match=message):
        plot_tree(fitted, **arguments)
    assert not plt.get_fignums()


def test_a_row_must_reach_the_node(fitted):
    X, _ = noise()
    off_path = next(
        child
        for child in fitted.tree_.children(0)
        if child not in fitted.decision_path(X[:1]).indices
    )
    for plot in (plot_tree, plot_node):
        with pytest.raises(ValueError, match=f"row does not reach node {off_path}"):
            plot(fitted, node=off_path, row=X.iloc[0])


def test_only_fitted_trees_of_one_target_are_drawn():
    with pytest.raises(NotFittedError):
        plot_tree(ShapeTreeClassifier())
    X, y = noise()
    both = ShapeTreeClassifier(max_depth=2).fit(X, np.column_stack([y, y]))
    for plot in (plot_tree, plot_node):
        with pytest.raises(ValueError, match="one target, but this tree has 2"):
            plot(both)
    numbers = ShapeTreeRegressor(max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match="class_colors was given"):
        plot_tree(numbers, class_colors=["red"])
    assert not plt.get_fignums()


def test_a_failure_while_drawing_leaves_no_figure(fitted, monkeypatch):
    def fail(*_):
        raise RuntimeError("no paint")

    monkeypatch.setattr("shapetree.plot._canvas.Canvas.draw", fail)
    with pytest.raises(RuntimeError, match="no paint"):
        plot_tree(fitted)
    assert not plt.get_fignums()


def test_without_matplotlib_the_message_says_how_to_get_it():
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from shapetree import ShapeTreeClassifier\n"
        "from shapetree.plot import plot_tree\n"
        "try: plot_tree(ShapeTreeClassifier().fit([[0.0], [1.0]], [0, 1]))\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install shapetree[plot]" in run.stdout


def test_styles_do_not_change_the_drawing(fitted):
    with plt.style.context(["dark_background", {"font.size": 20, "font.family": "serif"}]):
        picture = plot_tree(fitted)
        check(picture)
        picture.save(io.BytesIO(), format="png")
        assert picture.figure.get_facecolor()[:3] == (1.0, 1.0, 1.0)


# --- pairs, categories and spreads ---


def pair_tree(names=("bill_length_mm", "bill_depth_mm"), n_rows=400, outlier=None):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n_rows, 2)), columns=list(names))
    y = (X.iloc[:, 0] > 0) ^ (X.iloc[:, 1] > 0)
    if outlier is not None:
        X.iloc[0, 1] = outlier
    return ShapeTreeClassifier(max_depth=1, pairs=1).fit(X, y)


@pytest.mark.parametrize("draw", [plot_tree, plot_node])
@pytest.mark.parametrize("names", [("bill_length_mm", "bill_depth_mm"), ("a" * 28, "b" * 30)])
def test_both_names_of_a_pair_are_whole_and_name_the_axes(draw, names):
    words = words_of(draw(pair_tree(names)))
    assert sum(names[0] in word for word in words) == 2
    assert sum(names[1] in word for word in words) == 2
    assert f"{names[0]} →" in words
    assert f"{names[1]} ↑" in words


@pytest.mark.parametrize(("n_rows", "said"), [(400, "150 of 400 shown"), (120, None)])
def test_a_sample_of_points_says_so(n_rows, said):
    words = words_of(plot_tree(pair_tree(n_rows=n_rows)))
    assert [word for word in words if word.endswith("shown")] == ([said] if said else [])


def test_a_few_rows_far_away_do_not_make_the_plane_empty():
    tree = pair_tree(n_rows=90, outlier=1000.0)
    scatter = view_of(fitted_tree(tree)).nodes[0].scatter
    assert scatter.high[1] < 20
    assert any("of 90 shown" in word for word in words_of(plot_tree(tree)))


def test_bars_of_categories_are_labelled():
    X = pd.DataFrame({"rank": ["AssocProf", "AsstProf", "Prof"] * 30})
    y = X["rank"].map({"AssocProf": 1.0, "AsstProf": 0.0, "Prof": 2.0})
    picture = plot_tree(ShapeTreeRegressor(max_depth=1).fit(X, y))
    placed = {text.get_text(): text.get_position()[0] for text in picture.texts}
    assert placed["AssocProf"] < placed["Prof"]
    assert [words_of(picture).count(name) for name in ("AssocProf", "AsstProf", "Prof")] == [1] * 3


def test_the_sign_of_a_spread_is_explained():
    tree = ShapeTreeRegressor(max_depth=1).fit([[0.0], [1.0]] * 20, np.arange(40.0))
    assert any("± standard deviation" in word for word in words_of(plot_tree(tree)))
