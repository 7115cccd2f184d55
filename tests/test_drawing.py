"""What pictures, graphs and pages share: true axes, joined areas and one palette."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from data import make_tree
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.drawing._outlines import outlines
from shapetree.drawing._palette import BRANCHES, CLASSES, branch_colour, class_colour
from shapetree.drawing._plane_map import map_of
from shapetree.drawing._scales import drawn_density, scale_of, target_scale
from shapetree.drawing._ticks import end_labels, round_numbers, round_powers
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._view import view_of

FREE = {"refine": None, "segment_penalty": 0.0, "leaf_penalty": 0.0}


def view(tree, *rows):
    return view_of(fitted_tree(tree), *rows)


# Axes


def bumps(n_rows=3000, seed=0):
    """A number whose thresholds lie close together, far from the ends of its range."""
    rng = np.random.default_rng(seed)
    x = rng.gamma(4.0, 1.0, n_rows)
    y = np.where((x > 3.5) & (x < 3.6), 5.0, x) + rng.normal(scale=0.05, size=n_rows)
    return pd.DataFrame({"x": x}), y


def root_scale(X, y, scale="auto", make=ShapeTreeRegressor):
    tree = make_tree(make, max_depth=1, max_branches=4, **FREE).fit(X, y)
    root = view(tree).nodes[0]
    return scale_of(root, scale), root


def test_a_linear_axis_has_equal_room_for_equal_differences():
    X, y = bumps()
    axis, root = root_scale(X, y)
    assert axis.kind == "linear"
    assert len(axis.thresholds) > 3
    low, high = axis.ends
    inside = [t for t in axis.thresholds if not axis.breaks or axis.place(t) < axis.breaks[0]]
    slopes = np.diff([axis.place(t) for t in inside]) / np.diff(inside)
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-9)
    assert (low, high) == (X["x"].min(), X["x"].max())
    assert (axis.place(low), axis.place(high)) == (0.0, 1.0)
    assert len(axis.threshold_labels) == len(root.segments) - 1


def test_an_axis_is_logarithmic_where_most_rows_would_crowd():
    x = np.exp(np.random.default_rng(1).normal(0, 2, 2000))
    axis, _ = root_scale(pd.DataFrame({"x": x}), np.log(x))
    assert axis.kind == "log"
    places = [axis.place(t) for t in axis.thresholds]
    slopes = np.diff(places) / np.diff(np.log(axis.thresholds))
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-6)
    linear, _ = root_scale(pd.DataFrame({"x": x}), np.log(x), "linear")
    assert linear.kind == "linear"


def test_a_log_axis_is_linear_where_numbers_are_not_positive():
    x = np.linspace(-1, 1, 200)
    axis, _ = root_scale(pd.DataFrame({"x": x}), x > 0.3, "log", ShapeTreeClassifier)
    assert axis.kind == "linear"


def test_on_an_axis_of_quantiles_a_part_has_room_as_it_has_rows():
    X, y = bumps()
    axis, root = root_scale(X, y, "quantile")
    for segment, (low, high) in zip(
        root.segments,
        itertools.pairwise([0.0, *map(axis.place, axis.thresholds), 1.0]),
        strict=True,
    ):
        share = ((X["x"] > segment.low) & (X["x"] <= segment.high)).mean()
        assert high - low == pytest.approx(share, abs=0.02)


def test_far_outliers_are_behind_a_break_and_the_end_says_how_far():
    x = np.append(np.random.default_rng(0).normal(0, 1, 2000), 1e6)
    axis, _ = root_scale(pd.DataFrame({"x": x}), x > 0.5, make=ShapeTreeClassifier)
    (at,) = axis.breaks
    assert 0.9 < at < 1
    assert axis.end_labels[-1] == (1.0, "1000000")
    assert axis.place(0.5) < at
    unbroken, _ = root_scale(pd.DataFrame({"x": x[:-1]}), x[:-1] > 0.5, make=ShapeTreeClassifier)
    assert unbroken.breaks == []


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_labels_of_ends_are_never_beyond_them(one, other):
    low, high = sorted([one, other])
    first, last = map(float, end_labels(low, high))
    slack = 1e-12 * max(abs(low), abs(high))
    assert low - slack <= first <= last <= high + slack


@pytest.mark.parametrize("scale", ["linear", "log", "quantile"])
def test_labels_of_ends_are_short_and_where_they_say(scale):
    x = np.append(np.random.default_rng(0).lognormal(size=2000), 12345.678901)
    axis, _ = root_scale(pd.DataFrame({"x": x}), x > 0.5, scale, ShapeTreeClassifier)
    for place, label in axis.end_labels:
        assert len(label) <= 6
        assert axis.place(float(label)) == pytest.approx(place, abs=0.003)
        assert x.min() <= float(label) <= x.max()


def test_labels_of_ends_are_short_where_a_cell_has_no_width():
    x = np.repeat(np.random.default_rng(3).normal(size=4), [30, 30, 30, 1])
    axis, _ = root_scale(pd.DataFrame({"x": x}), x > 0, make=ShapeTreeClassifier)
    edges = np.concatenate([axis.edges[:1], axis.edges])
    positions = np.concatenate([axis.positions[:1], axis.positions])
    for _, label in replace(axis, edges=edges, positions=positions).end_labels:
        assert len(label) <= 6


def test_labels_of_ends_have_no_more_digits_than_an_axis_shows():
    assert end_labels(3.7809e-4, 0.99956) == ("0.001", "0.999")
    assert end_labels(-124.35, -114.31) == ("-124.35", "-114.31")
    assert end_labels(326.0, 18823.0) == ("326", "18823")
    assert end_labels(-0.0001, 123.4567) == ("0", "123.4")


@given(st.floats(1e-30, 1e30), st.floats(1.01, 1e20), st.integers(2, 8))
def test_ticks_lie_between_the_ends(low, ratio, at_most):
    for marks in (
        round_numbers(low, low * ratio, at_most),
        round_powers(low, low * ratio, at_most),
    ):
        assert len(marks) <= at_most
        assert all(low * (1 - 1e-9) <= mark <= low * ratio * (1 + 1e-9) for mark in marks)


@pytest.mark.parametrize("seed", range(4))
def test_the_range_of_targets_does_not_go_beyond_them(seed):
    rng = np.random.default_rng(seed)
    y = [rng.normal(size=400), rng.lognormal(7, 1, 2000), rng.integers(326, 18824, 900) * 1.0][
        seed % 3
    ]
    tree = ShapeTreeRegressor(max_depth=1).fit(rng.normal(size=(len(y), 2)), y)
    edges = view(tree).target_edges
    assert (edges[0], edges[-1]) == (y.min(), y.max())
    known = target_scale(edges)
    low, high = (float(label.strip("≤≥ ")) for label in known.labels)
    assert y.min() <= low < high <= y.max()
    assert known.is_cut == ((edges[0] < known.low), (known.high < edges[-1]))


# Areas of pairs


def random_parts(rng, n_cuts):
    """The unit square, cut into convex polygons."""
    parts = [[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]]
    for _ in range(n_cuts):
        part = parts.pop(int(rng.integers(len(parts))))
        a, b = np.sin(angle := rng.choice([0, np.pi / 2, rng.random() * np.pi])), np.cos(angle)
        limit = a * np.mean([p[0] for p in part]) + b * np.mean([p[1] for p in part])
        parts += [clipped(part, a, b, limit, 1), clipped(part, a, b, limit, -1)]
    return parts


def clipped(part, a, b, limit, sign):
    kept = []
    for i, (x, y) in enumerate(part):
        x0, y0 = part[i - 1]
        over, before = sign * (a * x + b * y - limit), sign * (a * x0 + b * y0 - limit)
        if (over > 0) != (before > 0):
            share = before / (before - over)
            kept.append((x0 + share * (x - x0), y0 + share * (y - y0)))
        if over <= 0:
            kept.append((x, y))
    return kept


def area(loop):
    return sum(loop[i - 1][0] * y - x * loop[i - 1][1] for i, (x, y) in enumerate(loop)) / 2


def is_inside(x, y, loops):
    """Whether a ray from a point crosses loops an odd number of times."""
    crossings = 0
    for loop in loops:
        for i, (x1, y1) in enumerate(loop):
            x0, y0 = loop[i - 1]
            if (y0 > y) != (y1 > y) and x < x0 + (y - y0) / (y1 - y0) * (x1 - x0):
                crossings += 1
    return crossings % 2 == 1


@given(st.integers(0, 2**32 - 1), st.integers(0, 25))
def test_outlines_enclose_what_the_polygons_cover_and_nothing_else(seed, n_cuts):
    rng = np.random.default_rng(seed)
    parts = random_parts(rng, n_cuts)
    chosen = rng.random(len(parts)) < 0.6
    loops = outlines([part for part, is_chosen in zip(parts, chosen, strict=True) if is_chosen])
    covered = sum(area(part) for part, is_chosen in zip(parts, chosen, strict=True) if is_chosen)
    assert sum(map(area, loops)) == pytest.approx(covered, abs=1e-5)
    for x, y in rng.random((40, 2)):
        expected = any(
            is_inside(x, y, [part])
            for part, is_chosen in zip(parts, chosen, strict=True)
            if is_chosen
        )
        assert is_inside(x, y, loops) == expected


def test_one_branch_is_one_shape():
    loops = outlines(random_parts(np.random.default_rng(0), 20))
    assert [len(loop) for loop in loops] == [4]


def places(names, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (1500, 2)), columns=names)
    return X, ((X.iloc[:, 0] * X.iloc[:, 1]) > 0).astype(int)


@pytest.mark.parametrize(
    ("names", "across"),
    [
        (("Latitude", "Longitude"), "Longitude"),
        (("Longitude", "Latitude"), "Longitude"),
        (("pickup_lat", "pickup_lon"), "pickup_lon"),
        (("startY", "startX"), "startX"),
        (("y", "x"), "x"),
        (("b", "a"), "b"),
        (("latitude", "age"), "latitude"),
    ],
)
def test_the_first_feature_goes_to_the_right_but_for_maps(names, across):
    tree = make_tree(ShapeTreeClassifier, max_depth=1, pairs=1, **FREE).fit(*places(names))
    shown = view(tree)
    root = shown.nodes[0]
    assert map_of(root, False).features[0].name == across
    assert map_of(root, True).features[1].name == across


def test_areas_are_where_the_branches_are():
    X, y = places(("lat", "lon"))
    tree = make_tree(ShapeTreeClassifier, max_depth=1, pairs=1, **FREE).fit(X, y)
    shown = view(tree)
    drawn = map_of(shown.nodes[0], False)
    leaves = tree.apply(X)
    for place, leaf in zip(X[["lon", "lat"]].to_numpy()[:200], leaves, strict=False):
        at = [axis.place(value) for value, axis in zip(place, drawn.axes, strict=True)]
        if all(0 < share < 1 for share in at):
            branch = shown.nodes[0].children.index(int(leaf))
            assert [is_inside(*at, loops) for loops in drawn.areas].index(True) == branch


@pytest.mark.parametrize("far", [(1, 0), (-1, 0), (1, -1), (1, 1)])
def test_areas_are_where_the_branches_are_on_axes_with_breaks(far):
    z = np.random.default_rng(1).normal(size=(1500, 2))
    y = (z[:, 0] * z[:, 1] > 0).astype(int)
    X = pd.DataFrame(np.where(far, far * np.exp(1.5 * z), z), columns=["a", "b"])
    tree = make_tree(ShapeTreeClassifier, max_depth=1, pairs=1, **FREE).fit(X, y)
    shown = view(tree)
    drawn = map_of(shown.nodes[0], False)
    assert [len(axis.breaks) for axis in drawn.axes] == [abs(side) for side in far]
    leaves = tree.apply(X)
    for row, leaf in zip(X.to_numpy()[:400], leaves, strict=False):
        at = [axis.place(value) for value, axis in zip(row, drawn.axes, strict=True)]
        if all(0 < share < 1 for share in at):
            branch = shown.nodes[0].children.index(int(leaf))
            assert is_inside(*at, drawn.areas[branch])
    for column, axis in zip("ab", drawn.axes, strict=True):
        # Most rows fill most of the plane.
        low, high = X[column].quantile([0.1, 0.9])
        assert axis.place(high) - axis.place(low) > 0.45
        ticks = axis.ticks(5)
        assert len({label for _, label in ticks}) == len(ticks) > 2
        assert [place for place, _ in ticks] == sorted(place for place, _ in ticks)
        for place in axis.breaks:
            assert any(abs(at - round(place)) < 0.1 for at, _ in ticks)


@pytest.mark.parametrize("seed", range(12))
def test_areas_fill_the_plane_whatever_the_rows(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(600, 6))
    columns = [
        *(np.exp(3 * z[:, 0]), -np.exp(2 * z[:, 1]), np.sinh(3 * z[:, 2]), z[:, 3]),
        *(np.where(rng.random(600) < 0.05, 1e300 * z[:, 4], z[:, 4]), np.floor(2 * z[:, 5])),
    ]
    X = pd.DataFrame({name: columns[i] for name, i in zip("ab", rng.permutation(6), strict=False)})
    kinds = rng.integers(0, 3, len(X))
    X["kind"] = np.array(list("xyz"))[kinds]
    above = X[["a", "b"]].rank() > 300
    y = (above["a"] ^ above["b"] ^ (kinds == 1)).astype(int)
    tree = make_tree(ShapeTreeClassifier, max_depth=3, pairs="all", **FREE).fit(X, y)
    shown = view(tree)
    pairs = [node for node in shown.nodes if node.scatter is not None]
    assert pairs
    for node in pairs:
        drawn = map_of(node, swap=bool(seed % 2))
        total = sum(area(loop) for loops in drawn.areas for loop in loops)
        assert total == pytest.approx(1)
        assert ((drawn.points >= 0) & (drawn.points <= 1)).all()


def test_axes_of_pairs_are_broken_only_where_that_gives_much_room():
    rng = np.random.default_rng(0)
    for make in (rng.uniform, rng.normal, rng.exponential):
        X = pd.DataFrame(make(size=(2000, 2)), columns=["a", "b"])
        middle = X.median()
        y = (X["a"] > middle["a"]) ^ (X["b"] > middle["b"])
        shown = view(make_tree(ShapeTreeClassifier, max_depth=1, pairs=1, **FREE).fit(X, y))
        drawn = map_of(shown.nodes[0], False)
        assert [axis.breaks for axis in drawn.axes] == [[], []]


def test_categories_of_pairs_have_one_order_in_all_nodes():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "kind": rng.choice(list("abcdef"), 3000),
            "size": rng.normal(size=3000),
            "side": rng.choice(["l", "r"], 3000),
        }
    )
    codes = X["kind"].map(dict(zip("abcdef", [3, 0, 5, 1, 4, 2], strict=True)))
    y = ((codes > 2) ^ (X["size"] > 0.3) ^ (X["side"] == "l")).astype(int)
    tree = make_tree(ShapeTreeClassifier, max_depth=3, pairs="auto", **FREE).fit(X, y)
    shown = view(tree)
    paths = tree.decision_path(X).toarray().astype(bool)
    n_pairs = 0
    for node in shown.nodes:
        if len(node.features) != 2:
            continue
        drawn = map_of(node, False)
        for feature, axis in zip(drawn.features, drawn.axes, strict=True):
            if axis.categories is not None:
                n_pairs += 1
                known = [c for c in feature.categories if c in axis.categories]
                assert list(axis.categories) == known
        rows = X[paths[:, node.number]].head(100)
        children = tree.decision_path(rows).toarray().astype(bool)
        for row, path in zip(rows.to_dict("records"), children, strict=True):
            at = [place_of(row[f.name], a) for f, a in zip(drawn.features, drawn.axes, strict=True)]
            branch = next(b for b, child in enumerate(node.children) if path[child])
            if all(0 < share < 1 for share in at):
                assert is_inside(*at, drawn.areas[branch])
    assert n_pairs


def place_of(value, axis):
    if axis.categories is None:
        return axis.place(value)
    return (axis.categories.index(value) + 0.5) / len(axis.categories)


# Colours

# How those see colours who lack one kind of cones, after Machado, Oliveira and Fernandes.
SEEN = {
    "all": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def linear(colour):
    """Amounts of light of a colour."""
    shares = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def perceived(light):
    """A colour in a space in which distances are those that people see, Oklab."""
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    mix = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return np.array(mix) @ np.cbrt(np.array(cones) @ np.clip(light, 0, 1))


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("palette", [BRANCHES[:6], CLASSES[:6]])
def test_the_first_colours_are_told_apart_by_the_colour_blind(palette, seen):
    spots = [perceived(np.array(SEEN[seen]) @ linear(colour)) for colour in palette]
    distances = [math.dist(a, b) for a, b in itertools.combinations(spots, 2)]
    assert min(distances) > 0.07


@pytest.mark.parametrize("colour", [*BRANCHES, *CLASSES])
def test_colours_are_seen_on_light_and_dark(colour):
    light = linear(colour) @ [0.2126, 0.7152, 0.0722]
    assert 1.05 / (light + 0.05) > 1.5
    assert (light + 0.05) / (0.015 + 0.05) > 1.5


def test_any_number_of_branches_and_classes_has_colours():
    assert len({branch_colour(branch) for branch in range(40)}) == 40
    assert len({class_colour(number) for number in range(100)}) == 100


@pytest.mark.parametrize("scale", ["auto", "linear", "quantile"])
@pytest.mark.parametrize(
    "numbers",
    [[0, 1], [1, 2, 3, 4], range(30), [10, 20, 30, 75, 80], [-2, 0, 7], [0, 1, 2, 999]],
)
def test_few_whole_numbers_have_a_bar_each_that_is_centred_and_holds_their_rows(numbers, scale):
    x = np.repeat(np.array(numbers, dtype=float), 1 + np.arange(len(numbers)) * 3)
    X = pd.DataFrame({"x": np.append(x, [np.nan] * 5)})
    y = np.append(np.isin(x, numbers[1::2]), np.zeros(5, dtype=bool))
    tree = ShapeTreeClassifier(max_depth=1, max_branches=2, strength=0).fit(X, y)
    node = view(tree).nodes[0]
    axis, density = scale_of(node, scale), drawn_density(node)
    bars = np.flatnonzero(density.n_rows)
    assert density.n_rows[bars].tolist() == [int((x == number).sum()) for number in numbers]
    places = axis.positions[bars] / 2 + axis.positions[bars + 1] / 2
    assert_allclose(places, [axis.place(number) for number in numbers], atol=1e-9)
    assert axis.values == list(numbers)
    widths = np.diff(axis.positions)[bars]
    assert (widths > 0).all()
    if scale != "quantile":
        assert_allclose(widths, widths[0])
    # Segments meet between the bars.
    for threshold, place in zip((s.high for s in node.segments), axis.thresholds, strict=False):
        below = max(number for number in numbers if number <= threshold)
        above = min(number for number in numbers if number > threshold)
        assert below < place < above


def test_more_whole_numbers_than_thirty_are_counted_in_ranges():
    X = pd.DataFrame({"x": np.repeat(np.arange(31.0), 4)})
    tree = ShapeTreeClassifier(max_depth=1).fit(X, X["x"] > 11)
    node = view(tree).nodes[0]
    assert scale_of(node, "auto").values is None
    assert drawn_density(node).n_rows.sum() == 124
