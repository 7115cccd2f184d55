"""Strength, criterion and shrinkage chosen by cross-validation."""

import gc
import signal
import threading
from dataclasses import replace
from time import monotonic, sleep

import numpy as np
import pandas as pd
import pytest
from data import assert_same_tree, data_for, noisy_classes, tree_for
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, from_json, refine_tree
from shapetree.data._binning import bin_table
from shapetree.data._table import read_table
from shapetree.fit import _choice as choice
from shapetree.fit import _learning, _order, _parameters, _trials
from shapetree.fit._choice import Plan, Race, Record, Trial
from shapetree.fit._folds import Folds, hashes_of_rows, make_folds, strata_of
from shapetree.fit._learning import learn
from shapetree.fit._losses import FoldTest
from shapetree.fit._rows import bin_rows, training_rows
from shapetree.grow._progress import Progress

CRITERIA = ["gini", "entropy", "squared_error", "absolute_error"]
FAST = {"strength": "cv", "max_depth": 3, "n_threads": 1}


def contents_of(X, y, weights=None):
    return hashes_of_rows(bin_table(read_table(X), None, 255, 1), y, weights)


def folds_of(X, y, n_folds=4, weights=None, seed=0):
    contents, strata = contents_of(X, y[:, None], weights), strata_of(y[:, None], True)
    return make_folds(contents, strata, weights, n_folds, seed)


# Folds


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_every_class_is_dealt_out_evenly(n_folds):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(997, 3)), rng.choice(4, 997, p=[0.6, 0.3, 0.08, 0.02])
    fold = folds_of(X, y, n_folds).of_row
    counts = np.array([np.bincount(fold[y == label], minlength=n_folds) for label in range(4)])
    assert np.ptp(counts, axis=1).max() <= 1
    assert np.ptp(counts.sum(axis=0)) <= 1


def test_numbers_are_dealt_out_evenly_from_the_least_to_the_greatest():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 3)), rng.lognormal(size=(1000, 1))
    fold = make_folds(contents_of(X, y), strata_of(y, False), None, 4, 0).of_row
    means = [y[fold == number].mean() for number in range(4)]
    assert max(means) < 1.2 * min(means)


def test_equal_rows_are_in_one_fold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    rows = rng.integers(300, size=1500)
    X, y = X[rows], rng.integers(2, size=1500)
    fold = folds_of(X, y).of_row
    assert all(len(set(fold[rows == row])) == 1 for row in set(rows))


def test_very_many_equal_rows_are_dealt_out():
    X, y = np.arange(600)[:, None] % 3, np.arange(600) // 3 % 2
    fold = folds_of(X.astype(float), y).of_row
    counts = [np.bincount(fold[(X[:, 0] == x) & (y == c)]) for x in range(3) for c in range(2)]
    assert np.min(counts) >= 10
    assert np.ptp(np.sum(counts, axis=0)) <= 1


def test_folds_do_not_depend_on_the_order_of_rows_or_columns():
    rng = np.random.default_rng(0)
    X, y = rng.integers(40, size=(500, 4)).astype(float), rng.integers(3, size=500)
    fold = folds_of(X, y).of_row
    rows = rng.permutation(500)
    assert_array_equal(folds_of(X[rows], y[rows]).of_row, fold[rows])
    assert_array_equal(folds_of(X[:, [2, 0, 3, 1]], y).of_row, fold)
    assert (folds_of(X, y, seed=1).of_row != fold).mean() > 0.5


def test_a_row_of_weight_two_is_in_the_fold_of_a_row_given_twice():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(2, size=200)
    weights = rng.integers(1, 4, size=200)
    rows = np.repeat(np.arange(200), weights)
    fold = folds_of(X, y, weights=weights.astype(float)).of_row
    assert_array_equal(folds_of(X[rows], y[rows]).of_row, fold[rows])


# The rule


def record_of(scores, gains=1.0, weights=None, group=None, n_folds=2):
    """Tests of a usual trial of strength 1 and others, whose scores for every row are given."""
    n = len(scores[1.0])
    of_row = np.arange(n) % n_folds
    weights = np.ones(n) if weights is None else weights
    folds = Folds(of_row, np.arange(n) if group is None else group, weights, n_folds)
    trials = [Trial(strength, "gini") for strength in sorted(scores)]
    record = Record(trials, folds)

    def run(wanted):
        each = [(np.asarray(scores[t.strength]), of_row == fold) for t, fold in wanted]
        return [
            FoldTest(values[rows][None], np.full(rows.sum(), gains), np.zeros(1), 2, 0.1)
            for values, rows in each
        ]

    record.add(run, trials, range(n_folds))
    return record, Trial(1.0, "gini")


def chosen(scores, **options):
    record, usual = record_of(scores, **options)
    return record.choose(usual).strength


def test_the_usual_is_preferred_unless_another_is_better_for_sure():
    for n_better in (0, 5, 10, 15, 20, 30, 50):
        usual, other = np.zeros((2, 1000))
        other[:n_better] = 1.0
        usual[500:510] = 1.0
        difference = other - usual
        error = np.sqrt(((difference - difference.mean()) ** 2).sum()) / 1000
        n_errors = difference.mean() / error
        assert chosen({0.3: other, 1.0: usual}) == (0.3 if n_errors > 1.5 else 1.0)
        assert chosen({1.0: usual, 3.0: other}) == (3.0 if n_errors > 2.5 else 1.0)


def test_of_those_that_are_better_the_surest_is_chosen():
    usual, better, best = np.zeros((3, 1000))
    better[:100], best[:200] = 1.0, 1.0
    assert chosen({0.0: better, 0.3: best, 1.0: usual}) == 0.3
    assert chosen({0.0: best, 0.3: better, 1.0: usual}) == 0.0
    assert chosen({0.0: best, 0.3: best, 1.0: usual}) == 0.3  # the stronger of equals


def test_equal_rows_tell_no_more_than_one_of_them():
    usual, other = np.zeros((2, 400))
    other[:40] = 1.0
    assert chosen({0.3: other, 1.0: usual}) == 0.3
    group = np.where(np.arange(400) < 40, 0, np.arange(400))
    assert chosen({0.3: other, 1.0: usual}, group=group) == 1.0
    heavy = np.where(np.arange(400) == 0, 40.0, 1.0)
    once = (np.arange(400) == 0).astype(float)
    assert chosen({0.3: once, 1.0: usual}, weights=heavy) == 1.0


def test_if_no_tree_is_better_than_none_the_strongest_is_chosen():
    usual, other = np.zeros((2, 1000))
    other[:500] = 1.0
    assert chosen({0.3: other, 1.0: usual, 3.0: usual, 9.0: usual}, gains=-0.1) == 9.0


def test_hopeless_trials_are_spared():
    asked = []
    quality = {0.0: 0.71, 0.3: 0.8, 1.0: 0.7, 3.0: 0.69}
    folds = Folds(np.arange(600) % 4, np.arange(600), np.ones(600), 4)

    def run(wanted):
        asked.extend(wanted)
        scores = [(np.arange(150) < 150 * quality[trial.strength]) * 1.0 for trial, _ in wanted]
        return [FoldTest(each[None], np.ones(150), np.zeros(1), 2, 0) for each in scores]

    trials = tuple(Trial(m, criterion) for criterion in ("gini", "entropy") for m in quality)
    usual = Trial(1.0, "gini")
    found = choice.choose(Plan(trials, usual, (0.0,), Race(4, (2, 1))), folds, run)
    on_first = [trial for trial, fold in asked if fold == 0]
    # 0.3 is better than 1, so that nobody asks for 3; criteria are compared on all rows.
    assert set(on_first) == set(trials[:3])
    assert found.rivals == ("entropy",)
    on_second, on_third = ({t for t, fold in asked if fold == number} for number in (1, 2))
    assert usual in on_third
    assert on_third < on_second
    assert (len(on_second), len(on_third)) == (3, 2)
    assert all(fold < 3 for _, fold in asked)
    assert found.trial in on_third


def race_of(quality, gain=1.0, shrinkages=(0.0,)):
    """How often each strength is tested whose rows are right to some share."""
    asked = []
    folds = Folds(np.arange(600) % 4, np.arange(600), np.ones(600), 4)

    def run(wanted):
        asked.extend(trial.strength for trial, _ in wanted)
        scores = [(np.arange(150) < 150 * quality[trial.strength]) * 1.0 for trial, _ in wanted]
        gains = np.where(np.arange(150) % 2, gain, -0.9)
        losses = np.zeros(len(shrinkages))
        return [FoldTest(each[None], gains, losses, 2, 0) for each in scores]

    trials = tuple(Trial(m, "gini") for m in sorted(quality))
    plan = Plan(trials, Trial(1.0, "gini"), shrinkages, Race(4, (2, 1)))
    found = choice.choose(plan, folds, run)
    return {m: asked.count(m) for m in sorted(quality)}, found.trial.strength


def test_if_the_usual_is_ahead_one_fold_is_enough():
    quality = {0.0: 0.69, 0.3: 0.69, 1.0: 0.7, 3.0: 0.7}
    assert race_of(quality, gain=2.0) == ({0.0: 1, 0.3: 1, 1.0: 1, 3.0: 1}, 1.0)


def test_a_tree_that_may_be_no_better_than_none_is_tested_on_more_folds():
    quality = {0.3: 0.69, 1.0: 0.7, 3.0: 0.7}
    assert race_of(quality, gain=1.0) == ({0.3: 1, 1.0: 3, 3.0: 1}, 3.0)


def test_all_folds_tell_of_shrinkage():
    quality = {0.3: 0.69, 1.0: 0.7, 3.0: 0.7}
    assert race_of(quality, 2.0, shrinkages=(0.0, 1.0))[0] == {0.3: 1, 1.0: 3, 3.0: 1}


def test_beyond_a_hopeless_strength_nothing_is_tested():
    asked = []
    folds = Folds(np.arange(800) % 2, np.arange(800), np.ones(800), 2)

    def run(wanted):
        asked.extend(trial.strength for trial, _ in wanted)
        right = {0.5: 100, 1.0: 300, 2.0: 299, 4.0: 100}
        scores = [(np.arange(400) < right[trial.strength]) * 1.0 for trial, _ in wanted]
        return [FoldTest(each[None], np.ones(400), np.zeros(1), 2, 0) for each in scores]

    strengths = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
    trials = tuple(Trial(strength, "squared_error") for strength in strengths)
    choice.choose(Plan(trials, trials[3], (0.0,), Race(2, ())), folds, run)
    assert sorted(asked) == [0.5, 1.0, 2.0, 4.0]


# Fits


def fits_alike(one, other, X, y):
    one, other = one.fit(X, y), other.fit(X, y)
    assert (one.strength_, one.criterion_) == (other.strength_, other.criterion_)
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
    # Without penalties, several features may be equally good; then the first one wins.
    penalised = one.cv_results_["param_strength"] >= 1
    scores = [tree.cv_results_["mean_test_score"][penalised] for tree in (one, other)]
    assert_array_equal(*scores)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_of_pure_noise_nothing_is_learnt(seed, kind):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(600, 6)), rng.normal(size=600)
    tree = kind(strength="cv").fit(X, y > 0 if kind is ShapeTreeClassifier else y)
    assert tree.strength_ == 3.0
    assert tree.get_n_leaves() <= 2


def fine_detail(rng, n_rows=3000, n_stripes=400):
    """Stripes of a few rows each, and no noise."""
    X = rng.random((n_rows, 2))
    return X, rng.integers(2, size=n_stripes)[(X[:, 0] * n_stripes).astype(int)]


def test_without_noise_penalties_go():
    X, y = fine_detail(np.random.default_rng(0))
    tree = ShapeTreeClassifier(strength="cv", max_bins=None).fit(X, y)
    assert tree.strength_ < 1
    usual = ShapeTreeClassifier(max_bins=None).fit(X, y)
    new_X, new_y = X + 1e-9, y
    assert tree.score(new_X, new_y) > usual.score(new_X, new_y)


def test_without_noise_penalties_of_numbers_go():
    X, y = fine_detail(np.random.default_rng(0))
    y = y + np.sin(9 * X[:, 1])
    assert ShapeTreeRegressor(strength="cv", max_bins=None).fit(X, y).strength_ < 1


@pytest.mark.parametrize("criterion", CRITERIA)
def test_what_was_tried_has_scikit_learns_form(criterion):
    X, y = data_for(criterion, np.random.default_rng(0), n_rows=200)
    tree = tree_for(criterion, strength=[2, 0.5, 1, 1], folds=3, max_depth=2).fit(X, y)
    results = tree.cv_results_
    assert_array_equal(results["param_strength"], [0.5, 1.0, 2.0])
    assert results["params"][0] == {"strength": 0.5, "criterion": criterion}
    splits = np.array([results[f"split{fold}_test_score"] for fold in range(3)])
    assert "split3_test_score" not in results
    assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["rank_test_score"].min() == 1
    assert (results["mean_fit_time"] > 0).all()
    assert len(pd.DataFrame(results)) == 3
    assert tree.strength_ in (0.5, 1.0, 2.0)


def test_scores_are_those_of_trees_fitted_without_the_fold(monkeypatch):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=200)
    made = []
    make = _trials.make_folds
    monkeypatch.setattr(_trials, "make_folds", lambda *args: made.append(make(*args)) or made[-1])
    tree = ShapeTreeClassifier(strength=[0.5, 1], folds=4, criterion="gini", max_depth=2).fit(X, y)
    for number, strength in enumerate([0.5, 1.0]):
        for fold in range(4):
            held_out = made[0].held_out(fold)
            # Few distinct values: the bins of a part are those of the whole.
            alone = ShapeTreeClassifier(strength=strength, criterion="gini", max_depth=2)
            score = alone.fit(X[~held_out], y[~held_out]).score(X[held_out], y[held_out])
            found = tree.cv_results_[f"split{fold}_test_score"][number]
            assert abs(found - score) < 0.06


def test_the_criterion_is_chosen_too_unless_it_is_given():
    X, y = noisy_classes(np.random.default_rng(0))
    free = ShapeTreeClassifier(**FAST).fit(X, y)
    assert set(free.cv_results_["param_criterion"]) == {"gini", "entropy"}
    given = ShapeTreeClassifier(**FAST, criterion="entropy").fit(X, y)
    assert set(given.cv_results_["param_criterion"]) == {"entropy"}
    assert given.criterion_ == "entropy"
    assert ShapeTreeClassifier(**FAST, criterion="log_loss").fit(X, y).criterion_ == "entropy"


def test_criteria_that_folds_cannot_tell_apart_are_rivals():
    usual, other = np.zeros((2, 1000))
    usual[:500], other[:498] = 1.0, 1.0
    record, trial = record_of({1.0: usual})
    folds, rival = record._folds, Trial(1.0, "entropy")
    for scores, expected in ((other, ("entropy",)), (np.zeros(1000), ())):
        both = Record((trial, rival), folds)
        both._found[trial] = record._found[trial]
        halves = [
            FoldTest(scores[None, fold::2], np.ones(500), np.zeros(1), 2, 0) for fold in (0, 1)
        ]
        both._found[rival] = dict(enumerate(halves))
        assert both.rival_criteria(trial, trial) == expected
        assert both.rival_criteria(rival, trial) == ()


def crossed_classes(rng, n_rows=1500):
    """Nine classes, the first two of which one feature tells for sure, and two others all but."""
    y = rng.integers(9, size=n_rows)
    noisy = [
        np.where(rng.random(n_rows) < 0.2, rng.integers(3, size=n_rows), v) for v in (y // 3, y % 3)
    ]
    X = np.stack([np.minimum(y, 2), *noisy, rng.integers(3, size=n_rows)], axis=1)
    return X + rng.uniform(0.0, 0.9, size=X.shape), y


def test_a_shallow_tree_begins_where_it_ends_up_best():
    X, y = crossed_classes(np.random.default_rng(0))
    usual = ShapeTreeClassifier(max_depth=2, criterion="entropy", n_threads=1).fit(X, y)
    assert usual.tree_.feature[0] == 0
    chosen = ShapeTreeClassifier(max_depth=2, strength=[1.0], n_threads=1).fit(X, y)
    assert chosen.tree_.feature[0] in (1, 2)
    assert chosen.score(X, y) > usual.score(X, y) + 0.1
    same = ShapeTreeClassifier(max_depth=2, strength=[1.0], n_threads=1).fit(X[:, ::-1], y)
    assert same.tree_.feature[0] == 3 - chosen.tree_.feature[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("criterion", CRITERIA)
def test_other_beginnings_never_make_the_loss_greater(criterion, seed):
    X, y = data_for(criterion, np.random.default_rng(seed))
    params = {"max_depth": 3, "n_threads": 1, "criterion": criterion}
    usual = tree_for(**params, refine="tao").fit(X, y)
    chosen = tree_for(**params, refine="tao", strength=[1.0], shrinkage=0.0).fit(X, y)
    assert chosen.refinement_history_[-1] <= usual.refinement_history_[-1]


def learn_by(instead, monkeypatch):
    """Have all trees of a fit learnt in another way."""
    for module in (_learning, _trials, _order):
        monkeypatch.setattr(module, "learn", instead)


def noted_beginnings(monkeypatch, n_rows):
    """Parameters of the trees of all rows to come, and what each was split on first."""
    noted = []

    def note(binned, parameters, *args, **more):
        outcome = learn(binned, parameters, *args, **more)
        if binned.binned.n_rows == n_rows:
            noted.append((parameters, outcome.root))
        return outcome

    learn_by(note, monkeypatch)
    return noted


@pytest.mark.parametrize("pairs", [0, "auto"])
def test_trees_begin_in_several_ways(pairs, monkeypatch):
    X, y = load_digits(return_X_y=True)
    noted = noted_beginnings(monkeypatch, len(X))
    params = {"max_depth": 2, "n_threads": 1, "pairs": pairs}
    ShapeTreeClassifier(**params, strength=[1.0]).fit(X, y)
    assert len(noted) == 1 + _learning.N_BEGINNINGS
    differ = {(each.lookahead, each.growth, each.criterion) for each, _ in noted}
    # Two are the usual way, with another root.
    assert len(differ) == len(noted) - _learning.N_RIVAL_ROOTS
    assert all(root for _, root in noted)
    roots = [root for each, root in noted if each == noted[0][0]]
    assert len(set(roots)) == len(roots) == 1 + _learning.N_RIVAL_ROOTS
    noted.clear()
    ShapeTreeClassifier(**params, strength=1.0).fit(X, y)
    assert len(noted) == 1


def test_roots_that_gain_too_little_are_looked_for_once(monkeypatch):
    noted = noted_beginnings(monkeypatch, 500)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    ShapeTreeClassifier(max_depth=2, strength=[1.0], criterion="gini").fit(X, X[:, 0] > 0)
    assert [root for _, root in noted].count(()) == 1
    assert len(noted) == _learning.N_BEGINNINGS


def test_where_a_fit_takes_long_trees_begin_in_fewer_ways(monkeypatch):
    X, y = load_digits(return_X_y=True)
    noted = noted_beginnings(monkeypatch, len(X))
    params = {"max_depth": 2, "n_threads": 1, "strength": [0.5]}
    ShapeTreeClassifier(**params, pairs="auto").fit(X, y)
    assert len(noted) == 1 + _learning.N_BEGINNINGS_IF_SLOW
    noted.clear()
    monkeypatch.setattr(_learning, "MANY_ROWS", 1_000)
    ShapeTreeClassifier(**params).fit(X, y)
    assert len(noted) == 1 + _learning.N_BEGINNINGS_IF_SLOW


@pytest.mark.parametrize("params", [{"strength": [0.0]}, {"strength": [1.0], "refine_penalty": 0}])
def test_trees_without_penalties_begin_in_one_way(params, monkeypatch):
    X, y = noisy_classes(np.random.default_rng(0))
    noted = noted_beginnings(monkeypatch, len(X))
    ShapeTreeClassifier(**params, max_depth=2).fit(X, y)
    assert len(noted) == 1


def test_growth_at_another_strength_is_refined_at_the_usual_price():
    X, y = noisy_classes(np.random.default_rng(0))
    parameters = ShapeTreeClassifier(max_depth=3, criterion="gini")._parameters()
    weak = replace(parameters, growth=0.1)
    assert weak.while_growing.strength == pytest.approx(0.1)
    rows = training_rows(X, y, None, parameters, True)
    pairs = _parameters.read_pairs(rows.table, parameters)
    binned = bin_rows(rows, parameters, pairs)
    losses = []
    for each in (weak, weak.while_growing):
        with Progress(0, len(X), 3) as silent:
            losses.append(learn(binned, each, pairs, silent).history)
    # The same tree, before its parts are paid for at different prices.
    assert losses[0][0] > losses[1][0]


def test_shrinkage_of_numbers_is_chosen_with_the_strength():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + rng.normal(size=600)
    params = {"max_depth": 6, "n_threads": 1}
    assert ShapeTreeRegressor(**params).fit(X, y).shrinkage_ == 0.0
    assert ShapeTreeRegressor(**params, strength="cv", shrinkage=0.0).fit(X, y).shrinkage_ == 0.0
    tree = ShapeTreeRegressor(**params, strength=[0.0]).fit(X, y)
    assert tree.shrinkage_ > 0.0
    new = rng.normal(size=(2000, 3))
    plain = ShapeTreeRegressor(**params, strength=0.0).fit(X, y)
    off, off_plain = (np.abs(each.predict(new) - new[:, 0]).mean() for each in (tree, plain))
    assert off < 0.9 * off_plain


def test_trials_are_compared_at_their_best_shrinkage():
    n = 400
    folds = Folds(np.arange(n) % 2, np.arange(n), np.ones(n), 2)
    usual, weak = Trial(1.0, "squared_error"), Trial(0.3, "squared_error")
    # Without shrinkage the weak trial is the worse, with it the better.
    scores = {usual: (0.5, 0.5), weak: (0.2, 0.8)}

    def run(wanted):
        rows = np.linspace(-0.1, 0.1, n // 2)
        return [
            FoldTest(
                np.array([score + rows for score in scores[trial]]),
                np.ones(n // 2),
                1.0 - np.array(scores[trial]),
                2,
                0.0,
            )
            for trial, _ in wanted
        ]

    found = choice.choose(Plan((weak, usual), usual, (0.0, 50.0)), folds, run)
    assert (found.trial, found.shrinkage) == (weak, 50.0)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_shrinkage_is_chosen_from_the_same_fits(criterion, monkeypatch):
    X, y = data_for(criterion, np.random.default_rng(0))
    n_fits = []
    learn_by(lambda *args, **more: n_fits.append(1) or learn(*args, **more), monkeypatch)
    params = FAST | {"refine": None, "folds": 3}
    tree_for(criterion, **params).fit(X, y)
    n_alone = len(n_fits)
    both = tree_for(criterion, **params, shrinkage="cv").fit(X, y)
    assert len(n_fits) == 2 * n_alone
    assert both.shrinkage_ in _parameters.SHRINKAGES


def test_a_budget_of_leaves_holds():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=600)
    tree = ShapeTreeClassifier(**FAST | {"max_depth": 6}, max_leaf_nodes=5).fit(X, y)
    assert tree.get_n_leaves() <= 5
    assert (
        tree.cv_results_["mean_n_leaves"][~np.isnan(tree.cv_results_["mean_n_leaves"])].max() <= 5
    )


@pytest.mark.parametrize("n_rows", [1, 2, 4, 7])
def test_of_few_rows_the_usual_strength_is_taken(n_rows):
    X, y = np.arange(n_rows)[:, None], np.arange(n_rows) % 2
    assert ShapeTreeClassifier(strength="cv").fit(X, y).strength_ in (1.0, 3.0)
    assert ShapeTreeRegressor(strength="cv").fit(X, y).strength_ in (1.0, 3.0)


def test_several_targets_weights_and_missing_values():
    rng = np.random.default_rng(0)
    X, y = noisy_classes(rng, n_rows=200)
    X[::7, 1] = np.nan
    weights = rng.random(200)
    both = np.stack([y, y % 2], axis=1)
    for kind in (ShapeTreeClassifier, ShapeTreeRegressor):
        tree = kind(**FAST).fit(X, both, sample_weight=weights)
        assert tree.strength_ in choice.STRENGTHS


def test_a_path_without_the_usual_strength():
    assert choice.usual_of((0.0, 0.3, 3.0)) == 3.0
    assert choice.usual_of((0.0, 0.9, 3.0)) == 0.9
    assert choice.usual_of((0.0,)) == 0.0
    X, y = noisy_classes(np.random.default_rng(0))
    assert ShapeTreeClassifier(strength=[4.0], max_depth=2).fit(X, y).strength_ == 4.0


@pytest.mark.parametrize(
    "strength", [[], [-1.0], [np.nan], [np.inf], [[1.0]], ["a"], [1, None], [[1], [1, 2]]]
)
def test_paths_that_make_no_sense_are_refused(strength):
    X, y = noisy_classes(np.random.default_rng(0))
    model = ShapeTreeClassifier(strength=strength)
    for call in (model.fit, model.strength_path):
        with pytest.raises(ValueError, match="strength must be a number, 'cv', or a list"):
            call(X, y)


@pytest.mark.parametrize("folds", [1, 0, 2.5, "5"])
def test_numbers_of_folds_that_make_no_sense_are_refused(folds):
    X, y = noisy_classes(np.random.default_rng(0))
    with pytest.raises(ValueError, match="'folds' parameter"):
        ShapeTreeClassifier(strength="cv", folds=folds).fit(X, y)


# After the fit


def test_a_model_file_keeps_what_was_chosen():
    X, y = fine_detail(np.random.default_rng(0), n_rows=1000, n_stripes=150)
    tree = ShapeTreeClassifier(strength=[0, 1, 2], max_bins=None).fit(X, y)
    again = from_json(tree.to_json())
    assert again.strength_ == tree.strength_ != 1.0
    assert list(again.strength) == [0, 1, 2]
    with pytest.raises(AttributeError, match="cv_results_ is not available"):
        again.cv_results_  # noqa: B018
    plain = ShapeTreeClassifier(strength=0.5).fit(X, y)
    assert from_json(plain.to_json()).strength_ == 0.5


def test_refinement_goes_on_at_the_strength_chosen():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=400)
    tree = ShapeTreeClassifier(**FAST).fit(X, y)
    again = refine_tree(tree, X, y)
    assert again.strength_ == tree.strength_
    assert again.criterion_ == tree.criterion_


def test_a_failure_leaves_the_estimator_as_it_was(monkeypatch):
    X, y = noisy_classes(np.random.default_rng(0))
    tree = ShapeTreeClassifier(**FAST | {"n_threads": 3}).fit(X, y)
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
    model = ShapeTreeClassifier(strength="cv", n_threads=2, max_depth=12, pairs="auto")
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
    ShapeTreeClassifier(**FAST, verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    assert "choosing: " in shown
    assert " test fits" in shown


# Paths


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_a_path_of_strengths(kind):
    X, y = noisy_classes(np.random.default_rng(0))
    model = kind(strength=[0, 1, 50], max_depth=3, folds=3)
    path = model.strength_path(X, y)
    assert not hasattr(model, "tree_")
    table = pd.DataFrame(path)
    assert list(table.columns) == [
        "strength", "score", "error", "n_leaves", "n_segments", "is_chosen",
    ]  # fmt: skip
    assert_array_equal(table.strength, [0.0, 1.0, 50.0])
    for row in table.itertuples():
        criterion = {} if kind is ShapeTreeRegressor else {"criterion": "gini"}
        tree = kind(strength=row.strength, max_depth=3, random_state=0, **criterion).fit(X, y)
        assert tree.get_n_leaves() == row.n_leaves
    assert table.is_chosen.sum() == 1
    assert (table.error >= 0).all()
    best = kind(strength=[0, 1, 50], max_depth=3, folds=3, **criterion).fit(X, y)
    assert best.strength_ == table.strength[table.is_chosen].item()
    assert_allclose(table.score.iloc[1], best.cv_results_["mean_test_score"][1], atol=1e-2)


def test_the_path_is_ours_unless_given():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=100)
    for strength in (1.0, "cv"):
        path = ShapeTreeClassifier(strength=strength, max_depth=1, folds=2).strength_path(X, y)
        assert_array_equal(path.strength, choice.PATH)
    with pytest.raises(ValueError, match="folds=5 needs at least as many distinct rows"):
        ShapeTreeClassifier().strength_path(X[:3], y[:3])
