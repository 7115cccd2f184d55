"""The estimators behave as people expect of scikit-learn, on the data that people have."""

import pickle

import joblib
import numpy as np
import pytest
from data import arrays_of, assert_same_tree, flat_params, make_tree, noisy_classes, noisy_numbers
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.class_weight import compute_sample_weight

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree._core.pieces import thresholds_between

FRAMES = ["pandas", "polars", "pyarrow"]
RESOLUTIONS = [None, 255]


def frame(kind, data):
    """Build a data frame of one kind from a dict of columns."""
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table(data)
    return pytest.importorskip(kind).DataFrame(data)


@pytest.fixture(scope="module")
def classes():
    return noisy_classes(np.random.default_rng(0), n_rows=200)


@pytest.fixture(scope="module")
def numbers():
    return noisy_numbers(np.random.default_rng(0), n_rows=200)


@pytest.fixture(scope="module")
def classifier(classes):
    return ShapeTreeClassifier(search=SearchOptions(segment_penalty=1.0, leaf_penalty=0.0)).fit(
        *classes
    )


@pytest.fixture(scope="module")
def regressor(numbers):
    return ShapeTreeRegressor(search=SearchOptions(segment_penalty=1.0, leaf_penalty=0.0)).fit(
        *numbers
    )


# Predictions


def test_without_shrinkage_probabilities_are_shares_of_the_leaf(classes):
    X, y = classes
    model = ShapeTreeClassifier(shrinkage=0).fit(X, y)
    leaves, probabilities = model.apply(X), model.predict_proba(X)
    for leaf in np.unique(leaves):
        shares = np.bincount(y[leaves == leaf], minlength=3) / np.count_nonzero(leaves == leaf)
        assert_allclose(probabilities[leaves == leaf], np.tile(shares, ((leaves == leaf).sum(), 1)))


def test_log_probabilities_are_logarithms(classifier, classes):
    with np.errstate(divide="ignore"):
        expected = np.log(classifier.predict_proba(classes[0]))
    assert_array_equal(classifier.predict_log_proba(classes[0]), expected)


def test_the_most_probable_class_is_predicted(classifier, classes):
    best = classifier.predict_proba(classes[0]).argmax(axis=1)
    assert_array_equal(classifier.predict(classes[0]), classifier.classes_[best])


@pytest.mark.parametrize(
    ("criterion", "middle"), [("squared_error", "mean"), ("absolute_error", "median")]
)
def test_the_middle_of_the_leaf_is_predicted(numbers, criterion, middle):
    X, y = numbers
    model = ShapeTreeRegressor(objective=criterion, shrinkage=0).fit(X, y)
    leaves, predicted = model.apply(X), model.predict(X)
    for leaf in np.unique(leaves):
        assert_allclose(predicted[leaves == leaf], getattr(np, middle)(y[leaves == leaf]))


def test_scores_are_accuracy_and_r2(classifier, classes, regressor, numbers):
    X, y = classes
    assert classifier.score(X, y) == accuracy_score(y, classifier.predict(X))
    X, y = numbers
    weights = np.arange(len(X)) + 1.0
    expected = r2_score(y, regressor.predict(X), sample_weight=weights)
    assert regressor.score(X, y, sample_weight=weights) == expected


def test_paths_lead_from_the_root_to_the_leaf(classifier, classes):
    tree, leaves = classifier.tree_, classifier.apply(classes[0])
    paths = classifier.decision_path(classes[0])
    assert paths.shape == (200, tree.node_count)
    for row, leaf in enumerate(leaves):
        nodes = paths.indices[paths.indptr[row] : paths.indptr[row + 1]]
        assert nodes[0] == 0
        assert nodes[-1] == leaf
        assert_array_equal(tree.parent[nodes[1:]], nodes[:-1])


def test_training_rows_are_where_the_nodes_count_them(classifier, regressor, classes, numbers):
    for model, (X, _) in ((classifier, classes), (regressor, numbers)):
        assert_array_equal(model.decision_path(X).sum(axis=0).A1, model.tree_.n_node_samples)


def test_depth_and_leaves_are_those_of_the_tree(classifier, classes):
    paths = classifier.decision_path(classes[0])
    assert classifier.get_depth() == paths.sum(axis=1).max() - 1
    assert classifier.get_n_leaves() == len(np.unique(classifier.apply(classes[0])))


def test_importances_are_shares_of_the_gain(classifier, regressor):
    for model in (classifier, regressor):
        importances = model.feature_importances_
        assert importances.shape == (4,)
        assert importances.sum() == pytest.approx(1)
        assert importances.min() >= 0
    assert classifier.feature_importances_[0] == classifier.feature_importances_.max()


def test_gains_are_what_children_lack_of_impurity(classifier, regressor):
    for tree in (classifier.tree_, regressor.tree_):
        mass = tree.impurity * tree.weighted_n_node_samples
        for node in np.flatnonzero(~tree.is_leaf):
            assert mass[node] - mass[tree.children(node)].sum() == pytest.approx(tree.gain[node])


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "apply", "decision_path"]
)
def test_methods_of_an_unfitted_tree_ask_for_a_fit(method, classes):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(ShapeTreeClassifier(), method)(classes[0])


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_sizes_of_an_unfitted_tree_ask_for_a_fit(kind):
    with pytest.raises(NotFittedError):
        kind().get_depth()
    with pytest.raises(NotFittedError):
        kind().get_n_leaves()
    assert not hasattr(kind(), "feature_importances_")


# Several outputs


def assert_same_shapes(ours, theirs):
    assert isinstance(ours, list) == isinstance(theirs, list)
    ours, theirs = (one if isinstance(one, list) else [one] for one in (ours, theirs))
    assert [(a.shape, a.dtype) for a in ours] == [(a.shape, a.dtype) for a in theirs]


@pytest.mark.parametrize("n_outputs", [1, 2, 3])
def test_outputs_have_the_shapes_of_scikit_learn(classes, n_outputs):
    X, y = classes
    y = np.stack([y, y % 2, y + 10], axis=1)[:, :n_outputs]
    ours, theirs = ShapeTreeClassifier().fit(X, y), DecisionTreeClassifier().fit(X, y)
    for method in ("predict", "predict_proba"):
        assert_same_shapes(getattr(ours, method)(X), getattr(theirs, method)(X))
    assert_same_shapes(ours.classes_, theirs.classes_)
    assert ours.n_outputs_ == theirs.n_outputs_
    assert_array_equal(ours.n_classes_, theirs.n_classes_)
    ours, theirs = ShapeTreeRegressor().fit(X, 1.0 * y), DecisionTreeRegressor().fit(X, 1.0 * y)
    assert_same_shapes(ours.predict(X), theirs.predict(X))
    assert ours.score(X, 1.0 * y) <= 1


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_one_tree_learns_several_numbers(criterion):
    X, y = noisy_numbers(np.random.default_rng(0), n_outputs=2)
    model = ShapeTreeRegressor(objective=criterion, shrinkage=0).fit(X, y)
    middle = np.mean if criterion == "squared_error" else np.median
    leaves, predicted = model.apply(X), model.predict(X)
    for leaf in np.unique(leaves):
        assert_allclose(predicted[leaves == leaf][0], middle(y[leaves == leaf], axis=0))


def test_one_tree_learns_several_string_classes(classes):
    X, y = classes
    y = np.stack([np.array(["a", "b", "c"])[y], np.where(X[:, 1] > 100, "high", "low")], axis=1)
    model = ShapeTreeClassifier(
        max_branches=6, refine=None, search=SearchOptions(segment_penalty=0)
    ).fit(X, y)
    assert_array_equal(model.classes_[1], ["high", "low"])
    assert np.mean(model.predict(X) == y) > 0.8


# Labels


@pytest.mark.parametrize("n_classes", [26, 100])
@pytest.mark.parametrize("max_branches", [2, 3, 5])
@pytest.mark.parametrize("max_bins", RESOLUTIONS)
def test_many_classes_are_learnt(n_classes, max_branches, max_bins):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (3000, 3))
    y = (X[:, 0] * n_classes).astype(int)
    params = {"max_depth": 8, "max_branches": max_branches, "max_bins": max_bins}
    model = make_tree(ShapeTreeClassifier, criterion="entropy", segment_penalty=1.0, **params).fit(
        X, y
    )
    assert model.predict_proba(X).shape == (3000, n_classes)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    "labels",
    [
        ["low", "middle", "high"],
        np.array(["low", "middle", "high"], dtype=object),
        [-5, 0, 10**9],
        [0.5, 1.0, 7.0],
    ],
)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_any_labels_are_given_back(classes, labels):
    X, y = classes
    labels = np.asarray(labels)
    if labels.dtype.kind == "f":
        labels = labels * 2
    model = ShapeTreeClassifier().fit(X, labels[y])
    assert_array_equal(model.classes_, np.unique(labels))
    # Text of any type is given back as objects.
    assert model.predict(X).dtype == (object if labels.dtype.kind == "U" else labels.dtype)
    assert model.score(X, labels[y]) > 0.7


def test_boolean_labels_are_given_back(classes):
    X, y = classes
    model = ShapeTreeClassifier().fit(X, y == 1)
    assert_array_equal(model.classes_, [False, True])
    assert model.predict(X).dtype == bool


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_targets_may_be_a_series_of_strings(kind, classes):
    X, y = classes
    names = np.array(["a", "b", "c"])[y]
    model = ShapeTreeClassifier().fit(X, pytest.importorskip(kind).Series(names.tolist()))
    assert_array_equal(model.classes_, ["a", "b", "c"])


# Little data


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_one_class_gives_one_leaf(classes, criterion, max_bins):
    X, _ = classes
    model = ShapeTreeClassifier(max_bins=max_bins, search=SearchOptions(criterion=criterion)).fit(
        X, ["a"] * len(X)
    )
    assert model.get_n_leaves() == 1
    assert_array_equal(model.predict(X), ["a"] * len(X))
    assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))
    assert_array_equal(model.feature_importances_, np.zeros(4))


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e300, -1e-300])
def test_one_number_gives_one_leaf(classes, criterion, max_bins, value):
    X, _ = classes
    model = ShapeTreeRegressor(objective=criterion, max_bins=max_bins).fit(X, [value] * len(X))
    assert model.get_n_leaves() == 1
    assert_allclose(model.predict(X), value, rtol=1e-15)


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_one_row_is_enough(kind, max_bins):
    model = kind(max_bins=max_bins).fit([[1.0, 2.0]], [3])
    assert_array_equal(model.predict([[5.0, 6.0], [np.nan, np.inf]]), [3, 3])


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
@pytest.mark.parametrize("constant", [0.0, np.nan, np.inf, -np.inf])
def test_constant_columns_are_never_split(classes, max_bins, constant):
    X, y = classes
    X = np.full_like(X, constant)
    model = ShapeTreeClassifier(max_bins=max_bins).fit(X, y)
    assert model.get_n_leaves() == 1
    assert_allclose(model.predict_proba(X)[0], np.bincount(y) / len(y))


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
def test_two_rows_are_told_apart(max_bins):
    free = {"segment_penalty": 0, "leaf_penalty": 0, "min_samples_leaf": 1, "max_bins": max_bins}
    model = make_tree(ShapeTreeClassifier, **free).fit([[0.1], [0.9]], ["a", "b"])
    assert_array_equal(model.predict([[-1], [0.5], [0.51], [2]]), ["a", "a", "b", "b"])


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_whole_numbers_are_told_apart_at_a_whole_number_whatever_their_type(dtype):
    X = np.repeat(np.array([[0], [1]], dtype=dtype), 20, axis=0)
    model = ShapeTreeClassifier(max_depth=1).fit(X, np.repeat(["a", "b"], 20))
    assert model.rules()[0].premise() == "x0 ≤ 0 or missing"


# Copies and the tools of scikit-learn


@pytest.mark.parametrize(
    "copy",
    [
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    ],
)
def test_pickles_predict_bitwise_the_same(copy, classifier, regressor, classes, numbers):
    for model, (X, _) in ((classifier, classes), (regressor, numbers)):
        twin = copy(model)
        assert_same_tree(twin, model)
        assert_array_equal(twin.predict(X), model.predict(X))
        assert flat_params(twin) == flat_params(model)
    assert_array_equal(
        copy(classifier).predict_proba(classes[0]), classifier.predict_proba(classes[0])
    )


def test_joblib_saves_and_maps_models(tmp_path, classifier, classes):
    joblib.dump(classifier, tmp_path / "model.joblib")
    for mmap_mode in (None, "r"):
        twin = joblib.load(tmp_path / "model.joblib", mmap_mode=mmap_mode)
        assert_array_equal(twin.predict_proba(classes[0]), classifier.predict_proba(classes[0]))


def test_models_predict_in_other_processes(classifier, classes):
    X, _ = classes
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(classifier.predict)(X) for _ in range(2))
    assert_array_equal(found, [classifier.predict(X)] * 2)


def test_the_arrays_of_a_tree_cannot_be_changed(classifier):
    for array in arrays_of(classifier.tree_).values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_clones_are_unfitted_with_the_same_parameters(classifier):
    twin = clone(classifier)
    assert flat_params(twin) == flat_params(classifier)
    assert not hasattr(twin, "tree_")


def test_fitting_again_forgets_the_first_fit(classes):
    pandas = pytest.importorskip("pandas")
    X, y = classes
    model = ShapeTreeClassifier().fit(pandas.DataFrame(X, columns=list("abcd")), y)
    model.fit(X[:, :2], y == 1)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert_same_tree(model, ShapeTreeClassifier().fit(X[:, :2], y == 1))


def test_set_params_changes_the_next_fit(classes):
    model = ShapeTreeClassifier().set_params(max_depth=1, max_branches=2)
    assert model.fit(*classes).get_n_leaves() == 2
    with pytest.raises(ValueError, match="max_brunches"):
        model.set_params(max_brunches=2)


def test_the_representation_names_what_is_not_default():
    assert repr(ShapeTreeClassifier()) == "ShapeTreeClassifier()"
    assert repr(ShapeTreeRegressor(max_depth=9)) == "ShapeTreeRegressor(max_depth=9)"
    assert "ShapeTreeRegressor" in ShapeTreeRegressor()._repr_html_()


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_options_of_the_search_are_set_like_parameters(kind):
    options = SearchOptions(n_orientations=4)
    model = kind(search=options)
    assert repr(model) == f"{kind.__name__}(search=SearchOptions(n_orientations=4))"
    twin = clone(model).set_params(search__n_orientations=6, search__refine_iter=2, max_depth=3)
    assert (twin.search.n_orientations, twin.search.refine_iter, twin.max_depth) == (6, 2, 3)
    assert (model.search is options, options.n_orientations) == (True, 4)
    default = kind()
    assert default.search is None
    assert default.set_params(search__n_orientations=6).get_params()["search__n_orientations"] == 6
    assert kind().search is None
    pipeline = Pipeline([("tree", kind())]).set_params(tree__search__n_orientations=5)
    assert pipeline["tree"].search.n_orientations == 5
    with pytest.raises(ValueError, match="'n_orientation'"):
        kind().set_params(search__n_orientation=6)


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_grid_search_finds_parameters(kind):
    X = np.random.default_rng(0).permutation(240)[:, None]
    y = (X[:, 0] % 80 < 40).astype(int)
    grid = {"max_branches": [2, 3], "max_bins": [None, 16], "search__inner_max_leaf_nodes": [2, 8]}
    search = GridSearchCV(kind(max_depth=1), grid, cv=3, n_jobs=1).fit(X, y)
    assert search.best_params_["search__inner_max_leaf_nodes"] == 8
    assert search.best_score_ > 0.8


def test_a_pipeline_keeps_categories_in_a_data_frame():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {"size": rng.normal(size=300), "colour": rng.choice(["red", "green", "blue"], 300)}
    )
    y = (table["colour"] == "red") ^ (table["size"] > 0)
    columns = ColumnTransformer(
        [("scale", StandardScaler(), ["size"]), ("keep", "passthrough", ["colour"])],
        verbose_feature_names_out=False,
    )
    model = Pipeline([("columns", columns), ("tree", ShapeTreeClassifier())])
    model.set_output(transform="pandas").fit(table, y)
    assert_array_equal(model["tree"].feature_names_in_, ["size", "colour"])
    assert model.score(table, y) > 0.95


def test_cross_validation_works(classes, numbers):
    assert cross_val_predict(ShapeTreeClassifier(), *classes, cv=3).shape == (200,)
    by_class = cross_val_predict(ShapeTreeClassifier(), *classes, cv=3, method="predict_proba")
    assert by_class.shape == (200, 3)
    assert cross_val_score(ShapeTreeClassifier(), *classes, cv=3).mean() > 0.6
    assert len(cross_validate(ShapeTreeRegressor(), *numbers, cv=3)["test_score"]) == 3


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_can_be_calibrated(classes, method):
    X, y = classes
    model = CalibratedClassifierCV(ShapeTreeClassifier(), method=method, cv=3).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_sample_weights_are_routed(classes):
    X, y = classes
    weights = np.where(y == 0, 0.0, 1.0)
    with config_context(enable_metadata_routing=True):
        tree = ShapeTreeClassifier().set_fit_request(sample_weight=True)
        model = make_pipeline(FunctionTransformer(), tree).fit(X, y, sample_weight=weights)
        assert 0 not in model.predict(X)
        tree.set_score_request(sample_weight=True)
        cross_validate(tree, X, y, params={"sample_weight": weights}, cv=2)


def test_scikit_learn_knows_what_the_estimators_take():
    tags = ShapeTreeClassifier().__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert tags.input_tags.string
    assert not tags.input_tags.sparse
    assert tags.target_tags.multi_output


def test_the_caller_s_data_stay_as_they_are(classes):
    X, y = (array.copy() for array in classes)
    weights = np.linspace(0, 1, len(X))
    ShapeTreeClassifier(class_weight="balanced").fit(X, y, sample_weight=weights).predict(X)
    assert_array_equal(X, classes[0])
    assert_array_equal(y, classes[1])
    assert_array_equal(weights, np.linspace(0, 1, len(X)))


def test_read_only_data_are_taken(classes):
    X, y = (array.copy() for array in classes)
    weights = np.ones(len(X)) / 2
    for array in (X, y, weights):
        array.flags.writeable = False
    for max_bins in RESOLUTIONS:
        ShapeTreeClassifier(max_bins=max_bins).fit(X, y, sample_weight=weights).predict(X)


# Tables


@pytest.mark.parametrize("kind", FRAMES)
def test_names_of_columns_are_kept(kind, classes):
    X, y = classes
    table = frame(kind, dict(zip(["a", "b", "c d", "é"], X.T, strict=True)))
    model = ShapeTreeClassifier().fit(table, y)
    assert model.n_features_in_ == 4
    assert_array_equal(model.feature_names_in_, ["a", "b", "c d", "é"])
    assert model.score(table, y) > 0.6


@pytest.fixture(params=FRAMES)
def mixed(request):
    """A table of numbers, strings and booleans with holes, and classes that need them all."""
    rng = np.random.default_rng(0)
    number = rng.normal(size=600)
    colour = rng.choice(["red", "green", "blue", "grey"], 600)
    flag = rng.integers(0, 2, 600).astype(bool)
    y = np.where(flag, number > 0, np.isin(colour, ["red", "blue"]))
    hole = rng.uniform(size=600) < 0.05
    columns = {
        "number": [
            None if gone else float(value) for value, gone in zip(number, hole, strict=True)
        ],
        "colour": [
            None if gone else str(value) for value, gone in zip(colour, hole[::-1], strict=True)
        ],
        "flag": flag.tolist(),
    }
    return frame(request.param, columns), y


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
def test_numbers_strings_and_booleans_are_learnt_together(mixed, max_bins):
    table, y = mixed
    model = ShapeTreeClassifier(max_bins=max_bins, max_depth=5).fit(table, y)
    assert model.score(table, y) > 0.9
    assert (model.feature_importances_ > 0).all()


def test_every_kind_of_table_gives_the_same_tree(mixed):
    table, y = mixed
    rows = table.to_pylist() if hasattr(table, "to_pylist") else None
    if rows is None:
        rows = table.to_dicts() if hasattr(table, "to_dicts") else table.to_dict("records")
    array = np.array([list(row.values()) for row in rows], dtype=object)
    model = ShapeTreeClassifier().fit(table, y)
    other = ShapeTreeClassifier(categorical_features=[1, 2]).fit(array, y)
    assert_same_tree(model, other)


def test_pandas_categories_are_categories():
    pandas = pytest.importorskip("pandas")
    values = np.tile(["low", "high", "middle", "none"], 50)
    y = np.isin(values, ["low", "middle"])
    table = pandas.DataFrame(
        {"level": pandas.Categorical(values, ["none", *sorted(set(values))[:-1]])}
    )
    model = ShapeTreeClassifier().fit(table, y)
    assert model.get_n_leaves() == 2
    assert model.score(table, y) == 1.0


@pytest.mark.parametrize("categorical_features", [[0], [True, False], ["x0"], np.array([0])])
def test_columns_of_an_array_may_be_declared_categories(categorical_features):
    X = np.tile([[3.0, 0.0], [1.0, 0.0], [7.0, 0.0], [2.0, 0.0]], (50, 1))
    y = np.isin(X[:, 0], [1, 7])
    model = ShapeTreeClassifier(categorical_features=categorical_features, max_branches=2).fit(X, y)
    assert model.get_n_leaves() == 2
    assert model.score(X, y) == 1.0
    assert_array_equal(model.tree_.piece_branch, [0, 1, 1, 0])  # of 1, 2, 3 and 7


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("max_bins", RESOLUTIONS)
def test_thousands_of_categories_are_learnt(kind, max_bins):
    rng = np.random.default_rng(0)
    code = rng.permutation(np.repeat(np.arange(3000), 8))
    table = frame(kind, {"code": [f"code {number}" for number in code]})
    y = (code * 7919) % 3
    free = {"max_parts": None, "segment_penalty": 0.5, "leaf_penalty": 0}
    model = make_tree(ShapeTreeClassifier, max_bins=max_bins, **free)
    assert model.fit(table, y).score(table, y) == 1.0
    assert model.get_n_leaves() == 3


# Missing, unseen and infinite values


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
@pytest.mark.parametrize("side", [0, 1])
def test_missing_numbers_go_where_it_is_best(max_bins, side):
    x = np.repeat([1.0, 2.0, 3.0, 4.0, np.nan], 20)
    y = np.where(np.isnan(x), side, x > 2)
    model = ShapeTreeClassifier(max_branches=2, max_bins=max_bins).fit(x[:, None], y)
    assert model.get_n_leaves() == 2
    assert_array_equal(model.predict([[1], [4], [np.nan]]), [0, 1, side])


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
def test_missing_numbers_may_have_a_branch_of_their_own(max_bins):
    x = np.repeat([1.0, 2.0, 3.0, 4.0, np.nan], 20)
    y = np.where(np.isnan(x), 2, x > 2)
    model = ShapeTreeClassifier(max_branches=3, max_bins=max_bins).fit(x[:, None], y)
    assert model.get_n_leaves() == 3
    assert model.score(x[:, None], y) == 1.0


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
def test_missing_against_known_is_a_split(max_bins):
    x = np.repeat([1.0, np.nan], 20)
    model = ShapeTreeClassifier(max_bins=max_bins).fit(x[:, None], np.isnan(x))
    assert_array_equal(model.predict([[1], [5], [np.nan]]), [False, False, True])


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
@pytest.mark.parametrize("larger", [0, 1])
def test_missing_numbers_go_to_the_larger_branch_if_training_saw_none(max_bins, larger):
    x = np.repeat([0.0, 1.0], [60, 20] if larger == 0 else [20, 60])
    model = ShapeTreeClassifier(max_bins=max_bins).fit(x[:, None], x.astype(int))
    assert_array_equal(model.predict([[np.nan]]), [larger])


def test_the_larger_branch_is_the_heavier_one():
    x = np.repeat([0.0, 1.0], [60, 20])
    model = ShapeTreeClassifier().fit(x[:, None], x.astype(int), sample_weight=1 + 9 * x)
    assert_array_equal(model.predict([[np.nan]]), [1])


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("side", [0, 1])
def test_unseen_categories_go_where_missing_ones_go(kind, side):
    letters = ["a", "b", "c", None] * 20
    y = [side if letter is None else int(letter == "b") for letter in letters]
    model = ShapeTreeClassifier(max_branches=2).fit(frame(kind, {"letter": letters}), y)
    new = frame(kind, {"letter": ["a", "b", "c", None, "unseen"]})
    assert_array_equal(model.predict(new), [0, 1, 0, side, side])


@pytest.mark.parametrize("kind", FRAMES)
def test_unseen_categories_go_to_the_larger_branch_if_none_was_missing(kind):
    table = frame(kind, {"letter": ["a", "b", "b"] * 20})
    model = ShapeTreeClassifier().fit(table, [0, 1, 1] * 20)
    new = frame(kind, {"letter": ["a", "b", "unseen", None]})
    assert_array_equal(model.predict(new), [0, 1, 1, 1])


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinities_are_the_least_and_the_greatest_values(max_bins, dtype):
    x = np.repeat(np.array([-np.inf, -1, 1, np.inf], dtype=dtype), 20)
    y = np.repeat([0, 1, 2, 3], 20)
    model = ShapeTreeClassifier(max_branches=4, max_bins=max_bins).fit(x[:, None], y)
    greatest = np.finfo(dtype).max
    new = np.array([[-np.inf], [-1], [1], [np.inf]], dtype=dtype)
    assert_array_equal(model.predict(new), [0, 1, 2, 3])
    assert_array_equal(model.predict(np.array([[0.1], [-0.1]], dtype=dtype)), [2, 1])
    assert model.score(x[:, None], y) == 1.0
    assert np.isfinite(model.tree_.piece_upper[:-1]).all()
    assert model.predict(np.array([[greatest]], dtype=dtype))[0] in (2, 3)


@pytest.mark.parametrize("max_bins", RESOLUTIONS)
def test_thresholds_lie_between_training_values_and_are_short(max_bins):
    rng = np.random.default_rng(0)
    X, y = noisy_numbers(rng, n_rows=2000, n_features=3)
    X = X.astype(np.float64) ** 1.5
    tree = ShapeTreeRegressor(max_bins=max_bins, max_depth=2).fit(X, y).tree_
    root = tree.pieces(0)
    values = np.unique(X[:, tree.feature[0]])
    bounds = tree.piece_upper[root][:-1]
    place = np.searchsorted(values, bounds)
    assert_array_equal(bounds, thresholds_between(values[place - 1], values[place]))


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, np.nextafter(1.0, 2)), (0.0, 5e-324), (-1e308, 1.7e308), (16777216.0, 16777218.0)],
)
@pytest.mark.parametrize("max_bins", RESOLUTIONS)
def test_neighbouring_and_distant_numbers_are_told_apart(low, high, max_bins):
    x = np.repeat([low, high], 20)[:, None]
    model = ShapeTreeClassifier(max_bins=max_bins).fit(x, x[:, 0] == high)
    assert_array_equal(model.predict([[low], [high]]), [False, True])


def test_negative_zero_is_zero():
    x = np.repeat([-0.0, 0.0, 1.0], 20)[:, None]
    model = ShapeTreeClassifier().fit(x, np.repeat([0, 1, 1], 20))
    assert_array_equal(model.apply([[-0.0]]), model.apply([[0.0]]))


# Weights of classes


def assert_predict_alike(X, one, other):
    """Two trees send rows the same way, and predict the same but for rounding."""
    assert_array_equal(one.apply(X), other.apply(X))
    assert_allclose(one.tree_.value, other.tree_.value, rtol=1e-9)


@pytest.mark.parametrize(
    "class_weight", ["balanced", {0: 1, 1: 5, 2: 0.5}, {0: 0, 1: 1, 2: 1}, {1: 3.0}]
)
@pytest.mark.parametrize("weigh", [False, True])
def test_class_weights_are_weights_of_rows(classes, class_weight, weigh):
    X, y = classes
    weights = np.linspace(0.5, 2, len(X)) if weigh else np.ones(len(X))
    model = ShapeTreeClassifier(teacher=None)
    one = clone(model).set_params(class_weight=class_weight).fit(X, y, sample_weight=weights)
    factors = compute_sample_weight(class_weight, y)
    if class_weight == "balanced":
        factors = (weights.sum() / 3 / np.bincount(y, weights))[y]
    total = weights * factors
    # Whole numbers would count rows.
    assert_predict_alike(X, one, model.fit(X, y, sample_weight=0.3 * total))


def test_only_the_ratio_of_class_weights_matters(classes):
    X, y = classes
    trees = [
        ShapeTreeClassifier(class_weight={0: 1 * size, 1: 10 * size, 2: 2 * size}).fit(X, y)
        for size in (1, 0.1, 5, 1e-200)
    ]
    for tree in trees[1:]:
        assert_predict_alike(X, trees[0], tree)


def test_whole_numbers_still_count_rows_beside_class_weights(classes):
    X, y = classes
    counts = np.random.default_rng(3).integers(0, 4, len(X))
    model = ShapeTreeClassifier(class_weight={0: 1, 1: 4, 2: 0.5})
    again = np.repeat(np.arange(len(X)), counts)
    one = model.fit(X, y, sample_weight=counts)
    assert_predict_alike(X, one, clone(model).fit(X[again], y[again]))


def test_class_weights_go_by_label(classes):
    X, y = classes
    names = np.array(["a", "b", "c"])
    one = ShapeTreeClassifier(class_weight={"a": 2.0, "c": 0.5}).fit(X, names[y])
    assert_same_tree(one, ShapeTreeClassifier(class_weight={0: 2.0, 2: 0.5}).fit(X, y))


def test_each_output_may_have_its_own_class_weights(classes):
    X, y = classes
    y = np.stack([y, y % 2], axis=1)
    class_weight = [{0: 1, 1: 2, 2: 3}, {0: 1, 1: 5}]
    one = ShapeTreeClassifier(class_weight=class_weight).fit(X, y)
    weights = 0.3 * compute_sample_weight(class_weight, y)  # whole numbers would count rows
    assert_predict_alike(X, one, ShapeTreeClassifier().fit(X, y, sample_weight=weights))


# Progress


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
@pytest.mark.parametrize("max_depth", [3, None])
def test_a_progress_bar_shows_rows_and_time_if_asked(capsys, classes, kind, max_depth):
    kind(verbose=1, max_depth=max_depth).fit(*classes)
    out, err = capsys.readouterr()
    assert out == ""
    assert "200 rows" in err
    assert "100%" in err
    assert "00:00" in err


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_a_fit_is_silent_by_default(capsys, classes, kind):
    kind().fit(*classes).predict(classes[0])
    assert capsys.readouterr() == ("", "")
