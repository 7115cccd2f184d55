"""What must not matter to a tree does not."""

from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from chance import examples
from data import (
    UNRESTRAINED,
    assert_same_groups,
    assert_same_tree,
    data_for,
    distinct_weights,
    make_tree,
    noisy_classes,
    noisy_numbers,
    rows_of_nodes,
    tree_for,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from shapetree import (
    SearchOptions,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
    export_text,
)
from shapetree.data._binning import bin_table
from shapetree.fit._local_backend import training_rows
from shapetree.grow._feature_order import feature_order
from shapetree.grow._local import LocalRows

CRITERIA = ["gini", "entropy", "squared_error", "absolute_error"]
RESOLUTIONS = [None, 16, 255]
# The number of rows asked for is the same whatever these weigh.
ONE_ROW = {"min_samples_leaf": 1, "inner_min_samples_leaf": 1, "min_samples_split": 2}
MANY_ROWS = {"min_samples_leaf": 9, "inner_min_samples_leaf": 4, "min_samples_split": 0.1}

seeds = st.integers(0, 2**32 - 1)
every_way = st.fixed_dictionaries(
    {
        "max_bins": st.sampled_from(RESOLUTIONS),
        "max_branches": st.integers(2, 4),
        "segment_penalty": st.sampled_from(["auto", 0.0, 1.0]),
        "inner_tree": st.sampled_from(["cart", "optimal"]),
        "inner_max_leaf_nodes": st.sampled_from([2, 6]),
        "n_threads": st.just(1),
    }
)
some = examples(40)


def assert_same_partition(one, X, other, other_X):
    """Two trees put the same training rows together, level by level, and say the same of them."""
    assert one.tree_.node_count == other.tree_.node_count
    nodes = {rows.tobytes() for rows in rows_of_nodes(one, X)}
    assert nodes == {rows.tobytes() for rows in rows_of_nodes(other, other_X)}
    assert_allclose(one.predict(X), other.predict(other_X), rtol=1e-9, atol=1e-12)


# Features


@some
@given(st.sampled_from(CRITERIA), every_way, seeds)
def test_increasing_transforms_keep_the_partition(criterion, params, seed):
    rng = np.random.default_rng(seed)
    X, y = data_for(criterion, rng, n_rows=300, n_values=100)
    new_values = np.sort(np.cumsum(rng.exponential(size=(4, 100)) + 1e-3, axis=1)) ** 3 - 50.0
    new_X = np.stack([new_values[j][X[:, j].astype(int)] for j in range(4)], axis=1)
    # Whether a tree is doubted goes by new rows, and thresholds lie elsewhere among these.
    params |= {"leaf_penalty": 6.0}
    one = tree_for(criterion, **params, max_depth=3).fit(X, y)
    other = tree_for(criterion, **params, max_depth=3).fit(new_X, y)
    assert_array_equal(one.apply(X), other.apply(new_X))


@some
@given(st.sampled_from(["gini", "entropy", "squared_error"]), every_way, seeds)
def test_turning_features_around_keeps_the_partition(criterion, params, seed):
    # Of two classes or numbers, whose assignments are exact; others may be found in another order.
    rng = np.random.default_rng(seed)
    two_classes = {} if criterion == "squared_error" else {"n_classes": 2}
    X, y = data_for(criterion, rng, n_rows=150, n_values=50, **two_classes)
    weights = distinct_weights(rng, len(X))
    # Whether a tree is doubted goes by halves of the rows, chosen by what they hold.
    params |= ONE_ROW | {"max_bins": None, "max_depth": 2, "leaf_penalty": 6.0}
    one = tree_for(criterion, **params).fit(X, y, sample_weight=weights)
    other = tree_for(criterion, **params).fit(-X, y, sample_weight=weights)
    assert_same_partition(one, X, other, -X)


@some
@given(st.sampled_from(CRITERIA), every_way, seeds)
def test_the_order_of_columns_does_not_matter(criterion, params, seed):
    rng = np.random.default_rng(seed)
    X, y = data_for(criterion, rng, n_rows=200, n_features=5)
    weights, order = distinct_weights(rng, len(X)), rng.permutation(5)
    # Whether a tree is doubted goes by new rows: of two features that part a few training rows
    # alike, the first is taken, and new rows may go other ways by it.
    params |= {"leaf_penalty": 6.0}
    one = tree_for(criterion, **params, random_state=0).fit(X, y, sample_weight=weights)
    other = tree_for(criterion, **params, random_state=0)
    other.fit(X[:, order], y, sample_weight=weights)
    assert_same_partition(one, X, other, X[:, order])


def test_importances_follow_their_columns():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=1000)
    one = ShapeTreeClassifier(min_samples_leaf=20).fit(X, y)
    other = ShapeTreeClassifier(min_samples_leaf=20).fit(X[:, ::-1], y)
    assert_allclose(one.feature_importances_[::-1], other.feature_importances_, rtol=1e-9)


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_constant_column_changes_nothing(criterion, max_bins):
    X, y = data_for(criterion, np.random.default_rng(0))
    one = tree_for(criterion, max_bins=max_bins, random_state=0).fit(X, y)
    other = tree_for(criterion, max_bins=max_bins, random_state=0)
    other.fit(np.column_stack([X, np.zeros(len(X))]), y)
    assert_same_tree(one, other)


# Rows and weights


@some
@given(st.sampled_from(CRITERIA), every_way, seeds)
def test_the_order_of_rows_does_not_matter(criterion, params, seed):
    rng = np.random.default_rng(seed)
    X, y = data_for(criterion, rng, n_rows=300, n_values=60)
    weights, order = distinct_weights(rng, len(X)), rng.permutation(len(X))
    one = tree_for(criterion, **params).fit(X, y, sample_weight=weights)
    other = tree_for(criterion, **params)
    other.fit(X[order], y[order], sample_weight=weights[order])
    assert_same_partition(one, X, other, X)


@some
@given(st.sampled_from(CRITERIA), every_way, st.sampled_from([ONE_ROW, MANY_ROWS]), seeds)
def test_a_weight_of_n_is_a_row_given_n_times(criterion, params, limits, seed):
    rng = np.random.default_rng(seed)
    X, y = data_for(criterion, rng, n_rows=600)
    y = np.round(4 * y).astype(int)
    times = rng.integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), times)
    params |= limits | {"max_depth": 3}
    one = tree_for(criterion, **params).fit(X, y, sample_weight=times)
    other = tree_for(criterion, **params).fit(X[repeated], y[repeated])
    assert_same_partition(one, X, other, X)
    assert_allclose(one.tree_.weighted_n_node_samples, other.tree_.weighted_n_node_samples)
    assert_array_equal(one.tree_.piece_upper, other.tree_.piece_upper)
    assert_array_equal(one.tree_.n_node_samples, other.tree_.n_node_samples)


TITANIC = """1st Male Adult 118 57;1st Male Child 0 5;1st Female Adult 4 140;1st Female Child 0 1;
2nd Male Adult 154 14;2nd Male Child 0 11;2nd Female Adult 13 80;2nd Female Child 0 13;
3rd Male Adult 387 75;3rd Male Child 35 13;3rd Female Adult 89 76;3rd Female Child 17 14;
Crew Male Adult 670 192;Crew Female Adult 3 20"""


def titanic():
    """A contingency table of 2,201 people, in 24 cells that hold some."""
    cells = []
    for line in TITANIC.replace("\n", "").split(";"):
        *group, died, survived = line.split()
        cells += [(*group, "no", int(died)), (*group, "yes", int(survived))]
    table = pd.DataFrame(cells, columns=["class", "sex", "age", "survived", "people"])
    return table[table["people"] > 0].reset_index(drop=True)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"min_samples_leaf": 60, "inner_min_samples_leaf": 40},
        {"min_samples_split": 0.3, "min_samples_leaf": 0.01},
        {"refine": None, "max_bins": None},
    ],
)
def test_a_table_of_frequencies_is_the_table_of_its_people(params):
    cells = titanic()
    people = cells.loc[np.repeat(cells.index, cells["people"])]
    assert (len(cells), len(people)) == (24, 2201)
    features = ["class", "sex", "age"]
    model = make_tree(ShapeTreeClassifier, max_depth=3, **params)
    one = clone(model).fit(cells[features], cells["survived"], cells["people"])
    other = clone(model).fit(people[features], people["survived"])
    assert one.tree_.n_node_samples[0] == 2201
    assert one.to_json() == other.to_json()
    assert str(one.rules()) == str(other.rules())
    assert export_text(one) == export_text(other)
    assert export_html(one) == export_html(other)


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 3}])
@pytest.mark.parametrize("pairs", [0, "all"])
def test_frequencies_count_people_beside_class_weights_and_in_pairs(class_weight, pairs):
    cells = titanic()
    people = cells.loc[np.repeat(cells.index, cells["people"])]
    features = ["class", "sex", "age"]
    model = ShapeTreeClassifier(
        max_depth=2, class_weight=class_weight, pairs=pairs, min_samples_leaf=50
    )
    one = clone(model).fit(cells[features], cells["survived"], cells["people"])
    other = clone(model).fit(people[features], people["survived"])
    assert_array_equal(one.tree_.n_node_samples, other.tree_.n_node_samples)
    assert str(one.rules()) == str(other.rules())
    assert_array_equal(one.apply(cells[features]), other.apply(cells[features]))


def test_the_rules_of_a_table_of_frequencies_speak_of_people():
    cells = titanic()
    model = ShapeTreeClassifier(max_depth=1, shrinkage=0)
    model.fit(cells[["sex"]], cells["survived"], sample_weight=cells["people"])
    # The interval is that of 470 people, too.
    assert str(model.rules()[0]) == (
        "if sex = Female then yes (73 %, 69 to 77 %)  [470 rows, support 21 %, lift 2.27]"
    )
    model.evaluate(cells[["sex"]], cells["survived"], sample_weight=cells["people"])
    assert "2,201 unseen rows" in export_text(model)


def test_sketches_of_numbers_count_frequencies():
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(300, 3)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.round(10 * np.nan_to_num(X[:, 0]) + 5 * np.nan_to_num(X[:, 1]))
    times = rng.integers(0, 4, 300)
    repeated = np.repeat(np.arange(300), times)
    one = ShapeTreeRegressor(max_depth=3).fit(X, y, sample_weight=times)
    other = ShapeTreeRegressor(max_depth=3).fit(X[repeated], y[repeated])
    assert one.tree_.node_count > 3
    for mine, theirs in zip(one.tree_.sketches, other.tree_.sketches, strict=True):
        assert mine.counts.sum() == theirs.counts.sum()
        assert (mine.mean, mine.deviation) == pytest.approx((theirs.mean, theirs.deviation))
        if mine.density is not None:
            assert mine.density.missing.tolist() == theirs.density.missing.tolist()
            assert mine.density.counts.sum() == theirs.density.counts.sum()
            assert mine.density.totals.sum() == pytest.approx(theirs.density.totals.sum(), rel=1e-3)
    assert_allclose(one._fitted.summary.scales, other._fitted.summary.scales)


def test_weights_that_are_not_whole_leave_every_row_one_row():
    cells = titanic()
    model = ShapeTreeClassifier(max_depth=1)
    model.fit(cells[["sex"]], cells["survived"], sample_weight=cells["people"] / 2)
    assert model.tree_.n_node_samples[0] == 24


@pytest.mark.parametrize("weights", [lambda n: n, lambda n: n / 7, lambda n: None])
def test_balanced_classes_have_the_same_total_weight(weights):
    cells = titanic()
    given = weights(cells["people"])
    model = ShapeTreeClassifier(max_depth=2, class_weight="balanced", teacher=None)
    model.fit(cells[["class", "sex", "age"]], cells["survived"], sample_weight=given)
    assert_allclose(model.tree_.value[0], [[0.5, 0.5]])


WITH_PAIRS = {"pairs": "all", "pair_penalty": 0.0, "segment_penalty": 0.0, "leaf_penalty": 0.0}


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("params", [{}, WITH_PAIRS, {"refine": None, "max_bins": None}])
@pytest.mark.parametrize("seed", range(3))
def test_weights_and_order_among_very_many_distinct_targets(criterion, params, seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(700, 3)), 1)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(scale=0.3, size=700)
    times = rng.integers(1, 4, len(X))
    repeated, order = np.repeat(np.arange(700), times), rng.permutation(700)
    assert len(np.unique(y)) > 512
    params = params | ONE_ROW | {"max_depth": 3, "refine_penalty": 1.0, "n_threads": 1}
    one = make_tree(ShapeTreeRegressor, criterion=criterion, **params).fit(
        X, y, sample_weight=times
    )
    other = make_tree(ShapeTreeRegressor, criterion=criterion, **params).fit(
        X[repeated], y[repeated]
    )
    assert one.tree_.n_leaves > 3
    assert_array_equal(one.apply(X), other.apply(X))
    assert_array_equal(one.predict(X), other.predict(X))
    other = make_tree(ShapeTreeRegressor, criterion=criterion, **params)
    other.fit(X[order], y[order], sample_weight=times[order])
    assert_array_equal(one.apply(X), other.apply(X))
    assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("has_classes", [True, False])
def test_categories_of_rows_without_weight_are_not_known(has_classes):
    rng = np.random.default_rng(0)
    X = np.array(list("abcdefghij"))[rng.integers(0, 4, (300, 1))].astype(object)
    y = ((X[:, 0] == "a") | (X[:, 0] == "c")) * 1.0 + rng.normal(scale=0.2, size=300)
    X[:40, 0] = rng.choice(list("efghij"), 40)
    weights = np.append(np.zeros(40), rng.integers(1, 3, 260))
    kind = ShapeTreeClassifier if has_classes else ShapeTreeRegressor
    targets = (y > 0.5) * 1 if has_classes else y
    one = kind(categorical_features=[0]).fit(X, targets, sample_weight=weights)
    other = kind(categorical_features=[0]).fit(X[40:], targets[40:], sample_weight=weights[40:])
    assert_same_tree(one, other)
    assert one.to_json() == other.to_json()


@some
@given(st.sampled_from(CRITERIA), every_way, seeds)
def test_a_row_without_weight_is_no_row(criterion, params, seed):
    rng = np.random.default_rng(seed)
    X, y = data_for(criterion, rng, n_rows=400)
    weights = distinct_weights(rng, len(X)) * rng.integers(0, 2, len(X))
    params |= {"min_samples_leaf": 3, "min_samples_split": 0.05}
    kept = weights > 0
    one = tree_for(criterion, **params).fit(X, y, sample_weight=weights)
    other = tree_for(criterion, **params).fit(X[kept], y[kept], sample_weight=weights[kept])
    assert_same_tree(one, other)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_equal_weights_are_no_weights(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    one, other = tree_for(criterion), tree_for(criterion)
    assert_same_tree(one.fit(X, y), other.fit(X, y, sample_weight=np.ones(len(X))))


def test_weights_count_as_evidence():
    X, y = noisy_classes(np.random.default_rng(0))
    light, heavy = (
        ShapeTreeClassifier(search=SearchOptions(segment_penalty=6.0, leaf_penalty=6.0))
        .fit(X, y, sample_weight=np.full(len(X), weight))
        .tree_
        for weight in (0.1, 10.0)
    )
    assert heavy.n_leaves > light.n_leaves
    assert len(heavy.piece_upper) > len(light.piece_upper)


# Targets


@some
@given(st.sampled_from(["gini", "entropy"]), every_way, st.integers(2, 7), seeds)
def test_the_names_of_classes_do_not_matter(criterion, params, n_classes, seed):
    rng = np.random.default_rng(seed)
    X, y = noisy_classes(rng, n_rows=250, n_classes=n_classes)
    weights = distinct_weights(rng, len(X))
    names = np.array(["wolf", "ant", "bee", "cow", "dog", "eel", "fox"])[:n_classes]
    names = rng.permutation(names)
    # Where the best split has too few rows in a branch, what is taken instead may depend on names.
    params = params | {"min_samples_leaf": 1}
    one = tree_for(criterion, **params, random_state=0).fit(X, y, sample_weight=weights)
    other = tree_for(criterion, **params, random_state=0).fit(X, names[y], sample_weight=weights)
    assert_same_groups(one.apply(X), other.apply(X))
    order = np.searchsorted(other.classes_, names)
    assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, order], atol=1e-9)


@some
@given(st.sampled_from(["gini", "entropy", "squared_error"]), every_way, seeds)
def test_the_names_of_categories_do_not_matter(criterion, params, seed):
    rng = np.random.default_rng(seed)
    shape = {} if criterion == "squared_error" else {"n_classes": int(rng.integers(2, 6))}
    X, y = data_for(criterion, rng, n_rows=150, n_values=int(rng.integers(3, 12)), **shape)
    weights, names = distinct_weights(rng, len(X)), rng.permutation(12)
    new_X = X.copy()
    new_X[:, :3] = names[X[:, :3].astype(int)]
    # Where the best split has too few rows in a branch, what is taken instead may depend on names.
    params = params | {"categorical_features": [0, 1, 2], "min_samples_leaf": 1}
    one = tree_for(criterion, **params, random_state=0).fit(X, y, sample_weight=weights)
    other = tree_for(criterion, **params, random_state=0).fit(new_X, y, sample_weight=weights)
    assert_same_partition(one, X, other, new_X)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize(("factor", "shift"), [(1024.0, 0.0), (2.0**-30, 0.0), (1.0, 1000.0)])
def test_scale_and_origin_of_numbers_do_not_matter(criterion, factor, shift):
    X, y = noisy_numbers(np.random.default_rng(0))
    one = tree_for(criterion, n_threads=1).fit(X, y)
    other = tree_for(criterion, n_threads=1).fit(X, factor * y + shift)
    assert_array_equal(one.apply(X), other.apply(X))
    assert_allclose(factor * one.predict(X) + shift, other.predict(X), rtol=1e-9, atol=1e-12)


def test_the_order_of_outputs_does_not_matter():
    X, y = noisy_numbers(np.random.default_rng(0), n_outputs=3)
    one, other = ShapeTreeRegressor().fit(X, y), ShapeTreeRegressor().fit(X, y[:, ::-1])
    assert_same_groups(one.apply(X), other.apply(X))
    assert_allclose(one.predict(X), other.predict(X)[:, ::-1])


# How the work is done


@pytest.mark.parametrize("max_bins", [None, 255])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.usefixtures("threads_at_once")
def test_the_tree_is_bitwise_the_same_for_any_number_of_threads(criterion, max_bins):
    X, y = data_for(criterion, np.random.default_rng(0), n_rows=12_000, n_features=6)
    X[::7, 1] = np.nan
    params = {"max_bins": max_bins, "max_depth": 6, "leaf_penalty": 1.0, "random_state": 0}
    first, *others = (
        tree_for(criterion, **params, n_threads=n_threads).fit(X, y) for n_threads in (1, 2, 5)
    )
    for other in others:
        assert_same_tree(first, other)
        assert_array_equal(first.apply(X), other.apply(X))


@pytest.mark.parametrize("assignment", ["auto", "coordinate_descent", "kmeans", "random"])
def test_the_same_random_state_gives_the_same_tree(assignment):
    X, y = noisy_classes(np.random.default_rng(0), n_classes=6)
    model = ShapeTreeClassifier(random_state=3, search=SearchOptions(assignment=assignment))
    other = ShapeTreeClassifier(
        random_state=np.random.RandomState(3), search=SearchOptions(assignment=assignment)
    )
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert_same_tree(model.fit(X, y), other.fit(X, y))
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_no_parameter_but_random_assignment_needs_a_random_state():
    X, y = noisy_classes(np.random.default_rng(0), n_classes=6)
    one, other = ShapeTreeClassifier(random_state=1), ShapeTreeClassifier(random_state=2)
    assert_same_groups(one.fit(X, y).apply(X), other.fit(X, y).apply(X))


# The table's kind


def kinds_of_table(X):
    """The same values, held in different ways."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    names = [f"column {j}" for j in range(X.shape[1])]
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::3] = X
    return {
        "float64": X.astype(np.float64),
        "Fortran order": np.asfortranarray(X),
        "strided": wide[::2, ::3],
        "big endian": X.astype(">f4"),
        "list": X.tolist(),
        "object": X.astype(object),
        "pandas": pandas.DataFrame(X, columns=names),
        "pandas with missing values": pandas.DataFrame(X, columns=names).convert_dtypes(),
        "polars": polars.DataFrame(dict(zip(names, X.T, strict=True))),
        "pyarrow": pyarrow.table(dict(zip(names, X.T, strict=True))),
    }


@pytest.mark.parametrize("max_bins", [None, 255])
@pytest.mark.parametrize("missing", [False, True])
def test_the_kind_of_table_does_not_matter(max_bins, missing):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=600, n_features=3)
    X = X / np.float32(7)
    X[::5] = np.nan if missing else X[::5]
    model = ShapeTreeClassifier(max_bins=max_bins).fit(X, y)
    for kind, table in kinds_of_table(X).items():
        other = ShapeTreeClassifier(max_bins=max_bins).fit(table, y)
        assert_same_tree(model, other)
        assert_array_equal(model.apply(X), other.apply(table), err_msg=kind)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float16, bool])
def test_the_kind_of_number_does_not_matter(dtype):
    X, y = noisy_classes(np.random.default_rng(0), n_values=2 if dtype is bool else 50)
    one, other = ShapeTreeClassifier().fit(X, y), ShapeTreeClassifier().fit(X.astype(dtype), y)
    # Thresholds between whole numbers are whole.
    assert_array_equal(one.tree_.value, other.tree_.value)
    assert_array_equal(one.apply(X), other.apply(X.astype(dtype)))


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "column", "int8", "float32"])
def test_the_kind_of_targets_does_not_matter(kind):
    X, y = noisy_classes(np.random.default_rng(0))
    if kind in ("pandas", "polars"):
        held = pytest.importorskip(kind).Series(y)
    else:
        held = {"list": y.tolist(), "column": y[:, None]}.get(kind)
        held = y.astype(kind) if held is None else held
    assert_same_tree(ShapeTreeClassifier().fit(X, y), ShapeTreeClassifier().fit(X, held))
    assert_same_tree(ShapeTreeRegressor().fit(X, y), ShapeTreeRegressor().fit(X, held))


@pytest.mark.parametrize(
    "hold",
    [
        lambda labels: np.array(labels),
        lambda labels: np.array(labels, dtype="U20"),
        lambda labels: pd.Series(labels, dtype="string"),
        lambda labels: pd.Series(labels, dtype="category"),
        lambda labels: pl.Series(labels),
        lambda labels: pl.Series(labels, dtype=pl.Categorical),
        lambda labels: pa.array(labels),
        lambda labels: pa.chunked_array([labels[:50], labels[50:]]),
    ],
)
def test_labels_of_text_give_the_same_model_file_whatever_holds_them(hold):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=200)
    labels = np.array(["alive", "dead", "gone"])[y % 3].tolist()
    model, other = ShapeTreeClassifier().fit(X, labels), ShapeTreeClassifier().fit(X, hold(labels))
    assert model.to_json() == other.to_json()
    assert model.classes_.dtype == other.classes_.dtype


# Bins


@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_bins_change_nothing_where_every_value_has_its_own(criterion, weigh):
    rng = np.random.default_rng(0)
    X, y = data_for(criterion, rng, n_rows=500, n_values=200)
    X[:25, 0] = np.nan
    weights = distinct_weights(rng, len(X)) if weigh else None
    exact, binned = (
        tree_for(criterion, max_bins=max_bins).fit(X, y, sample_weight=weights)
        for max_bins in (None, 200)
    )
    assert_array_equal(exact.apply(X), binned.apply(X))
    assert_array_equal(exact.tree_.piece_upper, binned.tree_.piece_upper)
    assert_allclose(exact.tree_.value, binned.tree_.value, rtol=1e-9, atol=1e-12)


def test_few_bins_give_few_thresholds():
    X, y = noisy_numbers(np.random.default_rng(0), n_features=1)
    model = make_tree(ShapeTreeRegressor, **UNRESTRAINED | {"max_bins": 4}).fit(X, y)
    bounds = model.tree_.piece_upper
    assert len(set(bounds[np.isfinite(bounds)])) == 3


def equally_good_columns(rng):
    """Columns that have the same values equally often."""
    n, n_features = int(rng.integers(20, 40)), int(rng.integers(2, 6))
    return np.stack([rng.permutation(np.arange(n) // 2) for _ in range(n_features)], axis=1)


def ranked(X, y, weights):
    """Features of a table, the preferred ones first."""
    parameters = ShapeTreeClassifier()._parameters()
    about = training_rows(X.astype(float), y, weights, parameters, True)
    binned = bin_table(about.table, about.weights, 255, 1)
    return feature_order(LocalRows(about.table, binned, about.goal(parameters), 1))


@given(seeds, st.booleans())
def test_equally_good_features_rank_the_same_whatever_the_order_of_rows_and_columns(seed, weighted):
    rng = np.random.default_rng(seed)
    X = equally_good_columns(rng)
    n, n_features = X.shape
    times = rng.integers(1, 4, n) if weighted else np.ones(n, dtype=int)
    y = np.arange(n) % 2
    usual, columns = ranked(X, y, times), rng.permutation(n_features)
    assert_array_equal(columns[ranked(X[:, columns], y, times)], usual)
    shuffled = rng.permutation(n)
    assert_array_equal(ranked(X[shuffled], y[shuffled], times[shuffled]), usual)
    repeated = rng.permutation(np.repeat(np.arange(n), times))
    assert_array_equal(ranked(X[repeated], y[repeated], None), usual)


def test_rows_that_hold_the_same_in_other_columns_rank_features_alike():
    """Their order does not decide which of them stands for both."""
    X = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1], [3, 4, 4], [4, 3, 5], [5, 5, 3]])
    y = np.array([0, 1, 0, 1, 0, 1])
    usual = ranked(X, y, None)
    for order in permutations(range(len(X))):
        assert_array_equal(ranked(X[list(order)], y[list(order)], None), usual)


@given(seeds)
def test_constant_columns_do_not_change_the_rank_of_others(seed):
    rng = np.random.default_rng(seed)
    X = equally_good_columns(rng)
    y, place = np.arange(len(X)) % 2, int(rng.integers(X.shape[1] + 1))
    beside = ranked(np.insert(X, place, 7, axis=1), y, None)
    others = beside[beside != place]
    assert_array_equal(others - (others > place), ranked(X, y, None))


@given(seeds, st.sampled_from([0.3, 1 / 7, 1e-200, 3e9]))
def test_the_size_of_weights_does_not_change_the_rank_of_features(seed, size):
    rng = np.random.default_rng(seed)
    X = equally_good_columns(rng)
    y, weights = np.arange(len(X)) % 2, rng.choice([0.5, 0.7, 1.1], len(X))
    assert_array_equal(ranked(X, y, size * weights), ranked(X, y, weights))
