"""The search for nodes' shape functions, against enumeration on small features."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from naive import AllAssignments, extra_parts, n_parts, samples
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.criterion import Criterion
from shapetree._core.histogram import LevelRows, Targets, build_cells, build_histograms
from shapetree._core.rows import NodeRows
from shapetree._core.search import NO_BRANCH_MARK, NodeSearch, best_features, candidates_of
from shapetree.data._binning import FeatureBins
from shapetree.tree._shape import shape_from_bins

FREE = {"segment_penalty": 0.0, "category_penalty": 0.0, "branch_penalty": 0.0}
INNER_TREES = st.sampled_from(["cart", "optimal"])
ASSIGNMENTS = st.sampled_from(["auto", "coordinate_descent", "kmeans", "random"])


@dataclass
class Found:
    """What a search finds, for several nodes or for one."""

    gains: np.ndarray
    penalised_gains: np.ndarray
    n_branches: np.ndarray
    branch_of_bin: np.ndarray

    @classmethod
    def unknown(cls, n_nodes, n_features, n_bins):
        """Room for results, full of what no search returns."""
        return cls(
            np.full((n_nodes, n_features), np.nan),
            np.full((n_nodes, n_features), np.nan),
            np.full((n_nodes, n_features), -7, dtype=np.int32),
            np.full((n_nodes, n_bins), 77, dtype=np.uint8),
        )

    def of(self, node):
        return Found(**{name: array[node] for name, array in vars(self).items()})


def sums_of(targets, codes, n_bins, nodes, sparse, features=None):
    """Histograms of some features, or cells; the other is None."""
    first, last = features or (0, len(codes))
    offsets = np.concatenate([[0], np.cumsum(np.asarray(n_bins) + 1)])
    stops = np.cumsum([len(rows) for rows in nodes])
    starts = stops - [len(rows) for rows in nodes]
    order = np.concatenate(nodes).astype(np.int32)
    columns = Columns(codes, len(codes[0]))
    if sparse:
        places = order, starts, stops, offsets
        return None, build_cells(columns, targets, *places, first, last, 1)
    sums = np.empty((len(nodes), offsets[last] - offsets[first], targets.n_channels))
    build_histograms(columns, targets, order, starts, stops, offsets, sums, first, last, 1)
    return sums, None


def rows_of(targets, codes, nodes):
    """Rows of nodes that are summed as they are searched; some of them may be there twice."""
    places = NodeRows(len(codes[0]), np.concatenate(nodes), [len(rows) for rows in nodes])
    numbers = np.arange(len(nodes), dtype=np.int32)
    return LevelRows(Columns(codes, len(codes[0])), targets, places, numbers)


def search_nodes(
    criterion, targets, codes, n_bins, categorical, nodes, sparse=False, rows=None, n_threads=1,
    max_branches=2, penalties=FREE, seed=3, allowed=None, features=None, only_best=False, **limits,
):  # fmt: skip
    """Search several nodes, each given by its rows; seeds and penalties for each, or for all."""
    n_nodes = len(nodes)
    sums, cells = None, None
    if rows is None:
        sums, cells = sums_of(targets, codes, n_bins, nodes, sparse, features)
    search = NodeSearch(criterion, n_bins, categorical, **limits)
    found = Found.unknown(n_nodes, len(codes), sum(n_bins) + len(codes))
    search.search(
        sums, cells, *(features or (0, len(codes))),
        max_branches=max_branches,
        seed=np.full(n_nodes, seed, dtype=np.uint64),
        **{name: np.full(n_nodes, penalty, dtype=float) for name, penalty in penalties.items()},
        rows=rows,
        allowed=allowed,
        n_threads=n_threads,
        only_best=only_best,
        **vars(found),
    )  # fmt: skip
    return found


def run_search(criterion, targets, codes, n_bins, categorical, rows=None, **options):
    """Search all features of one node."""
    rows = np.arange(len(codes[0])) if rows is None else rows
    return search_nodes(criterion, targets, codes, n_bins, categorical, [rows], **options).of(0)


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

    @property
    def has_one_class(self):
        """Whether there is nothing to gain, as in no node that is searched."""
        labels = self.sample.labels
        return labels is not None and len(np.unique(labels, axis=0)) == 1

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
        found = self.search(**options)
        return found, None if found.n_branches[0] == 0 else found.branch_of_bin[: self.n_all]

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
            + self.penalties["branch_penalty"] * max(branch)
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
    found, branch = feature.found(min_rows=min_rows, inner_tree=inner, assignment=assignment)
    if branch is None:
        assert found.gains[0] == found.penalised_gains[0] == -np.inf
        return
    tolerance = feature.sample.tolerance
    assert set(branch) == set(range(found.n_branches[0]))
    assert found.n_branches[0] <= feature.max_branches
    gain = feature.whole - feature.sample.loss(branch)
    assert_allclose(found.gains[0], gain, atol=tolerance)
    penalised_gain = feature.whole - feature.objective(branch)
    assert_allclose(found.penalised_gains[0], penalised_gain, atol=tolerance)


@given(features(), st.integers(1, 6), INNER_TREES, ASSIGNMENTS)
def test_every_branch_has_enough_rows(feature, min_rows, inner, assignment):
    _, branch = feature.found(min_rows=min_rows, inner_tree=inner, assignment=assignment)
    assert branch is None or feature.has_rows(branch, min_rows)


@given(features(), st.integers(1, 6), INNER_TREES, st.integers(1, 4))
def test_shape_function_is_never_worse_than_carts_split(feature, min_rows, inner, inner_min_rows):
    assume(not feature.has_one_class)
    found, branch = feature.found(
        min_rows=min_rows, inner_tree=inner, inner_min_rows=inner_min_rows
    )
    losses = [
        feature.sample.loss(split)
        for split in feature.single_splits()
        if feature.has_rows(split, min_rows)
    ]
    if losses:
        best_gain = feature.whole - min(losses) - feature.penalties["branch_penalty"]
        assert found.penalised_gains[0] >= best_gain - feature.sample.tolerance
        assert branch is not None


@given(exact_features(), INNER_TREES)
def test_exact_search_without_part_penalties_finds_the_best_of_all(feature, inner):
    assume(not feature.has_one_class)
    feature.penalties = FREE | {"branch_penalty": feature.penalties["branch_penalty"]}
    found, _ = feature.found(inner_tree=inner, inner_max_leaves=10)
    every = AllAssignments(feature.sample, feature.max_branches)
    least = min(feature.objective(way) for way in every.ways if max(way) > 0)
    assert_allclose(
        found.penalised_gains[0], feature.whole - least, atol=2 * feature.sample.tolerance
    )


@given(features(), st.integers(1, 4))
def test_no_search_finds_better_than_the_best_of_all(feature, min_rows):
    found, _ = feature.found(min_rows=min_rows)
    every = AllAssignments(feature.sample, feature.max_branches)
    least = min(feature.objective(way) for way in every.ways)
    assert found.penalised_gains[0] <= feature.whole - least + feature.sample.tolerance


@given(features(), st.integers(2, 4), INNER_TREES)
def test_segments_are_no_more_than_the_inner_trees_leaves(feature, inner_max_leaves, inner):
    feature.categorical = False
    _, branch = feature.found(inner_max_leaves=inner_max_leaves, inner_tree=inner)
    assert branch is None or n_parts(branch[: feature.cells]) <= inner_max_leaves


@given(features())
def test_segments_of_a_shallow_inner_tree_are_few(feature):
    feature.categorical = False
    _, branch = feature.found(inner_max_depth=1)
    assert branch is None or n_parts(branch[: feature.cells]) <= 2


@given(features(), st.integers(2, 5), st.integers(1, 4), INNER_TREES, ASSIGNMENTS)
def test_parts_are_no_more_than_allowed(feature, max_parts, max_listed, inner, assignment):
    limits = {"max_parts": max_parts, "max_listed": max_listed}
    found, branch = feature.found(inner_tree=inner, assignment=assignment, **limits)
    if branch is None:
        return
    cells = branch[: feature.cells]
    if feature.categorical:
        assert len(cells) - np.bincount(cells).max() <= max_listed
    else:
        assert n_parts(cells) <= max_parts
    penalised_gain = feature.whole - feature.objective(branch)
    assert_allclose(found.penalised_gains[0], penalised_gain, atol=feature.sample.tolerance)


@given(features())
def test_limits_that_are_not_reached_change_nothing(feature):
    assert_same_results(
        feature.search(), feature.search(max_parts=feature.n_all, max_listed=feature.n_all)
    )


@given(exact_features(penalised=False), st.integers(2, 4))
def test_within_few_parts_a_shape_function_is_never_worse_than_carts_split(feature, most):
    assume(not feature.has_one_class)
    found, _ = feature.found(max_parts=most, max_listed=1)
    losses = [feature.sample.loss(split) for split in feature.single_splits()]
    if losses:
        best_gain = feature.whole - min(losses)
        assert found.penalised_gains[0] >= best_gain - feature.sample.tolerance


@given(exact_features(), INNER_TREES)
def test_per_leaf_the_best_of_all_is_that_with_most_gain_for_each_added_branch(feature, inner):
    assume(not feature.has_one_class)
    feature.penalties = FREE | {"branch_penalty": feature.penalties["branch_penalty"]}
    found, branch = feature.found(inner_tree=inner, inner_max_leaves=10, per_leaf=True)
    every = AllAssignments(feature.sample, feature.max_branches)
    best = max(
        (feature.whole - feature.objective(way)) / max(way) for way in every.ways if max(way) > 0
    )
    assert branch is not None
    assert_allclose(found.penalised_gains[0] / max(branch), best, atol=2 * feature.sample.tolerance)


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
    for name, array in vars(one).items():
        assert_array_equal(array, getattr(other, name), err_msg=name)


def some_penalties(beta):
    return {"segment_penalty": beta, "category_penalty": beta / 2, "branch_penalty": beta / 10}


@given(nodes(), st.integers(2, 4), st.sampled_from([0.0, 0.5]), INNER_TREES, ASSIGNMENTS)
def test_histograms_and_cells_give_the_same_answers(node, max_branches, beta, inner, assignment):
    options = {
        "max_branches": max_branches,
        "penalties": some_penalties(beta),
        "inner_tree": inner,
        "assignment": assignment,
    }
    one, other = (run_search(*node, sparse=sparse, **options) for sparse in (False, True))
    assert_same_results(one, other)


@given(nodes(), st.booleans())
def test_bins_without_rows_have_no_branch(node, sparse):
    _, _, codes, n_bins, _, rows = node
    found = run_search(*node, sparse=sparse)
    offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
    for j, code in enumerate(codes):
        branch = found.branch_of_bin[offsets[j] : offsets[j + 1]]
        held = np.isin(np.arange(n_bins[j] + 1), code[rows])
        expected = held & (found.n_branches[j] > 0)
        assert_array_equal(branch != NO_BRANCH_MARK, expected)


@given(nodes(), st.integers(2, 4))
def test_values_go_where_their_bins_went(node, max_branches):
    """Shape functions in values agree with those over bins, on every row of the node."""
    _, _, codes, n_bins, categorical, rows = node
    found = run_search(*node, max_branches=max_branches)
    offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
    for j in np.flatnonzero(found.n_branches):
        branch_of_bin = found.branch_of_bin[offsets[j] : offsets[j + 1]]
        values = np.arange(n_bins[j]) ** 2.0
        bins = FeatureBins(n_bins[j], *([] if categorical[j] else [values, values + 0.5]))
        shape = shape_from_bins(
            j, bins, branch_of_bin, int(branch_of_bin[branch_of_bin < 255].max()) + 1, 1
        )
        assert shape.n_branches == found.n_branches[j]
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


# Many nodes


@st.composite
def levels(draw):
    """Several nodes, some of them empty, and options for each."""
    *problem, rows = draw(nodes())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_nodes = int(rng.integers(1, 5))
    at = rng.integers(0, n_nodes, len(rows))
    options = {
        "max_branches": int(rng.integers(2, 5)),
        "seed": rng.integers(0, 2**63, n_nodes),
        "penalties": some_penalties(rng.choice([0.0, 0.5], n_nodes)),
    }
    limits = {"assignment": draw(ASSIGNMENTS), "min_rows": draw(st.integers(1, 3))}
    return problem, [rows[at == node] for node in range(n_nodes)], options, limits


@given(levels(), st.booleans())
def test_several_nodes_are_searched_as_each_alone(level, sparse):
    problem, nodes, options, limits = level
    together = search_nodes(*problem, nodes, sparse=sparse, **options, **limits)
    for node, rows in enumerate(nodes):
        own = {"max_branches": options["max_branches"], "seed": options["seed"][node]}
        own["penalties"] = {name: each[node] for name, each in options["penalties"].items()}
        alone = search_nodes(*problem, [rows], sparse=sparse, **own, **limits)
        assert_same_results(together.of(node), alone.of(0))


@given(levels(), st.booleans())
def test_answers_do_not_depend_on_the_number_of_threads(level, sparse):
    problem, nodes, options, limits = level
    one, other = (
        search_nodes(*problem, nodes, sparse=sparse, n_threads=n_threads, **options, **limits)
        for n_threads in (1, 3)
    )
    assert_same_results(one, other)


@given(levels(), st.booleans(), st.sampled_from([1, 3]), st.booleans())
def test_the_best_feature_is_found_where_others_are_not_searched_to_the_end(
    level, sparse, n_threads, is_free
):
    problem, nodes, options, limits = level
    if is_free:
        free = dict.fromkeys(("segment_penalty", "category_penalty"), np.zeros(len(nodes)))
        options = options | {"penalties": options["penalties"] | free}
    about = {"only_best": True, "sparse": sparse, "n_threads": n_threads}
    found, of_one_thread, every = (
        search_nodes(*problem, nodes, **own, **options, **limits)
        for own in (about, {"only_best": True}, {})
    )
    best, of_one_thread, of_every = (
        np.maximum(each.penalised_gains.max(axis=1), 0.0) for each in (found, of_one_thread, every)
    )
    assert_array_equal(best, of_one_thread)
    tolerance = 1e-8 * len(problem[2][0])
    assert np.all(best <= of_every + tolerance)
    if is_free:  # otherwise polish may move borders of pieces, which a bound does not know
        assert_allclose(best, of_every, atol=tolerance)


@given(levels(), st.booleans(), st.sampled_from([(0, 1), (1, 3), (2, 2), (0, 3)]))
def test_only_the_features_asked_for_are_searched(level, sparse, features):
    problem, nodes, options, limits = level
    _, _, codes, n_bins, _ = problem
    expected = search_nodes(*problem, nodes, **options, **limits)
    found = search_nodes(*problem, nodes, sparse=sparse, features=features, **options, **limits)
    untouched = Found.unknown(len(nodes), len(codes), sum(n_bins) + len(codes))
    feature_of_bin = np.repeat(np.arange(len(codes)), n_bins + 1)
    for name, array in vars(found).items():
        feature = feature_of_bin if name == "branch_of_bin" else np.arange(len(codes))
        asked = (features[0] <= feature) & (feature < features[1])
        result = np.where(asked, getattr(expected, name), getattr(untouched, name))
        assert_array_equal(array, result, err_msg=name)


@given(levels(), st.booleans(), st.integers(0, 99))
def test_features_that_are_not_allowed_gain_nothing(level, sparse, seed):
    problem, nodes, options, limits = level
    n_bins = problem[3]
    allowed = np.random.default_rng(seed).integers(0, 2, (len(nodes), 3)).astype(np.uint8)
    every = search_nodes(*problem, nodes, sparse=sparse, **options, **limits)
    found = search_nodes(*problem, nodes, sparse=sparse, allowed=allowed, **options, **limits)
    bins_allowed = np.repeat(allowed, n_bins + 1, axis=1)
    assert_array_equal(found.gains, np.where(allowed, every.gains, -np.inf))
    assert_array_equal(found.penalised_gains, np.where(allowed, every.penalised_gains, -np.inf))
    assert_array_equal(found.n_branches, np.where(allowed, every.n_branches, 0))
    expected = np.where(bins_allowed, every.branch_of_bin, NO_BRANCH_MARK)
    assert_array_equal(found.branch_of_bin, expected)


# Single cases


def class_counts(counts):
    """One feature with these counts of classes in its bins, the last bin missing values."""
    counts = np.asarray(counts)
    bins, labels = np.repeat(np.indices(counts.shape).reshape(2, -1), counts.ravel(), axis=1)
    targets = Targets(labels[:, None], None, None, counts.shape[1])
    return Criterion("gini", [counts.shape[1]]), targets, [bins.astype(np.uint8)], [len(counts) - 1]


def test_a_bar_in_the_middle_takes_one_shape_function():
    found = run_search(*class_counts([[9, 0], [0, 9], [9, 0], [0, 0]]), [False])
    assert_array_equal(found.branch_of_bin, [0, 1, 0, NO_BRANCH_MARK])
    assert_allclose(found.gains, 27 * (1 - (1 / 9 + 4 / 9)))


def test_a_sliver_does_not_survive_the_segment_penalty():
    problem = class_counts([[30, 0], [0, 1], [30, 0], [0, 30], [0, 0]])
    free, dear = (
        run_search(*problem, [False], penalties=FREE | {"segment_penalty": beta})
        for beta in (0.0, 3.0)
    )
    assert_array_equal(free.branch_of_bin[:4], [0, 1, 0, 1])
    assert_array_equal(dear.branch_of_bin[:4], [0, 0, 0, 1])


def test_missing_values_go_where_they_belong():
    found = run_search(*class_counts([[9, 0], [0, 9], [0, 5]]), [False])
    assert_array_equal(found.branch_of_bin, [0, 1, 1])


def test_missing_values_may_take_a_branch_of_their_own():
    found = run_search(*class_counts([[9, 0, 0], [0, 9, 0], [0, 0, 9]]), [False], max_branches=3)
    assert_array_equal(found.branch_of_bin, [0, 1, 2])


def test_missing_values_against_all_others_is_a_split():
    found = run_search(*class_counts([[9, 0], [9, 0], [0, 5]]), [False])
    assert_array_equal(found.branch_of_bin, [0, 0, 1])


def test_categories_are_grouped_without_regard_to_their_order():
    counts = [[9, 0, 0], [0, 9, 0], [0, 0, 9], [9, 0, 0], [0, 9, 0], [0, 0, 0]]
    found = run_search(*class_counts(counts), [True], max_branches=3)
    assert_array_equal(found.branch_of_bin[:5], [0, 1, 2, 0, 1])


@pytest.mark.parametrize(
    "counts",
    [
        [[5, 5], [0, 0]],  # one bin
        [[0, 0], [5, 5]],  # only missing values
        [[1, 0], [0, 1], [0, 0]],  # too few rows on either side
    ],
)
def test_a_feature_that_cannot_be_split_gains_nothing(counts):
    found = run_search(*class_counts(counts), [False], min_rows=2)
    assert found.gains[0] == found.penalised_gains[0] == -np.inf
    assert found.n_branches[0] == 0
    assert np.all(found.branch_of_bin == NO_BRANCH_MARK)


@pytest.mark.parametrize("sparse", [False, True])
def test_one_class_with_weights_has_its_own_numbers_of_rows(sparse):
    targets = Targets(np.zeros((5, 1)), None, np.full(5, 0.25), 1)
    problem = Criterion("gini", [1]), targets, [np.arange(5, dtype=np.uint8)], [5], [False]
    assert run_search(*problem, sparse=sparse, min_rows=2).n_branches[0] == 2
    assert run_search(*problem, sparse=sparse, min_rows=3).n_branches[0] == 0


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


def valid_search():
    """A searcher of two features, and arguments for two nodes."""
    n_bins, targets = [2, 3], Targets(np.array([[0], [1], [1], [0]]), None, None, 2)
    codes = [np.array([0, 1, 2, 0], dtype=np.uint8), np.array([0, 1, 2, 3], dtype=np.uint8)]
    nodes = [np.arange(4), np.arange(2)]
    sums, cells = (sums_of(targets, codes, n_bins, nodes, sparse)[sparse] for sparse in (0, 1))
    arguments = {
        "max_branches": 2,
        "seed": np.zeros(2, dtype=np.uint64),
        **{name: np.zeros(2) for name in FREE},
        "allowed": None,
        "n_threads": 1,
        **vars(Found.unknown(2, 2, 7)),
    }
    return NodeSearch(Criterion("gini", [2]), n_bins, [0, 0]), sums, cells, arguments


@pytest.mark.parametrize("kind", ["labels", "values", "several", "weights"])
@pytest.mark.parametrize("n_nodes", [2, 20])
@pytest.mark.parametrize("repeats", [False, True])
def test_rows_summed_as_they_are_searched_are_those_of_histograms(kind, n_nodes, repeats):
    rng = np.random.default_rng(n_nodes)
    n_rows, n_bins, categorical = (
        3_000,
        [4, 255, 30, 700, 300, 1, 9, 2, 50],
        np.zeros(9, dtype=bool),
    )
    categorical[[2, 7]] = True
    codes = [
        rng.integers(0, n + 1, n_rows).astype(np.uint8 if n < 256 else np.uint16) for n in n_bins
    ]
    weights = rng.integers(1, 4, n_rows).astype(float) if kind == "weights" else None
    if kind == "labels" or kind == "weights":
        criterion = Criterion("entropy", [3])
        targets = Targets(rng.integers(0, 3, (n_rows, 1)), None, weights, 3)
    else:
        n_outputs = 2 if kind == "several" else 1
        criterion = Criterion("squared_error", [1] * n_outputs)
        targets = Targets(None, rng.integers(-9, 9, (n_rows, n_outputs)) / 8, None, 1 + n_outputs)
    # Nodes of few rows, and of more than features have bins.
    sizes = np.where(np.arange(n_nodes) % 2, 900, 20)
    draw = rng.integers(0, n_rows, (n_nodes, 900))
    nodes = [np.sort(own[:size]) for own, size in zip(draw, sizes, strict=True)]
    if not repeats:
        nodes = np.split(np.arange(n_rows), np.sort(rng.integers(0, n_rows, n_nodes - 1)))
    allowed = rng.integers(0, 2, (n_nodes, len(n_bins))).astype(np.uint8)
    about = criterion, targets, codes, n_bins, categorical, nodes
    expected = search_nodes(*about, allowed=allowed)
    for n_threads in (1, 3):
        for features in ((0, len(n_bins)), (1, 5)):
            found = search_nodes(
                *about, rows=rows_of(targets, codes, nodes), n_threads=n_threads, allowed=allowed,
                features=features,
            )  # fmt: skip
            searched = np.s_[:, slice(*features)]
            for name in ("gains", "penalised_gains", "n_branches"):
                np.testing.assert_array_equal(
                    getattr(found, name)[searched], getattr(expected, name)[searched]
                )
            bins = np.s_[:, slice(*np.cumsum([0, *(n + 1 for n in n_bins)])[list(features)])]
            np.testing.assert_array_equal(found.branch_of_bin[bins], expected.branch_of_bin[bins])


def test_rows_to_sum_must_be_those_of_every_node():
    search, _, _, arguments = valid_search()
    targets = Targets(np.zeros((4, 1), dtype=np.int32), None, None, 2)
    codes = Columns([np.zeros(4, dtype=np.uint8), np.full(4, 9, dtype=np.uint8)], 4)
    numbers = np.arange(2, dtype=np.int32)
    with pytest.raises(ValueError, match="there are fewer rows"):
        LevelRows(codes, targets, NodeRows(5), numbers)
    with pytest.raises(IndexError, match="there is no node"):
        LevelRows(codes, targets, NodeRows(4), numbers - 1)
    rows = LevelRows(codes, targets, NodeRows(4), numbers[:1])
    with pytest.raises(ValueError, match="rows of every node"):
        search.search(None, None, 0, 2, rows=rows, **arguments)
    rows = LevelRows(codes, targets, NodeRows(4), numbers)
    with pytest.raises(ValueError, match="has more bins than it was said to have"):
        search.search(None, None, 0, 2, rows=rows, **arguments)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seed", np.zeros(1, dtype=np.uint64), "every node needs its options"),
        ("segment_penalty", np.zeros(3), "every node needs its options"),
        ("n_threads", 0, "n_threads must be at least 1"),
        ("allowed", np.ones((2, 1), dtype=np.uint8), "allowed must tell"),
        ("allowed", np.ones((1, 2), dtype=np.uint8), "allowed must tell"),
        ("gains", np.empty((2, 1)), "a result for every node and feature"),
        ("gains", np.empty((1, 2)), "a result for every node and feature"),
        ("branch_of_bin", np.empty((2, 6), dtype=np.uint8), "a result for every node and feature"),
    ],
)
def test_arguments_without_room_for_every_node_are_refused(name, value, message):
    search, sums, cells, arguments = valid_search()
    for given_sums, given_cells in ((sums, None), (None, cells)):
        search.search(given_sums, given_cells, 0, 2, **arguments)
        with pytest.raises(ValueError, match=message):
            search.search(given_sums, given_cells, 0, 2, **arguments | {name: value})


@pytest.mark.parametrize(("first", "last"), [(-1, 2), (0, 3), (2, 1)])
def test_features_that_do_not_exist_are_refused(first, last):
    search, sums, _, arguments = valid_search()
    with pytest.raises(ValueError, match="features out of range"):
        search.search(sums, None, first, last, **arguments)


@pytest.mark.parametrize("wrong", [np.s_[:1], np.s_[:, :-1], np.s_[:, :, :1]])
def test_histograms_that_do_not_fit_are_refused(wrong):
    search, sums, _, arguments = valid_search()
    with pytest.raises(ValueError, match=r"histograms' shape does not fit|in their statistics"):
        search.search(np.ascontiguousarray(sums[wrong]), None, 0, 2, **arguments)


@pytest.mark.parametrize(
    ("part", "place", "value", "message"),
    [
        (0, (0, 0), -1, "cells do not fit"),
        (0, (1, 1), 10**9, "cells do not fit"),
        (1, (1, 1), -1, "cells do not fit"),
        (1, (1, 1), 10**9, "cells do not fit"),
        (2, 0, -1, "in ascending order"),
        (2, 0, 1, "in ascending order"),
        (2, 2, 3, "in ascending order"),
    ],
)
def test_cells_that_do_not_fit_are_refused(part, place, value, message):
    search, _, cells, arguments = valid_search()
    cells = [array.copy() for array in cells]
    cells[part][place] = value
    with pytest.raises(ValueError, match=message):
        search.search(None, tuple(cells), 0, 2, **arguments)


@pytest.mark.parametrize("n_bins", [7, 1000, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_any_number_of_bins_give_the_cells_of_their_histogram(n_bins, weighted):
    rng = np.random.default_rng(n_bins)
    codes = [rng.integers(0, n_bins + 1, 300).astype(np.uint16)]
    labels = (codes[0] % 5 > 2).astype(np.int32)[:, None]
    weights = rng.integers(1, 4, 300).astype(float) if weighted else None
    targets = Targets(labels, None, weights, 2)
    rows = np.sort(rng.choice(300, 90, replace=False)).astype(np.int32)
    dense, sparse = (
        run_search(
            Criterion("gini", [2]), targets, codes, [n_bins], [False], rows=rows, sparse=sparse,
            max_branches=3, penalties=FREE | {"segment_penalty": 1.0},
        )
        for sparse in (False, True)
    )  # fmt: skip
    assert dense.n_branches[0] >= 2
    assert_array_equal(sparse.branch_of_bin, dense.branch_of_bin)
    assert sparse.penalised_gains[0] == dense.penalised_gains[0]


# The best feature of a node


@given(st.integers(0, 2**32 - 1))
def test_the_first_of_the_best_features_is_chosen_if_it_gains(seed):
    rng = np.random.default_rng(seed)
    gains = rng.choice([-np.inf, -1.0, 0.0, 1.0, 1.0 + 1e-9, 2.0], rng.integers(1, 6, 2))
    ties = rng.choice([0.0, 1e-8, 0.5], len(gains))
    order = rng.permutation(gains.shape[1]).astype(np.int32)
    for found, of_node, tie in zip(best_features(gains, ties, order), gains, ties, strict=True):
        close = [f for f in order if of_node[f] >= of_node.max() - tie]
        assert found == (close[0] if of_node[close[0]] >= tie else -1)


@pytest.mark.parametrize(
    ("n_ties", "order", "message"),
    [
        (1, [0, 1, 2], "every node needs its tie"),
        (2, [0, 1], "every feature its place"),
        (2, [0, 1, 3], "order must hold features"),
        (2, [0, -1, 2], "order must hold features"),
    ],
)
def test_every_node_needs_its_tie_and_every_feature_its_place(n_ties, order, message):
    with pytest.raises(ValueError, match=message):
        best_features(np.zeros((2, 3)), np.zeros(n_ties), np.array(order, dtype=np.int32))


def test_candidates_are_those_of_the_chosen_features():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 3, 3, 8])
    found = [rng.random((4, 3)), rng.random((4, 3)), rng.integers(2, 5, (4, 3), dtype=np.int32)]
    branches = rng.integers(0, 5, (4, 8), dtype=np.uint8)
    candidates = candidates_of([2, -1, 0, 1], offsets, *found, branches)
    assert candidates[1] is None
    for node, feature in ((0, 2), (2, 0), (3, 1)):
        own = candidates[node]
        assert own.split.feature == feature
        assert [own.gain, own.penalised_gain, own.n_branches] == [
            array[node, feature] for array in found
        ]
        expected = branches[node, offsets[feature] : offsets[feature + 1]]
        np.testing.assert_array_equal(own.split.branch_of_bin, expected)
    with pytest.raises(ValueError, match="features must exist"):
        candidates_of([3, 0, 0, 0], offsets, *found, branches)
    with pytest.raises(ValueError, match="features must have bins"):
        candidates_of([0, 0, 0, 0], offsets + 1, *found, branches)
    with pytest.raises(ValueError, match="a result for every node and feature"):
        candidates_of([0, 0, 0], offsets, *found, branches)
