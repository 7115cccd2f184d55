"""Trees that are taught: by small trees on resamples, or by any estimator."""

import numpy as np
import pandas as pd
import pytest
from data import make_tree
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from shapetree import (
    SearchOptions,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_text,
    from_batches,
    from_json,
)
from shapetree.export import export_html
from shapetree.plot import plot_tree
from shapetree.tree._view import view_of


class Oracle(ClassifierMixin, BaseEstimator):
    """A teacher that knows the class of each row by its place."""

    def __init__(self, labels=None):
        self.labels = labels

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    @property
    def classes_(self):
        return np.unique(self.labels)

    def predict_proba(self, X):
        return (np.asarray(self.labels)[:, None] == self.classes_).astype(float)

    def predict(self, X):
        return np.asarray(self.labels)


def small_table(seed, n=120):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["kind"] = pd.Categorical(rng.choice(["p", "q", "r"], n))
    risk = 1 / (1 + np.exp(-(1.5 * X["a"] + (X["kind"] == "q") - X["b"])))
    return X, np.where(rng.random(n) < risk, "ill", "well")


def rows_of_nodes(tree, X, of_rows):
    """Sums over the rows of each node, by what `apply` says."""
    sums = np.bincount(tree.apply(X), of_rows, tree.tree_.node_count)
    for node in range(tree.tree_.node_count - 1, 0, -1):
        sums[tree.tree_.parent[node]] += sums[node]
    return sums


@pytest.mark.parametrize("seed", range(4))
def test_taught_nodes_count_their_own_rows(seed):
    X, y = small_table(seed)
    weights = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    for given in (None, weights):
        tree = ShapeTreeClassifier(teacher="forest").fit(X, y, sample_weight=given)
        each = np.ones(len(y)) if given is None else given
        assert tree.tree_.n_node_samples == pytest.approx(rows_of_nodes(tree, X, each))
        assert tree.tree_.weighted_n_node_samples == pytest.approx(rows_of_nodes(tree, X, each))
        assert tree.tree_.value.sum(axis=2) == pytest.approx(1.0)


def test_taught_rules_speak_of_the_rows_themselves():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    tree = ShapeTreeClassifier().fit(X, y)
    leaves = tree.apply(X)
    for rule in tree.rules():
        own = y[leaves == rule.leaf]
        assert rule.n_rows == len(own)
        assert rule.confidence == pytest.approx((own == rule.prediction[0]).mean())


def test_teaching_leaves_of_numbers_keep_means_of_their_rows():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    tree = ShapeTreeRegressor(teacher="forest").fit(X, y)
    leaves, means = tree.apply(X), [rule.sure.value for rule in tree.rules()]
    numbers = [rule.leaf for rule in tree.rules()]
    assert means == pytest.approx([y[leaves == leaf].mean() for leaf in numbers])
    assert not np.allclose(tree.predict(X), pd.Series(means, numbers)[leaves])


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
def test_a_teacher_who_knows_the_labels_teaches_the_tree_of_the_labels(criterion):
    X, y = load_iris(return_X_y=True)
    plain = ShapeTreeClassifier(
        teacher=None, shrinkage=0, resamples=0, search=SearchOptions(criterion=criterion)
    )
    taught = clone(plain).set_params(teacher=Oracle(y))
    one, other = plain.fit(X, y).tree_, taught.fit(X, y).tree_
    assert np.array_equal(one.feature, other.feature)
    assert np.array_equal(one.piece_upper, other.piece_upper)
    assert np.array_equal(one.n_node_samples, other.n_node_samples)
    assert one.value == pytest.approx(other.value)


def test_nothing_is_taught_where_it_is_not_asked_for():
    X, y = small_table(0)
    plain = ShapeTreeClassifier(teacher=None).fit(X, y).predict_proba(X)
    assert not np.allclose(ShapeTreeClassifier().fit(X, y).predict_proba(X), plain)
    for parameters in ({"resamples": 0}, {"shrinkage": 0.0}, {"objective": "error"}):
        with_teacher = make_tree(ShapeTreeClassifier, **parameters).fit(X, y).predict_proba(X)
        without = (
            make_tree(ShapeTreeClassifier, teacher=None, **parameters).fit(X, y).predict_proba(X)
        )
        assert np.array_equal(with_teacher, without)


def test_taught_trees_do_not_depend_on_the_order_of_rows_or_on_weights_as_copies():
    X, y = small_table(1)
    tree = ShapeTreeClassifier().fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    again = ShapeTreeClassifier().fit(X.iloc[order], y[order])
    assert np.array_equal(tree.predict_proba(X), again.predict_proba(X))
    times = np.random.default_rng(1).integers(1, 5, len(y))
    copies = np.repeat(np.arange(len(y)), times)
    weighed = ShapeTreeClassifier().fit(X, y, sample_weight=times)
    copied = ShapeTreeClassifier().fit(X.iloc[copies], y[copies])
    assert np.array_equal(weighed.predict_proba(X), copied.predict_proba(X))


@pytest.mark.parametrize("seed", range(12))
def test_names_of_classes_and_categories_and_the_order_of_columns_change_nothing(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 300))
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(seed % 3), columns=list("abc"))
    X["kind"] = pd.Categorical(rng.choice(list("pqrst"), n))
    level = X["a"] + (X["kind"].cat.codes % 2) + rng.normal(size=n)
    y = np.digitize(level, np.quantile(level, [1 / 3, 2 / 3]))
    shares = ShapeTreeClassifier().fit(X, y).predict_proba(X)
    names = np.array(["two", "one", "three"])
    renamed = ShapeTreeClassifier().fit(X, names[y])
    order = [list(renamed.classes_).index(name) for name in names]
    assert_allclose(renamed.predict_proba(X)[:, order], shares, atol=1e-12)
    other = X.assign(kind=X["kind"].cat.rename_categories(dict(zip("pqrst", "tsqpr", strict=True))))
    other["kind"] = pd.Categorical(other["kind"].astype(str))
    assert_allclose(ShapeTreeClassifier().fit(other, y).predict_proba(other), shares, atol=1e-12)
    turned = X[["kind", "c", "a", "b"]]
    assert_allclose(ShapeTreeClassifier().fit(turned, y).predict_proba(turned), shares, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_no_leaf_predicts_a_class_that_none_of_its_rows_has(seed):
    rng = np.random.default_rng(seed)
    X, y = load_breast_cancer(return_X_y=True)
    kept = rng.choice(len(y), 200, replace=False)
    for teacher in ("auto", None):
        tree = ShapeTreeClassifier(teacher=teacher).fit(X[kept], y[kept])
        leaves = tree.apply(X[kept])
        for leaf in np.unique(leaves):
            own = y[kept][leaves == leaf]
            assert tree.classes_[tree.tree_.value[leaf, 0].argmax()] in own


def test_probabilities_of_taught_trees_are_better_on_few_rows():
    gains = []
    for seed in range(12):
        X, y = small_table(seed, 300)
        X, X_new, y, y_new = train_test_split(X, y, train_size=100, random_state=seed, stratify=y)
        losses = []
        for teacher in ("auto", None):
            tree = ShapeTreeClassifier(teacher=teacher).fit(X, y)
            shares = tree.predict_proba(X_new)[np.arange(len(y_new)), (y_new == "well").astype(int)]
            losses.append(-np.log(shares).mean())
        gains.append(losses[1] - losses[0])
    assert np.mean(gains) > 0


def test_an_estimator_can_teach():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    teacher = RandomForestClassifier(50, random_state=0)
    tree = ShapeTreeClassifier(teacher=teacher).fit(X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(teacher)
    scores = tree.evaluate(X_new, y_new)
    same = (tree.predict(X_new) == tree.teacher_.predict(X_new)).mean()
    assert scores["fidelity"] == pytest.approx(same)
    words = f"fidelity to the teacher {100 * same:.1f} %"
    head = export_text(tree).splitlines()[0]
    assert head.endswith(f"; {words}")
    assert view_of(tree._fitted).scores_in_words()[1] == words
    assert words in export_html(tree)
    assert any(words in text.get_text() for text in plot_tree(tree).texts)
    assert export_text(from_json(tree.to_json())).splitlines()[0] == head
    fitted = clone(teacher).fit(X, y)
    again = ShapeTreeClassifier(teacher=fitted).fit(X, y)
    assert again.teacher_ is fitted
    assert np.array_equal(again.predict_proba(X_new), tree.predict_proba(X_new))
    read = from_json(tree.to_json())
    assert np.array_equal(read.predict_proba(X_new), tree.predict_proba(X_new))
    assert read.teacher is None


def test_an_estimator_can_teach_numbers():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    teacher = RandomForestRegressor(50, min_samples_leaf=5, random_state=0)
    tree = ShapeTreeRegressor(teacher=teacher, max_leaf_nodes=8).fit(X, y)
    fidelity = tree.evaluate(X[:200], y[:200])["fidelity"]
    assert 0.5 < fidelity < 1.0
    assert f"; fidelity to the teacher R² {fidelity:.3f}" in export_text(tree)
    leaves, said = tree.apply(X), tree.teacher_.predict(X)
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        assert tree.predict(X)[rows][0] == pytest.approx(said[rows].mean())


def test_without_a_teacher_there_is_none_to_show():
    X, y = small_table(0)
    with pytest.raises(AttributeError, match="teacher"):
        _ = ShapeTreeClassifier().fit(X, y).teacher_


def test_teachers_of_no_use_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="teacher must have predict_proba"):
        ShapeTreeClassifier(teacher=RidgeClassifier()).fit(X, y)
    two = y < 2
    other = LogisticRegression(max_iter=1000).fit(X[two], y[two])
    with pytest.raises(ValueError, match="teacher must know the classes"):
        ShapeTreeClassifier(teacher=other).fit(X, y)
    with pytest.raises(ValueError, match="teacher"):
        ShapeTreeClassifier(teacher="school").fit(X, y)
    with pytest.raises(ValueError, match="teacher must predict a finite number"):
        ShapeTreeClassifier(teacher=Oracle(y[:-1])).fit(X, y)
    rows = from_batches(lambda: [pd.DataFrame({"x": X[:, 0], "y": y})], target="y")
    with pytest.raises(ValueError, match="teacher must be None, 'auto' or 'forest' for rows in"):
        ShapeTreeClassifier(teacher=LogisticRegression()).fit(rows)
    both = np.column_stack([y, y])
    with pytest.raises(ValueError, match="teacher"):
        ShapeTreeClassifier(teacher="forest").fit(X, both)


def test_a_rule_of_many_categories_is_found():
    X = pd.DataFrame({"kind": np.repeat([f"k{i:02}" for i in range(30)], 10)})
    y = np.repeat(np.arange(30) % 2, 10)
    assert ShapeTreeClassifier().fit(X, y).score(X, y) == 1.0
