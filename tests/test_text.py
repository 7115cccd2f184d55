"""`export_text` and the `TreeView` it reads say what the tree does, in the user's words."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from data import make_tree, view_of
from sklearn.exceptions import NotFittedError

from shapetree import (
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
    export_text,
    plot_node,
)


@pytest.fixture(scope="module")
def farm():
    """Animals by legs and colour; a few legs were not counted, all of them ducks'."""
    legs = np.repeat([2.0, 4.0, 4.0, np.nan], 25)
    colour = np.tile(["white", "brown", "black", "red", "grey"], 20)
    kind = np.where(
        np.nan_to_num(legs, nan=2) == 2, "duck", np.where(colour == "black", "dog", "cow")
    )
    return pd.DataFrame({"legs": legs, "colour": colour}), kind


PLAIN = {"max_branches": 2, "max_depth": 2, "criterion": "gini", "shrinkage": 0}


def test_text_shows_thresholds_categories_missing_values_shares_and_rows(farm):
    tree = make_tree(ShapeTreeClassifier, **PLAIN).fit(*farm)
    assert export_text(tree).splitlines() == [
        "legs  [100 rows]",
        "├─ ≤ 3 or missing: duck (100 %, 93 to 100 %)  [50 rows]",
        "└─ > 3: colour  [50 rows]",
        "   ├─ black: dog (100 %, 72 to 100 %)  [10 rows]",
        "   └─ brown, grey, red, white: cow (100 %, 91 to 100 %)  [40 rows]",
    ]


def test_text_folds_what_is_below_max_depth(farm):
    tree = make_tree(ShapeTreeClassifier, **PLAIN).fit(*farm)
    last = export_text(tree, max_depth=1).splitlines()[-1]
    assert last == "└─ > 3: cow (80 %, 67 to 89 %)  [50 rows] …"
    assert export_text(tree, max_depth=0) == "duck (50 %, 40 to 60 %)  [100 rows] …"


def test_a_lone_leaf_is_one_line_after_its_reason():
    tree = ShapeTreeRegressor().fit([[0.0]], [2.5])
    assert export_text(tree).splitlines() == [
        "A single leaf: all rows have the same target, so there is nothing to learn",
        "2.5 (1 row)  [1 row]",
    ]


def test_segments_of_one_branch_stand_together():
    X = np.linspace(0, 1, 300)[:, None]
    tree = ShapeTreeRegressor(max_depth=1, max_branches=2, shrinkage=0)
    tree.fit(X, abs(X[:, 0] - 0.5) < 0.2)
    assert export_text(tree).splitlines()[1:] == [
        "├─ ≤ 0.3 or > 0.7: 0 ± 0  [180 rows]",
        "└─ (0.3, 0.7]: 1 ± 0  [120 rows]",
    ]


def test_every_output_is_named():
    X = np.arange(40.0)[:, None]
    y = np.column_stack([X[:, 0] > 20, np.where(X[:, 0] > 20, "b", "a")])
    text = export_text(ShapeTreeClassifier(max_depth=1, shrinkage=0).fit(X, y))
    assert "False (100 %, 85 to 100 %) and a (100 %, 85 to 100 %)" in text
    assert "True (100 %, 83 to 100 %) and b (100 %, 83 to 100 %)" in text


def test_long_lists_of_categories_are_cut_short():
    levels = [f"level{i:02}" for i in range(40)]
    X = pd.DataFrame({"level": np.repeat(levels, 10)})
    y = np.repeat(np.arange(40) % 4 == 0, 10)
    tree = ShapeTreeClassifier(max_depth=1, resamples=0).fit(X, y)
    text = export_text(tree)
    assert "level00, level04, level08" in text
    assert "─ all others: " in text
    assert "more" not in text


def test_a_branch_of_a_pair_is_described_in_full_by_default():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(3000, 2)), columns=["longer name", "another name"])
    y = (np.floor(2.4 * X).sum(axis=1) % 2).astype(int)
    tree = ShapeTreeClassifier(max_depth=1, pairs="all", resamples=0).fit(X, y)
    node = view_of(tree).nodes[0]
    assert 2 < len(node.joined_regions) <= 6
    assert all(len(region.bounds) <= 4 for region in node.joined_regions)
    text = export_text(tree)
    assert not re.search(r"\d+ (more )?regions?", text)
    assert max(map(len, text.splitlines())) < 320


def test_text_sends_every_row_where_predict_does(farm):
    X, y = farm
    tree = ShapeTreeClassifier(max_depth=3).fit(X, y)
    view = view_of(tree)
    for row, leaf in zip(X.to_dict("records"), tree.apply(X), strict=True):
        node = view.nodes[0]
        while not node.is_leaf:
            node = view.nodes[node.children[branch_of(node, row[node.features[0].name])]]
        assert node.number == leaf


def branch_of(node, value):
    for segment in node.segments:
        if segment.categories is not None and value in segment.categories:
            return segment.branch
        if segment.categories is None and segment.low < value <= segment.high:
            return segment.branch
    return node.missing_branch


@pytest.mark.parametrize("options", [{"max_depth": -1}, {"digits": 0}])
def test_options_out_of_range_are_named(farm, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        export_text(ShapeTreeClassifier().fit(*farm), **options)


def test_a_tree_must_be_fitted():
    with pytest.raises(NotFittedError):
        export_text(ShapeTreeClassifier())


@pytest.mark.parametrize("pairs", [0, 6])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:pairs=6 is more than")
def test_nodes_name_only_categories_that_can_arrive(seed, pairs):
    tree, X = tree_that_splits_again_on_a_category(seed, pairs)
    view = view_of(tree)
    everything = every_combination(X)
    arrives = arrivals(tree, everything)
    repeated = 0
    for node in view.nodes:
        for side, feature in enumerate(node.features):
            if not feature.is_categorical:
                continue
            column = everything[feature.name][arrives[node.number]]
            seen = set(column.dropna())
            assert seen <= set(node.arriving[side])
            if not pairs:  # what arrives at a pair may depend on both features
                assert seen == set(node.arriving[side])
            named = {category for segment in node.segments for category in segment.categories}
            bounds = [bound for region in node.regions for bound in region.bounds]
            named |= {c for b in bounds if b.side == side for c in b.categories}
            assert named <= set(node.arriving[side])
            repeated += len(node.arriving[side]) < len(feature.categories)
    assert repeated


def test_text_pictures_tables_and_pages_name_no_category_that_a_branch_above_has_taken():
    rng = np.random.default_rng(0)
    treat = rng.choice(["CBT", "Cont", "FT"], 300)
    before = rng.normal(size=300)
    helps = np.where(before > 0, treat == "CBT", treat == "FT")
    X = pd.DataFrame({"Treat": pd.Categorical(treat), "before": before})
    tree = ShapeTreeRegressor(max_depth=3).fit(X, np.where(treat == "Cont", -5.0, 3.0 * helps))
    lines = export_text(tree).splitlines()
    below = [line for line in lines if line.startswith("│  ") and "before" not in line]
    assert any("FT" in line for line in below)
    assert not any("Cont" in line for line in below)
    again = [
        number for number in range(1, tree.tree_.node_count) if tree.tree_.feature[number] == 0
    ]
    assert again
    for number in again:
        table = tree.shape_table(number)
        assert {c for categories in table["categories"] for c in categories} == {"CBT", "FT"}
        assert not any("Cont" in text.get_text() for text in plot_node(tree, number).texts)
        page = json.loads(export_html(tree).split('id="tree-data">')[1].split("</script>")[0])
        codes = {code for part in page["nodes"][number]["segments"] for code in part["codes"]}
        assert codes == {0, 2}


def tree_that_splits_again_on_a_category(seed, pairs):
    rng = np.random.default_rng(seed)
    n = 600
    X = pd.DataFrame(
        {
            "size": pd.Categorical(rng.choice(list("abcdef"), n)),
            "kind": pd.Categorical(rng.choice(list("uvw"), n)),
            "dose": rng.integers(0, 4, n).astype(float),
        }
    )
    effect = rng.normal(size=(6, 3, 4))
    y = effect[X["size"].cat.codes, X["kind"].cat.codes, X["dose"].astype(int)]
    X.loc[rng.random(n) < 0.1, "size"] = None
    X.loc[rng.random(n) < 0.1, "dose"] = np.nan
    tree = ShapeTreeRegressor(max_depth=5, max_branches=2, pairs=pairs, strength=0)
    return tree.fit(X, y), X


def every_combination(X):
    values = [[*X[name].cat.categories, None] for name in ("size", "kind")]
    rows = itertools.product(*values, [0.0, 1.0, 2.0, 3.0, np.nan])
    known = pd.DataFrame(rows, columns=X.columns)
    return known.astype({"size": X["size"].dtype, "kind": X["kind"].dtype})


def arrivals(tree, X):
    """For each node, whether each row passes it."""
    paths = [tree.tree_.path_to(leaf) for leaf in tree.apply(X).tolist()]
    return [np.array([node in path for path in paths]) for node in range(tree.tree_.node_count)]
