"""`export_text` and the `TreeView` it reads say what the tree does, in the user's words."""

import numpy as np
import pandas as pd
import pytest
from data import view_of
from sklearn.exceptions import NotFittedError

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, export_text


@pytest.fixture(scope="module")
def farm():
    """Animals by legs and colour; a few legs were not counted, all of them ducks'."""
    legs = np.repeat([2.0, 4.0, 4.0, np.nan], 25)
    colour = np.tile(["white", "brown", "black", "red", "grey"], 20)
    kind = np.where(
        np.nan_to_num(legs, nan=2) == 2, "duck", np.where(colour == "black", "dog", "cow")
    )
    return pd.DataFrame({"legs": legs, "colour": colour}), kind


def test_text_shows_thresholds_categories_missing_values_shares_and_rows(farm):
    tree = ShapeTreeClassifier(max_branches=2, max_depth=2, criterion="gini").fit(*farm)
    assert export_text(tree).splitlines() == [
        "legs  [100 rows]",
        "├─ ≤ 3 or missing: duck (100 %)  [50 rows]",
        "└─ > 3: colour  [50 rows]",
        "   ├─ black: dog (100 %)  [10 rows]",
        "   └─ brown, grey, red, white: cow (100 %)  [40 rows]",
    ]


def test_text_folds_what_is_below_max_depth(farm):
    tree = ShapeTreeClassifier(max_branches=2, max_depth=2, criterion="gini").fit(*farm)
    assert export_text(tree, max_depth=1).splitlines()[-1] == "└─ > 3: cow (80 %)  [50 rows] …"
    assert export_text(tree, max_depth=0) == "duck (50 %)  [100 rows] …"


def test_a_lone_leaf_is_one_line():
    tree = ShapeTreeRegressor().fit([[0.0]], [2.5])
    assert export_text(tree) == "2.5 (1 row)  [1 row]"


def test_segments_of_one_branch_stand_together():
    X = np.linspace(0, 1, 300)[:, None]
    tree = ShapeTreeRegressor(max_depth=1, max_branches=2).fit(X, abs(X[:, 0] - 0.5) < 0.2)
    assert export_text(tree).splitlines()[1:] == [
        "├─ ≤ 0.3 or > 0.7: 0 ± 0  [180 rows]",
        "└─ (0.3, 0.7]: 1 ± 0  [120 rows]",
    ]


def test_every_output_is_named():
    X = np.arange(40.0)[:, None]
    y = np.column_stack([X[:, 0] > 20, np.where(X[:, 0] > 20, "b", "a")])
    text = export_text(ShapeTreeClassifier(max_depth=1).fit(X, y))
    assert "False (100 %) and a (100 %)" in text
    assert "True (100 %) and b (100 %)" in text


def test_long_lists_of_categories_are_cut_short():
    levels = [f"level{i:02}" for i in range(40)]
    X = pd.DataFrame({"level": np.repeat(levels, 10)})
    y = np.repeat(np.arange(40) % 2, 10)
    text = export_text(ShapeTreeClassifier(max_depth=1).fit(X, y))
    assert "level00, level02" in text
    assert "and 12 more: 0 (100 %)" in text


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
