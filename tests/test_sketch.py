"""Sketches: how rows are spread over a tree's nodes, against counts that are made row by row."""

import pickle
import warnings
from functools import cache, reduce
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import PLAIN, make_tree, view_of
from hypothesis import given
from hypothesis import strategies as st
from naive import branch_of_pair
from numpy.testing import assert_allclose, assert_array_equal

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, refine_tree
from shapetree._core.columns import Columns, deviations, extents
from shapetree._core.predictor import count_cells
from shapetree.data._binning import bin_every_number
from shapetree.drawing._plane import plane_of
from shapetree.tree._axes import axis_of, cell_of_spans, joined_spans, spans_of_bins
from shapetree.tree._sketch import NodeSketch

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
            assert node.scatter is None
        if len(node.features) == 2:
            lacking = [
                not all(is_known(f, X[f.name].to_numpy()[row]) for f in node.features)
                for row in rows
            ]
            assert node.scatter.n_missing == sum(lacking)
            assert node.density is None
        if node.is_leaf:
            assert node.density is None
            assert node.scatter is None


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


def assert_axis(edges, thresholds, ends):
    """Thresholds are edges, all ascends, no segment is left out, and the ends are reached."""
    assert np.isfinite(edges).all()
    assert np.all(edges[:-1] < edges[1:])
    assert np.isin(thresholds, edges[1:-1]).all()
    if ends is not None:
        assert edges[0] <= ends[0] <= ends[1] <= edges[-1]


@EVERY_TREE
@pytest.mark.parametrize("after", AFTER)
def test_thresholds_are_edges_and_all_rows_lie_on_the_axis(name, after):
    model, tree = fitted(name, after)[0], fitted(name, after)[0].tree_
    for view in (view_of(model), view_of(model, *other_rows(name))):
        for node in view.nodes:
            if node.density is not None and node.density.edges is not None:
                thresholds = tree.piece_upper[tree.pieces(node.number)][:-1]
                assert_axis(node.density.edges, thresholds, node.density.ends)


@EVERY_TREE
def test_the_ends_of_an_axis_are_those_of_the_bins_with_rows(name):
    model, X, _ = fitted(name)
    paths = model.decision_path(X).toarray().astype(bool)
    for node in view_of(model).nodes:
        if node.density is not None and node.density.edges is not None:
            values = X[node.features[0].name].to_numpy(dtype=float)[paths[:, node.number]]
            values = np.clip(values[~np.isnan(values)], -LARGEST, LARGEST)
            low, high = node.density.ends
            assert low <= values.min()
            assert values.max() <= high
            # No bin has more than a few rows.
            every = np.sort(X[node.features[0].name].dropna().to_numpy(dtype=float))
            assert np.sum((every >= low) & (every < values.min())) <= 3
            assert np.sum((every > values.max()) & (every <= high)) <= 3
            if node.number == 0:
                assert (low, high) == (values.min(), values.max())


def axis_for(values, thresholds, at_most=1000, is_whole=False):
    """Edges of the axis of a node that has all values, and the rows in its cells."""
    values, thresholds = np.array(values, dtype=float), np.array(thresholds, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bins, codes = bin_every_number(values)
        ends = ends_of(values) or (NAN, NAN)
        spans, of_bin = spans_of_bins(bins, ends, is_whole)
        if bins.n_bins > at_most:
            spans, of_bin = joined_spans(spans, thresholds, at_most)
        n_rows = np.bincount(of_bin[codes], minlength=len(spans.low) + 1)[:-1]
        edges = axis_of(spans, n_rows, thresholds)
    counts = np.bincount(cell_of_spans(spans, edges), n_rows, len(edges) - 1)
    known = np.clip(values[~np.isnan(values)], -LARGEST, LARGEST)
    cells = np.searchsorted(edges[1:-1], known, side="left")
    assert_array_equal(counts, np.bincount(cells, minlength=len(edges) - 1))
    return edges


def ends_of(values):
    """The least and the greatest of all values."""
    known = np.clip([value for value in values if value == value], -LARGEST, LARGEST)
    return (known.min(), known.max()) if len(known) else None


def test_axes_pass_over_missing_values_and_bound_infinite_ones():
    for values, thresholds in (
        ([NAN, 1.0, INF, -INF, NAN, 2.0], [1.5]),
        ([NAN, NAN], [0.0]),
        (np.where(np.arange(200) % 3 == 0, NAN, np.arange(200)), [3.0, 50.0]),
    ):
        assert_axis(axis_for(values, thresholds), thresholds, ends_of(values))


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_rows_are_counted_in_every_node_above_their_leaf(seed, has_labels, has_counts):
    rng = np.random.default_rng(seed)
    n_nodes, n_rows = int(rng.integers(1, 12)), int(rng.integers(0, 30))
    kinds = [np.uint8, np.uint16, np.uint32]
    n_bins, n_cells = rng.integers(2, 9, 3), rng.integers(1, 4, 3)
    arrays = [rng.integers(0, n, n_rows).astype(k) for n, k in zip(n_bins, kinds, strict=True)]
    cell_of = [rng.integers(0, c, n) for n, c in zip(n_bins, n_cells, strict=True)]
    feature = rng.integers(-1, 3, n_nodes).astype(np.int32)
    start = np.cumsum([0, *np.where(feature >= 0, n_cells[feature], 0)])
    parent = np.array([-1, *(rng.integers(0, i) for i in range(1, n_nodes))], dtype=np.int32)
    leaves = rng.integers(0, n_nodes, n_rows).astype(np.int32)
    labels = rng.integers(0, 3, n_rows).astype(np.int32) if has_labels else None
    y = None if has_labels else rng.integers(-99, 99, n_rows) / 4
    times = rng.integers(1, 5, n_rows).astype(np.int32) if has_counts else None
    counts, totals = count_cells(
        Columns(arrays, n_rows), leaves, parent, feature, np.cumsum([0, *n_bins]),
        np.concatenate(cell_of).astype(np.int32), start, labels, y, 3 if has_labels else 1,
        int(rng.integers(1, 4)), times,
    )  # fmt: skip
    expected, sums = np.zeros_like(counts), np.zeros_like(totals)
    for row in range(n_rows):
        for node in ancestors(parent, leaves[row]):
            if feature[node] >= 0:
                cell = start[node] + cell_of[feature[node]][arrays[feature[node]][row]]
                n = 1 if times is None else times[row]
                expected[cell, 0 if labels is None else labels[row]] += n
                sums[cell] += 0.0 if y is None else n * y[row]
    assert_array_equal(counts, expected)
    assert_array_equal(totals, sums)


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


@examples(150)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 2, 5, 24, 25, 300]),
    st.integers(0, 8),
    st.sampled_from([1.0, 1e-3, 1e6, 1e-200, 1e300]),
    st.sampled_from([48, 1000]),
)
def test_axes_of_any_values_show_every_segment(seed, n_values, n_thresholds, scale, at_most):
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.concatenate([rng.normal(size=n_values)] * 2)) * scale
    thresholds = np.unique(rng.normal(size=n_thresholds) * scale)
    edges = axis_for(values, thresholds, at_most)
    assert_axis(edges, thresholds, ends_of(values))
    assert len(edges) <= 40 + len(thresholds)


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
    assert_axis(axis_for(values, thresholds), thresholds, ends_of(values))


def test_few_values_have_a_cell_each():
    edges = axis_for(np.repeat([1.0, 2.0, 4.0, 8.0], 5), [2.5])
    assert edges[1:-1].tolist() == [1.5, 2.5, 6.0]


def test_whole_numbers_end_their_cells():
    values = np.repeat([1.0, 2.0, 4.0, 8.0], 5)
    assert axis_for(values, [2.0], is_whole=True).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert axis_for(values * 100, [200.0], is_whole=True)[1:-1].tolist() == [100, 200, 400, 800]
    assert axis_for(np.arange(99.0), [50.0], is_whole=True)[1] > 1


def test_outliers_have_a_cell_of_their_own():
    values = np.append(np.linspace(0, 1, 999), 1e9)
    edges = axis_for(values, [0.5], 256)
    assert edges[-2] <= 1
    assert edges[-1] >= 1e9
    assert axis_for(np.append(values, [1e9] * 99), [0.5]).tolist()[-2] > 1


def test_crowded_positive_numbers_have_cells_of_equal_ratio():
    edges = axis_for(np.geomspace(1, 1e4, 400), [10.0])
    ratios = edges[2:-1] / edges[1:-2]
    assert ratios.max() < 1.7
    assert len(edges) > 30
    assert axis_for(np.linspace(1, 1e4, 400), [10.0])[5] > 500


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
    pairs = [node for node in view_of(model).nodes if node.scatter is not None]
    assert pairs
    for node in pairs:
        plane = plane_of(node)
        x, y = plane.axes
        whole = (x.high - x.low) * (y.high - y.low)
        areas = [area(corners) for corners in plane.polygons]
        assert len(areas) == len(node.regions)
        assert sum(areas) == pytest.approx(whole, rel=1e-9)
        for region, corners, size in zip(node.regions, plane.polygons, areas, strict=True):
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
        if node.scatter is None:
            continue
        plane = plane_of(node)
        inside = X[paths[:, node.number]]
        known = np.ones(len(inside), dtype=bool)
        for feature in node.features:
            known &= [is_known(feature, value) for value in inside[feature.name]]
        assert len(plane.points) == len(plane.targets) <= 150
        assert len(plane.points) <= known.sum()
        if not any(node.missing_categories):
            assert len(plane.points) == min(known.sum(), 150)
        for side, (axis, feature) in enumerate(zip(plane.axes, node.features, strict=True)):
            drawn = plane.points[:, side]
            if feature.is_categorical:
                assert np.all((drawn >= 0) & (drawn < len(axis.categories)))
            else:
                values = inside[feature.name].to_numpy()[known]
                nearest = np.abs(drawn[:, None] - values).min(axis=1)
                assert nearest.max() <= 1e-3 * (axis.high - axis.low)
        if view.classes is None:
            off = np.abs(plane.targets[:, None] - np.asarray(y)).min(axis=1)
            assert np.all(off <= 1e-4 * np.abs(plane.targets))
        else:
            assert set(plane.targets.tolist()) <= set(range(len(view.classes[0])))


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
@pytest.mark.filterwarnings("ignore:overflow encountered in reduce")
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
                assert_axis(node.density.edges, thresholds, node.density.ends)
                assert node.density.counts.sum() + node.density.missing.sum() == node.n_rows
            if node.scatter is not None:
                plane = plane_of(node)
                for corners in plane.polygons:
                    assert np.isfinite(np.array(corners)).all()
                assert np.isfinite(plane.points).all()


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
            assert (node.counts, node.mean, node.density, node.scatter) == (None,) * 4
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
    y = rng.integers(-(2**20), 2**20, n_rows) / 2.0**10
    arguments = {
        "bins": Columns([rng.integers(0, 9, n_rows).astype(np.uint8)], n_rows),
        "leaves": rng.integers(1, 3, n_rows).astype(np.int32),
        "parent": np.array([-1, 0, 0], dtype=np.int32),
        "feature": np.array([0, -1, 0], dtype=np.int32),
        "bin_start": np.array([0, 9]),
        "cell_of_bin": np.array([0, 0, 1, 2, 2, 3, 4, 4, 5], dtype=np.int32),
        "cell_start": np.array([0, 6, 6, 12]),
        "labels": (y > 0).astype(np.int32) if has_labels else None,
        "targets": None if has_labels else y,
        "n_classes": 2 if has_labels else 1,
    }
    expected = count_cells(**arguments)
    for n_threads in (2, 5, 16):
        for one, other in zip(expected, count_cells(**arguments, n_threads=n_threads), strict=True):
            assert_array_equal(one, other)


@PAIR_TREES
@pytest.mark.parametrize("max_bins", [255, None])
def test_whatever_bins_rows_are_counted_in_sums_are_true(name, max_bins):
    kind, params = GRID[name]
    params = {"max_depth": 3, "leaf_penalty": 0.0, "max_bins": max_bins, "n_threads": 1} | params
    missing = params.pop("missing", 0.0)
    rng = np.random.default_rng(7)
    X = table(rng, 700, missing)
    y, weights = targets(rng, X, kind), rng.integers(0, 3, 700)
    make = ShapeTreeRegressor if kind == "numbers" else ShapeTreeClassifier
    model = make_tree(make, **params).fit(X, y, weights)
    repeated = np.repeat(np.arange(700), weights)
    assert_counted(model, view_of(model), X.iloc[repeated].reset_index(drop=True), y[repeated])
