"""Sketches: how rows are spread over a tree's nodes, against counts that are made row by row."""

import pickle
import warnings
from functools import cache, reduce
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pytest
from data import PLAIN, make_tree, view_of
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import branch_of_pair
from numpy.testing import assert_allclose, assert_array_equal

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, refine_tree
from shapetree._core.column_ranges import deviations, extents
from shapetree._core.columns import Columns
from shapetree._core.sampling import row_hashes
from shapetree._core.sketch_axes import edges_of_cells, lay_out_axes
from shapetree._core.sketch_cells import count_cells
from shapetree._core.sketch_samples import sample_points, sample_values
from shapetree._core.sketch_targets import add_up, count_targets, sum_squares, sum_targets
from shapetree.tree._questions import LeafCounts, LeafSums
from shapetree.tree._sketch import Axes, Axis, NodeSketch
from shapetree.tree._sketcher import _Moments

INF, NAN, LARGEST, TINY = np.inf, np.nan, np.finfo(float).max, 5e-324
LETTERS, SHADES = ["a", "b", "c", "d"], ["dark", "light", "pale"]
# Means are kept in nine digits, sums in five.
MEAN, SUM = 1e-7, 1e-4

# Trees and data


def table(rng, n_rows, missing=0.0):
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n_rows),
            "z": rng.normal(size=n_rows).astype(np.float32),
            "n": rng.integers(0, 12, n_rows),
            "letter": rng.choice(LETTERS, n_rows),
            "shade": rng.choice(SHADES, n_rows),
        }
    )
    for name in ("x", "z", "letter", "shade") if missing else ():
        frame.loc[rng.random(n_rows) < missing, name] = None
    return frame


def targets(rng, frame, kind):
    x, z = frame["x"].fillna(0.5), frame["z"].fillna(-0.5)
    score = 2.0 * ((x + z > 0) ^ (x - 0.4 * z > 0.5)) + np.cos(frame["n"] * 0.9)
    score += 1.5 * (frame["letter"].isin(["a", "c"]) ^ (frame["shade"] == "pale"))
    score = np.asarray(score + rng.normal(scale=0.3, size=len(frame)), dtype=float)
    if kind == "numbers":
        return score
    edges = np.quantile(score, np.arange(1, kind) / kind)
    return np.array(["no", "yes", "perhaps", "never", "maybe"])[np.searchsorted(edges, score)]


GRID = {
    "two classes": (2, {"max_branches": 2}),
    "five classes": (5, {"max_branches": 4, "missing": 0.15}),
    "refined": (2, {"max_branches": 3, "missing": 0.15, "refine": "tao"}),
    "pairs": (2, {"pairs": "all", "max_branches": 3}),
    "pairs, missing": (5, {"pairs": "all", "max_branches": 2, "missing": 0.15}),
    "numbers": ("numbers", {"max_branches": 3}),
    "numbers, missing": ("numbers", {"max_branches": 4, "missing": 0.15, "refine": "tao"}),
    "medians": ("numbers", {"criterion": "absolute_error", "missing": 0.1}),
    "numbers of pairs": ("numbers", {"pairs": "all", "missing": 0.1}),
}
EVERY_TREE = pytest.mark.parametrize("name", GRID)
AFTER = {
    "fit": lambda model: model,
    "prune": lambda model: model.prune(np.flatnonzero(model.tree_.depth == 2)[::2]),
    "simplify": lambda model: model.simplify(),
}
BOTH_KINDS = pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])


@cache
def fitted(name, after="fit"):
    kind, params = GRID[name]
    params = {"refine": None, "max_depth": 4, "leaf_penalty": 0.0, "pair_penalty": 0.0} | params
    missing = params.pop("missing", 0.0)
    rng = np.random.default_rng(list(GRID).index(name))
    X = table(rng, 400, missing)
    y = targets(rng, X, kind)
    make = ShapeTreeRegressor if kind == "numbers" else ShapeTreeClassifier
    return AFTER[after](make_tree(make, n_threads=1, **params).fit(X, y)), X, y


@cache
def other_rows(name):
    kind, params = GRID[name]
    rng = np.random.default_rng(100 + list(GRID).index(name))
    X = table(rng, 150, 0.2 if "missing" in params else 0.0)
    y = targets(rng, X, kind)
    X["x"] *= 3
    X.loc[:4, "x"] = [INF, -INF, 1e300, -1e300, 0.0]
    X["letter"] = X["letter"].replace("b", "new")
    return X, y


# Counting row by row


def is_known(feature, value):
    if feature.is_categorical:
        return value in feature.categories
    return not np.isnan(value)


def cell_of(edges, value):
    """Number of the cell of a value; the outermost cells hold what lies beyond."""
    # Not in single precision, in which edges may be the same as values.
    inner, value = edges[1:-1].tolist(), float(value)
    return next((cell for cell, edge in enumerate(inner) if value <= edge), len(inner))


def counted(rows, y, classes):
    """Rows by class, or one number."""
    if classes is None:
        return [len(rows)]
    return [sum(y[row] == label for row in rows) for label in classes]


def assert_density(node, X, y, rows, classes):
    """Cell by cell, the density counts the rows that lie there."""
    (feature,) = node.features
    density, column = node.density, X[feature.name].to_numpy()
    known = [row for row in rows if is_known(feature, column[row])]
    lost = [row for row in rows if not is_known(feature, column[row])]
    if feature.is_categorical:
        cells = [feature.categories.index(column[row]) for row in known]
        n_cells = len(feature.categories)
        assert density.edges is None
        assert density.ends is None
    else:
        cells = [cell_of(density.edges, column[row]) for row in known]
        n_cells = len(density.edges) - 1
    assert len(density.counts) == n_cells
    for cell in range(n_cells):
        inside = [row for row, its in zip(known, cells, strict=True) if its == cell]
        assert density.counts[cell].tolist() == counted(inside, y, classes)
        if classes is None:
            assert_allclose(density.totals[cell], y[inside].sum(), rtol=SUM, atol=1e-12)
    assert density.missing.tolist() == counted(lost, y, classes)
    if classes is None:
        assert_allclose(density.missing_total, y[lost].sum(), rtol=SUM, atol=1e-12)
    else:
        assert density.totals is None
        assert density.missing_total is None


def assert_counted(model, view, X, y):
    """A view's counts are those of the rows that reach its nodes."""
    paths = model.decision_path(X).toarray().astype(bool)
    classes = None if view.classes is None else view.classes[0]
    for node in view.nodes:
        rows = np.flatnonzero(paths[:, node.number]).tolist()
        assert node.n_rows == len(rows) == node.counts.sum()
        if classes is not None:
            assert node.counts.tolist() == counted(rows, y, classes)
            assert node.mean is None
            assert node.deviation is None
        else:
            cells = [cell_of(view.target_edges, y[row]) for row in rows]
            n_cells = len(view.target_edges) - 1
            assert_array_equal(node.counts, np.bincount(cells, minlength=n_cells))
            if rows:
                assert node.mean == pytest.approx(y[rows].mean(), rel=MEAN, abs=MEAN)
                assert node.deviation == pytest.approx(y[rows].std(), rel=MEAN, abs=MEAN)
            else:
                assert np.isnan(node.mean)
                assert np.isnan(node.deviation)
        if len(node.features) == 1:
            assert_density(node, X, y, rows, classes)
            assert node.plane is None
        if len(node.features) == 2:
            lacking = [
                not all(is_known(f, X[f.name].to_numpy()[row]) for f in node.features)
                for row in rows
            ]
            assert node.plane.n_missing == sum(lacking)
            assert node.density is None
        if node.is_leaf:
            assert node.density is None
            assert node.plane is None


@EVERY_TREE
@pytest.mark.parametrize("after", AFTER)
def test_sketches_count_the_training_rows(name, after):
    model, X, y = fitted(name, after)
    view = view_of(model)
    assert view.is_training
    assert len(view.nodes) > 5
    assert_counted(model, view, X, y)


@EVERY_TREE
@pytest.mark.parametrize("after", AFTER)
def test_views_of_other_rows_count_those(name, after):
    model, _, _ = fitted(name, after)
    X, y = other_rows(name)
    view = view_of(model, X, y)
    assert not view.is_training
    assert_counted(model, view, X, y)


@EVERY_TREE
@pytest.mark.parametrize("after", AFTER)
def test_children_have_the_rows_of_their_parent(name, after):
    view = view_of(fitted(name, after)[0])
    for node in view.nodes:
        if node.children:
            children = [view.nodes[child] for child in node.children]
            assert_array_equal(node.counts, sum(child.counts for child in children))
            assert node.n_rows == sum(child.n_rows for child in children)
        if node.density is not None:
            assert node.density.counts.sum() + node.density.missing.sum() == node.n_rows


@EVERY_TREE
@pytest.mark.parametrize("after", AFTER)
def test_rows_of_a_table_of_shapes_are_counted_right(name, after):
    model, X, _ = fitted(name, after)
    view, paths = view_of(model), model.decision_path(X).toarray().astype(bool)
    for node in view.nodes:
        if len(node.features) != 1:
            continue
        (feature,) = node.features
        values = X[feature.name].to_numpy()[paths[:, node.number]]
        known = np.array([is_known(feature, value) for value in values])
        shape = model.shape_table(node.number)
        for row, segment in zip(shape.to_dict("records"), node.segments, strict=False):
            if feature.is_categorical:
                inside = [value in segment.categories for value in values]
            else:
                inside = known & (values > segment.low) & (values <= segment.high)
            assert row["n_rows"] == np.sum(inside)
        if node.saw_missing:
            assert shape["n_rows"].tolist()[-1] == np.sum(~known)


# Axes


def assert_axis(axis, thresholds, ends):
    """Thresholds are edges, all ascends, no segment is left out, and the ends are reached."""
    assert np.isfinite(axis.edges).all()
    assert len(axis.edges) == axis.n_cells + 1
    assert np.all(np.diff(axis.edges) >= 0)
    assert np.isin(axis.bounds, axis.edges).all()
    # Without rows beyond, the outermost cells have no width.
    assert np.all(np.diff(axis.bounds)[1:-1] > 0)
    assert np.isin(thresholds, axis.bounds[1:-1]).all()
    segments = [axis.bounds[0], *thresholds, axis.bounds[-1]]
    assert np.all(np.diff(segments) > 0)
    if ends is not None:
        assert axis.bounds[0] <= ends[0] <= ends[1] <= axis.bounds[-1]


@EVERY_TREE
@pytest.mark.parametrize("after", AFTER)
def test_thresholds_are_edges_and_all_rows_lie_on_the_axis(name, after):
    model, tree = fitted(name, after)[0], fitted(name, after)[0].tree_
    for view in (view_of(model), view_of(model, *other_rows(name))):
        for node in view.nodes:
            if node.density is not None and node.density.edges is not None:
                thresholds = tree.piece_upper[tree.pieces(node.number)][:-1]
                assert_axis(node.density.axis, thresholds, node.density.ends)


@EVERY_TREE
def test_the_ends_of_an_axis_are_those_of_the_rows(name):
    model, X, _ = fitted(name)
    paths = model.decision_path(X).toarray().astype(bool)
    for node in view_of(model).nodes:
        if node.density is not None and node.density.edges is not None:
            values = X[node.features[0].name].to_numpy(dtype=float)[paths[:, node.number]]
            values = np.clip(values[~np.isnan(values)], -LARGEST, LARGEST)
            assert node.density.ends == (values.min(), values.max())


def axis_of(values, thresholds, limit=2**64 - 1):
    """Axis of a root whose leaf has all values."""
    values, thresholds = np.array(values, dtype=float), np.array(thresholds, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feature = np.array([0, -1], dtype=np.int32)
        sample = sample_values(
            Columns([values], len(values)),
            np.ones(len(values), dtype=np.int32),
            np.array([-1, 0], dtype=np.int32),
            feature,
            np.array([limit, 0], dtype=np.uint64),
        )
        ends = np.array([0, len(thresholds), len(thresholds)])
        laid_out = lay_out_axes(feature, *sample, ends, thresholds)
        start, bounds, cells = laid_out
        assert start.tolist() == [0, len(bounds), len(bounds)]
        assert_same_axis(bounds, cells, *naive_axis(values, thresholds, limit))
        axes = Axes(*laid_out, np.array([0, len(thresholds), len(thresholds)]), thresholds)
        return axes.of_node(0, ends_of(values))


def naive_edges(bounds, cells):
    """Edges between the cells of one axis, whose parts have cells of equal width."""
    edges = []
    for low, high, n in zip(bounds, bounds[1:], cells, strict=False):
        for cell in range(n):
            inside = 4 * (low / 4 + (high / 4 - low / 4) * (cell / n))
            edges.append(low if cell == 0 else min(max(inside, low), high))
    return edges[1:]


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-320, 1.0, 1e300]))
def test_edges_part_axes_into_cells_of_equal_width(seed, scale):
    rng = np.random.default_rng(seed)
    n_parts = rng.integers(0, 4, int(rng.integers(0, 5)))
    bounds = [np.sort(rng.normal(size=n + 1)) * scale if n else np.empty(0) for n in n_parts]
    cells = [np.append(rng.integers(1, 9, n), 0) if n else np.empty(0, int) for n in n_parts]
    bound_start = np.cumsum([0, *map(len, bounds)])
    joined = np.concatenate([np.empty(0), *bounds]), np.concatenate([np.empty(0, int), *cells])
    edge_start, edges = edges_of_cells(bound_start, *joined)
    assert len(edge_start) == len(n_parts) + 1
    for node, (its_bounds, its_cells) in enumerate(zip(bounds, cells, strict=True)):
        its_edges = edges[edge_start[node] : edge_start[node + 1]]
        expected = naive_edges(its_bounds.tolist(), its_cells.tolist())
        assert_array_equal(its_edges, expected)
        if len(its_bounds):
            whole = Axis(its_bounds, its_cells[:-1]).edges
            assert_array_equal(whole, [its_bounds[0], *its_edges, its_bounds[-1]])


@pytest.mark.parametrize(
    ("bound_start", "cells", "message"),
    [
        ([0, 3], [2, 0], "parts start"),
        ([0, 2], [2], "cells above each bound"),
        ([0, 2], [-1, 0], "so many cells"),
        ([0, 2], [2**31, 0], "so many cells"),
    ],
)
def test_cells_that_are_no_axis_have_no_edges(bound_start, cells, message):
    with pytest.raises(ValueError, match=message):
        edges_of_cells(np.array(bound_start), np.array([0.0, 1.0]), np.array(cells))


def ends_of(values):
    """The least and the greatest of all values."""
    known = np.clip([value for value in values if value == value], -LARGEST, LARGEST)
    return (known.min(), known.max()) if len(known) else None


def assert_same_axis(bounds, cells, expected_bounds, expected_cells):
    assert_allclose(bounds, expected_bounds, rtol=1e-12)
    assert_array_equal(cells, [*expected_cells, 0])


def naive_axis(values, thresholds, limit):
    """Bounds and cells of an axis, for the values of rows with hashes up to a limit."""
    hashes = row_hashes(np.arange(len(values)))
    values = sorted(np.clip(values[~np.isnan(values) & (hashes <= limit)], -LARGEST, LARGEST))
    values, thresholds = [float(value) for value in values], thresholds.tolist()
    if len(set(values)) <= 24:
        return naive_axis_of_values(sorted(set(values)), thresholds)
    tail = len(values) // 100
    low, high = min([values[tail], *thresholds]), max([values[-1 - tail], *thresholds])
    is_log = low > 0 and 2 * sum(v <= low + 0.1 * (high - low) for v in values) >= len(values)
    if low not in thresholds:
        low = np.nextafter(low, -LARGEST)
    inner = sorted({low, *thresholds, high})
    lengths = [naive_length(a, b, is_log) for a, b in pairwise(inner)]
    bounds, cells = ([-LARGEST, low], [1]) if low > -LARGEST else ([low], [])
    for (a, b), length in zip(pairwise(inner), lengths, strict=True):
        n_cells = max(1, round(36 * (length / naive_length(low, high, is_log))))
        if is_log:
            bounds += [a * (b / a) ** (i / n_cells) for i in range(1, n_cells)]
            cells += [1] * (n_cells - 1)
        bounds.append(b)
        cells.append(1 if is_log else n_cells)
    return ([*bounds, LARGEST], [*cells, 1]) if high < LARGEST else (bounds, cells)


def naive_length(low, high, is_log):
    return np.log(high) - np.log(low) if is_log else high / 4 - low / 4


def naive_axis_of_values(values, thresholds):
    midpoints = [
        a + (b / 2 - a / 2)
        for a, b in pairwise(values)
        if not any(a <= threshold < b for threshold in thresholds)
    ]
    inner = sorted({*midpoints, *thresholds})
    known = sorted({*inner, *values}) or [0.0]
    gaps = sorted(b - a for a, b in pairwise(known))
    margin = gaps[len(gaps) // 2] if gaps else 0.0
    bounds = naive_range(known[0], known[-1], margin)
    bounds[1:1] = inner
    return bounds, [1] * (len(bounds) - 1)


def naive_range(low, high, margin):
    margin = margin if margin > 0 else max(abs(low), 1.0) / 2
    low = min(low - margin, np.nextafter(low, -LARGEST))
    high = max(high + margin, np.nextafter(high, LARGEST))
    return [max(low, -LARGEST), min(high, LARGEST)]


def test_axes_go_by_rows_with_small_hashes():
    values = np.random.default_rng(0).normal(size=3000)
    sample = axis_of(values, [0.25], limit=2**61)
    assert sample.bounds[-2] != axis_of(values, [0.25]).bounds[-2]
    assert sample.bounds[-1] == values.max()


def test_axes_pass_over_missing_values_and_bound_infinite_ones():
    axis_of([NAN, 1.0, INF, -INF, NAN, 2.0], [1.5])
    axis_of([NAN, NAN], [0.0])
    axis_of(np.where(np.arange(200) % 3 == 0, NAN, np.arange(200)), [3.0, 50.0])


@pytest.mark.parametrize("exponent", [-(2**31), 2**31 - 1])
def test_targets_are_counted_in_powers_of_two_that_numbers_have(exponent):
    leaves, y, one = np.zeros(1, dtype=np.int32), np.ones(1), np.ones(1)
    usual, odd = np.zeros(1, dtype=np.int32), np.array([exponent], dtype=np.int32)
    with pytest.raises(ValueError, match="powers of two"):
        sum_targets(leaves, y, odd, one)
    for powers in ((odd, usual), (usual, odd)):
        with pytest.raises(ValueError, match="powers of two"):
            sum_squares(leaves, y, powers[0], one, powers[1], one)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_targets_are_counted_in_every_node_above_their_leaf(seed, has_targets):
    rng = np.random.default_rng(seed)
    n_nodes, n_rows = int(rng.integers(1, 12)), int(rng.integers(0, 30))
    parent = np.array([-1, *(rng.integers(0, i) for i in range(1, n_nodes))], dtype=np.int32)
    leaves = rng.integers(0, n_nodes, n_rows).astype(np.int32)
    cells = rng.integers(0, 3, n_rows).astype(np.int32)
    y = rng.normal(size=n_rows) * 10.0 ** rng.integers(-5, 5) if has_targets else None
    n_threads = int(rng.integers(1, 4))
    found = LeafCounts(*count_targets(leaves, cells, y, n_nodes, 3, n_threads))
    counts, mean, deviation = found.counts.copy(), None, None
    if has_targets:
        moments = _Moments(found)
        asked = moments.sums()
        sums = LeafSums(*sum_targets(leaves, y, asked.exponent, asked.unit))
        more = moments.squares(sums)
        squares = sum_squares(leaves, y, more.exponent, more.centre, more.reach, more.unit)
        mean, deviation = moments.of_leaves(sums, squares)
    n_of_nodes = add_up(parent, counts, mean, deviation)
    for node in range(n_nodes):
        rows = [row for row in range(n_rows) if node in ancestors(parent, leaves[row])]
        assert n_of_nodes[node] == len(rows)
        assert_array_equal(counts[node], np.bincount(cells[rows], minlength=3))
        if has_targets and rows:
            scale = np.abs(y).max()
            assert_allclose(mean[node], y[rows].mean(), rtol=MEAN, atol=MEAN * scale)
            assert_allclose(deviation[node], y[rows].std(), rtol=MEAN, atol=MEAN * scale)
        if has_targets:
            assert np.isnan(mean[node]) == np.isnan(deviation[node]) == (not rows)


def ancestors(parent, node):
    """A node and all above it."""
    path = [node]
    while parent[path[-1]] >= 0:
        path.append(parent[path[-1]])
    return path


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 7, 4096, 9000]), st.integers(1, 3))
def test_extents_are_the_least_and_greatest_known_numbers(seed, n_rows, n_threads):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).astype(rng.choice([np.float32, np.float64]))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[rng.random(X.shape) < 0.001] = rng.choice([np.inf, -np.inf])
    X[:, 3] = np.nan
    features = rng.permutation(4).astype(np.int32)
    found = extents(Columns(list(X.T), n_rows), features, n_threads)
    columns = [X[:, feature].astype(float) for feature in features]
    assert_array_equal(found[0], [np.fmin.reduce(c, initial=np.nan) for c in columns])
    assert_array_equal(found[1], [np.fmax.reduce(c, initial=np.nan) for c in columns])


def test_deviations_are_those_of_the_known_numbers():
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[::7, 1] = NAN
    X[:, 2] = NAN
    for counts in (np.ones(50), np.arange(50.0)):
        found = deviations(np.ascontiguousarray(X.T), counts)
        repeated = np.repeat(X, counts.astype(int), axis=0)
        assert_allclose(found[:2], np.nanstd(repeated[:, :2], axis=0))
        assert np.isnan(found[2])


@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 2, 5, 24, 25, 300]),
    st.integers(0, 8),
    st.sampled_from([1.0, 1e-3, 1e6, 1e-200, 1e300]),
)
def test_axes_of_any_values_show_every_segment(seed, n_values, n_thresholds, scale):
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.concatenate([rng.normal(size=n_values)] * 2)) * scale
    thresholds = np.unique(rng.normal(size=n_thresholds) * scale)
    if len(values) or len(thresholds):
        assert_axis(axis_of(values, thresholds), thresholds, ends_of(values))


STRANGE = {
    "nothing": ([], []),
    "nothing but a threshold": ([], [1.0]),
    "one value": ([3.0] * 5, []),
    "zeros": ([0.0] * 5, [0.0]),
    "neighbours": ([-1.0, np.nextafter(-1.0, 0)], [-1.0]),
    "neighbouring thresholds": (np.linspace(0, 1, 99), [0.5, np.nextafter(0.5, 1)]),
    "subnormal": ([0.0, TINY, 2 * TINY, 3 * TINY], [TINY, 2 * TINY]),
    "subnormal thresholds": (np.linspace(-1, 1, 99), [TINY, 2 * TINY]),
    "many subnormal": (np.arange(99) * TINY, [40 * TINY, 41 * TINY]),
    "the greatest": ([-LARGEST, LARGEST], [0.0]),
    "only the greatest": ([LARGEST] * 3, []),
    "only the least": ([-LARGEST] * 3, []),
    "thresholds near the ends": ([-LARGEST, LARGEST], [-1.7e308, 1.7e308]),
    "a threshold below the greatest": ([1e308, LARGEST], [np.nextafter(LARGEST, 0)]),
    "many great": (np.linspace(-1, 1, 99) * LARGEST, [-1e308, 1e308]),
    "a wide range": (np.geomspace(1e-300, 1e300, 99), [1e-200, 1e-100, 1e100]),
}


@pytest.mark.parametrize("case", STRANGE)
def test_axes_of_strange_values_show_every_segment(case):
    values, thresholds = STRANGE[case]
    assert_axis(axis_of(values, thresholds), thresholds, ends_of(values))


def test_few_values_have_a_cell_each():
    axis = axis_of(np.repeat([1.0, 2.0, 4.0, 8.0], 5), [2.5])
    assert axis.edges[1:-1].tolist() == [1.5, 2.5, 6.0]


def test_outliers_have_a_cell_of_their_own():
    values = np.append(np.linspace(0, 1, 999), 1e9)
    axis = axis_of(values, [0.5])
    assert axis.edges[-2] < 2
    assert axis.edges[-1] == 1e9
    assert axis_of(np.append(values, [1e9] * 99), [0.5]).edges[-2] >= 1e9


def test_crowded_positive_numbers_have_cells_of_equal_ratio():
    axis = axis_of(np.geomspace(1, 1e4, 400), [10.0])
    ratios = axis.edges[2:-1] / axis.edges[1:-2]
    assert ratios.max() < 1.5 < 1e4 ** (1 / 20)
    assert axis_of(np.linspace(1, 1e4, 400), [10.0]).edges[5] > 1000


# Joining


@given(st.lists(st.lists(st.integers(-9, 9), max_size=5), min_size=1, max_size=5))
def test_joined_sketches_are_those_of_all_rows(parts):
    edges = np.linspace(-9, 9, 5)

    def sketch(y):
        counts = np.histogram(y, edges)[0]
        moments = (float(np.mean(y)), float(np.std(y))) if len(y) else (NAN, NAN)
        return NodeSketch(counts, *moments)

    joined = reduce(NodeSketch.joined_with, [sketch(np.array(part, dtype=float)) for part in parts])
    y = np.array(list(chain(*parts)), dtype=float)
    assert_array_equal(joined.counts, np.histogram(y, edges)[0])
    expected = (y.mean(), y.std()) if len(y) else (NAN, NAN)
    assert_allclose((joined.mean, joined.deviation), expected, rtol=MEAN, atol=MEAN)


def test_joined_sketches_of_classes_have_no_mean():
    joined = NodeSketch(np.array([1, 2])).joined_with(NodeSketch(np.array([0, 4])))
    assert joined.counts.tolist() == [1, 6]
    assert joined.mean is None
    assert joined.deviation is None


# Scores


@EVERY_TREE
@pytest.mark.parametrize("after", AFTER)
def test_the_score_of_a_view_is_that_of_the_estimator(name, after):
    model, X, y = fitted(name, after)
    assert view_of(model).score() == pytest.approx(model.score(X, y), abs=1e-6)
    X, y = other_rows(name)
    assert view_of(model, X, y).score() == pytest.approx(model.score(X, y), abs=1e-6)


@EVERY_TREE
def test_a_view_of_one_row_has_a_score_where_there_is_one(name):
    model, X, y = fitted(name)
    score = view_of(model, X[:1], y[:1]).score()
    if y.dtype.kind == "f":
        assert score is None
    else:
        assert score == model.score(X[:1], y[:1])


@pytest.mark.parametrize("shift", [0.0, 1e6, -1e9])
def test_the_score_does_not_depend_on_where_numbers_start(shift):
    _, X, y = fitted("numbers")
    model = ShapeTreeRegressor(max_depth=3, refine=None).fit(X, y + shift)
    score = model.score(X, y + shift)
    assert view_of(model).score() == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e100, 1e150, 1e200, 1e295])
def test_scores_of_great_and_small_numbers_raise_nothing(scale):
    _, X, y = fitted("numbers")
    criterion = "absolute_error" if scale > 1e150 else "squared_error"
    model = ShapeTreeRegressor(max_depth=2, refine=None, objective=criterion).fit(X, y * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = view_of(model).score()
    assert score is None or np.isnan(score) or score <= 1


def test_a_view_needs_both_rows_and_targets():
    model, X, y = fitted("two classes")
    with pytest.raises(ValueError, match="X was given without y"):
        view_of(model, X)
    with pytest.raises(ValueError, match="y was given without X"):
        view_of(model, y=y)
    with pytest.raises(ValueError, match="not fitted on"):
        view_of(model, X[:2], ["no", "unheard of"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        view_of(model, X[:3], y[:2])


# Planes


def area(corners):
    if not corners:
        return 0.0
    x, y = np.array(corners).T
    return abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2


def inside_of(rng, corners, n_points):
    """Random points inside a convex polygon."""
    shares = rng.dirichlet(np.ones(len(corners)), n_points)
    return shares @ np.array(corners)


PAIR_TREES = pytest.mark.parametrize("name", [name for name in GRID if "pairs" in name])


@PAIR_TREES
@pytest.mark.parametrize("after", AFTER)
def test_polygons_tile_the_plane_and_hold_what_goes_to_their_branch(name, after):
    model, tree = fitted(name, after)[0], fitted(name, after)[0].tree_
    rng = np.random.default_rng(0)
    pairs = [node for node in view_of(model).nodes if node.plane is not None]
    assert pairs
    for node in pairs:
        x, y = node.plane.axes
        whole = (x.high - x.low) * (y.high - y.low)
        areas = [area(corners) for corners in node.plane.polygons]
        assert len(areas) == len(node.regions)
        assert sum(areas) == pytest.approx(whole, rel=1e-9)
        for region, corners, size in zip(node.regions, node.plane.polygons, areas, strict=True):
            if size < 1e-6 * whole:
                continue
            corners = np.array(corners)
            low, high = np.array([(x.low, x.high), (y.low, y.high)]).T
            assert np.all(corners >= low - 1e-12 * (high - low))
            assert np.all(corners <= high + 1e-12 * (high - low))
            for point in inside_of(rng, corners, 20):
                values = [
                    number if feature.categories is None else code_of(feature, axis, number)
                    for number, axis, feature in zip(
                        point.tolist(), (x, y), node.features, strict=True
                    )
                ]
                assert branch_of_pair(tree, node.number, *values) == region.branch


def code_of(feature, axis, number):
    """Code of the category that covers a place on an axis."""
    return feature.categories.index(axis.categories[int(number)])


@PAIR_TREES
def test_points_of_a_plane_are_rows_of_its_node(name):
    model, X, y = fitted(name)
    view, paths = view_of(model), model.decision_path(X).toarray().astype(bool)
    for node in view.nodes:
        if node.plane is None:
            continue
        inside = X[paths[:, node.number]]
        known = np.ones(len(inside), dtype=bool)
        for feature in node.features:
            known &= [is_known(feature, value) for value in inside[feature.name]]
        assert len(node.plane.points) == len(node.plane.targets) <= 150
        assert len(node.plane.points) <= known.sum()
        if not any(node.missing_categories):
            assert len(node.plane.points) == min(known.sum(), 150)
        for side, (axis, feature) in enumerate(zip(node.plane.axes, node.features, strict=True)):
            drawn = node.plane.points[:, side]
            if feature.is_categorical:
                assert np.all((drawn >= 0) & (drawn < len(axis.categories)))
            else:
                values = inside[feature.name].to_numpy()[known]
                nearest = np.abs(drawn[:, None] - values).min(axis=1)
                assert nearest.max() <= 1e-3 * (axis.high - axis.low)
        if view.classes is None:
            off = np.abs(node.plane.targets[:, None] - np.asarray(y)).min(axis=1)
            assert np.all(off <= 1e-4 * np.abs(node.plane.targets))
        else:
            assert set(node.plane.targets.tolist()) <= set(range(len(view.classes[0])))


# Strange data


def strange_columns():
    rng = np.random.default_rng(0)
    n = 120
    yield "great", rng.choice([-1, 1], n) * 1e308
    yield "the greatest", rng.choice([-LARGEST, LARGEST, 0.0], n)
    yield "infinite", rng.choice([-INF, INF, 0.0, 1.0], n)
    yield "infinite among many", np.where(rng.random(n) < 0.2, INF, rng.normal(size=n))
    yield "constant", np.full(n, 3.0)
    yield "subnormal", rng.integers(0, 4, n) * TINY
    yield "many subnormal", rng.integers(0, 90, n) * TINY
    yield "neighbours", np.where(rng.random(n) < 0.5, -1.0, np.nextafter(-1.0, 0))
    yield "wide", 10.0 ** rng.uniform(-300, 300, n) * rng.choice([-1, 1], n)
    yield "all over", rng.uniform(-1, 1, n) * LARGEST
    yield "only missing or one", np.where(rng.random(n) < 0.5, NAN, 7.0)


STRANGE_COLUMNS = dict(strange_columns())


@BOTH_KINDS
@pytest.mark.parametrize("pairs", [0, "all"])
@pytest.mark.parametrize("name", STRANGE_COLUMNS)
def test_strange_columns_are_sketched_without_warning(kind, pairs, name):
    x = STRANGE_COLUMNS[name]
    rng = np.random.default_rng(1)
    X = np.stack([x, rng.permutation(x), rng.normal(size=len(x))], axis=1)
    above = np.nan_to_num(X[:, 0], nan=-1.0) > np.median(np.nan_to_num(X[:, 0]))
    y = (above ^ (X[:, 2] > 0)).astype(float)
    params = {"max_depth": 3, "leaf_penalty": 0.0, "pair_penalty": 0.0, "n_threads": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make_tree(kind, pairs=pairs, **params).fit(X, y)
        view = view_of(model)
        others = view_of(model, X[::2], y[::2])
        empty = view_of(model, np.full((2, 3), NAN), y[:2])
        reasons = [(str(why), str(why.flip)) for why in model.explain(X[:20])]
        str(model.rules())
    assert len(reasons) == 20
    for each in (view, others, empty):
        for node in each.nodes:
            if node.density is not None:
                thresholds = [segment.high for segment in node.segments[:-1]]
                assert_axis(node.density.axis, thresholds, node.density.ends)
                assert node.density.counts.sum() + node.density.missing.sum() == node.n_rows
            if node.plane is not None:
                for corners in node.plane.polygons:
                    assert np.isfinite(np.array(corners)).all()
                assert np.isfinite(node.plane.points).all()


@pytest.mark.parametrize(
    ("scale", "constant"),
    [
        (1e-310, False),
        (1e-200, False),
        (1e151, False),
        (1e-310, True),
        (1e200, True),
        (1e307, True),
    ],
)
def test_strange_targets_are_sketched_without_warning(scale, constant):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = np.full(100, scale) if constant else ((X[:, 0] > 0) + 0.1 * X[:, 1]) * scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ShapeTreeRegressor(max_depth=2).fit(X, y)
        view = view_of(model)
        view_of(model.simplify())
        str(model.rules())
        str(model.explain(X[:3]))
    assert sum(node.n_rows for node in view.nodes if node.is_leaf) == 100
    assert np.isfinite(view.target_edges).all()
    assert np.all(np.diff(view.target_edges) > 0)


def test_a_node_that_only_parts_missing_values_can_be_viewed_for_any_rows():
    x = np.where(np.arange(60) % 2, NAN, 1.5)[:, None]
    model = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1).fit(x, np.arange(60) % 2)
    for rows in (x, x[::2], x[1::2]):
        view = view_of(model, rows, np.zeros(len(rows), dtype=int))
        assert view.nodes[0].n_rows == len(rows)
        assert view.nodes[0].density.counts.sum() == np.count_nonzero(~np.isnan(rows))


# Keeping sketches


def same(one, other):
    """Whether two values, of whatever is in a sketch, are the same."""
    if hasattr(one, "__dataclass_fields__"):
        return all(
            same(getattr(one, field), getattr(other, field)) for field in one.__dataclass_fields__
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if one is None:
        return other is None
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")


@EVERY_TREE
def test_pickled_trees_keep_their_sketches(name):
    model, _, _ = fitted(name)
    again = pickle.loads(pickle.dumps(model))
    assert same(again.tree_.sketches, model.tree_.sketches)
    assert same(again._fitted.summary, model._fitted.summary)
    assert list(map(str, again.rules())) == list(map(str, model.rules()))


@EVERY_TREE
def test_the_same_rows_make_the_same_sketches_again(name):
    model, X, y = fitted(name)
    again = view_of(model, X, y)
    for node, its in zip(view_of(model).nodes, again.nodes, strict=True):
        assert same(node.counts, its.counts)
        assert node.density is None or same(node.density, its.density)


@EVERY_TREE
def test_pruning_and_simplifying_leave_the_estimator_as_it_is(name):
    model, _, _ = fitted(name)
    before = model.to_json()
    model.prune([1])
    model.simplify()
    assert model.to_json() == before


@pytest.mark.parametrize("name", ["two classes", "numbers", "numbers of pairs"])
def test_refinement_sketches_anew(name):
    model, _, _ = fitted(name)
    X, y = other_rows(name)
    X = X.replace({"letter": {"new": "b"}})
    refined = refine_tree(model, X, y, refine_iter=2)
    view = view_of(refined)
    assert_counted(refined, view, X, y)
    assert view.nodes[0].n_rows == len(X)
    if y.dtype.kind == "f":
        assert view.target_edges[0] <= np.median(y) <= view.target_edges[-1]
    assert view_of(model).nodes[0].n_rows == 400


def test_rows_without_weight_are_not_counted():
    _, X, y = fitted("two classes")
    weights = np.arange(400) % 4 > 0
    model = ShapeTreeClassifier(max_depth=2).fit(X, y, weights)
    view = view_of(model)
    assert view.nodes[0].n_rows == 300
    assert_counted(model, view, X[weights].reset_index(drop=True), y[weights])


@BOTH_KINDS
def test_several_targets_have_no_sketch_and_everything_else_works(kind):
    _, X, y = fitted("five classes")
    codes = np.unique(y, return_inverse=True)[1]
    both = np.stack([codes, X["n"] > 5], axis=1)
    params = {"pairs": "all", "pair_penalty": 0.0, "leaf_penalty": 0.0, "max_depth": 3}
    model = make_tree(kind, **params).fit(X, both)
    for each in (model, model.simplify(), model.prune([1]), pickle.loads(pickle.dumps(model))):
        assert each.tree_.sketches is None
        view = view_of(each)
        assert view.score() is None
        assert view.n_outputs == 2
        for node in view.nodes:
            assert (node.counts, node.mean, node.density, node.plane) == (None,) * 4
            assert node.n_rows == each.tree_.n_node_samples[node.number]
            if node.children:
                assert "n_rows" not in each.shape_table(node.number)
        assert len(each.explain(X[:9])) == 9
        assert sum(rule.n_rows for rule in each.rules()) == len(X)
    assert view_of(model, X, both).nodes[0].counts is None


def test_paths_lead_to_their_nodes():
    view = view_of(fitted("five classes")[0])
    for node in view.nodes:
        path = view.path_to(node.number)
        assert path[0] is view.nodes[0]
        assert path[-1] is node
        assert all(child.parent == parent.number for parent, child in pairwise(path))


@pytest.mark.parametrize("has_labels", [False, True])
def test_cells_hold_the_same_for_any_number_of_threads(has_labels):
    rng, n_rows = np.random.default_rng(0), 40_000
    columns = Columns([rng.standard_normal(n_rows), rng.standard_normal(n_rows)], n_rows)
    y = rng.integers(-(2**20), 2**20, n_rows) / 2.0**10
    arguments = {
        "leaves": rng.integers(1, 3, n_rows).astype(np.int32),
        "parent": np.array([-1, 0, 0], dtype=np.int32),
        "feature": np.array([1, -1, -1], dtype=np.int32),
    }
    cells = {
        "edge_start": np.array([0, 3, 3, 3]),
        "edges": np.array([-0.5, 0.1, 0.7]),
        "cell_start": np.array([0, 5, 5, 5]),
        "labels": (y > 0).astype(np.int32) if has_labels else None,
        "targets": None if has_labels else y,
        "n_classes": 2 if has_labels else 1,
    }
    axes = {"limit": np.full(3, 2**63, dtype=np.uint64)}
    for kernel, others in ((count_cells, cells), (sample_values, axes)):
        expected = kernel(columns, **arguments, **others)
        for n_threads in (2, 5, 16):
            found = kernel(columns, **arguments, **others, n_threads=n_threads)
            for one, other in zip(expected, found, strict=True):
                assert_array_equal(one, other)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 30, 3_000]), st.integers(1, 3))
def test_points_are_rows_with_both_features_and_small_hashes(seed, n_rows, n_threads):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 3, n_rows).astype(np.int32)
    numbers = [rng.standard_normal(n_rows).astype(kind) for kind in (np.float32, np.float64)]
    for column in numbers:
        column[rng.random(n_rows) < 0.2] = np.nan
    known = [codes >= 0, *(~np.isnan(column) for column in numbers)]
    parent = np.array([-1, 0, 0, 1, 1], dtype=np.int32)
    pairs = np.array([(0, 1), (2, 1), (-1, -1), (-1, 0), (-1, -1)], dtype=np.int32)
    limit = rng.integers(0, 2**64, 5, dtype=np.uint64)
    leaves = rng.integers(2, 5, n_rows).astype(np.int32)
    first_row = int(rng.integers(0, 9))
    start, rows, n_missing = sample_points(
        Columns([codes, *numbers], n_rows), leaves, parent, pairs, limit, first_row, n_threads
    )
    hashes = row_hashes(np.arange(first_row, first_row + n_rows))
    below = {0: np.ones(n_rows, dtype=bool), 1: leaves != 2}
    for node in range(5):
        found = rows[start[node] : start[node + 1]]
        if node not in below:
            assert len(found) == n_missing[node] == 0
            continue
        has_both = known[pairs[node, 0]] & known[pairs[node, 1]]
        assert_array_equal(found, np.flatnonzero(below[node] & has_both & (hashes <= limit[node])))
        assert n_missing[node] == np.count_nonzero(below[node] & ~has_both)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 1)], "one entry for each node"),
        ([(0, 2), (-1, -1)], "column 2"),
        ([(0, -1)] * 2, "-1"),
    ],
)
def test_points_of_pairs_that_cannot_be_are_refused(pairs, message):
    columns = Columns([np.zeros(3), np.zeros(3)], 3)
    nodes = np.zeros(3, dtype=np.int32), np.array([-1, 0], dtype=np.int32)
    with pytest.raises(ValueError, match=message):
        sample_points(columns, *nodes, np.array(pairs, dtype=np.int32), np.zeros(2, np.uint64))
