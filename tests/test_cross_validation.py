"""Strength, branches and shrinkage chosen by cross-validation."""

import gc
import signal
import threading
from dataclasses import replace
from time import monotonic, sleep

import numpy as np
import pandas as pd
import pytest
from data import assert_same_tree, data_for, make_tree, noisy_classes, tree_for
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, from_json, refine_tree
from shapetree.data._binning import bin_table
from shapetree.data._table import read_table
from shapetree.fit import _cross_validation, _fit, _learning
from shapetree.fit._cross_validation import PATH, Record, Test, Trial
from shapetree.fit._folds import Folds, deal_out, folds_of
from shapetree.fit._learning import learn
from shapetree.fit._local_backend import training_rows
from shapetree.fit._parameters import SHRINKAGES, STRENGTHS
from shapetree.fit._row_hashes import TargetCodes, hashes_of_rows
from shapetree.fit._scores import LEAST_SHARE, Score
from shapetree.fit._training_rows import bin_rows, strata_of

Test.__test__ = False  # what a trial is told by, nothing for pytest

CRITERIA = ["gini", "entropy", "squared_error", "absolute_error"]
FAST = {"strength": "cv", "max_depth": 3, "n_threads": 1}


def contents_of(X, y, weights=None, has_classes=True):
    told = TargetCodes.of(y, weights, has_classes)
    return hashes_of_rows(bin_table(read_table(X), None, 255, 1), y, weights, told)


def dealt_out(X, y, n_folds=4, weights=None, seed=0):
    contents, strata = contents_of(X, y[:, None], weights), strata_of(y[:, None], True)
    each = np.ones(len(y)) if weights is None else weights
    return deal_out(contents, strata, each, n_folds, seed)[0]


def made_folds(monkeypatch):
    """The folds of all fits to come."""
    made = []

    def note(*args):
        made.append(folds_of(*args))
        return made[-1]

    monkeypatch.setattr(_cross_validation, "folds_of", note)
    return made


def learn_by(instead, monkeypatch):
    """Have all trees of a fit learnt in another way."""
    for module in (_learning, _cross_validation, _fit):
        monkeypatch.setattr(module, "learn", instead)


# Folds


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_every_class_is_dealt_out_evenly(n_folds):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(997, 3)), rng.choice(4, 997, p=[0.6, 0.3, 0.08, 0.02])
    fold = dealt_out(X, y, n_folds)
    counts = np.array([np.bincount(fold[y == label], minlength=n_folds) for label in range(4)])
    assert np.ptp(counts, axis=1).max() <= 1
    assert np.ptp(counts.sum(axis=0)) <= 1


def test_numbers_are_dealt_out_evenly_from_the_least_to_the_greatest():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 3)), rng.lognormal(size=(1000, 1))
    fold, _ = deal_out(contents_of(X, y, None, False), strata_of(y, False), np.ones(1000), 4, 0)
    means = [y[fold == number].mean() for number in range(4)]
    assert max(means) < 1.2 * min(means)


def test_equal_rows_are_in_one_fold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    rows = rng.integers(300, size=1500)
    X, y = X[rows], rng.integers(2, size=1500)
    fold = dealt_out(X, y)
    assert all(len(set(fold[rows == row])) == 1 for row in set(rows))


def test_very_many_equal_rows_are_dealt_out():
    X, y = np.arange(600)[:, None] % 3, np.arange(600) // 3 % 2
    fold = dealt_out(X.astype(float), y)
    counts = [np.bincount(fold[(X[:, 0] == x) & (y == c)]) for x in range(3) for c in range(2)]
    assert np.min(counts) >= 10
    assert np.ptp(np.sum(counts, axis=0)) <= 1


def test_folds_do_not_depend_on_the_order_of_rows_or_columns():
    rng = np.random.default_rng(0)
    X, y = rng.integers(40, size=(500, 4)).astype(float), rng.integers(3, size=500)
    fold = dealt_out(X, y)
    rows = rng.permutation(500)
    assert_array_equal(dealt_out(X[rows], y[rows]), fold[rows])
    assert_array_equal(dealt_out(X[:, [2, 0, 3, 1]], y), fold)
    assert (dealt_out(X, y, seed=1) != fold).mean() > 0.5


def test_hashes_of_rows_do_not_depend_on_names_or_units():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"c": rng.choice(list("uvwxyz"), 200), "x": rng.normal(size=200)})
    y = rng.choice(3, (200, 1), p=[0.5, 0.3, 0.2])
    hashes = contents_of(table, y)
    assert len(np.unique(hashes)) == 200
    renamed = table.assign(c=table["c"].map(dict(zip("uvwxyz", "qeybda", strict=True))))
    assert_array_equal(contents_of(renamed, y), hashes)
    assert_array_equal(contents_of(table[["x", "c"]], np.array([2, 0, 1])[y]), hashes)
    numbers = rng.normal(size=(200, 1))
    hashes = contents_of(table, numbers, None, False)
    assert_array_equal(contents_of(table, 1e6 * numbers + 5, None, False), hashes)


def test_a_row_of_weight_two_is_in_the_fold_of_a_row_given_twice():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(2, size=200)
    weights = rng.integers(1, 4, size=200)
    rows = np.repeat(np.arange(200), weights)
    fold = dealt_out(X, y, weights=weights.astype(float))
    assert_array_equal(dealt_out(X[rows], y[rows]), fold[rows])


@pytest.mark.parametrize(
    ("n_rows", "cv", "n_folds"), [(1000, None, 5), (1001, None, 3), (50, 7, 7)]
)
def test_how_many_folds_there_are(n_rows, cv, n_folds, monkeypatch):
    made = made_folds(monkeypatch)
    X, y = noisy_classes(np.random.default_rng(0), n_rows=n_rows)
    ShapeTreeClassifier(strength=[1, 9], cv=cv, max_depth=1, resamples=2).fit(X, y)
    assert [len(folds) for folds in made] == [n_folds]


# Groups and splitters


def patients(rng, n_patients=60, n_visits=10):
    """Rows of a patient are alike, with a class that only the patient's number tells."""
    patient = np.repeat(np.arange(n_patients), n_visits)
    ill = rng.integers(2, size=n_patients)[patient]
    number = patient + rng.uniform(0, 0.5, len(patient))
    sign = ill + rng.normal(scale=1.2, size=len(patient))
    order = rng.permutation(len(patient))
    return np.stack([number, sign], axis=1)[order], ill[order], patient[order]


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_groups_are_held_out_together(kind, monkeypatch):
    X, y, patient = patients(np.random.default_rng(0))
    names = np.array([f"patient {number}" for number in patient])
    for params in ({"strength": "cv"}, {"shrinkage": "cv"}):
        made = made_folds(monkeypatch)
        make_tree(kind, **params, cv=4, max_depth=2, n_threads=1).fit(X, y, groups=names)
        assert len(made) == 1
        for fitted, held_out in made[0]:
            assert_array_equal(fitted, ~held_out)
            assert not set(patient[fitted]) & set(patient[held_out])
        times_held_out = np.sum([held_out for _, held_out in made[0]], axis=0)
        assert_array_equal(times_held_out, 1)


def test_with_groups_nothing_is_learnt_that_only_tells_groups_apart():
    X, y, patient = patients(np.random.default_rng(0))
    number = X[:, :1]
    params = {"strength": [0.1, 3.0], "max_parts": None, "resamples": 0}
    alone = make_tree(ShapeTreeClassifier, **params).fit(number, y)
    together = make_tree(ShapeTreeClassifier, **params).fit(number, y, groups=patient)
    assert (alone.strength_, together.strength_) == (0.1, 3.0)
    # Resamples keep groups together, too.
    n_alone = n_together = 0
    for seed in range(20):
        X, y, patient = patients(np.random.default_rng(seed))
        model = ShapeTreeClassifier()
        n_alone += model.fit(X[:, :1], y).get_n_leaves() > 1
        n_together += model.fit(X[:, :1], y, groups=patient).get_n_leaves() > 1
    assert n_alone == 20
    assert n_together <= 3  # one in twenty or so by chance


def test_the_error_of_a_score_counts_groups_not_rows():
    X, y, patient = patients(np.random.default_rng(0))
    # Folds of patients, either way.
    model = ShapeTreeClassifier(strength=[1, 3], max_depth=2, cv=GroupKFold(4), resamples=0)
    groups = model.strength_path(X, y, groups=patient)
    test_fold = np.empty(len(y), dtype=int)
    for number, (_, held_out) in enumerate(GroupKFold(4).split(X, y, patient)):
        test_fold[held_out] = number
    rows = model.set_params(cv=PredefinedSplit(test_fold)).strength_path(X, y)
    assert_allclose(groups.score, rows.score)
    assert (groups.error > 1.5 * rows.error).all()


@pytest.mark.parametrize("groups", [np.zeros(7), np.zeros((300, 1)), 3, ["a"] * 301])
def test_groups_of_another_length_are_refused(groups):
    X, y = noisy_classes(np.random.default_rng(0))
    for strength in (1.0, "cv"):
        model = ShapeTreeClassifier(strength=strength)
        for call in (model.fit, model.strength_path):
            with pytest.raises(ValueError, match="groups must hold one label for each of the 300"):
                call(X, y, groups=groups)
        assert not hasattr(model, "tree_")


def test_too_few_groups_are_refused():
    X, y = noisy_classes(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"cv=5 needs at least 5 groups, got 300 .* and 3 groups"):
        ShapeTreeClassifier(strength="cv", cv=5).fit(X, y, groups=np.arange(300) % 3)


@pytest.mark.parametrize(
    "cv", [GroupKFold(3), KFold(4), StratifiedKFold(3, shuffle=True, random_state=0)]
)
def test_a_splitter_makes_the_folds(cv, monkeypatch):
    made = made_folds(monkeypatch)
    X, y, patient = patients(np.random.default_rng(0))
    groups = patient if isinstance(cv, GroupKFold) else None
    tree = ShapeTreeClassifier(strength="cv", cv=cv, max_depth=2).fit(X, y, groups=groups)
    expected = list(cv.split(X, y, groups))
    assert len(made[0]) == len(expected)
    for found, rows in zip(made[0], expected, strict=True):
        assert_array_equal(np.flatnonzero(found[0]), np.sort(rows[0]))
        assert_array_equal(np.flatnonzero(found[1]), np.sort(rows[1]))
    assert tree.strength_ in STRENGTHS
    assert tree.tree_.n_node_samples[0] == len(X)


def test_pairs_of_row_numbers_are_folds():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=200)
    params = {"strength": "cv", "max_depth": 2, "n_threads": 1}
    one = make_tree(ShapeTreeClassifier, **params, cv=KFold(4))
    fits_alike(one, make_tree(ShapeTreeClassifier, **params, cv=list(KFold(4).split(X))), X, y)


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_folds_in_the_order_of_time(kind):
    rng = np.random.default_rng(0)
    X = np.stack([np.arange(400.0), rng.normal(size=400)], axis=1)
    y = (X[:, 1] > 0) ^ (rng.random(400) < 0.1)
    tree = kind(strength="cv", cv=TimeSeriesSplit(4), max_depth=2).fit(X, y)
    assert "split3_test_score" in tree.cv_results_
    assert "split4_test_score" not in tree.cv_results_
    path = kind(cv=TimeSeriesSplit(4), max_depth=1).strength_path(X, y)
    assert np.isfinite(path.score).all()


def test_a_splitter_sees_rows_as_they_were_given():
    # Rows of weight zero are not learnt from, but a splitter counts them.
    rng = np.random.default_rng(0)
    X, y = noisy_classes(rng, n_rows=200)
    weights = (np.arange(200) % 4 > 0).astype(float)
    seen = []

    class Splitter(GroupKFold):
        def split(self, X, y=None, groups=None):
            seen.append((len(X), len(groups)))
            return super().split(X, y, groups)

    model = ShapeTreeClassifier(strength="cv", cv=Splitter(4), max_depth=1)
    model.fit(X, y, sample_weight=weights, groups=np.arange(200) // 2)
    assert seen == [(200, 200)]


def test_folds_that_a_splitter_cannot_make_are_refused():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=90)
    first = np.argsort(y, kind="stable")
    X, y = X[first], np.array(["no", "perhaps", "yes"])[y[first]]
    refused = {
        "cv leaves no row of class no to fit in fold 0; use a splitter": KFold(3),
        "cv makes no folds": PredefinedSplit([-1] * 90),
        "cv makes a fold 0 without rows": ShuffleSplit(1, test_size=1, random_state=0),
    }
    weights = np.ones(90)
    for message, cv in refused.items():
        if isinstance(cv, ShuffleSplit):
            # The one row that is held out weighs nothing.
            weights[next(cv.split(X))[1]] = 0.0
        model = ShapeTreeClassifier(strength="cv", cv=cv)
        for call in (model.fit, model.strength_path):
            with pytest.raises(ValueError, match=message):
                call(X, y, sample_weight=weights)
        assert not hasattr(model, "tree_")


def test_bad_folds_are_refused_before_any_fit(monkeypatch):
    learn_by(lambda *args, **more: pytest.fail("a tree was fitted"), monkeypatch)
    monkeypatch.setattr(_fit, "resample", lambda *args: pytest.fail("trees were fitted"))
    X, y = np.arange(90.0)[:, None], np.repeat([0, 1, 2], 30)
    with pytest.raises(ValueError, match="cv leaves no row of class 0"):
        ShapeTreeClassifier(strength="cv", cv=KFold(3)).fit(X, y)
    with pytest.raises(ValueError, match="needs at least 9 groups"):
        ShapeTreeClassifier(strength="cv", cv=9).fit(X, y, groups=y)


@pytest.mark.parametrize("cv", [1, 0, 2.5, "5"])
def test_numbers_of_folds_that_make_no_sense_are_refused(cv):
    X, y = noisy_classes(np.random.default_rng(0))
    with pytest.raises(ValueError, match="'cv' parameter"):
        ShapeTreeClassifier(strength="cv", cv=cv).fit(X, y)


# Scores


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    values, targets = rng.dirichlet(np.ones(3), size=50)[:, None], rng.integers(3, size=(50, 1))
    weights = rng.random(50)

    def mean(objective, predicted, y):
        scores = Score(objective, y, weights).of(predicted, y)
        return scores @ weights / weights.sum()

    values = 0.9 * values + 0.1 / 3  # no share is so small that it counts as a greater one
    expected = -log_loss(targets[:, 0], values[:, 0], sample_weight=weights)
    assert mean("log_loss", values, targets) == pytest.approx(expected)
    right = accuracy_score(targets, values[:, 0].argmax(axis=1), sample_weight=weights)
    assert mean("error", values, targets) == pytest.approx(right)
    numbers, y = rng.normal(size=(50, 1, 1)), rng.normal(size=(50, 1))
    around = np.average(y[:, 0], weights=weights)
    lost = np.average((numbers[:, 0, 0] - y[:, 0]) ** 2, weights=weights)
    all_there_is = np.average((y[:, 0] - around) ** 2, weights=weights)
    assert mean("squared_error", numbers, y) == pytest.approx(1 - lost / all_there_is)


def test_a_class_that_a_leaf_has_not_seen_costs_no_more_than_a_rare_one():
    values = np.array([[[1.0, 0.0]]])
    assert Score("log_loss", np.ones((1, 1)), np.ones(1)).of(values, np.ones((1, 1))) == np.log(
        LEAST_SHARE
    )


# The rule


def record_of(scores, group=None):
    """Tests of trials whose scores for every row are given, by strength and branches."""
    n_rows = np.shape(next(iter(scores.values())))[-1]
    of_row = np.arange(n_rows) % 2
    masks = [(of_row != fold, of_row == fold) for fold in range(2)]
    folds = Folds(masks, np.arange(n_rows) if group is None else group, np.ones(n_rows))
    tests = {
        Trial(*key): [Test(np.atleast_2d(each)[:, held_out], 2, 0.1) for _, held_out in masks]
        for key, each in scores.items()
    }
    return Record(tests, folds)


def test_the_trial_with_the_best_mean_score_is_chosen():
    worse, better = np.zeros(10), np.full(10, 0.01)
    assert record_of({(0.3, 3): worse, (1.0, 3): better}).best() == Trial(1.0, 3)
    assert record_of({(0.3, 3): better, (1.0, 3): worse}).best() == Trial(0.3, 3)


def test_of_equals_the_strongest_with_the_fewest_branches_is_chosen():
    same = np.arange(10.0)
    tried = {(m, n): same for m in (0.3, 1.0, 3.0) for n in (3, 2)}
    assert record_of(tried).best() == Trial(3.0, 2)
    assert record_of(tried).best(0.3) == Trial(0.3, 2)


def test_trials_are_compared_at_their_best_shrinkage():
    # Without shrinkage the weak trial is the worse, with it the better.
    scores = {(0.3, 3): [np.full(10, 0.2), np.full(10, 0.8)], (1.0, 3): np.full((2, 10), 0.5)}
    record = record_of(scores)
    assert record.best() == Trial(0.3, 3)
    assert record.shrinkage_of(record.best()) == 1


def test_rows_of_a_group_tell_no_more_than_one_of_them():
    scores = np.repeat([0.0, 1.0, 0.0, 2.0], 10)
    alone = record_of({(1.0, 3): scores}).score(Trial(1.0, 3))
    grouped = record_of({(1.0, 3): scores}, np.repeat(np.arange(4), 10)).score(Trial(1.0, 3))
    assert grouped[0] == alone[0]
    assert grouped[1] == pytest.approx(np.sqrt(10) * alone[1])


# Fits


def fits_alike(one, other, X, y):
    one, other = one.fit(X, y), other.fit(X, y)
    assert one.strength_ == other.strength_
    scores = [name for name in one.cv_results_ if "time" not in name and name != "params"]
    for name in scores:
        assert_array_equal(one.cv_results_[name], other.cv_results_[name])
    assert_same_tree(one, other)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize("pairs", [0, "auto"])
def test_the_choice_is_the_same_for_any_number_of_threads(criterion, pairs):
    X, y = data_for(criterion, np.random.default_rng(0), n_rows=500)
    params = FAST | {"refine": "tao", "pairs": pairs, "assignment": "coordinate_descent"}
    one = tree_for(criterion, **params, random_state=np.random.RandomState(3))
    many = tree_for(criterion, **params | {"n_threads": 4}, random_state=np.random.RandomState(3))
    fits_alike(one, many, X, y)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_the_choice_is_the_same_for_any_order_of_columns(criterion):
    X, y = data_for(criterion, np.random.default_rng(0), n_rows=500)
    one = tree_for(criterion, **FAST).fit(X, y)
    other = tree_for(criterion, **FAST).fit(X[:, [2, 0, 3, 1]], y)
    assert one.strength_ == other.strength_
    scores = [tree.cv_results_["mean_test_score"] for tree in (one, other)]
    assert_array_equal(*scores)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize(("factor", "shift"), [(1e6, 0.0), (1e-6, 0.0), (3.0, 1e3)])
def test_the_choice_does_not_depend_on_the_units_of_y(criterion, factor, shift):
    X, y = data_for(criterion, np.random.default_rng(1), n_rows=300)
    # At lower strengths many splits lower absolute error equally, and rounding decides.
    strengths = [1, 3] if criterion == "absolute_error" else [0.1, 0.3, 1, 3]
    model = tree_for(criterion, strength=strengths, shrinkage="cv", refine="tao")
    one = model.fit(X, y)
    chosen, scores = one.strength_, one.cv_results_["mean_test_score"]
    other = model.fit(X, factor * y + shift)
    assert other.strength_ == chosen
    assert_allclose(other.cv_results_["mean_test_score"], scores, rtol=1e-6)


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_of_pure_noise_nothing_is_learnt(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 6)), rng.normal(size=600)
    y = y > 0 if kind is ShapeTreeClassifier else y
    for resamples in ("auto", 0):
        tree = kind(strength="cv", resamples=resamples).fit(X, y)
        assert tree.strength_ == 3.0
        assert tree.get_n_leaves() <= 2


def fine_detail(rng, n_rows=3000, n_stripes=400):
    """Stripes of a few rows each, and no noise."""
    X = rng.random((n_rows, 2))
    return X, rng.integers(2, size=n_stripes)[(X[:, 0] * n_stripes).astype(int)]


def test_without_noise_penalties_go():
    X, y = fine_detail(np.random.default_rng(0))
    params = {"max_bins": None, "max_parts": None}
    tree = make_tree(ShapeTreeClassifier, strength="cv", **params).fit(X, y)
    assert tree.strength_ < 1


def test_without_noise_penalties_of_numbers_go():
    X, y = fine_detail(np.random.default_rng(0))
    y = y + np.sin(9 * X[:, 1])
    params = {"max_bins": None, "max_parts": None}
    assert make_tree(ShapeTreeRegressor, strength="cv", **params).fit(X, y).strength_ < 1


@pytest.mark.parametrize("criterion", CRITERIA)
def test_what_was_tried_has_scikit_learns_form(criterion):
    X, y = data_for(criterion, np.random.default_rng(0), n_rows=201)
    tree = tree_for(criterion, strength=[2, 0.5, 1, 1], cv=3, max_depth=2).fit(X, y)
    results = tree.cv_results_
    assert_array_equal(results["param_strength"], [0.5, 1.0, 2.0])
    assert results["params"][0] == {"strength": 0.5, "max_branches": 3}
    splits = np.array([results[f"split{fold}_test_score"] for fold in range(3)])
    assert "split3_test_score" not in results
    assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["rank_test_score"].min() == 1
    assert (results["mean_fit_time"] > 0).all()
    assert len(pd.DataFrame(results)) == 3
    chosen = results["param_strength"] == tree.strength_
    assert_array_equal(results["rank_test_score"][chosen], 1)


def test_what_is_chosen_ranks_first_if_folds_differ_in_size():
    X, y, patient = patients(np.random.default_rng(0))
    groups = np.minimum(patient, 20)  # one group is as large as two thirds of all
    tree = ShapeTreeClassifier(strength=[0, 0.3, 1, 3], cv=3, resamples=0).fit(X, y, groups=groups)
    results = tree.cv_results_
    assert results["rank_test_score"][results["param_strength"] == tree.strength_] == 1


@pytest.mark.parametrize("objective", ["log_loss", "error"])
def test_scores_are_those_of_trees_fitted_without_the_fold(objective, monkeypatch):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=200, n_values=20)
    made = made_folds(monkeypatch)
    params = {"max_depth": 2, "objective": objective, "resamples": 0}
    tree = make_tree(ShapeTreeClassifier, strength=[0.5, 1], cv=4, **params).fit(X, y)
    for number, strength in enumerate([0.5, 1.0]):
        for fold, (fitted, held_out) in enumerate(made[0]):
            # Few distinct values: the bins of a part are those of the whole.
            alone = make_tree(ShapeTreeClassifier, strength=strength, **params).fit(
                X[fitted], y[fitted]
            )
            if objective == "error":
                score = alone.score(X[held_out], y[held_out])
            else:
                score = -log_loss(y[held_out], alone.predict_proba(X[held_out]), labels=[0, 1, 2])
            found = tree.cv_results_[f"split{fold}_test_score"][number]
            assert found == pytest.approx(score)


def test_the_criterion_in_use_is_told():
    X, y = noisy_classes(np.random.default_rng(0))
    for given, used in {"auto": "entropy", "log_loss": "entropy", "gini": "gini"}.items():
        assert make_tree(ShapeTreeClassifier, **FAST, criterion=given).fit(X, y).criterion_ == used
    assert (
        make_tree(ShapeTreeClassifier, **FAST, objective="error").fit(X, y).criterion_ == "entropy"
    )


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_shrinkage_is_chosen_from_the_same_fits(criterion, monkeypatch):
    X, y = data_for(criterion, np.random.default_rng(0))
    n_fits = []
    learn_by(lambda *args, **more: n_fits.append(1) or learn(*args, **more), monkeypatch)
    params = FAST | {"refine": None, "cv": 3}
    tree_for(criterion, **params).fit(X, y)
    n_alone = len(n_fits)
    assert n_alone == 3 * len(STRENGTHS) + 1
    both = tree_for(criterion, **params, shrinkage="cv").fit(X, y)
    assert len(n_fits) == 2 * n_alone
    assert both.shrinkage_ in SHRINKAGES


def test_shrinkage_is_chosen_where_leaves_know_little():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + rng.normal(size=600)
    params = {"max_depth": 6, "n_threads": 1, "strength": 0.0}
    tree = make_tree(ShapeTreeRegressor, **params, shrinkage="cv").fit(X, y)
    assert tree.shrinkage_ > 0.0
    new = rng.normal(size=(2000, 3))
    plain = make_tree(ShapeTreeRegressor, **params, shrinkage=0).fit(X, y)
    off, off_plain = (np.abs(each.predict(new) - new[:, 0]).mean() for each in (tree, plain))
    assert off < 0.9 * off_plain


def test_where_leaves_are_limited_the_number_of_branches_is_chosen():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=600)
    params = FAST | {"max_depth": 6, "max_branches": 4}
    tree = make_tree(ShapeTreeClassifier, **params, max_leaf_nodes=5).fit(X, y)
    assert tree.get_n_leaves() <= 5
    assert tree.cv_results_["mean_n_leaves"].max() <= 5
    assert set(tree.cv_results_["param_max_branches"]) == {2, 3, 4}
    first = tree.cv_results_["rank_test_score"] == 1
    chosen = [p for p, is_first in zip(tree.cv_results_["params"], first, strict=True) if is_first]
    assert tree.strength_ in [each["strength"] for each in chosen]
    most = max(each["max_branches"] for each in chosen)
    assert max(len(tree.tree_.children(0)), 2) <= most
    unlimited = make_tree(ShapeTreeClassifier, **params).fit(X, y)
    assert set(unlimited.cv_results_["param_max_branches"]) == {4}


@pytest.mark.parametrize("n_rows", [2, 4, 7])
def test_few_rows_get_few_folds(n_rows):
    X, y = np.arange(n_rows)[:, None], np.arange(n_rows) % 2
    for resamples in ("auto", 0):
        for kind in (ShapeTreeClassifier, ShapeTreeRegressor):
            tree = kind(strength="cv", resamples=resamples).fit(X, y)
            assert tree.strength_ in STRENGTHS


@pytest.mark.parametrize(("n_rows", "cv"), [(3, 5), (1, None), (1, 2)])
def test_more_folds_than_rows_are_refused(n_rows, cv):
    X, y = np.zeros((n_rows, 1)) + np.arange(n_rows)[:, None], np.arange(n_rows) % 2
    with pytest.raises(ValueError, match=r"cv=\d needs at least \d distinct rows, got"):
        ShapeTreeClassifier(strength="cv", cv=cv).fit(X, y)


def test_several_targets_weights_and_missing_values():
    rng = np.random.default_rng(0)
    X, y = noisy_classes(rng, n_rows=200)
    X[::7, 1] = np.nan
    weights = rng.random(200)
    both = np.stack([y, y % 2], axis=1)
    for kind in (ShapeTreeClassifier, ShapeTreeRegressor):
        tree = make_tree(kind, **FAST).fit(X, both, sample_weight=weights)
        assert tree.strength_ in STRENGTHS


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_strengths_come_in_any_kind_of_list(kind):
    X, y = noisy_classes(np.random.default_rng(0))
    for strengths in ([0.5, 2.0], [0, 1]):
        tree = ShapeTreeClassifier(strength=kind(strengths), max_depth=2).fit(X, y)
        assert tree.strength_ in strengths
    assert ShapeTreeClassifier(strength=kind([4.0]), max_depth=2).fit(X, y).strength_ == 4.0


@pytest.mark.parametrize(
    "strength", [[], [-1.0], [np.nan], [np.inf], [[1.0]], ["a"], [1, None], [[1], [1, 2]]]
)
def test_paths_that_make_no_sense_are_refused(strength):
    X, y = noisy_classes(np.random.default_rng(0))
    model = ShapeTreeClassifier(strength=strength)
    for call in (model.fit, model.strength_path):
        with pytest.raises(ValueError, match="strength must be a number, 'cv', or a list"):
            call(X, y)


# After the fit


def test_a_model_file_keeps_what_was_chosen():
    X, y = fine_detail(np.random.default_rng(0), n_rows=1000, n_stripes=150)
    params = {"max_bins": None, "max_parts": None, "objective": "error"}
    tree = make_tree(ShapeTreeClassifier, strength=[0, 2, 5], **params).fit(X, y)
    again = from_json(tree.to_json())
    assert again.strength_ == tree.strength_ != 1.0
    assert list(again.strength) == [0, 2, 5]
    with pytest.raises(AttributeError, match="cv_results_ is not available"):
        again.cv_results_  # noqa: B018
    plain = ShapeTreeClassifier(strength=0.5).fit(X, y)
    assert from_json(plain.to_json()).strength_ == 0.5


def test_refinement_goes_on_at_the_strength_chosen():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=400)
    tree = make_tree(ShapeTreeClassifier, **FAST).fit(X, y)
    again = refine_tree(tree, X, y)
    assert again.strength_ == tree.strength_
    assert again.criterion_ == tree.criterion_


def test_a_failure_leaves_the_estimator_as_it_was(monkeypatch):
    X, y = noisy_classes(np.random.default_rng(0))
    tree = make_tree(ShapeTreeClassifier, **FAST | {"n_threads": 3}).fit(X, y)
    before = tree.tree_
    n_fits = []

    def fail(*args, **more):
        n_fits.append(1)
        if len(n_fits) == 3:
            raise MemoryError("no room")
        return learn(*args, **more)

    learn_by(fail, monkeypatch)
    with pytest.raises(MemoryError, match="no room"):
        tree.fit(X, y)
    assert tree.tree_ is before


def new_threads(before):
    """Threads that were not there before, but for the one that keeps progress bars up to date."""
    return [each for each in threading.enumerate() if each not in before and not each.daemon]


def test_ctrl_c_ends_all_fits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 20)), rng.integers(2, size=20_000)
    params = {"max_depth": 12, "pairs": "auto", "leaf_penalty": 0, "segment_penalty": 0}
    model = make_tree(ShapeTreeClassifier, strength="cv", n_threads=2, **params)
    main = threading.main_thread().ident
    before = set(threading.enumerate())
    timer = threading.Timer(1.0, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    # What is raised while garbage is collected, by anybody's callback, would be lost.
    gc.disable()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        gc.enable()
    ends = monotonic() + 10.0
    while new_threads(before) and monotonic() < ends:
        sleep(0.05)  # on a busy machine, threads take a moment to end
    assert not new_threads(before)
    assert not hasattr(model, "tree_")


def test_progress_is_shown(capsys):
    X, y = noisy_classes(np.random.default_rng(0))
    make_tree(ShapeTreeClassifier, **FAST, verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    assert "choosing: " in shown
    assert " test fits" in shown


# Paths

COLUMNS = ["strength", "score", "error", "n_leaves", "n_parts", "is_chosen", "score_name"]


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"assignment": "coordinate_descent"},
        {"teacher": None},
        {"resamples": 0},
        {"resamples": 0, "assignment": "coordinate_descent"},
        {"pairs": "auto"},
        {"shrinkage": "cv"},
    ],
)
def test_a_path_shows_the_trees_that_fit_makes(kind, params):
    X, y = noisy_classes(np.random.default_rng(0))
    params = {"max_depth": 3, "cv": 3, "random_state": 0, "strength": [0, 1, 50]} | params
    model = make_tree(kind, **params)
    path = model.strength_path(X, y)
    assert not hasattr(model, "tree_")
    table = pd.DataFrame(path)
    assert list(table.columns) == COLUMNS
    assert_array_equal(table.strength, [0.0, 1.0, 50.0])
    # Trees whose shrinkage is chosen are not taught by resamples; what is chosen has no part in
    # their shape.
    fixed = {"shrinkage": 0} if "shrinkage" in params else {}
    for row in table.itertuples():
        tree = make_tree(kind, **params | fixed | {"strength": row.strength}).fit(X, y).tree_
        assert (tree.n_leaves, tree.n_parts) == (row.n_leaves, row.n_parts)
    assert (table.error >= 0).all()
    best = model.fit(X, y)
    assert_array_equal(table.is_chosen, table.strength == best.strength_)
    assert_allclose(table.score, best.cv_results_["mean_test_score"])


def test_a_path_marks_the_choice_where_branches_are_chosen_too():
    X, y = noisy_classes(np.random.default_rng(2), n_rows=400)
    model = ShapeTreeClassifier(strength=[0.1, 1, 3], max_leaf_nodes=4, max_branches=4)
    path, tree = model.strength_path(X, y), model.fit(X, y)
    assert_array_equal(path.strength[path.is_chosen], [tree.strength_])
    assert_array_equal(path.n_leaves[path.is_chosen], [tree.get_n_leaves()])
    assert_array_equal(path.n_parts[path.is_chosen], [tree.tree_.n_parts])


def test_a_path_shows_no_tree_where_fit_makes_none():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.integers(2, size=200)
    model = ShapeTreeClassifier(strength=[0.1, 1, 2])
    path, tree = model.strength_path(X, y), model.fit(X, y)
    assert tree.get_n_leaves() == 1
    assert_array_equal(path.n_leaves, 1)
    assert_array_equal(path.is_chosen, path.strength == tree.strength_)
    assert path.is_chosen.sum() == 1


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (ShapeTreeClassifier(), "log loss, negated"),
        (ShapeTreeClassifier(objective="error"), "accuracy"),
        (ShapeTreeRegressor(), "share of the squared error removed"),
        (ShapeTreeRegressor(objective="absolute_error"), "share of the absolute error removed"),
    ],
)
def test_a_path_names_its_score(model, name):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=100)
    assert model.set_params(strength=[1], cv=2, max_depth=1).strength_path(X, y).score_name == name


def test_the_path_is_ours_unless_given():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=100)
    for strength in (1.0, "cv"):
        path = ShapeTreeClassifier(strength=strength, max_depth=1, cv=2).strength_path(X, y)
        assert_array_equal(path.strength, PATH)
    with pytest.raises(ValueError, match="cv=5 needs at least 5 distinct rows"):
        ShapeTreeClassifier(cv=5).strength_path(X[:3], y[:3])


def test_trials_share_the_bins_of_all_rows():
    # Bins are made once: a fold's tree has no thresholds but those between bins of all rows.
    X, y = noisy_classes(np.random.default_rng(0), n_rows=200)
    parameters = replace(ShapeTreeClassifier(max_depth=2)._parameters(), strength=1.0)
    rows = training_rows(X, y, None, parameters, True)
    binned = bin_rows(rows, parameters)
    folds = folds_of(binned, 4, None, 0)
    for fitted, _ in folds:
        assert binned.take(fitted).binned.features == binned.binned.features
