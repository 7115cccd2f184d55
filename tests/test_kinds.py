"""Columns of the kinds that people have: drifting types, ordered categories, dates."""

import datetime as dt
import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from shapetree import (
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    date_parts,
    export_html,
    export_js,
    export_json,
    export_python,
    export_text,
    from_json,
    plot_tree,
)
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._view import view_of

SIZES = ["XS", "S", "M", "L", "XL"]


def tree_on(column, seed=0):
    """A tree that splits on its only column."""
    codes = pd.factorize(pd.Series(column), sort=True)[0]
    return ShapeTreeClassifier(max_depth=2, random_state=seed).fit(
        pd.DataFrame({"code": column}), codes % 2
    )


CODES = ["001", "002", "003", "004"] * 30


def test_numbers_where_training_had_text_are_an_error():
    tree = tree_on(CODES)
    with pytest.raises(ValueError, match=r"'code' held text such as '001'.*holds numbers such as"):
        tree.predict(pd.DataFrame({"code": [1, 2, 3]}))


def test_text_where_training_had_numbers_is_an_error():
    tree = tree_on(pd.Categorical([1, 2, 3, 4] * 30))
    with pytest.raises(ValueError, match=r"'code' held numbers such as 1.*holds text such as 'a'"):
        tree.predict(pd.DataFrame({"code": ["a", "b"]}))
    numeric = ShapeTreeClassifier().fit(pd.DataFrame({"x": [0.0, 1.0] * 30}), [0, 1] * 30)
    with pytest.raises(ValueError, match=r"'x' holds text .* numeric in training"):
        numeric.predict(pd.DataFrame({"x": ["0", "1"]}))


@pytest.mark.parametrize(
    "given",
    [
        pd.Series(["001", "002"], dtype="string"),
        pd.Series(["001", None], dtype=object),
        pd.Categorical(["001", "004"]),
        [None, None],
        [np.nan, np.nan],
    ],
    ids=["string", "with None", "category", "all None", "all NaN"],
)
def test_the_same_kind_in_other_clothes_is_welcome(given):
    tree = tree_on(CODES)
    texts = [value if isinstance(value, str) else None for value in given]
    expected = tree.predict(pd.DataFrame({"code": pd.Series(texts, dtype=object)}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tree.predict(pd.DataFrame({"code": given}))
    assert found.tolist() == expected.tolist()


def test_other_types_of_numbers_are_welcome():
    tree = tree_on(pd.Categorical([1, 2, 3, 4] * 30))
    expected = tree.predict(pd.DataFrame({"code": [1, 2]}))
    for given in ([1.0, 2.0], np.array([1, 2], dtype=np.int8), [True, 2]):
        assert (tree.predict(pd.DataFrame({"code": given})) == expected).all()


def test_mostly_new_categories_are_a_warning():
    tree = tree_on(CODES)
    with pytest.warns(UserWarning, match=r"'code': 12 of 20 values are categories that training"):
        tree.predict(pd.DataFrame({"code": ["1", "2", "3"] * 4 + ["001"] * 8}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree.predict(pd.DataFrame({"code": ["1"] * 8 + ["001"] * 12}))
        tree.predict(pd.DataFrame({"code": ["1"]}))  # one row is no batch


# --- ordered categories ---


def in_pandas(sizes):
    return pd.DataFrame({"size": pd.Categorical(sizes, categories=SIZES, ordered=True)})


def in_polars(sizes):
    return pl.DataFrame({"size": pl.Series(sizes, dtype=pl.Enum(SIZES))})


def in_arrow(sizes):
    codes = pa.array([None if size is None else SIZES.index(size) for size in sizes], pa.int8())
    return pa.table({"size": pa.DictionaryArray.from_arrays(codes, SIZES, ordered=True)})


def sizes_and_targets(n_rows=2000):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, n_rows)
    is_one = np.isin(codes, [1, 2]) ^ (rng.random(n_rows) < 0.1)
    return [SIZES[code] for code in codes], is_one.astype(int)


@pytest.mark.parametrize("table", [in_pandas, in_polars, in_arrow])
@pytest.mark.parametrize("refine", [None, "tao"])
def test_ordered_categories_are_parted_into_segments(table, refine):
    sizes, y = sizes_and_targets()
    y[np.isin(sizes, ["L", "XL"])] += 2  # so that both ends of the order differ
    tree = ShapeTreeClassifier(max_depth=1, refine=refine, random_state=0).fit(table(sizes), y)
    feature = fitted_tree(tree).features[0]
    assert feature.is_ordered
    assert list(feature.categories) == SIZES
    (root, *_) = view_of(fitted_tree(tree)).nodes
    assert [part.categories for part in root.segments] == [("XS",), ("S", "M"), ("L", "XL")]
    assert "S, M: 1" in export_text(tree)
    expected = dict(zip(SIZES, [0, 1, 1, 2, 2], strict=True))
    assert tree.predict(table(sizes)).tolist() == [expected[size] for size in sizes]


def test_noise_takes_no_subset_of_ordered_categories():
    # As subsets, 30 categories could be parted at will; a zigzag costs as segments of numbers do.
    rng = np.random.default_rng(5)
    names = [f"g{i:02d}" for i in range(30)]
    codes = rng.integers(0, 30, 3000)
    y = codes / 30 + 0.3 * rng.normal(size=3000)
    column = pd.Categorical.from_codes(codes, names, ordered=True)
    tree = ShapeTreeRegressor(max_depth=1, random_state=0).fit(pd.DataFrame({"g": column}), y)
    as_numbers = ShapeTreeRegressor(max_depth=1, random_state=0).fit(codes[:, None], y)
    assert tree.score(pd.DataFrame({"g": column}), y) == as_numbers.score(codes[:, None], y)
    for part in view_of(fitted_tree(tree)).nodes[0].segments:
        numbers = [names.index(category) for category in part.categories]
        assert np.ptp(numbers) == len(numbers) - 1


def test_ordered_categories_without_rows_go_with_their_neighbours():
    sizes, y = sizes_and_targets()
    kept = [(size, target) for size, target in zip(sizes, y, strict=True) if size != "XL"]
    tree = ShapeTreeClassifier(max_depth=1, random_state=0).fit(
        in_pandas([size for size, _ in kept]), [target for _, target in kept]
    )
    assert tree.predict(in_pandas(["XL"])) == tree.predict(in_pandas(["L"]))


def test_ordered_categories_survive_files_exports_and_refinement():
    sizes, y = sizes_and_targets()
    X = in_pandas(sizes)
    tree = ShapeTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    text = export_json(tree)
    assert json.loads(text)["features"][0]["kind"] == "ordered"
    again = from_json(text)
    assert fitted_tree(again).features == fitted_tree(tree).features
    asked = [*SIZES, None]
    expected = tree.predict(pd.DataFrame({"size": asked})).tolist()
    assert again.predict(in_pandas(asked)).tolist() == expected
    program: dict = {}
    exec(export_python(tree), program)
    assert [program["predict"]({"size": size}) for size in asked] == expected
    assert "XS" in export_js(tree)
    assert "XS" in export_html(tree)


def test_ordered_categories_take_part_in_pairs():
    rng = np.random.default_rng(6)
    codes, x = rng.integers(0, 5, 3000), rng.uniform(size=3000)
    y = ((codes > 2) ^ (x > 0.5)).astype(int)
    X = in_pandas([SIZES[code] for code in codes]).assign(x=x)
    tree = ShapeTreeClassifier(max_depth=2, pairs="auto", random_state=0).fit(X, y)
    assert tree.score(X, y) > 0.99


# --- dates ---


def moments():
    naive = pd.to_datetime(["2024-02-29 13:30", None, "2023-12-31 00:00"])
    aware = pd.to_datetime(["2024-02-29 13:30"] * 3).tz_localize("UTC").tz_convert("Asia/Tokyo")
    spans = pd.to_timedelta([36, None, 0], unit="h")
    return pd.DataFrame({"when": naive, "there": aware, "took": spans, "n": [1, 2, 3]})


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_dates_are_parted(kind):
    X = moments()
    X = {"pandas": X, "polars": pl.from_pandas(X), "arrow": pa.Table.from_pandas(X)}[kind]
    parts = date_parts(X)
    names = list(parts.column_names if kind == "arrow" else parts.columns)
    assert names == [
        *("when (year)", "when (month)", "when (weekday)", "when (hour)"),
        *("there (year)", "there (month)", "there (weekday)", "there (hour)", "took (days)", "n"),
    ]
    columns = {name: list(pd.Series(parts[name].to_pylist() if kind == "arrow" else parts[name]))
               for name in names}  # fmt: skip
    assert columns["when (month)"][::2] == ["Feb", "Dec"]
    assert columns["when (weekday)"][::2] == ["Thu", "Sun"]
    assert columns["when (hour)"][::2] == [13.5, 0.0]
    assert columns["there (hour)"][0] == 22.5
    assert columns["took (days)"][::2] == [1.5, 0.0]
    assert columns["when (year)"][0] == pytest.approx(2024 + (59 + 13.5 / 24) / 366)
    assert all(pd.isna(columns[name][1]) for name in names if name.startswith("when"))


def test_parts_of_dates_are_read_as_names_in_order():
    days = pd.date_range("2022-01-01", periods=1000)
    y = (days.day_of_week >= 5).astype(float) + np.random.default_rng(0).normal(size=1000) / 10
    tree = ShapeTreeRegressor(max_depth=1).fit(date_parts(pd.DataFrame({"day": days})), y)
    assert "Sat, Sun: " in export_text(tree)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_and_dates_as_categories_name_what_parts_them(unit):
    X = pd.DataFrame({"day": pd.date_range("2022-01-01", periods=20).as_unit(unit)})
    with pytest.raises(TypeError, match=r"'day' holds .*shapetree\.date_parts"):
        ShapeTreeRegressor(categorical_features=["day"]).fit(X, np.arange(20))
    times = pl.DataFrame({"at": [dt.time(12, 30)] * 20})
    with pytest.raises(TypeError, match=r"'at' holds .*shapetree\.date_parts"):
        ShapeTreeRegressor().fit(times, np.arange(20))


def test_columns_that_hold_no_dates_are_refused():
    with pytest.raises(TypeError, match="column 'n' holds Int64"):
        date_parts(moments(), ["n"])
    with pytest.raises(ValueError, match="'nope'"):
        date_parts(moments(), ["nope"])
    assert list(date_parts(moments(), ["took"]).columns) == ["when", "there", "took (days)", "n"]


# --- what the command reads ---


def read(texts, separator=","):
    from shapetree.cli._column_types import read_column
    from shapetree.cli._reading import FileTable

    return read_column("a", FileTable("file.csv", pa.table({"a": texts}), separator))


def test_percentages_and_amounts_of_money_are_numbers():
    assert read(["12.5 %", "3%", ""]).values.tolist()[:2] == [12.5, 3.0]
    assert read(["$1,234.50", "-$7"]).values.tolist() == [1234.5, -7.0]
    assert read(["3,50 €", "1.200,00 €"], ";").values.tolist() == [3.5, 1200.0]
    for unclear in (["€ 3.000", "€ 4.500"], ["12 %", "12"], ["$5", "€ 6"]):
        assert not read(unclear).is_numeric


@pytest.mark.parametrize("missing", [[], [None]])
def test_whole_numbers_are_not_rounded_where_some_are_missing(missing):
    numbers = [2**53 + 1, *missing, -(2**53) - 1]
    values = read(pa.array(numbers, pa.int64()), separator=None).values
    assert [None if value is pd.NA else value for value in values] == numbers
    few = read(pa.array([1, *missing], pa.uint8()), separator=None).values
    assert few.dropna().tolist() == [1]
    truths = [True, *missing, False]
    assert read(pa.array(truths), separator=None).values.astype(object).tolist() == [
        True,
        *(pd.NA for _ in missing),
        False,
    ]


def test_names_of_rows_are_known_though_some_rows_are_there_twice():
    names = [f"key {i}" for i in range(200)]
    assert read([*names, *names[:5]]).reason == "text, almost all different"
    assert read([*names, *names[:50]]).reason is None
    counts = [str(i) for i in range(200)]
    assert read([*counts, *counts[:5]]).reason == "counts the rows"
    assert read([str(i % 40) for i in range(200)]).reason is None


def test_copies_of_rows_are_counted():
    from shapetree.cli._reading import FileTable

    columns = {
        "a": pa.chunked_array([["x", "y", "x", None, None]]),
        "b": pa.chunked_array([[1, 1], [1, 2, 2]]),
    }
    assert FileTable("file.csv", pa.table(columns), ",").count_copies() == 2


def test_ordered_categories_are_drawn_in_their_own_order():
    rng = np.random.default_rng(0)
    sizes = ["S", "M", "L", "XL"]
    size = pd.Categorical(rng.choice(sizes, 600, p=[0.1, 0.2, 0.3, 0.4]), sizes, ordered=True)
    X = pd.DataFrame({"size": size})
    tree = ShapeTreeClassifier(max_depth=1).fit(X, np.isin(size, ["M", "L"]))
    pytest.importorskip("matplotlib")
    labels = {text.get_text(): text.get_position()[0] for text in plot_tree(tree).texts}
    assert sorted(sizes, key=labels.__getitem__) == sizes
    data = re.search(r'id="tree-data">(.*?)</script>', export_html(tree))[1]
    assert json.loads(data)["nodes"][0]["isOrdered"]
