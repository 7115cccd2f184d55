"""The search for a node's shape functions, against enumeration on small features."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import AllAssignments, extra_parts, n_segments, samples
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.criterion import Criterion
from shapetree._core.histogram import Targets
from shapetree._core.search import NO_BRANCH_MARK, NodeSearch
from shapetree.data._binning import BinnedTable, FeatureBins
from shapetree.grow._local_histograms import LocalHistograms
from shapetree.tree._shape import shape_from_bins

FREE = {"segment_penalty": 0.0, "category_penalty": 0.0, "branch_penalty": 0.0}
INNER_TREES = st.sampled_from(["cart", "optimal"])
ASSIGNMENTS = st.sampled_from(["auto", "coordinate_descent", "kmeans", "random"])


def run_search(
    criterion, targets, codes, n_bins, categorical, rows=None, by_rows=False, n_threads=1,
    max_branches=2, penalties=FREE, **options,
):  # fmt: skip
    """Search all features of one node and return the searcher with its results."""
    columns = Columns(codes, len(codes[0]))
    rows = np.arange(len(codes[0]), dtype=np.int32) if rows is None else rows
    histogram = None
    if not by_rows:
        table = BinnedTable(tuple(map(FeatureBins, n_bins)), columns)
        histogram = LocalHistograms(table, targets, n_threads=1).build(rows)
    search = NodeSearch(criterion, columns, n_bins, categorical, **options)
    search.search(
        histogram, targets, rows, 0, len(codes), max_branches=max_branches, seed=3,
        n_threads=n_threads, **penalties,
    )  # fmt: skip
    return search


@dataclass
class OneFeature:
    """A sample whose pieces are the bins of one feature, the last one perhaps missing values."""

    sample: object
    has_missing: bool
    categorical: bool
    penalties: dict
    max_branches: int

    @property
    def cells(self):
        """The bins that are not missing."""
        return self.sample.n_pieces - self.has_missing

    @property
    def whole(self):
        return self.sample.loss(np.zeros(self.sample.n_pieces, dtype=int))

    def search(self, **options):
        return run_search(
            self.sample.criterion,
            self.sample.targets,
            [self.sample.piece.astype(np.uint8)],
            [self.cells],
            [self.categorical],
            max_branches=self.max_branches,
            penalties=self.penalties,
            **options,
        )

    def found(self, **options):
        """Branch of each cell, or None."""
        search = self.search(**options)
        return search, None if search.n_branches[0] == 0 else search.branch_of_bin[: self.n_all]

    @property
    def n_all(self):
        return self.sample.n_pieces

    def objective(self, branch):
        """Impurity plus what segments or categories, and branches, cost."""
        kind = "category_penalty" if self.categorical else "segment_penalty"
        parts = extra_parts(branch[: self.cells], self.categorical)
        return (
            self.sample.loss(branch)
            + self.penalties[kind] * parts
            + self.penalties["branch_penalty"] * (max(branch) + 1 - 2)
        )

    def single_splits(self):
        """CART's splits: every threshold, or category against the rest, missing on either side."""
        for i in range(self.cells):
            one = np.arange(self.cells) == i if self.categorical else np.arange(self.cells) <= i
            for missing in (True, False) if self.has_missing else (None,):
                branch = one if missing is None else np.append(one, missing)
                if branch.any() and not branch.all():
                    yield branch.astype(int)

    def has_rows(self, branch, min_rows):
        return self.sample.branch_rows(branch).min() >= min_rows


@st.composite
def features(draw, penalised=None, **options):
    sample = draw(samples(least_pieces=2, max_pieces=6, **options))
    penalties = FREE
    if draw(st.booleans()) if penalised is None else penalised:
        penalties = {name: draw(st.sampled_from([0.0, 0.05, 0.7])) for name in FREE}
    return OneFeature(
        sample,
        has_missing=draw(st.booleans()),
        categorical=draw(st.booleans()),
        penalties=penalties,
        max_branches=draw(st.integers(2, 4)),
    )


def exact_features(**options):
    names = ["gini", "entropy", "squared_error"]
    return features(names=names, least_classes=2, max_classes=2, max_outputs=1, **options)


@given(features(), st.integers(1, 6), INNER_TREES, ASSIGNMENTS)
def test_reported_gains_are_those_of_the_shape_function(feature, min_rows, inner, assignment):
    search, branch = feature.found(min_rows=min_rows, inner_tree=inner, assignment=assignment)
    if branch is None:
        assert search.gains[0] == search.penalised_gains[0] == -np.inf
        return
    tolerance = feature.sample.tolerance
    assert set(branch) == set(range(search.n_branches[0]))
    assert search.n_branches[0] <= feature.max_branches
    gain = feature.whole - feature.sample.loss(branch)
    assert_allclose(search.gains[0], gain, atol=tolerance)
    penalised_gain = feature.whole - feature.objective(branch)
    assert_allclose(search.penalised_gains[0], penalised_gain, atol=tolerance)


@given(features(), st.integers(1, 6), INNER_TREES, ASSIGNMENTS)
def test_every_branch_has_enough_rows(feature, min_rows, inner, assignment):
    _, branch = feature.found(min_rows=min_rows, inner_tree=inner, assignment=assignment)
    assert branch is None or feature.has_rows(branch, min_rows)


@given(features(), st.integers(1, 6), INNER_TREES, st.integers(1, 4))
def test_shape_function_is_never_worse_than_carts_split(feature, min_rows, inner, inner_min_rows):
    search, branch = feature.found(
        min_rows=min_rows, inner_tree=inner, inner_min_rows=inner_min_rows
    )
    losses = [
        feature.sample.loss(split)
        for split in feature.single_splits()
        if feature.has_rows(split, min_rows)
    ]
    if losses:
        best_gain = feature.whole - min(losses)
        assert search.penalised_gains[0] >= best_gain - feature.sample.tolerance
        assert branch is not None


@given(exact_features(), INNER_TREES)
def test_exact_search_without_part_penalties_finds_the_best_of_all(feature, inner):
    feature.penalties = FREE | {"branch_penalty": feature.penalties["branch_penalty"]}
    search, _ = feature.found(inner_tree=inner, inner_max_leaves=10)
    every = AllAssignments(feature.sample, feature.max_branches)
    least = min(feature.objective(way) for way in every.ways if max(way) > 0)
    assert_allclose(
        search.penalised_gains[0], feature.whole - least, atol=2 * feature.sample.tolerance
    )


@given(features(), st.integers(1, 4))
def test_no_search_finds_better_than_the_best_of_all(feature, min_rows):
    search, _ = feature.found(min_rows=min_rows)
    every = AllAssignments(feature.sample, feature.max_branches)
    least = min(feature.objective(way) for way in every.ways)
    assert search.penalised_gains[0] <= feature.whole - least + feature.sample.tolerance


@given(features(), st.integers(2, 4), INNER_TREES)
def test_segments_are_no_more_than_the_inner_trees_leaves(feature, inner_max_leaves, inner):
    feature.categorical = False
    _, branch = feature.found(inner_max_leaves=inner_max_leaves, inner_tree=inner)
    assert branch is None or n_segments(branch[: feature.cells]) <= inner_max_leaves


@given(features())
def test_segments_of_a_shallow_inner_tree_are_few(feature):
    feature.categorical = False
    _, branch = feature.found(inner_max_depth=1)
    assert branch is None or n_segments(branch[: feature.cells]) <= 2


# Many features


@st.composite
def nodes(draw, **options):
    """Criterion, targets, codes, bins and kinds of three features, and some rows as a node."""
    sample = draw(samples(max_rows=40, **options))
    n = len(sample.piece)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_bins = rng.integers(1, 9, 3)
    codes = [
        rng.integers(0, b + 1, n).astype(dtype)
        for b, dtype in zip(n_bins, [np.uint8, np.uint16, np.uint32], strict=True)
    ]
    rows = np.sort(rng.permutation(n)[: rng.integers(1, n + 1)]).astype(np.int32)
    return (sample.criterion, sample.targets, codes, n_bins, [False, True, False], rows)


def assert_same_results(one, other):
    for name in ("gains", "penalised_gains", "n_branches", "branch_of_bin"):
        assert_array_equal(getattr(one, name), getattr(other, name))


def some_penalties(beta):
    return {"segment_penalty": beta, "category_penalty": beta / 2, "branch_penalty": beta / 10}


@given(nodes(), st.integers(2, 4), st.sampled_from([0.0, 0.5]), INNER_TREES, ASSIGNMENTS)
def test_histograms_and_rows_give_the_same_answers(node, max_branches, beta, inner, assignment):
    options = {
        "max_branches": max_branches,
        "penalties": some_penalties(beta),
        "inner_tree": inner,
        "assignment": assignment,
    }
    one, other = (run_search(*node, by_rows=by_rows, **options) for by_rows in (False, True))
    assert_same_results(one, other)


@given(nodes(), st.booleans(), st.sampled_from([0.0, 0.5]), ASSIGNMENTS)
def test_answers_do_not_depend_on_the_number_of_threads(node, by_rows, beta, assignment):
    options = {"by_rows": by_rows, "penalties": some_penalties(beta), "assignment": assignment}
    one, other = (run_search(*node, n_threads=n_threads, **options) for n_threads in (1, 2))
    assert_same_results(one, other)


@given(nodes(), st.booleans())
def test_bins_without_rows_have_no_branch(node, by_rows):
    _, _, codes, n_bins, _, rows = node
    search = run_search(*node, by_rows=by_rows)
    offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
    for j, code in enumerate(codes):
        branch = search.branch_of_bin[offsets[j] : offsets[j + 1]]
        held = np.isin(np.arange(n_bins[j] + 1), code[rows])
        expected = held & (search.n_branches[j] > 0)
        assert_array_equal(branch != NO_BRANCH_MARK, expected)


@given(nodes(), st.integers(2, 4))
def test_values_go_where_their_bins_went(node, max_branches):
    """Shape functions in values agree with those over bins, on every row of the node."""
    _, _, codes, n_bins, categorical, rows = node
    search = run_search(*node, max_branches=max_branches)
    offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
    for j in np.flatnonzero(search.n_branches):
        branch_of_bin = search.branch_of_bin[offsets[j] : offsets[j + 1]]
        values = np.arange(n_bins[j]) ** 2.0
        bins = FeatureBins(n_bins[j], *([] if categorical[j] else [values, values + 0.5]))
        shape = shape_from_bins(
            j, bins, branch_of_bin, int(branch_of_bin[branch_of_bin < 255].max()) + 1, 1
        )
        assert shape.n_branches == search.n_branches[j]
        for code in codes[j][rows]:
            if code == n_bins[j]:
                branch = shape.missing_branch
            elif categorical[j]:
                branch = shape.branch_of_piece[code]
            else:
                branch = shape.branch_of_piece[np.searchsorted(shape.upper, values[code])]
            assert branch == branch_of_bin[code]


def test_unseen_values_go_to_the_largest_branch():
    branch_of_bin = np.array([0, NO_BRANCH_MARK, 1, NO_BRANCH_MARK], dtype=np.uint8)
    shape = shape_from_bins(
        0, FeatureBins(3), branch_of_bin, int(branch_of_bin[branch_of_bin < 255].max()) + 1, 1
    )
    assert_array_equal(shape.branch_of_piece, [0, 1, 1])
    assert shape.missing_branch == 1
    assert not shape.saw_missing


# Single cases


def class_counts(counts):
    """One feature with these counts of classes in its bins, the last bin missing values."""
    counts = np.asarray(counts)
    bins, labels = np.repeat(np.indices(counts.shape).reshape(2, -1), counts.ravel(), axis=1)
    targets = Targets(labels[:, None], None, None, counts.shape[1])
    return Criterion("gini", [counts.shape[1]]), targets, [bins.astype(np.uint8)], [len(counts) - 1]


def test_a_bar_in_the_middle_takes_one_shape_function():
    search = run_search(*class_counts([[9, 0], [0, 9], [9, 0], [0, 0]]), [False])
    assert_array_equal(search.branch_of_bin, [0, 1, 0, NO_BRANCH_MARK])
    assert_allclose(search.gains, 27 * (1 - (1 / 9 + 4 / 9)))


def test_a_sliver_does_not_survive_the_segment_penalty():
    problem = class_counts([[30, 0], [0, 1], [30, 0], [0, 30], [0, 0]])
    free, dear = (
        run_search(*problem, [False], penalties=FREE | {"segment_penalty": beta})
        for beta in (0.0, 3.0)
    )
    assert_array_equal(free.branch_of_bin[:4], [0, 1, 0, 1])
    assert_array_equal(dear.branch_of_bin[:4], [0, 0, 0, 1])


def test_missing_values_go_where_they_belong():
    search = run_search(*class_counts([[9, 0], [0, 9], [0, 5]]), [False])
    assert_array_equal(search.branch_of_bin, [0, 1, 1])


def test_missing_values_may_take_a_branch_of_their_own():
    search = run_search(*class_counts([[9, 0, 0], [0, 9, 0], [0, 0, 9]]), [False], max_branches=3)
    assert_array_equal(search.branch_of_bin, [0, 1, 2])


def test_missing_values_against_all_others_is_a_split():
    search = run_search(*class_counts([[9, 0], [9, 0], [0, 5]]), [False])
    assert_array_equal(search.branch_of_bin, [0, 0, 1])


def test_categories_are_grouped_without_regard_to_their_order():
    counts = [[9, 0, 0], [0, 9, 0], [0, 0, 9], [9, 0, 0], [0, 9, 0], [0, 0, 0]]
    search = run_search(*class_counts(counts), [True], max_branches=3)
    assert_array_equal(search.branch_of_bin[:5], [0, 1, 2, 0, 1])


@pytest.mark.parametrize(
    "counts",
    [
        [[5, 5], [0, 0]],  # one bin
        [[0, 0], [5, 5]],  # only missing values
        [[1, 0], [0, 1], [0, 0]],  # too few rows on either side
    ],
)
def test_a_feature_that_cannot_be_split_gains_nothing(counts):
    search = run_search(*class_counts(counts), [False], min_rows=2)
    assert search.gains[0] == search.penalised_gains[0] == -np.inf
    assert search.n_branches[0] == 0
    assert np.all(search.branch_of_bin == NO_BRANCH_MARK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_rows": 0}, "must be positive"),
        ({"inner_max_leaves": 0}, "must be positive"),
        ({"inner_min_rows": 0}, "must be positive"),
        ({"inner_max_depth": -1}, "must be positive"),
        ({"max_branches": 1}, "max_branches"),
        ({"max_branches": 255}, "max_branches"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run_search(*class_counts([[1, 1], [1, 1], [0, 0]]), [False], **options)


def test_targets_of_another_criterion_are_refused():
    _, targets, codes, n_bins = class_counts([[1, 1], [1, 1], [0, 0]])
    with pytest.raises(ValueError, match="differ in their statistics"):
        run_search(Criterion("gini", [3]), targets, codes, n_bins, [False])


@pytest.mark.parametrize("n_bins", [7, 1000, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_any_number_of_bins_give_the_cells_of_their_histogram(n_bins, weighted):
    rng = np.random.default_rng(n_bins)
    codes = [rng.integers(0, n_bins + 1, 300).astype(np.uint16)]
    labels = (codes[0] % 5 > 2).astype(np.int32)[:, None]
    weights = rng.integers(1, 4, 300).astype(float) if weighted else None
    targets = Targets(labels, None, weights, 2)
    rows = np.sort(rng.choice(300, 90, replace=False)).astype(np.int32)
    by_histogram, by_rows = (
        run_search(
            Criterion("gini", [2]), targets, codes, [n_bins], [False], rows=rows, by_rows=by_rows,
            max_branches=3, penalties=FREE | {"segment_penalty": 1.0},
        )
        for by_rows in (False, True)
    )  # fmt: skip
    assert by_histogram.n_branches[0] >= 2
    assert_array_equal(by_rows.branch_of_bin, by_histogram.branch_of_bin)
    assert by_rows.penalised_gains[0] == by_histogram.penalised_gains[0]
