"""Stability: trees of resamples, compared with the tree, and what is told of it."""

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression

from shapetree import (
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_text,
    from_batches,
    model_schema,
    refine_tree,
)
from shapetree.data._table import read_table
from shapetree.export import export_html
from shapetree.fit._measure_stability import compare
from shapetree.fit._resamples import half_samples
from shapetree.plot import plot_tree
from shapetree.tree._predictor import leaves_of


def mixed(n=160, seed=0):
    """Numbers, categories and missing values, of which some decide."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n).round(1)})
    X["kind"] = pd.Categorical(rng.choice(["x", "y", "z"], n))
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    return X, (X["a"] > 0) & (X["kind"] != "z") | (X["b"] > 1)


def naive_comparison(tree, other, X, counts):
    """Which nodes have their like, by walking both trees row by row."""

    table = read_table(X, "from_dtype")
    paths, rows_in = {}, {}
    for name, arrays in (("own", tree), ("other", other)):
        paths[name] = [arrays.path_to(int(leaf)) for leaf in leaves_of(arrays, table, 1)]
        rows_in[name] = [
            {row for row, path in enumerate(paths[name]) if node in path}
            for node in range(arrays.node_count)
        ]

    def branch_alone(arrays, node, row):
        """The branch of a row by a node that it may not come to."""
        feature = int(arrays.feature[node])
        value = table.columns[feature][row]
        pieces = arrays.pieces(node)
        upper = arrays.piece_upper[pieces]
        if np.isnan(upper[0]):
            at = int(value)
            known = 0 <= at < len(upper)
        else:
            known = not np.isnan(value)
            at = int(np.searchsorted(upper, value)) if known else -1
        return int(arrays.piece_branch[pieces][at] if known else arrays.missing_branch[node])

    same, similar = [], []
    for node in range(tree.node_count):
        own = rows_in["own"][node]
        total = sum(counts[row] for row in own)
        found_same = found_similar = False
        for its in range(other.node_count):
            if tree.is_leaf[node] or other.feature[its] != tree.feature[node]:
                continue
            if sum(counts[row] for row in own & rows_in["other"][its]) <= total / 2:
                continue
            found_same = True
            n, k = int(tree.n_branches[node]), int(other.n_branches[its])
            names = list(range(max(n, k)))
            best = 0
            for names_there in permutations(names):
                best = max(
                    best,
                    sum(
                        counts[row]
                        for row in own
                        if branch_alone(tree, node, row)
                        == names_there[branch_alone(other, its, row)]
                    ),
                )
            found_similar |= best >= 0.9 * total
        same.append(found_same)
        similar.append(found_similar)
    return same, similar


@pytest.mark.parametrize("seed", range(4))
def test_nodes_are_compared_as_row_by_row(seed):
    X, y = mixed(120, seed)
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, len(X)).astype(float)
    trees = []
    for rows in (np.arange(len(X)), rng.permutation(len(X))[:70]):
        model = ShapeTreeClassifier(max_depth=3, resamples=0, strength=0.3)
        trees.append(model.fit(X.iloc[rows], y.iloc[rows]).tree_)
    table = read_table(X, "from_dtype")
    leaves = [leaves_of(tree, table, 1) for tree in trees]
    found = compare(trees[0], leaves[0], trees[1], leaves[1], counts, table)
    same, similar = naive_comparison(*trees, X, counts)
    assert found[0].tolist() == same
    assert found[1].tolist() == similar
    itself = compare(trees[0], leaves[0], trees[0], leaves[0], counts, table)
    for its in itself:
        assert np.array_equal(its, ~trees[0].is_leaf)


def naive_rows(model, X, y, stability, n_resamples, groups=None):
    """Agreement of each row, by fits of the same parameters to the same halves."""
    from dataclasses import replace

    from shapetree.fit._local_backend import training_rows
    from shapetree.fit._training_rows import bin_rows, read_groups

    parameters = replace(model._parameters(), random_state=0)
    rows = training_rows(X, y, None, parameters, True)
    binned = bin_rows(rows, parameters)
    halves = half_samples(binned, read_groups(X, groups, rows), 0)
    n_asked, n_same = np.zeros(len(X)), np.zeros(len(X))
    for number in range(n_resamples):
        drawn = halves.drawn(number) > 0
        assert 0.25 < drawn.mean() < 0.75
        other = ShapeTreeClassifier(**model.get_params()).fit(X[drawn], y[drawn])
        n_asked += ~drawn
        n_same += ~drawn & (other.predict(X) == model.predict(X))
    return n_asked, n_same / np.maximum(n_asked, 1)


def test_rows_are_told_what_fits_to_halves_predict():
    # Few values, so that bins of a half are those of all rows.
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 6, (150, 4)).astype(float), columns=list("abcd"))
    y = np.where((X["a"] > 2) ^ (rng.random(150) < 0.1), "yes", "no")
    model = ShapeTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    found = model.stability(X, y, n_resamples=6)
    n_asked, same = naive_rows(model, X, y, found, 6)
    rows = found.rows_to_frame()
    np.testing.assert_array_equal(rows["n_resamples"], n_asked)
    np.testing.assert_allclose(rows["agreement"].fillna(0), same)
    mean = (rows["agreement"].fillna(0) * n_asked).sum() / n_asked.sum()
    assert found.agreement == pytest.approx(mean)
    # A node's share is that of its rows.
    leaves = model.apply(X)
    for node in np.unique(leaves):
        here = leaves == node
        its = (rows["agreement"].fillna(0) * n_asked)[here].sum() / n_asked[here].sum()
        assert found.to_frame().loc[node, "agreement"] == pytest.approx(its)


@pytest.mark.parametrize("pairs", [0, 3])
def test_it_is_the_same_for_any_order_of_rows_and_number_of_threads(pairs):
    X, y = mixed(120)
    order = np.random.default_rng(1).permutation(len(X))
    frames = []
    for rows, n_threads in ((np.arange(len(X)), 1), (np.arange(len(X)), 2), (order, 2)):
        model = ShapeTreeClassifier(pairs=pairs, max_depth=3, n_threads=n_threads)
        model.fit(X.iloc[rows], y.iloc[rows])
        found = model.stability(X.iloc[rows], y.iloc[rows], n_resamples=6)
        frames.append((found.to_frame(), found.rows_to_frame().sort_index()))
    for nodes, rows in frames[1:]:
        pd.testing.assert_frame_equal(nodes, frames[0][0])
        pd.testing.assert_frame_equal(rows, frames[0][1])


def test_another_random_state_draws_other_halves():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    frames = [
        model.stability(X, y, n_resamples=5, random_state=s).rows_to_frame() for s in (0, 0, 1)
    ]
    pd.testing.assert_frame_equal(frames[0], frames[1])
    assert not frames[0].equals(frames[2])


def test_halves_are_not_those_of_the_resamples_within_a_fit():
    from shapetree.fit._folds import contents_of
    from shapetree.fit._local_backend import training_rows
    from shapetree.fit._resamples import HalfSamples
    from shapetree.fit._training_rows import bin_rows

    X, y = load_breast_cancer(return_X_y=True)
    parameters = ShapeTreeClassifier()._parameters()
    rows = training_rows(X, y, None, parameters, True)
    binned = bin_rows(rows, parameters)
    inner = HalfSamples(binned, contents_of(binned), None)
    for seed in (0, 1, 17):
        outer = half_samples(binned, None, seed)
        for number in range(5):
            for within in range(5):
                both = (outer.drawn(number) > 0) == (inner.drawn(within) > 0)
                assert 0.4 < both.mean() < 0.6


def test_groups_are_drawn_as_a_whole():
    X, y = load_iris(return_X_y=True, as_frame=True)
    groups = np.arange(len(X)) // 5
    model = ShapeTreeClassifier(max_depth=2).fit(X, y, groups=groups)
    rows = model.stability(X, y, groups=groups, n_resamples=7).rows_to_frame()
    assert (rows["n_resamples"].groupby(groups).nunique() == 1).all()


def test_whole_weights_are_as_good_as_copies():
    X, y = mixed(90)
    weights = np.random.default_rng(2).integers(0, 4, len(X))
    copies = np.repeat(np.arange(len(X)), weights)
    one = ShapeTreeClassifier(max_depth=2).fit(X, y, weights)
    two = ShapeTreeClassifier(max_depth=2).fit(X.iloc[copies], y.iloc[copies])
    found = one.stability(X, y, weights, n_resamples=6)
    other = two.stability(X.iloc[copies], y.iloc[copies], n_resamples=6)
    counts = ["same_feature", "similar_split", "n_rows"]
    pd.testing.assert_frame_equal(found.to_frame()[counts], other.to_frame()[counts])
    rows = found.rows_to_frame()
    assert (rows["n_resamples"][weights == 0] == 0).all()
    assert rows["agreement"][weights == 0].isna().all()


def test_numbers_tell_how_far_predictions_are():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = ShapeTreeRegressor(max_depth=2).fit(X, y)
    found = model.stability(X, y, n_resamples=6)
    rows = found.rows_to_frame()
    mean = (rows["deviation"].fillna(0) ** 2 * rows["n_resamples"]).sum() / rows[
        "n_resamples"
    ].sum()
    assert found.deviation == pytest.approx(np.sqrt(mean))
    with pytest.raises(AttributeError, match="deviation"):
        found.agreement  # noqa: B018
    assert f"± {found.deviation:.3g}" in export_text(model)


def test_several_outputs():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    targets = pd.DataFrame({"one": y, "two": -3 * y})
    found = ShapeTreeRegressor(max_depth=2).fit(X, targets).stability(X, targets, n_resamples=4)
    assert found.deviation[1] == pytest.approx(3 * found.deviation[0])
    assert list(found.rows_to_frame().columns[1:]) == ["deviation_one", "deviation_two"]
    labels = pd.DataFrame({"one": y > 140, "two": y > 100})
    model = ShapeTreeClassifier(max_depth=2).fit(X, labels)
    assert 0 < model.stability(X, labels, n_resamples=4).agreement <= 1


def test_an_unfitted_teacher_is_fitted_to_each_half():
    X, y = load_iris(return_X_y=True, as_frame=True)
    sizes = []

    class Noted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            sizes.append(len(X))
            return super().fit(X, y, sample_weight)

    model = ShapeTreeClassifier(max_depth=2, teacher=Noted(max_iter=1000), n_threads=1).fit(X, y)
    found = model.stability(X, y, n_resamples=3)
    assert sizes[0] == 150
    assert len(sizes) == 4
    assert max(sizes[1:]) < 110
    assert found.agreement > 0.7
    read = ShapeTreeClassifier.from_json(model.to_json())
    with pytest.raises(ValueError, match="taught this tree"):
        read.stability(X, y)
    fitted = LogisticRegression(max_iter=1000).fit(X, y)
    model = ShapeTreeClassifier(max_depth=2, teacher=fitted).fit(X, y)
    assert model.stability(X, y, n_resamples=3).agreement > 0.8


def test_it_is_told_and_kept_and_forgotten(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    with pytest.raises(AttributeError, match="call stability"):
        model.stability_  # noqa: B018
    before = export_text(model)
    assert "resample" not in before
    found = model.stability(X, y, n_resamples=8)
    pd.testing.assert_frame_equal(model.stability_.to_frame(), found.to_frame())
    assert model.stability_.rows is None
    assert len(found.rows_to_frame()) == len(X)
    root = found.nodes[0]
    words = f"same feature in {root.same_feature} of 8 resamples, similar split in "
    assert f"{words}{root.similar_split}" in export_text(model)
    assert f"{words}{root.similar_split}" in export_html(model)
    plot_tree(model).save(tmp_path / "tree.svg")
    drawn = (tmp_path / "tree.svg").read_text(encoding="utf-8")
    assert f"{root.same_feature}/8" in drawn
    assert "k/8: resamples with the same feature" in drawn
    assert "same prediction in" in str(model.rules())
    assert model.rules().to_frame()["agreement"].between(0, 1).all()
    assert "agreement with 8 resamples" in repr(found)
    assert "<table" in found._repr_html_()
    read = ShapeTreeClassifier.from_json(model.to_json())
    assert read.to_json() == model.to_json()
    pd.testing.assert_frame_equal(read.stability_.to_frame(), found.to_frame())
    assert export_text(read) == export_text(model)
    with pytest.raises(ValueError, match="nothing of single rows"):
        read.stability_.rows_to_frame()
    assert "resample" not in export_text(model.simplify())
    assert export_text(model.fit(X, y)) == before


def test_a_single_leaf_is_compared_as_well():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.random(80) < 0.3
    model = ShapeTreeClassifier().fit(X, y)
    assert model.get_n_leaves() == 1
    assert 0 < model.stability(X, y, n_resamples=4).agreement <= 1


def test_bad_input_is_refused():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match="n_resamples must be an integer"):
        model.stability(X, y, n_resamples=0)
    with pytest.raises(ValueError, match="random_state must be an integer"):
        model.stability(X, y, random_state=-1)
    with pytest.raises(ValueError, match="those that the tree was fitted to"):
        model.stability(X[:100], y[:100])
    with pytest.raises(ValueError, match="those that the tree was fitted to"):
        model.stability(X, y, sample_weight=np.full(150, 2))
    with pytest.raises(ValueError, match="groups must hold"):
        model.stability(X, y, groups=[1, 2])
    with pytest.raises(ValueError, match="in memory"):
        model.stability(from_batches(lambda: iter([X.assign(y=y)]), target="y"), None)
    fixed = [(np.arange(75), np.arange(75, 150))]
    with pytest.raises(ValueError, match="folds that cv lists"):
        ShapeTreeClassifier(cv=fixed, max_depth=2).fit(X, y).stability(X, y)
    with pytest.raises(Exception, match="not fitted"):
        ShapeTreeClassifier().stability(X, y)


@pytest.mark.parametrize("change", range(7))
def test_a_spoilt_file_is_refused(change):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    model.stability(X, y, n_resamples=3)
    content = json.loads(model.to_json())
    nodes = content["stability"]["nodes"]
    if change == 0:
        nodes[0]["agreement"] = 1.5
    elif change == 1:
        del nodes[0]["agreement"]
    elif change == 2:
        nodes.pop()
    elif change == 3:
        nodes[0]["same_feature"] = 4
    elif change == 4:
        nodes[0] |= {"same_feature": 1, "similar_split": 2}
    elif change == 5:
        nodes[0]["deviation"] = [1.0]
    else:
        nodes[-1]["same_feature"] = 1
    with pytest.raises(ValueError, match="stability"):
        ShapeTreeClassifier.from_json(json.dumps(content))


def test_files_agree_with_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    for model, target in (
        (ShapeTreeClassifier(max_depth=2), y > 140),
        (ShapeTreeRegressor(max_depth=2), y),
        (ShapeTreeRegressor(max_depth=2), pd.DataFrame({"one": y, "two": y**2})),
    ):
        model.fit(X, target).stability(X, target, n_resamples=1)
        content = model.to_json()
        jsonschema.validate(json.loads(content), model_schema())
        assert type(model).from_json(content).to_json() == content


def test_changes_of_the_tree_clear_it():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    model.stability(X, y, n_resamples=2)
    for changed in (model.simplify(), model.prune([0]), refine_tree(model, X, y)):
        with pytest.raises(AttributeError, match="call stability"):
            changed.stability_  # noqa: B018
    assert model.stability_.n_resamples == 2
