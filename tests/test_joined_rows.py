"""Any partition of the rows over several holders gives bitwise the same tree as one holder."""

from dataclasses import fields

import numpy as np
import pytest
from chance import examples
from data import make_tree
from hypothesis import given
from hypothesis import strategies as st
from joined_rows import PairwiseParts, TableInParts, joined_rows, sketched_in_parts
from numpy.testing import assert_array_equal

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.data._binning import bin_table
from shapetree.data._map_join import LocalParts
from shapetree.data._table import FeatureInfo, Table
from shapetree.data._values import neighbours_of, values_of
from shapetree.fit._growth import grower, pair_frames
from shapetree.fit._local_backend import training_rows
from shapetree.fit._parameters import candidate_options, read_pairs, refine_options
from shapetree.grow._local import LocalRows
from shapetree.grow._nodes import tree_of
from shapetree.grow._progress import Progress
from shapetree.refine import _refine as refining
from shapetree.refine import _tao, refine
from shapetree.tree._sketcher import SketchedPart, SketchedRows, sketch_tree, sole_target

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True)
def few_rows_are_many():
    """Put even a few rows in order, where bins are nobody else's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refining, "MANY_ROWS", 0)
        yield


class Fit:
    """All that a fit prepares before rows are sent down a tree."""

    def __init__(self, model, X, y, weights=None):
        self.parameters = model._parameters()
        has_classes = isinstance(model, ShapeTreeClassifier)
        rows = training_rows(X, y, weights, self.parameters, has_classes)
        self.table, self.goal = rows.table, rows.goal(self.parameters)
        self.binned = bin_table(rows.table, rows.weights, self.parameters.max_bins, 1)

    def alone(self):
        """One holder of all rows."""
        return LocalRows(self.table, self.binned, self.goal, 1)

    def joined(self, parts):
        """Holders of some rows each."""
        return joined_rows(self.table, self.binned, self.goal, parts)

    def _grown(self, rows):
        with Progress(0, rows.n_rows, self.parameters.max_depth) as progress:
            return grower(rows, self._frames(rows), self.parameters, progress).grow()

    def _frames(self, rows):
        return pair_frames(rows, read_pairs(self.table, self.parameters))

    def grow(self, rows):
        """The tree as it has grown."""
        return self._grown(rows).arrays(self.binned.features, self.goal.impurity_scale)

    def refine(self, rows, owns_bins=False):
        """The tree grown and refined, and how its objective fell."""
        options = refine_options(self.goal, self.parameters)
        frames = self._frames(rows)
        tools = (frames[0], candidate_options(self.goal, self.parameters)) if frames else None
        root, history = refine(self._grown(rows), rows, options, tools, lambda *_: None, owns_bins)
        return tree_of(root, self.goal.impurity_scale), history


def partitions(rng, n_rows):
    """One holder, two, and seven of unequal size; one of them holds nothing."""
    for n_parts in (1, 2, 7):
        chances = rng.dirichlet(np.full(n_parts, 0.5))
        if n_parts == 7:
            chances[3] = 0.0
        holder = rng.choice(n_parts, n_rows, p=chances / chances.sum())
        yield [rng.permutation(np.flatnonzero(holder == part)) for part in range(n_parts)]


def assert_same_arrays(one, other):
    for field in fields(one):
        value = getattr(one, field.name)
        if isinstance(value, np.ndarray):
            assert_array_equal(value, getattr(other, field.name), err_msg=field.name, strict=True)


def mixed_table(rng, n_rows):
    """Numbers of few and of many values, categories and missing values."""
    X = np.stack(
        [
            rng.normal(size=n_rows),
            rng.integers(0, 6, n_rows),
            np.exp(rng.normal(size=n_rows)),
            rng.integers(0, 5, n_rows),
        ],
        axis=1,
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def targets_for(model, rng, X, n_outputs):
    """Targets that depend on the table; numbers are not whole, so that order might matter."""
    score = np.nan_to_num(X[:, 0]) ** 2 + np.nan_to_num(X[:, 1]) * (X[:, 3] == 2)
    y = score[:, None] + rng.normal(scale=0.5, size=(len(X), n_outputs))
    if model is ShapeTreeClassifier:
        y = np.digitize(y, [0.6, 2.0])
    return y[:, 0] if n_outputs == 1 else y


def awkward_weights(rng, n_rows):
    """Weights whose sums would depend on their order, some of them tiny."""
    weights = rng.exponential(size=n_rows)
    weights[rng.random(n_rows) < 0.1] = 1e-30
    return weights


def frequencies(rng, n_rows):
    """Weights that count rows."""
    return rng.integers(1, 6, n_rows).astype(float)


CASES = {
    "classes": (ShapeTreeClassifier, {}),
    "entropy": (ShapeTreeClassifier, {"criterion": "entropy", "max_branches": 4}),
    "cart": (ShapeTreeClassifier, {"max_branches": 2, "inner_max_leaf_nodes": 2}),
    "few leaves": (ShapeTreeClassifier, {"max_leaf_nodes": 7}),
    "look ahead": (ShapeTreeClassifier, {"lookahead": 3, "max_depth": 3}),
    "means": (ShapeTreeRegressor, {}),
    "few leaves of means": (ShapeTreeRegressor, {"max_leaf_nodes": 9}),
    "medians": (ShapeTreeRegressor, {"criterion": "absolute_error"}),
    "pairs": (ShapeTreeClassifier, {"pairs": "auto", "pair_penalty": 0.0, "max_depth": 3}),
    "pairs that hold up": (ShapeTreeClassifier, {"pairs": "auto", "max_depth": 3}),
    "pairs for means": (ShapeTreeRegressor, {"pairs": "auto", "pair_penalty": 0.0, "max_depth": 2}),
}


@pytest.mark.parametrize("max_bins", [255, None])
@pytest.mark.parametrize("weighted", [None, awkward_weights, frequencies])
@pytest.mark.parametrize("case", CASES)
def test_any_partition_of_the_rows_gives_the_same_tree(case, weighted, max_bins):
    model, options = CASES[case]
    rng = np.random.default_rng(list(CASES).index(case))
    n_rows = 400
    X = mixed_table(rng, n_rows)
    y = targets_for(model, rng, X, n_outputs=1)
    weights = None if weighted is None else weighted(rng, n_rows)
    options = {"max_depth": 4, "leaf_penalty": 1.0} | options
    estimator = make_tree(
        model, max_bins=max_bins, categorical_features=[3], random_state=0, **options
    )
    fit = Fit(estimator, X, y, weights)
    grown, (refined, history) = fit.grow(fit.alone()), fit.refine(fit.alone())
    assert grown.node_count > 5
    for parts in partitions(rng, n_rows):
        assert_same_arrays(grown, fit.grow(fit.joined(parts)))
        tree, its_history = fit.refine(fit.joined(parts), owns_bins=len(parts) % 2 == 0)
        assert_same_arrays(refined, tree)
        assert history == its_history


@examples(20)
@given(SEEDS, st.sampled_from(sorted(CASES)), st.integers(1, 3), st.integers(2, 60))
def test_small_tables_may_be_parted_in_any_way(seed, case, n_outputs, n_rows):
    model, options = CASES[case]
    rng = np.random.default_rng(seed)
    X = mixed_table(rng, n_rows)
    y = targets_for(model, rng, X, n_outputs)
    kind = rng.choice([None, awkward_weights, frequencies])
    weights = None if kind is None else kind(rng, n_rows)
    free = {"min_samples_leaf": 1, "leaf_penalty": 0.0, "segment_penalty": 0.1, "max_depth": 3}
    max_bins = None if rng.random() < 0.5 else 255
    fit = Fit(make_tree(model, max_bins=max_bins, random_state=0, **free | options), X, y, weights)
    grown, (refined, _) = fit.grow(fit.alone()), fit.refine(fit.alone())
    for parts in partitions(rng, fit.table.n_rows):
        assert_same_arrays(grown, fit.grow(fit.joined(parts)))
        owns_bins = len(parts) % 2 == 0
        assert_same_arrays(refined, fit.refine(fit.joined(parts), owns_bins)[0])


@pytest.mark.parametrize("case", ["classes", "means", "medians", "pairs"])
def test_a_sweep_that_is_undone_leaves_the_tree_as_it_was(case, monkeypatch):
    model, own = CASES[case]
    rng = np.random.default_rng(5)
    X = mixed_table(rng, 400)
    y = targets_for(model, rng, X, n_outputs=1)
    # Refinement has a higher price, so that single branches take the place of some nodes.
    options = {"max_depth": 4, "leaf_penalty": 0.1, "refine_penalty": 8.0, "random_state": 0}
    fit = Fit(make_tree(model, **options | own), X, y)
    refined = fit.refine(fit.alone())[0]
    monkeypatch.setattr(_tao, "ROUNDING", -10.0)  # as if every sweep raised the objective
    tree, history = fit.refine(fit.alone())
    assert len(history) == 1
    grown = fit.grow(fit.alone())
    assert_array_equal(tree.value, grown.value)
    assert refined.node_count < tree.node_count
    assert_array_equal(tree.n_node_samples, grown.n_node_samples)
    for parts in partitions(rng, 400):
        assert_same_arrays(tree, fit.refine(fit.joined(parts))[0])


def test_the_fit_of_an_estimator_is_that_of_one_holder():
    rng = np.random.default_rng(0)
    X = mixed_table(rng, 300)
    y = targets_for(ShapeTreeClassifier, rng, X, n_outputs=1)
    for method in (None, "tao"):
        model = ShapeTreeClassifier(
            refine=method, random_state=0, max_depth=4, resamples=0, shrinkage=0
        ).fit(X, y)
        fit = Fit(model, X, y)
        tree = fit.grow(fit.alone()) if method is None else fit.refine(fit.alone())[0]
        assert_same_arrays(tree, model._fitted.tree)


# Sketches


def sizes_of_parts(rng, n_rows):
    """One part, two, and seven of unequal size; one of them is empty."""
    for n_parts in (1, 2, 7):
        cuts = np.sort(rng.integers(0, n_rows + 1, n_parts - 1))
        if n_parts == 7:
            cuts[3] = cuts[2]
        yield np.diff([0, *cuts, n_rows])


def assert_same(one, other):
    """Bitwise the same, whatever is in a sketch."""
    if hasattr(one, "__dataclass_fields__"):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple):
        for its, others in zip(one, other, strict=True):
            assert_same(its, others)
    elif isinstance(one, np.ndarray):
        assert_array_equal(one, other, strict=True)
    else:
        assert one == other


SKETCHED = {
    "classes": (ShapeTreeClassifier, {}),
    "pairs": (ShapeTreeClassifier, {"pairs": "all", "pair_penalty": 0.0}),
    "means": (ShapeTreeRegressor, {}),
    "medians": (ShapeTreeRegressor, {"criterion": "absolute_error"}),
    "pairs for means": (ShapeTreeRegressor, {"pairs": "all", "pair_penalty": 0.0}),
}


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e120])
@pytest.mark.parametrize("n_rows", [60, 5000])
@pytest.mark.parametrize("case", SKETCHED)
def test_any_partition_of_the_rows_gives_the_same_sketches(case, n_rows, scale):
    model, options = SKETCHED[case]
    rng = np.random.default_rng(list(SKETCHED).index(case))
    X = mixed_table(rng, n_rows)
    y = targets_for(model, rng, X, n_outputs=1)
    if model is ShapeTreeRegressor:
        y = scale * (y + (rng.random(n_rows) < 0.01) * 1e3)
    options = {"max_depth": 4, "leaf_penalty": 0.0, "random_state": 0} | options
    weights = frequencies(rng, n_rows) if rng.random() < 0.5 else None
    fit = Fit(make_tree(model, categorical_features=[3], **options), X, y, weights)
    tree, features = fit.grow(fit.alone()), fit.table.features
    assert tree.node_count >= 3
    rows = training_rows(X, y, weights, fit.parameters, model is ShapeTreeClassifier)
    counts = None if rows.counts is None else rows.counts.astype(np.int32)
    y = sole_target(rows.targets, rows.classes is not None)
    heavy = rng.choice([1e-9, 0.3, 40.0], n_rows) if rng.random() < 0.5 else None
    whole = SketchedPart(tree, fit.table, fit.binned, y, counts, heavy)
    n_classes = None if rows.n_classes is None else rows.n_classes[0]
    ranges = np.full((4, 2), np.nan)
    ranges[:3] = np.stack(values_of(fit.table, [0, 1, 2], None)[:2], axis=1)
    has_medians = case == "medians"

    def found(rows_):
        about = tree, features, rows_, ranges, n_classes
        sketches, edges = sketch_tree(*about, has_medians=has_medians)
        assert_same(sketches, sketch_tree(*about, edges, has_medians)[0])
        return tuple(sketches), edges

    thresholds = {0: np.sort(rng.normal(size=5))}
    alone = found(SketchedRows.of(whole))
    values = values_of(fit.table, [0, 2], counts)
    neighbours = neighbours_of(fit.table, thresholds)
    for sizes in sizes_of_parts(rng, n_rows):
        for kind in (LocalParts, PairwiseParts):
            assert_same(alone, found(sketched_in_parts(kind, whole, sizes)))
        table = TableInParts(fit.table, sizes)
        theirs = values_of(table, [0, 2], counts)
        assert_same((values.least, values.greatest), (theirs.least, theirs.greatest))
        assert_same(values.scales(), theirs.scales())
        assert_same(neighbours, neighbours_of(table, thresholds))


@given(SEEDS, st.integers(0, 30), st.integers(0, 8))
def test_neighbours_of_thresholds_are_those_of_the_sorted_values(seed, n_rows, n_thresholds):
    rng = np.random.default_rng(seed)
    column = rng.integers(0, 20, n_rows).astype(np.float64)
    column[rng.random(n_rows) < 0.2] = np.nan
    thresholds = np.unique(rng.integers(0, 40, n_thresholds) / 2)
    found = neighbours_of(Table(n_rows, (FeatureInfo("x"),), [column]), {0: thresholds})[0]
    for threshold, below, above in zip(thresholds, *found, strict=True):
        assert below == max(column[column <= threshold], default=-np.inf)
        assert above == min(column[column > threshold], default=np.inf)
