"""Whether there is anything to learn: noise has a leaf, with the reason, and signals are found."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from chance import by_chance, seeds
from data import assert_same_tree, make_tree

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.fit import _fit, _resamples
from shapetree.fit._local_backend import training_rows
from shapetree.fit._resamples import N_RESAMPLES, SHARE_DRAWN, Evidence
from shapetree.fit._scores import Score
from shapetree.fit._training_rows import bin_rows
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._view import view_of

N_SEEDS = len(seeds(10))
# Of so many seeds, with all tables and targets, leaves that noise must have at least: about one
# table in twenty gets a tree.
LEAST_LEAVES = 0.8


def numbers(rng):
    return pd.DataFrame(rng.normal(size=(300, 10))).add_prefix("x")


def many_levels(rng):
    n_rows, n_levels = 2000, 1000
    levels = [f"level {i}" for i in rng.integers(0, n_levels, n_rows)]
    return pd.DataFrame({"c": levels, "x": rng.normal(size=n_rows)})


def classes(rng, n_rows):
    return (rng.random(n_rows) < 0.5).astype(int)


def rare_class(rng, n_rows):
    return (rng.random(n_rows) < 0.1).astype(int)


def normal(rng, n_rows):
    return rng.normal(size=n_rows)


TABLES = {
    "numbers": (numbers, 0),
    "many levels": (many_levels, 0),
    "pairs": (numbers, "auto"),
    "pairs of many levels": (many_levels, "auto"),
}


@by_chance
@pytest.mark.parametrize(
    ("table", "target", "is_repeated"),
    [
        *product(TABLES, [classes, rare_class, normal], [False]),
        *product(TABLES, [classes], [True]),
        *product(["numbers", "many levels"], [rare_class, normal], [True]),
    ],
)
def test_noise_has_a_leaf(table, target, is_repeated):
    (make, pairs), n_leaves = TABLES[table], 0
    kind = ShapeTreeRegressor if target is normal else ShapeTreeClassifier
    n_seeds = len(seeds(5)) if pairs else N_SEEDS  # pairs take ten times as long
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X = make(rng)
        y = target(rng, len(X))
        if is_repeated:
            X, y = pd.concat([X, X], ignore_index=True), np.concatenate([y, y])
        tree = kind(max_depth=4, pairs=pairs, random_state=0, n_threads=1).fit(X, y)
        n_leaves += tree.tree_.node_count == 1
    assert n_leaves >= LEAST_LEAVES * n_seeds


@pytest.mark.parametrize(("pairs", "n_features"), [(0, 400), ("auto", 120)])
def test_noise_has_a_leaf_among_many_features(pairs, n_features):
    n_leaves = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, n_features)), classes(rng, 100)
        n_leaves += ShapeTreeClassifier(pairs=pairs, n_threads=1).fit(X, y).get_depth() == 0
    assert n_leaves >= 4


def test_a_clear_signal_is_found_among_many_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 400))
    tree = ShapeTreeClassifier(n_threads=1).fit(X, X[:, 7] > 0)
    assert tree.score(X, X[:, 7] > 0) == 1.0


def test_a_rare_class_is_not_taken_for_noise():
    # Few rows have it, in two narrow segments: half of them must be enough to find these.
    n_trees = 0
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(0, 24, 320), rng.normal(size=320)])
        y = np.isin(X[:, 0], [8, 17]) & (rng.random(320) < 0.9)
        n_trees += ShapeTreeClassifier(max_depth=2, n_threads=1).fit(X, y).get_depth() > 0
    assert n_trees >= 0.9 * N_SEEDS


def test_a_weak_signal_is_not_taken_for_noise():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 5))
    y = X[:, 0] + 2.5 * rng.normal(size=1000)
    assert ShapeTreeRegressor(max_depth=3).fit(X, y).tree_.node_count > 1
    y = (rng.random(1000) < 0.5 + 0.12 * np.sign(X[:, 1])).astype(int)
    assert ShapeTreeClassifier(max_depth=3).fit(X, y).tree_.node_count > 1


@pytest.mark.parametrize("n_copies", [1, 2, 3])
def test_a_pair_that_matters_is_found_in_few_rows(n_copies):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1300, 4))
        y = (X[:, 0] + X[:, 1] > 0) ^ (X[:, 0] - X[:, 1] > 0.5) ^ (rng.random(1300) < 0.1)
        few, labels = np.tile(X[:300], (n_copies, 1)), np.tile(y[:300], n_copies)
        tree = ShapeTreeClassifier(max_depth=3, pairs="auto", random_state=0).fit(few, labels)
        assert tree.score(X[300:], y[300:]) > 0.65


def test_categories_that_matter_are_found_among_many():
    rng = np.random.default_rng(2)
    level = rng.integers(0, 200, 8000)
    effect = rng.normal(size=200)[level]
    y = effect + rng.normal(size=8000)
    X = pd.DataFrame({"c": [f"level {i}" for i in level], "x": rng.normal(size=8000)})
    # Half of them are above the average, and have to be listed.
    tree = ShapeTreeRegressor(max_depth=3, max_parts=None, random_state=0).fit(X[:6000], y[:6000])
    assert tree.score(X[6000:], y[6000:]) > 0.35


def test_noise_of_many_rows_and_levels_has_a_leaf_with_pairs():
    # So many rows are not resampled, and prices leave a split to chance now and then.
    n_leaves = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        levels = [f"level {i}" for i in rng.integers(0, 6000, 12_000)]
        X = pd.DataFrame({"c": levels, "x": rng.normal(size=12_000)})
        tree = ShapeTreeClassifier(max_depth=2, pairs="auto").fit(X, rng.integers(0, 2, 12_000))
        n_leaves += tree.tree_.node_count == 1
    assert n_leaves >= 4


def test_a_pair_of_many_levels_that_matters_is_found():
    rng = np.random.default_rng(5)
    level, x = rng.integers(0, 60, 6000), rng.normal(size=6000)
    y = ((level % 2 == 0) == (x > 0)) ^ (rng.random(6000) < 0.1)
    X = pd.DataFrame({"c": [f"level {i}" for i in level], "x": x})
    tree = ShapeTreeClassifier(max_depth=2, pairs="auto", max_parts=None).fit(X[:4000], y[:4000])
    assert tree.score(X[4000:], y[4000:]) > 0.85


def test_few_kinds_of_rows_are_told_apart():
    # Resamples without a kind of row in common would learn nothing of each other.
    X = pd.DataFrame({"c": np.repeat(["a", "b", "c"], 40)})
    y = np.tile([0, 0, 0, 1], 30)
    y[:40] = np.tile([1, 1, 1, 0], 10)
    assert ShapeTreeClassifier(max_depth=2).fit(X, y).tree_.node_count > 1


def test_a_price_of_the_users_own_is_taken_at_its_word():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 10)), rng.integers(0, 2, 300)
    tree = ShapeTreeClassifier(
        max_depth=3, search=SearchOptions(leaf_penalty=0.0, segment_penalty=0.0)
    ).fit(X, y)
    assert tree.tree_.node_count > 1


# How resamples are drawn, and what they tell


def noise(rng, n_rows=200):
    return rng.normal(size=(n_rows, 4)), rng.integers(2, size=n_rows)


def signal(rng, n_rows=200):
    X, _ = noise(rng, n_rows)
    return X, (X[:, 1] > 0).astype(int)


def noted_evidence(monkeypatch):
    """What resamples tell in the fits to come."""
    noted = []

    def note(*args):
        found = _resamples.resample(*args)
        noted.append(None if found is None else found.evidence)
        return found

    monkeypatch.setattr(_fit, "resample", note)
    return noted


def draw_of(X, y, weights=None, groups=None):
    """What decides which rows are drawn."""
    parameters = ShapeTreeClassifier()._parameters()
    rows = training_rows(X, y, weights, parameters, True)
    binned = bin_rows(rows, parameters)
    return _resamples.HalfSamples(binned, _resamples.contents_of(binned), groups)


def drawn_rows(X, y, weights=None, groups=None):
    """How many copies of each row each resample draws."""
    draw = draw_of(X, y, weights, groups)
    return np.array([draw.drawn(number) for number in range(N_RESAMPLES)])


def test_each_resample_draws_its_share_of_the_rows():
    drawn = drawn_rows(*noise(np.random.default_rng(0), 2000))
    assert drawn.shape == (N_RESAMPLES, 2000)
    assert set(drawn.ravel()) == {0.0, 1.0}
    assert np.abs(drawn.mean(axis=1) - SHARE_DRAWN).max() < 0.05
    # Rows are drawn independently of each other, and anew in each resample.
    assert np.abs(np.corrcoef(drawn) - np.eye(N_RESAMPLES)).max() < 0.1


def test_many_equal_rows_are_drawn_one_by_one():
    # Two kinds of rows, of each of which about half must be drawn.
    X, y = np.repeat([[0.0], [1.0]], 1000, axis=0), np.tile([0, 1], 1000)
    drawn = drawn_rows(X, y)
    for of_kind in (drawn[:, :1000], drawn[:, 1000:]):
        assert np.abs(of_kind.mean(axis=1) - SHARE_DRAWN).max() < 0.1
        assert np.abs(np.corrcoef(of_kind) - np.eye(N_RESAMPLES)).max() < 0.2
    # Each row is evidence of its own.
    assert draw_of(X, y).n_units == 2000


def test_equal_rows_and_rows_of_a_group_are_drawn_together():
    X, y = noise(np.random.default_rng(0))
    twice = drawn_rows(np.vstack([X, X]), np.append(y, y))
    np.testing.assert_array_equal(twice[:, :200], twice[:, 200:])
    assert 0.4 < twice.mean() < 0.6
    groups = np.arange(200) // 8
    # Rows of a group even if they hold the same, and are many.
    for table in (X, np.ones_like(X)):
        drawn = drawn_rows(table, y, groups=groups)
        for group in range(25):
            own = drawn[:, groups == group]
            assert (own.all(axis=1) | ~own.any(axis=1)).all()
        assert 0.4 < drawn.mean() < 0.6
        assert draw_of(table, y, groups=groups).n_units == 25


@pytest.mark.parametrize("n_copies", [1, 2, 5, 6, 40])
def test_a_table_of_frequencies_draws_like_the_table_of_its_people(n_copies):
    rng = np.random.default_rng(0)
    X, y = noise(rng, 60)
    # Kinds of people with both classes, and others with one.
    X[30:] = X[:30]
    counts = rng.integers(1, n_copies + 1, 60)
    row_of = np.repeat(np.arange(60), counts)
    people, table = drawn_rows(X[row_of], y[row_of]), drawn_rows(X, y, counts)
    summed = [np.bincount(row_of, drawn, 60) for drawn in people]
    np.testing.assert_array_equal(table, summed)
    assert draw_of(X, y, counts).n_units == draw_of(X[row_of], y[row_of]).n_units == counts.sum()


@pytest.mark.parametrize(
    ("params", "n_rows", "expected"),
    [
        ({}, 200, 100),
        ({}, 5001, 0),
        ({"resamples": 7}, 200, 7),
        ({"resamples": 3}, 5001, 3),
        ({"resamples": 0}, 200, 0),
        ({"strength": 0.0}, 200, 0),
        ({"strength": [0.0, 1.0]}, 200, 100),
        ({"leaf_penalty": 2.0}, 200, 0),
        ({"max_branches": 2, "inner_max_leaf_nodes": 2}, 200, 0),
    ],
)
def test_how_many_resamples_there_are(params, n_rows, expected, monkeypatch):
    noted = noted_evidence(monkeypatch)
    X, y = signal(np.random.default_rng(0), n_rows)
    make_tree(ShapeTreeClassifier, max_depth=1, **params).fit(X, y)
    assert [0 if each is None else each.n_resamples for each in noted] == [expected]


@pytest.mark.parametrize("resamples", [-1, 2.5, "all", None])
def test_numbers_of_resamples_that_make_no_sense_are_refused(resamples):
    with pytest.raises(ValueError, match="'resamples' parameter"):
        ShapeTreeClassifier(resamples=resamples).fit(*signal(np.random.default_rng(0)))


def test_features_are_drawn_alike_in_whatever_order_they_stand(monkeypatch):
    noted = noted_evidence(monkeypatch)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 6)), np.arange(150) % 2
    X[:, 1] += y  # as many rows of each class, and no ties within a column
    for table in (X, X[:, ::-1]):
        ShapeTreeClassifier().fit(table, y)
    assert noted[0].trend > 2
    assert noted[1].trend == pytest.approx(noted[0].trend, rel=1e-9)


@pytest.mark.parametrize("target", [classes, normal])
def test_rows_are_taught_what_trees_predict_that_have_not_drawn_them(target, monkeypatch):
    noted = []
    own = _resamples.resample
    monkeypatch.setattr(_fit, "resample", lambda *args: noted.append(own(*args)) or noted[-1])
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), target(rng, 60)
    kind = ShapeTreeRegressor if target is normal else ShapeTreeClassifier
    kind().fit(X, y)
    predicted = noted[0].predicted[:, 0]
    agreement = (
        predicted[np.arange(60), y] if target is classes else predicted[:, 0] * (y - y.mean())
    )
    # Of noise, the trees that have drawn a row lean towards its target, the others do not.
    assert agreement.mean() <= (np.bincount(y).max() / 60 if target is classes else 0.05)


def test_predictions_must_go_with_the_targets_and_gain():
    assert Evidence(0.1, 2.5, 100, 50, 0.0, 0.02).is_convincing
    assert not Evidence(0.1, 1.9, 100, 50, 0.0, 0.02).is_convincing
    assert not Evidence(-0.1, 2.5, 100, 50, 0.0, 0.02).is_convincing
    # The standard error of few rows or groups is not known well.
    assert not Evidence(0.1, 2.5, 5, 50, 0.0, 0.02).is_convincing
    assert Evidence(0.1, 5.0, 5, 50, 0.0, 0.02).is_convincing


@pytest.mark.parametrize("target", [classes, normal])
def test_rows_that_recur_do_not_make_noise_convincing(target):
    # What a tree predicts for a row that it has not drawn may come from its equals, which others
    # have drawn, but not from the row itself.
    kind = ShapeTreeRegressor if target is normal else ShapeTreeClassifier
    n_leaves = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 2, (80, 4))
        n_leaves += kind(max_depth=2, n_threads=1).fit(X, target(rng, 80)).get_n_leaves() == 1
    assert n_leaves >= 26


@pytest.mark.parametrize("objective", ["log_loss", "squared_error", "absolute_error"])
def test_what_a_step_gains_is_the_slope_of_the_score(objective):
    rng = np.random.default_rng(0)
    if objective == "log_loss":
        y = rng.integers(0, 3, (40, 2)).astype(float)
        values, towards = rng.dirichlet(np.ones(3), (2, 40, 2))
    else:
        y, values, towards = rng.normal(size=(40, 2)), *rng.normal(size=(2, 40, 2, 1))
    score = Score(objective, y, np.ones(40))
    small = values + 1e-7 * (towards - values)
    slope = (score.of(small, y) - score.of(values, y)) / 1e-7
    found = score.of_step(values, towards, y)
    factor = slope @ found / (found @ found)  # numbers' scores have another unit
    np.testing.assert_allclose(factor * found, slope, atol=1e-4 * np.abs(slope).max())
    assert factor > 0


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_resamples_that_do_not_teach_change_nothing_but_whether_there_is_a_tree(kind):
    X, y = signal(np.random.default_rng(0))
    untaught = kind(teacher=None).fit(X, y)
    assert_same_tree(untaught, kind(resamples=0).fit(X, y))
    assert untaught.get_n_leaves() > 1


def test_resamples_do_not_depend_on_the_order_of_rows():
    X, y = noise(np.random.default_rng(0))
    X[:40] = 1.0  # very many equal rows
    rows = np.random.default_rng(1).permutation(200)
    drawn, again = drawn_rows(X, y), drawn_rows(X[rows], y[rows])
    assert set(draw_of(X, y).is_alone[:40]) == {True}
    different = np.flatnonzero(rows >= 40)
    np.testing.assert_array_equal(again[:, different], drawn[:, rows[different]])
    for label in (0, 1):
        counts = drawn[:, :40][:, y[:40] == label].sum(axis=1)
        same = (rows < 40) & (y[rows] == label)
        np.testing.assert_array_equal(again[:, same].sum(axis=1), counts)


def test_whether_there_is_a_tree_depends_on_neither_names_nor_order(monkeypatch):
    noted = noted_evidence(monkeypatch)
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.normal(size=150), "c": rng.choice(list("uvwxyz"), 150)})
    y = np.where(rng.random(150) < 0.3, rng.integers(3, size=150), table["c"] > "w")
    ShapeTreeClassifier(n_threads=1).fit(table, y)
    ShapeTreeClassifier(n_threads=2).fit(table, np.array(["z", "m", "a"])[y])
    names = dict(zip("uvwxyz", "qeybda", strict=True))
    ShapeTreeClassifier().fit(table.assign(c=table["c"].map(names)), y)
    ShapeTreeClassifier().fit(table[["c", "a"]], y)
    for other in noted[1:]:
        assert other.gain == pytest.approx(noted[0].gain, rel=1e-9)
        assert other.trend == pytest.approx(noted[0].trend, rel=1e-9)


@pytest.mark.parametrize(
    ("counts", "n_leaves"), [([300, 40, 20, 500], 2), ([300, 280, 310, 290], 1)]
)
def test_a_table_of_frequencies_tells_as_much_as_the_table_of_its_people(
    counts, n_leaves, monkeypatch
):
    noted = noted_evidence(monkeypatch)
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    table = ShapeTreeClassifier().fit(X, y, counts)
    people = ShapeTreeClassifier().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert table.get_n_leaves() == people.get_n_leaves() == n_leaves
    for name in ("gain", "trend", "n_units", "n_resamples", "explained"):
        one, other = (getattr(each, name) for each in noted)
        assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5])
def test_very_few_rows(n_rows):
    X, y = np.arange(n_rows)[:, None], np.arange(n_rows) % 2
    for kind in (ShapeTreeClassifier, ShapeTreeRegressor):
        tree = kind().fit(X, y)
        assert tree.get_n_leaves() == 1
        assert tree.why_single_leaf_


# Why there is no tree


def test_a_tree_needs_no_reason():
    assert ShapeTreeClassifier().fit(*signal(np.random.default_rng(0))).why_single_leaf_ is None


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_the_reason_tells_of_resamples_and_of_the_split_that_came_nearest(kind):
    X, y = noise(np.random.default_rng(0))
    table = pd.DataFrame(X, columns=["age", "weight", "dose", "dbp"])
    tree = kind(resamples=9).fit(table, y)
    assert tree.get_n_leaves() == 1
    why = tree.why_single_leaf_
    assert why.startswith("small trees did not predict rows held out clearly better than no tree")
    assert "In 9 resamples" in why
    assert any(repr(name) in why for name in table)
    assert "resamples=0" in why
    assert make_tree(kind, resamples=0, leaf_penalty=0).fit(table, y).get_n_leaves() > 1


def test_the_reason_tells_the_price_that_no_split_earns():
    X, y = signal(np.random.default_rng(0))
    tree = ShapeTreeClassifier(search=SearchOptions(leaf_penalty=1000.0)).fit(X, y)
    assert tree.why_single_leaf_.startswith("no split gains as much as it costs")
    n_further_leaves = re.search(r"had to gain more than (\d+)000\.", tree.why_single_leaf_)
    assert n_further_leaves is not None
    assert int(n_further_leaves[1]) in (1, 2)


def test_the_reason_tells_that_no_split_is_possible():
    X, y = signal(np.random.default_rng(0))
    same = ShapeTreeClassifier().fit(X, np.ones(200))
    assert same.why_single_leaf_.startswith("all rows have the same target")
    large = ShapeTreeClassifier(min_samples_leaf=150).fit(X, y)
    assert large.why_single_leaf_.startswith("no feature can split the rows within the limits")


# Sizes of leaves and segments


def steps(rng, n_rows):
    X = rng.uniform(size=(n_rows, 3))
    # Some rows are far off, and would earn leaves of their own.
    y = np.floor(5 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_t(2, n_rows)
    return X, y


@pytest.mark.parametrize("refine", [None, "tao"])
@pytest.mark.parametrize("max_branches", [2, 4])
def test_regression_leaves_have_several_rows(refine, max_branches):
    for seed in range(5):
        X, y = steps(np.random.default_rng(seed), 3000)
        tree = ShapeTreeRegressor(
            max_depth=5, max_branches=max_branches, refine=refine, random_state=0
        ).fit(X, y)
        leaves = [node for node in view_of(fitted_tree(tree)).nodes if node.is_leaf]
        assert min(leaf.n_rows for leaf in leaves) >= 5
        assert sum(leaf.n_rows for leaf in leaves) == 3000


@pytest.mark.parametrize("refine", [None, "tao"])
def test_many_rows_do_not_make_slivers(refine):
    # A curve that one branch crosses again and again where it is flat.
    rng = np.random.default_rng(4)
    x = rng.uniform(size=20_000)
    y = 2 * x + 0.05 * np.sin(400 * x) + 0.5 * rng.normal(size=len(x))
    tree = ShapeTreeRegressor(max_depth=2, refine=refine, random_state=0).fit(x[:, None], y)
    root = view_of(fitted_tree(tree)).nodes[0]
    assert len(root.segments) <= 4


@pytest.mark.parametrize("n_classes", [2, 400])
def test_tables_of_very_many_classes_are_not_resampled(n_classes):
    X, y = np.random.default_rng(0).normal(size=(2000, 2)), np.arange(2000) % n_classes
    tree = ShapeTreeClassifier(max_depth=1).fit(X, y)
    was_resampled = "resamples" in (tree.why_single_leaf_ or "")
    assert was_resampled == (n_classes == 2)
