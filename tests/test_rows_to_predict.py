"""Rows to predict may be dicts, Series and tables with other columns beside those that are used."""

import datetime

import numpy as np
import pytest

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

GENERATOR = np.random.default_rng(0)
TABLE = pandas.DataFrame(
    {
        "size": GENERATOR.normal(size=300),
        "kind": GENERATOR.choice(["x", "y", "z"], 300),
        "day": pandas.Timestamp("2024-01-01")
        + pandas.to_timedelta(GENERATOR.integers(0, 900, 300), "D"),
        "noise": GENERATOR.normal(size=300),
    }
)
SIGNS = [TABLE["size"] > 0, TABLE["kind"] == "x", TABLE["day"] > "2025-01-01"]
LABELS = np.array(["none", "one", "two", "three"])[sum(sign.astype(int) for sign in SIGNS)]
MODEL = ShapeTreeClassifier(strength=0).fit(TABLE, LABELS)
USED = [TABLE.columns[j] for j in MODEL.tree_.used_features]


def same(model, rows, expected):
    """Whether predictions and explanations are those of the table's first rows."""
    table = TABLE.head(expected)
    np.testing.assert_array_equal(model.predict(rows), model.predict(table))
    np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(table))
    assert list(map(str, model.explain(rows))) == list(map(str, model.explain(table)))


def test_the_tree_uses_numbers_text_and_dates():
    assert set(USED) >= {"size", "kind", "day"}


def test_a_dict_is_a_row():
    same(MODEL, TABLE.iloc[0].to_dict(), 1)


def test_a_list_of_dicts_is_rows():
    same(MODEL, TABLE.head(5).to_dict("records"), 5)


def test_a_series_is_a_row():
    same(MODEL, TABLE.iloc[0], 1)
    same(MODEL, [TABLE.iloc[0], TABLE.iloc[1]], 2)


@pytest.mark.parametrize("convert", [lambda t: t, polars.from_pandas, pyarrow.Table.from_pandas])
def test_columns_are_found_by_name(convert):
    shuffled = TABLE.assign(other=1)[["other", "noise", "day", "kind", "size"]].head(7)
    same(MODEL, convert(shuffled), 7)
    same(MODEL, convert(shuffled[sorted(USED)]), 7)


def test_dicts_need_the_features_that_the_tree_uses():
    row = {name: value for name, value in TABLE.iloc[0].to_dict().items() if name != "size"}
    with pytest.raises(ValueError, match=r"(?s)yet now missing.*- size"):
        MODEL.predict(row)
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time.*- Size"):
        MODEL.predict(row | {"Size": 1.0})
    missing = TABLE.head(1).assign(size=np.nan)
    assert MODEL.predict(row | {"size": None}) == MODEL.predict(missing)


def test_a_category_that_a_dict_has_for_the_first_time_is_noted():
    (why,) = MODEL.explain(TABLE.iloc[0].to_dict() | {"kind": "new"})
    assert why.new_categories == {"kind": "new"}


def test_a_tree_without_names_knows_dicts_by_the_names_that_it_shows():
    numbers = TABLE[["noise", "size"]].to_numpy()
    model = ShapeTreeRegressor(max_depth=2).fit(numbers, numbers[:, 1])
    assert model.predict({"x1": 1.0, "x0": 0.0}) == model.predict([[0.0, 1.0]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, "a"] * 150, "y holds both text and numbers, such as 'a' and 1"),
        ([True, "a"] * 150, "y holds both text and numbers"),
        (pandas.Series([1, "a"] * 150, dtype=object), "y holds both text and numbers"),
        (["a", None] * 150, "y has no class in row 1"),
        (["a", float("nan")] * 150, "y has no class in row 1"),
        ([[1, 2], [3]] * 150, "y holds list values"),
        (pandas.Series([[1, 2]] * 300), "y holds list values"),
        (polars.Series([[1, 2]] * 300), r"y holds List\(Int64\) values"),
        (pyarrow.chunked_array([[[1, 2]] * 300]), r"y holds List\(Int64\) values"),
        (pyarrow.array([[1, 2]] * 300), "y holds ndarray values"),
        ([datetime.date(2024, 1, 1)] * 300, "y holds dates or durations"),
    ],
)
def test_targets_that_are_no_classes_are_named(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ShapeTreeClassifier().fit(TABLE, y)


@pytest.mark.parametrize("convert", [lambda t: t, polars.from_pandas, pyarrow.Table.from_pandas])
def test_columns_of_lists_are_named(convert):
    table = convert(TABLE.assign(tags=[["a", "b"]] * 300))
    with pytest.raises(TypeError, match=r"Column 'tags' holds .*give each element a column"):
        ShapeTreeClassifier().fit(table, LABELS)
