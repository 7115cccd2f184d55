"""Any table that people hold becomes the same columns; what cannot, is refused by name."""

import datetime
import enum
import math
import pickle
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from shapetree.data._table import FeatureInfo, encode_table, read_table

NAN = float("nan")
FRAMES = ["pandas", "polars", "pyarrow"]


def frame(kind, data):
    """Build a data frame of one kind from a dict of lists."""
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table(data)
    return pytest.importorskip(kind).DataFrame(data)


def decode(table, j=0):
    """Give the values that the codes of a categorical column stand for, None for missing."""
    categories = table.features[j].categories
    return [None if code < 0 else categories[code] for code in table.columns[j]]


def only_column(X, categorical_features="from_dtype"):
    (column,) = read_table(X, categorical_features).columns
    return column


# Numeric arrays


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.bool_, np.float32),
        (np.int8, np.float32),
        (np.uint16, np.float32),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (">f4", np.float32),
        (np.int32, np.float64),
        (np.uint64, np.float64),
        (np.float64, np.float64),
        (">f8", np.float64),
        (">i2", np.float32),
        (np.longdouble, np.float64),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_real_dtype_is_read_as_a_native_float_that_holds_it(dtype, expected, order):
    X = np.array([[0, 1], [1, 0], [1, 1]], dtype=dtype, order=order)
    table = read_table(X)
    assert table.n_rows == 3
    assert table.features == tuple(FeatureInfo(name, is_whole=True) for name in ("x0", "x1"))
    for j, column in enumerate(table.columns):
        assert column.dtype == expected
        assert column.dtype.isnative
        assert_array_equal(column, X[:, j].astype(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "layout",
    [
        lambda X: X,
        np.asfortranarray,
        lambda X: X[::2],
        lambda X: X[::-1, ::-1],
        lambda X: X[:, 1:3],
        lambda X: np.broadcast_to(X[:1], X.shape),
    ],
)
def test_float_arrays_are_not_copied_whatever_their_layout(dtype, layout):
    X = layout(np.arange(24, dtype=dtype).reshape(6, 4))
    for j, column in enumerate(read_table(X).columns):
        assert np.shares_memory(column, X)
        assert_array_equal(column, X[:, j])


def test_read_only_arrays_are_read_and_stay_read_only():
    X = np.ones((3, 1))
    X.flags.writeable = False
    assert not only_column(X).flags.writeable


def test_unaligned_columns_are_copied_into_aligned_ones():
    packed = np.zeros(4, dtype=[("flag", "i1"), ("value", "f8", (2,))])
    packed["value"] = np.arange(8).reshape(4, 2)
    column = read_table(packed["value"]).columns[1]
    assert column.flags.aligned
    assert column.tolist() == [1, 3, 5, 7]


def test_infinities_are_ordinary_values_and_nan_stays_nan():
    assert_array_equal(only_column([[np.inf], [-np.inf], [NAN]]), [np.inf, -np.inf, NAN])


def test_large_integers_are_read_if_float64_holds_them():
    assert only_column(np.array([[2**63]], np.uint64)).tolist() == [2.0**63]
    assert only_column([[2**70]]).tolist() == [2.0**70]


def test_lists_of_lists_are_read_as_arrays():
    table = read_table([[1, 2.5, True], [None, 3.5, False]])
    assert_array_equal(table.columns, [[1, NAN], [2.5, 3.5], [1, 0]])


def test_objects_that_convert_themselves_to_arrays_are_read():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0], [2.0]])

    assert only_column(Wrapped()).tolist() == [1, 2]


def test_masked_entries_are_missing():
    mask = [[True], [False]]
    assert_array_equal(only_column(np.ma.array([[1], [2]], mask=mask)), [NAN, 2])
    assert only_column(np.ma.array([[1], [2]], np.float32, mask=mask)).dtype == np.float32
    table = read_table(np.ma.array([["a"], ["b"]], mask=mask), [0])
    assert decode(table) == [None, "b"]


def test_object_arrays_of_numbers_are_read_as_numbers():
    values = [1, 2.5, True, None, NAN, Decimal("0.5"), Fraction(1, 4), np.float32(3), np.int8(4)]
    column = only_column(np.array(values, dtype=object).reshape(-1, 1))
    assert_array_equal(column, [1, 2.5, 1, NAN, NAN, 0.5, 0.25, 3, 4])


def test_pandas_missing_values_in_object_arrays_are_nan():
    pd = pytest.importorskip("pandas")
    X = np.array([[1], [pd.NA], [pd.NaT], [None], [2.5]], dtype=object)
    assert_array_equal(only_column(X), [1, NAN, NAN, NAN, 2.5])


# Data frames


@pytest.mark.parametrize("kind", FRAMES)
def test_a_data_frame_gives_names_numbers_and_categories(kind):
    X = frame(
        kind,
        {
            "age": [1.5, None, 3.5],
            "count": [1, 2, 3],
            "city": ["b", None, "a"],
            "member": [True, False, True],
        },
    )
    table = read_table(X)
    assert table.n_rows == 3
    assert table.features == (
        FeatureInfo("age"),
        FeatureInfo("count", is_whole=True),
        FeatureInfo("city", ("a", "b")),
        FeatureInfo("member", (False, True)),
    )
    assert [feature.is_categorical for feature in table.features] == [False, False, True, True]
    assert_array_equal(table.columns[0], [1.5, NAN, 3.5])
    assert table.columns[1].tolist() == [1, 2, 3]
    assert table.columns[2].tolist() == [1, -1, 0]
    assert table.columns[3].tolist() == [1, 0, 1]
    assert all(table.columns[j].dtype == np.int32 for j in (2, 3))
    assert all(table.columns[j].flags.c_contiguous for j in (2, 3))


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_columns_of_a_data_frame_keep_their_precision(kind, dtype):
    column = only_column(frame(kind, {"a": np.array([0.5, NAN, 1.5], dtype=dtype)}))
    assert column.dtype == dtype
    assert_array_equal(column, [0.5, NAN, 1.5])


def test_float_columns_of_pandas_and_polars_are_not_copied():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    values = np.arange(6.0)
    X = pd.DataFrame({"a": values, "b": values})
    assert np.shares_memory(read_table(X).columns[1], X["b"].to_numpy())
    X = pl.DataFrame({"a": values})
    assert np.shares_memory(only_column(X), X["a"].to_numpy())


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("Int64", [1, None, 3]),
        ("UInt8", [1, None, 3]),
        ("Float64", [1.0, None, 3.0]),
        ("Float32", [1.0, None, 3.0]),
        ("int64[pyarrow]", [1, None, 3]),
        ("double[pyarrow]", [1.0, None, 3.0]),
        (object, [1, None, 3]),
        (object, [Decimal(1), None, Decimal(3)]),
        ("Sparse[float]", [1.0, None, 3.0]),
    ],
)
def test_every_pandas_number_type_is_numeric(dtype, values):
    pd = pytest.importorskip("pandas")
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow")
    column = only_column(pd.DataFrame({"a": pd.Series(values, dtype=dtype)}))
    assert_array_equal(column, [1, NAN, 3])


@pytest.mark.parametrize("kind", FRAMES)
def test_decimals_are_numbers(kind):
    X = frame(kind, {"a": [Decimal("1.5"), None, Decimal("2.5")]})
    assert_array_equal(only_column(X), [1.5, NAN, 2.5])


def test_arrow_decimals_in_pandas_are_numbers():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    dtype = pd.ArrowDtype(pa.decimal128(5, 2))
    X = pd.DataFrame({"a": pd.Series([Decimal("1.5"), None], dtype=dtype)})
    assert_array_equal(only_column(X), [1.5, NAN])


def test_polars_128_bit_integers_are_numbers():
    pl = pytest.importorskip("polars")
    if not hasattr(pl, "Int128"):
        pytest.skip("this polars has no Int128")
    X = pl.DataFrame({"a": pl.Series([1, None], dtype=pl.Int128)})
    assert_array_equal(only_column(X), [1, NAN])


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_without_any_value_is_numeric_and_all_missing(kind):
    table = read_table(frame(kind, {"a": [None, None]}))
    assert table.features == (FeatureInfo("a"),)
    assert_array_equal(table.columns[0], [NAN, NAN])


@pytest.mark.parametrize("kind", FRAMES)
def test_booleans_are_numbers_if_no_column_is_categorical(kind):
    table = read_table(frame(kind, {"a": [True, None, False], "b": [True, True, False]}), None)
    assert_array_equal(table.columns, [[1, NAN, 0], [1, 1, 0]])


def pandas_column(values, dtype):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"a": pd.Series(values, dtype=dtype)})


def polars_column(values, dtype):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({"a": pl.Series(values, dtype=dtype(pl))})


def arrow_column(values, dtype):
    pa = pytest.importorskip("pyarrow")
    if dtype == "dictionary":  # in two chunks, whose dictionaries differ
        chunks = [pa.array(values[:1]), pa.array(values[1:])]
        return pa.table({"a": pa.chunked_array([c.dictionary_encode() for c in chunks])})
    return pa.table({"a": pa.array(values, dtype(pa))})


TEXT = ["b", "a", None, "b"]
TEXT_COLUMNS = {
    "pandas object": lambda: pandas_column(TEXT, object),
    "pandas object with NaN": lambda: pandas_column(["b", "a", NAN, "b"], object),
    "pandas str": lambda: pandas_column(TEXT, "str"),
    "pandas string": lambda: pandas_column(TEXT, "string"),
    "pandas category": lambda: pandas_column(TEXT, "category"),
    "pandas arrow string": lambda: pandas_column(TEXT, "string[pyarrow]"),
    "polars String": lambda: polars_column(TEXT, lambda pl: pl.String),
    "polars Categorical": lambda: polars_column(TEXT, lambda pl: pl.Categorical),
    "polars Enum": lambda: polars_column(TEXT, lambda pl: pl.Enum(["unused", "b", "a"])),
    "arrow string": lambda: arrow_column(TEXT, lambda pa: pa.string()),
    "arrow large_string": lambda: arrow_column(TEXT, lambda pa: pa.large_string()),
    "arrow dictionary": lambda: arrow_column(TEXT, "dictionary"),
    "list": lambda: [[value] for value in TEXT],
    "object array": lambda: np.array(TEXT, dtype=object).reshape(-1, 1),
    "object array with NaN": lambda: np.array(["b", "a", NAN, "b"], dtype=object).reshape(-1, 1),
    "masked string array": lambda: np.ma.array(
        [["b"], ["a"], [""], ["b"]], mask=[[False], [False], [True], [False]]
    ),
}


@pytest.mark.parametrize("name", TEXT_COLUMNS)
def test_text_is_categorical_in_every_table(name):
    X = TEXT_COLUMNS[name]()
    is_frame = hasattr(X, "columns")
    table = read_table(X, "from_dtype" if is_frame else [0])
    # An enumeration has an order of its own, and categories without rows.
    known = ("unused", "b", "a") if name == "polars Enum" else ("a", "b")
    assert table.features[0].categories == known
    assert table.features[0].is_ordered == (name == "polars Enum")
    values = ["b", "a", None, "b"]
    assert table.columns[0].tolist() == [known.index(v) if v else -1 for v in values]
    assert type(table.features[0].categories[0]) is str


@pytest.mark.parametrize("name", TEXT_COLUMNS)
def test_a_text_feature_accepts_every_table_at_predict(name):
    features = (FeatureInfo("a", ("b", "c")),)
    assert encode_table(TEXT_COLUMNS[name](), features).columns[0].tolist() == [0, -1, -1, 0]


@pytest.mark.parametrize("name", TEXT_COLUMNS)
@pytest.mark.parametrize("predict", [False, True])
def test_text_is_refused_by_name_where_numbers_are_expected(name, predict):
    X = TEXT_COLUMNS[name]()
    column = "a" if hasattr(X, "columns") else "x0"
    with pytest.raises(ValueError, match=f"Column '{column}' holds text"):
        encode_table(X, (FeatureInfo(column),)) if predict else read_table(X, None)


def test_arrow_string_views_are_categorical():
    pa = pytest.importorskip("pyarrow")
    if not hasattr(pa, "string_view"):
        pytest.skip("this pyarrow has no string_view")
    try:
        X = arrow_column(TEXT, lambda pa: pa.string_view())
    except NotImplementedError:
        pytest.skip("this pyarrow cannot build a string_view")
    assert decode(read_table(X)) == TEXT


def test_arrow_dictionaries_may_hold_null_as_a_value():
    pa = pytest.importorskip("pyarrow")
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    assert decode(read_table(pa.table({"a": array}))) == ["a", None, None]


BOOLEANS = [True, None, False]
BOOLEAN_COLUMNS = {
    "pandas boolean": lambda: pandas_column(BOOLEANS, "boolean"),
    "pandas object": lambda: pandas_column(BOOLEANS, object),
    "pandas category": lambda: pandas_column(BOOLEANS, "category"),
    "pandas arrow": lambda: pandas_column(BOOLEANS, "bool[pyarrow]"),
    "polars": lambda: polars_column(BOOLEANS, lambda pl: pl.Boolean),
    "arrow": lambda: arrow_column(BOOLEANS, lambda pa: pa.bool_()),
    "object array": lambda: np.array(BOOLEANS, dtype=object).reshape(-1, 1),
    "float array": lambda: np.array([[1.0], [NAN], [0.0]]),
}


@pytest.mark.parametrize("name", BOOLEAN_COLUMNS)
def test_booleans_are_categories_and_match_each_other_and_0_and_1(name):
    X = BOOLEAN_COLUMNS[name]()
    if hasattr(X, "columns"):
        table = read_table(X)
        assert table.features[0].categories == (False, True)
        assert type(table.features[0].categories[0]) is bool
        assert decode(table) == BOOLEANS
    for categories in [(False, True), (0, 1, 2), (0.0, 1.0)]:
        codes = encode_table(X, (FeatureInfo("a", categories),)).columns[0]
        assert codes.tolist() == [1, -1, 0]


@pytest.mark.parametrize("name", TEXT_COLUMNS)
def test_a_numeric_category_feature_refuses_text(name):
    features = (FeatureInfo("a", (1, 2)),)
    with pytest.raises(ValueError, match="'a' held numbers such as 1 in training"):
        encode_table(TEXT_COLUMNS[name](), features)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("values", [[3, 1, None, 3], [3.5, 1.5, None, 3.5], [Decimal(3), None]])
def test_numbers_are_categories_if_asked(kind, values):
    table = read_table(frame(kind, {"a": values}), ["a"])
    assert table.features[0].categories == tuple(sorted({v for v in values if v is not None}))
    assert decode(table) == values


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, np.float64, np.longdouble, bool])
def test_numbers_of_an_array_are_categories_if_asked(dtype):
    table = read_table(np.array([[1], [0], [1]], dtype=dtype), [0])
    assert table.features[0].categories == (0, 1)
    assert {type(level) for level in table.features[0].categories} <= {bool, int, float}
    assert table.columns[0].tolist() == [1, 0, 1]


def test_integer_and_float_categories_match():
    features = read_table([[1], [2]], [0]).features
    assert encode_table([[2.0], [1.0], [1.5]], features).columns[0].tolist() == [1, 0, -1]
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": pd.Series([2, None, 7], dtype="Int64")})
    assert encode_table(X, features).columns[0].tolist() == [1, -1, -1]


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_large_integer_categories_beside_nulls_stay_distinct(kind):
    table = read_table(frame(kind, {"id": [2**53 + 1, None, 2**53]}), ["id"])
    assert table.features[0].categories == (2**53, 2**53 + 1)


def test_pandas_categories_of_numbers_keep_their_type():
    table = read_table(pandas_column([3, 1, None], "category"))
    assert table.features[0].categories == (1, 3)
    with pytest.raises(ValueError, match="Column 'a' holds text or categories"):
        read_table(pandas_column([3, 1, None], "category"), None)


def test_only_observed_categories_are_learnt():
    pd = pytest.importorskip("pandas")
    dtype = pd.CategoricalDtype(["c", "b", "a"])
    assert read_table(pandas_column(["b", "a"], dtype)).features[0].categories == ("a", "b")
    ordered = pd.CategoricalDtype(["c", "b", "a"], ordered=True)
    assert read_table(pandas_column(["b", "a"], ordered)).features[0].categories == ("c", "b", "a")


@pytest.mark.parametrize("name", ["pandas string", "pandas category", "polars", "arrow"])
def test_a_text_column_without_any_value_has_no_categories(name):
    X = {
        "pandas string": lambda: pandas_column([None, None], "string"),
        "pandas category": lambda: pandas_column([None, None], "category"),
        "polars": lambda: polars_column([None, None], lambda pl: pl.String),
        "arrow": lambda: arrow_column([None, None], lambda pa: pa.string()),
    }[name]()
    table = read_table(X)
    assert table.features == (FeatureInfo("a", ()),)
    assert table.columns[0].tolist() == [-1, -1]
    assert encode_table([["b"], [1.0]], table.features).columns[0].tolist() == [-1, -1]


def test_numbers_come_before_text_in_a_mixed_category():
    X = np.array([["b"], [2], ["10"], [1.5], [None], [True]], dtype=object)
    assert read_table(X, [0]).features[0].categories == (True, 1.5, 2, "10", "b")


def test_members_of_a_string_enumeration_are_their_text():
    class City(str, enum.Enum):  # noqa: UP042 (whose str() is not its text)
        ROME = "rome"

    (level,) = read_table([[City.ROME], [City.ROME]], [0]).features[0].categories
    assert level == "rome"
    assert type(level) is str


levels = st.one_of(
    st.none(), st.just(NAN), st.text(max_size=3), st.integers(), st.floats(), st.booleans()
)


@given(st.lists(levels, min_size=1), st.randoms())
def test_categories_of_any_values_decode_to_them_and_ignore_the_order_of_rows(values, random):
    X = np.empty((len(values), 1), dtype=object)
    X[:, 0] = values
    table = read_table(X, [0])
    expected = [None if value is None or value != value else value for value in values]
    assert decode(table) == expected
    assert_array_equal(encode_table(X, table.features).columns[0], table.columns[0])
    random.shuffle(values)
    X[:, 0] = values
    assert read_table(X, [0]).features == table.features


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1))
@pytest.mark.parametrize("kind", FRAMES)
def test_text_of_any_data_frame_decodes_to_itself(kind, values):
    table = read_table(frame(kind, {"a": [*values, "text"]}))
    assert decode(table) == [*values, "text"]


@pytest.mark.parametrize("kind", FRAMES)
def test_training_and_prediction_tables_of_different_kinds_agree(kind):
    data = {"city": ["b", None, "a"], "size": [1.0, 2.0, None], "flag": [True, False, True]}
    rows = [list(row) for row in zip(*data.values(), strict=True)]
    table = read_table(frame(kind, data))
    for other in [frame(other, data) for other in FRAMES] + [rows, np.array(rows, dtype=object)]:
        assert_array_equal(encode_table(other, table.features).columns, table.columns)


@pytest.mark.parametrize("kind", [*FRAMES, "object array"])
def test_a_million_strings_with_thousands_of_levels_are_encoded_quickly(kind):
    codes = np.random.default_rng(0).integers(5_000, size=1_000_000)
    text = np.array([f"level {code:04d}" for code in range(5_000)], dtype=object)[codes]
    X = text.reshape(-1, 1) if kind == "object array" else frame(kind, {"a": text})
    start = time.perf_counter()
    column = only_column(X, [0])
    elapsed = time.perf_counter() - start
    assert_array_equal(column, codes)
    assert elapsed < 5  # ten times what it takes: only a loop over rows in Python is slower


# Choosing categorical features


@pytest.mark.parametrize(
    "categorical_features",
    [
        ["a", "c"],
        ("c", "a", "a"),
        np.array(["a", "c"]),
        [0, 2],
        np.array([2, 0, 0], np.uint8),
        [True, False, True],
        np.array([True, False, True]),
    ],
)
@pytest.mark.parametrize("kind", FRAMES)
def test_names_indices_and_masks_choose_the_same_features(categorical_features, kind):
    X = frame(kind, {"a": [1, 2], "b": [True, False], "c": ["u", "v"]})
    table = read_table(X, categorical_features)
    assert [feature.categories for feature in table.features] == [(1, 2), None, ("u", "v")]
    assert table.columns[1].tolist() == [1, 0]


@pytest.mark.parametrize("place", [0, 63, 64, 70_000, 150_000])
def test_columns_are_whole_if_all_known_values_are_whatever_their_type(place):
    numbers = np.arange(200_000.0) % 7
    numbers[::5] = np.nan
    frame = pd.DataFrame({"a": numbers, "b": pd.array([1, None] * 100_000, dtype="Int64")})
    assert [feature.is_whole for feature in read_table(frame).features] == [True, True]
    assert read_table(frame[["a"]].to_numpy(np.float32)).features[0].is_whole
    frame.loc[place, "a"] = 0.5
    assert [feature.is_whole for feature in read_table(frame).features] == [False, True]
    assert not read_table(frame[["a"]].to_numpy(np.float32)).features[0].is_whole


def test_array_columns_are_chosen_by_index_mask_or_generated_name():
    X = [[1, 2], [3, 4]]
    for categorical_features in ([1], [False, True], ["x1"]):
        features = read_table(X, categorical_features).features
        assert features == (FeatureInfo("x0", is_whole=True), FeatureInfo("x1", (2, 4)))


@pytest.mark.parametrize("categorical_features", ["from_dtype", None, [], (), np.array([])])
def test_arrays_have_no_categorical_features_unless_asked(categorical_features):
    features = read_table(np.array([[True], [False]]), categorical_features).features
    assert features == (FeatureInfo("x0", is_whole=True),)


@pytest.mark.parametrize(
    ("categorical_features", "error", "message"),
    [
        (["a", "z"], ValueError, "names 'z', which is not a column of X. The columns are 'a', 'b'"),
        ([0, 2], ValueError, "index 2, which is not in the range from 0 to 1"),
        ([-1], ValueError, "index -1, which is not in the range"),
        ([True], ValueError, "mask of length 1, but X has 2 features"),
        ("a", ValueError, "got 'a'. For a single column, pass a list"),
        (["a", 1], TypeError, "array-like of column names"),
        ([0.0], TypeError, "array-like of column names"),
        ([True, 1], TypeError, "array-like of column names"),
        ([["a"]], TypeError, "array-like of column names"),
        (3, TypeError, "array-like of column names"),
        ([None], TypeError, "array-like of column names"),
    ],
)
def test_a_wrong_choice_is_refused_with_its_culprit(categorical_features, error, message):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    with pytest.raises(error, match=message):
        read_table(X, categorical_features)


def test_unlisted_text_beside_listed_features_is_refused_by_name():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": ["u", "v"], "b": ["w", "x"]})
    with pytest.raises(ValueError, match=r"Column 'b' holds text.*List it in categorical_features"):
        read_table(X, ["a"])


@pytest.mark.parametrize("number", [1, 1.5, Decimal(1), True])
def test_text_mixed_with_numbers_must_be_asked_for(number):
    X = pandas_column(["a"] * 200 + [number], object)
    with pytest.raises(ValueError, match="Column 'a' holds both text and numbers"):
        read_table(X)
    assert decode(read_table(X, ["a"]))[-2:] == ["a", number]


# Prediction


def test_only_the_needed_columns_are_touched():
    X = np.array([[1.0, {}, "text"], [2.0, [], "more"]], dtype=object)
    features = (FeatureInfo("x0"), FeatureInfo("x1"), FeatureInfo("x2", ("more",)))
    table = encode_table(X, features, needed=iter([2, 0]))
    assert table.columns[0].tolist() == [1, 2]
    assert table.columns[1] is None
    assert table.columns[2].tolist() == [-1, 0]
    assert encode_table(X, features, needed=[]).columns == [None] * 3
    assert table.features == features


def test_the_number_of_features_must_match():
    features = read_table(np.ones((2, 4))).features
    with pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 4 features as"):
        encode_table(np.ones((2, 3)), features)


# What is refused


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, "Expected 2D array, got 1D array instead.*Reshape your data"),
        ([1, 2, 3], ValueError, "Reshape your data"),
        (1.0, ValueError, "Expected 2D array, got scalar instead"),
        (None, ValueError, "Expected 2D array, got scalar instead"),
        ({"a": [1]}, ValueError, "Expected 2D array, got scalar instead"),
        (np.ones((2, 2, 2)), ValueError, "Found array with dim 3, while dim <= 2 is required"),
        (np.ones((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is"),
        (np.ones((12, 0)), ValueError, r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1"),
        ([[1, 2], [3]], ValueError, "rows are equally long"),
        (np.ones((2, 2)) * 1j, ValueError, "Complex data not supported"),
        ([[1j]], ValueError, "Complex data not supported"),
        ([[1.0], [{"foo": "bar"}]], TypeError, "argument must be .* string.* number"),
        ([[1.0], [{"foo": "bar"}]], TypeError, "Column 'x0' holds dict"),
        (np.array([[b"a"]]), TypeError, "Column 'x0' holds .*S1"),
        (np.array([[1]], "m8[s]"), TypeError, "Column 'x0' holds timedelta64"),
        (np.zeros((2, 2), dtype=[("a", "f8")]), TypeError, "number or a category first"),
        (sparse.csr_matrix(np.eye(2)), TypeError, r"(?i)sparse.*toarray\(\)"),
        (sparse.coo_array(np.eye(2)), TypeError, r"(?i)sparse.*toarray\(\)"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        read_table(X)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"1 sample\(s\) \(shape=\(1, 3\)\) while a minimum of 2"):
        read_table(np.ones((1, 3)), min_rows=2)


@pytest.mark.parametrize("n_rows", [2**31 - 1, 2**31, 2**40])
def test_more_rows_than_can_be_indexed_are_refused_at_once(n_rows):
    X = np.broadcast_to(np.float32(0), (n_rows, 2))
    with pytest.raises(ValueError, match=f"X has {n_rows} rows, but at most 2147483646"):
        read_table(X)
    with pytest.raises(ValueError, match=f"X has {n_rows} rows"):
        encode_table(X, [FeatureInfo("x0"), FeatureInfo("x1")])


@pytest.mark.parametrize(
    "value",
    [
        datetime.timedelta(1),
        datetime.time(1),
        [1, 2],
        {"a": 1},
        b"bytes",
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("categorical_features", ["from_dtype", None, ["a"]])
def test_other_columns_of_a_data_frame_are_refused_by_name(kind, value, categorical_features):
    X = frame(kind, {"a": [value]})
    with pytest.raises(TypeError, match=r"Column 'a' holds .* Turn the column into a number"):
        read_table(X, categorical_features)


def test_pandas_categories_of_intervals_are_refused_by_name():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": pd.cut(pd.Series([1.0, 2.0, 3.0]), 2)})
    with pytest.raises(TypeError, match="Column 'a' holds Interval values"):
        read_table(X)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_single_series_is_refused(kind):
    series = pytest.importorskip(kind).Series([1.0, 2.0])
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(series)


@pytest.mark.parametrize("kind", FRAMES)
def test_empty_data_frames_are_refused(kind):
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 1\)\)"):
        read_table(frame(kind, {"a": np.array([], dtype=float)}))
    with pytest.raises(ValueError, match="while a minimum of 1 is required"):
        read_table(frame(kind, {}))


def test_a_data_frame_without_columns_is_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(3, 0\)\)"):
        read_table(pd.DataFrame(index=range(3)))


def test_lazy_frames_must_be_collected_first():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"lazy table .*LazyFrame.*collect\(\)"):
        read_table(pl.LazyFrame({"a": [1.0]}))


def test_duplicated_column_names_are_refused():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for X in (
        pd.DataFrame([[1, 2]], columns=["twin", "twin"]),
        pa.table([[1], [2]], names=["twin", "twin"]),
    ):
        with pytest.raises(ValueError, match=r"must have distinct names(.|\n)*twin"):
            read_table(X)


@pytest.mark.parametrize("names", [[0, 1], [("a", 1), ("b", 2)]])
def test_names_that_are_not_strings_are_written_as_strings(names):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]])
    X.columns = names
    table = read_table(X, [1])
    assert [feature.name for feature in table.features] == [str(name) for name in X.columns]
    assert not table.has_names
    assert table.columns[0].tolist() == [1, 3]
    assert table.features[1].categories == (2, 4)


def test_names_must_be_all_strings_or_none():
    pd = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="all input features have string names"):
        read_table(pd.DataFrame({"a": [1.0], 0: [2.0]}))
    assert read_table(pd.DataFrame({"a": [1.0], "0": [2.0]})).has_names
    assert not read_table([[1.0, 2.0]]).has_names


@given(st.lists(st.floats(width=32), min_size=1))
def test_numbers_are_the_same_in_every_table(values):
    for X in [[[v] for v in values], *(frame(kind, {"a": values}) for kind in FRAMES)]:
        assert_array_equal(only_column(X), values)
        assert all(math.isnan(v) for v in only_column(X)[np.isnan(values)])


# --- one row at a time ---


def test_codes_of_categories_are_found_once_and_stay_out_of_pickles():
    levels = [f"level {i}" for i in range(3000)]
    (feature,) = read_table(pd.DataFrame({"x": levels})).features
    fresh = pickle.dumps(feature)
    first = encode_table(pd.DataFrame({"x": ["level 7"]}), [feature]).columns[0]
    found = feature.code_of
    second = encode_table(pd.DataFrame({"x": ["level 7", "none", None]}), [feature]).columns[0]
    assert feature.code_of is found
    assert first[0] == second[0] == feature.categories.index("level 7")
    assert second.tolist()[1:] == [-1, -1]
    assert pickle.dumps(feature) == fresh
    assert pickle.loads(fresh) == feature
