"""Columns that are not what they seem: numbers of too many digits, numbers with text among them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shapetree import (
    ShapeForestClassifier,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    from_parquet,
)
from shapetree.data._table import read_table


def identities(kind):
    ids = [2**60 + i for i in range(20)]
    return {
        "array": np.array(ids)[:, None],
        "unsigned": np.array(ids, dtype=np.uint64)[:, None] + np.uint64(2**63),
        "list": [[each] for each in ids],
        "object": pd.DataFrame({"id": np.array(ids, dtype=object)}),
        "pandas": pd.DataFrame({"id": ids}),
        "pandas with missing": pd.DataFrame({"id": pd.array([None, *ids[1:]], dtype="Int64")}),
        "polars": pl.DataFrame({"id": [None, *ids[1:]]}),
        "arrow": pa.table({"id": ids}),
        "huge": pd.DataFrame({"id": pd.Series([10**400, *ids[1:]], dtype=object)}),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        *("array", "unsigned", "list", "object", "pandas", "pandas with missing", "polars"),
        *("arrow", "huge"),
    ],
)
def test_whole_numbers_that_a_float_would_round_are_refused(kind):
    with pytest.raises(ValueError, match="so many digits that a float would round them") as error:
        read_table(identities(kind), None)
    assert len(str(error.value)) < 400


def test_whole_numbers_that_a_float_holds_are_read():
    held = np.array([2**53, -(2**53), 2**60, 2**62 + 2**20])
    table = read_table(held[:, None])
    assert table.columns[0].tolist() == held.tolist()
    ids = read_table(identities("array"), [0])
    assert len(ids.features[0].categories) == 20


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_targets_that_a_float_would_round_are_refused(make):
    y = make([2**60 + i for i in range(20)])
    with pytest.raises(ValueError, match="y holds whole numbers of so many digits"):
        ShapeTreeRegressor().fit(np.zeros((20, 1)), y)
    held = make([2**60 + 2**20 * i for i in range(20)])
    ShapeTreeRegressor().fit(np.zeros((20, 1)), held)


@pytest.mark.parametrize("missing", [[], [None]])
def test_whole_numbers_of_many_digits_in_files_are_named_or_are_categories(missing, tmp_path):
    ids = [2**60 + i % 3 for i in range(30 - len(missing))] + missing
    frame = pa.table({"id": ids, "y": [int(i is not None and i % 3 == 1) for i in ids]})
    pq.write_table(frame, tmp_path / "rows.parquet")
    rows = from_parquet(tmp_path / "rows.parquet", target="y")
    with pytest.raises(ValueError, match="'id' holds whole numbers of so many digits"):
        ShapeTreeClassifier().fit(rows)
    model = ShapeTreeClassifier(categorical_features=["id"])
    from_file = model.fit(rows).to_json()
    y = pd.Series(frame["y"].to_pylist(), name="y")
    assert model.fit(frame.select(["id"]), y).to_json() == from_file
    assert model.get_n_leaves() == 2


def laboratory(odd=("<50", ">200")):
    return [str(60 + i / 2) for i in range(60)] + [*odd, None]


@pytest.mark.parametrize(
    "frame",
    [
        lambda texts: pd.DataFrame({"crp": texts}),
        lambda texts: pd.DataFrame({"crp": pd.array(texts, dtype="string")}),
        lambda texts: pl.DataFrame({"crp": texts}),
        lambda texts: pa.table({"crp": texts}),
    ],
)
def test_texts_that_keep_a_column_from_being_a_number_are_named(frame):
    with pytest.warns(UserWarning, match="'crp' is read as categories") as caught:
        read_table(frame(laboratory()))
    (message,) = {str(each.message) for each in caught}
    assert "2 of 63 values are no numbers: '<50', '>200'" in message
    assert "to_numeric" in message


def test_no_texts_are_named_where_they_are_categories():
    texts = laboratory()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(pd.DataFrame({"crp": pd.Categorical(texts)}))
        read_table(pd.DataFrame({"crp": texts}), ["crp"])
        read_table(pd.DataFrame({"crp": laboratory(odd=())}))
        read_table(pd.DataFrame({"crp": [f"A{i}" for i in range(60)] + ["1", "2"]}))


@pytest.mark.parametrize("model", [ShapeTreeClassifier(), ShapeForestClassifier(n_estimators=2)])
def test_columns_may_be_called_as_what_is_known_of_rows_elsewhere(model):
    names = ["target_names", "backend", "features"]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=names)
    y = (X["backend"] > 0).rename("positive")
    assert model.fit(X, y).predict(X).shape == y.shape
    assert list(model.feature_names_in_) == names
