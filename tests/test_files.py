"""Rows in files and batches: the same trees as in memory, and clear errors that name the part."""

import errno
import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from chance import examples
from data import make_tree
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone

import shapetree
from shapetree import (
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    from_batches,
    from_parquet,
    predict_parquet,
)
from shapetree.data._fingerprint import Fingerprint
from shapetree.data._store import Store, bytes_of
from shapetree.grow import _pair_options

FEATURES = ["number", "single", "whole", "text", "flag", "size", "when"]
SEEDS = st.integers(0, 2**32 - 1)


def all_rows(rng, n_rows):
    """Columns of all sorts, with missing values, and targets that depend on them."""
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "single": rng.normal(size=n_rows).astype(np.float32),
            "whole": rng.integers(0, 9, n_rows),
            "text": rng.choice(["b", "a", "c", "é"], n_rows).astype(object),
            "flag": rng.random(n_rows) < 0.5,
            "size": rng.choice(["S", "M", "L"], n_rows),
            "when": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 9**7, n_rows), "s"),
        }
    )
    score = 2.0 * (np.abs(frame["number"]) > 0.7) + (frame["number"] + frame["single"] > 0)
    score += 0.7 * frame["text"].isin(["a", "c"]) + 0.3 * (frame["size"] == "L")
    score += 1e-8 * frame["when"].astype("int64") / 1e9 % 1 + rng.normal(scale=0.2, size=n_rows)
    for name in ("number", "single", "text", "when"):
        frame.loc[rng.random(n_rows) < 0.15, name] = None
    table = pa.Table.from_pandas(frame, preserve_index=False)
    order = pa.array(["S", "M", "L"])
    codes = pa.array([["S", "M", "L"].index(size) for size in frame["size"]], pa.int8())
    ordered = pa.DictionaryArray.from_arrays(codes, order, ordered=True)
    table = table.set_column(FEATURES.index("size"), "size", ordered)
    weights = rng.exponential(size=n_rows) * (rng.random(n_rows) > 0.2)
    weights[0] = 1.0
    labels = np.array(["no", "perhaps", "yes"])[np.digitize(score, [1.0, 2.5])]
    signs = np.where(score > 1.5, "plus", "minus")
    for name, values in (("y", score), ("label", labels), ("sign", signs), ("w", weights)):
        table = table.append_column(name, pa.array(np.asarray(values)))
    return table.append_column("z", pa.array(np.asarray(score) ** 2))


def write_parts(rng, table, folder):
    """Spread rows over files, at random; some may have none."""
    cuts = np.sort(rng.integers(0, len(table) + 1, rng.integers(0, 5)))
    for i, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(table)], strict=True)):
        size = int(rng.integers(1, len(table) + 1))
        pq.write_table(table.slice(a, b - a), Path(folder, f"{i}.parquet"), row_group_size=size)


def in_batches(rng, table):
    """The same rows as batches of all kinds."""
    size = int(rng.integers(1, len(table) + 1))
    return [table.slice(start, size) for start in range(0, len(table), size)]


CASES = {
    "classes": (ShapeTreeClassifier, "label", {}),
    "greedy": (ShapeTreeClassifier, "label", {"refine": None, "max_branches": 2}),
    "balanced": (ShapeTreeClassifier, "label", {"class_weight": "balanced"}),
    "without a class": (ShapeTreeClassifier, "label", {"class_weight": {"no": 0, "yes": 2}}),
    "means": (ShapeTreeRegressor, "y", {}),
    "medians": (ShapeTreeRegressor, "y", {"criterion": "absolute_error"}),
    "exact": (ShapeTreeClassifier, "label", {"max_bins": None}),
    "few bins": (ShapeTreeRegressor, "y", {"max_bins": 9}),
    "pairs": (ShapeTreeClassifier, "label", {"pairs": "auto", "pair_penalty": 0.0, "max_depth": 2}),
    "exact pairs": (ShapeTreeRegressor, "y", {"pairs": 1, "max_bins": None, "max_depth": 2}),
    "two numbers": (ShapeTreeRegressor, ["y", "z"], {}),
    "two labels": (ShapeTreeClassifier, ["label", "sign"], {}),
    "chosen": (ShapeTreeClassifier, "label", {"strength": "cv", "cv": 2, "max_depth": 2}),
    "chosen numbers": (ShapeTreeRegressor, "y", {"strength": "cv", "cv": 2, "max_depth": 2}),
}


def fit_both(case, table, weight, data):
    """Model files from memory and from parts."""
    kind, target, options = CASES[case]
    names = [target] if isinstance(target, str) else target
    features = [name for name in FEATURES if name not in names]
    y = table.select(names).to_pandas()
    y = y[target] if isinstance(target, str) else y
    weights = None if weight is None else table[weight].to_numpy()
    make = partial(make_tree, kind, random_state=0, n_threads=1, leaf_penalty=0.5, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few rows may look like numbers
        alone = make().fit(table.select(features), y, weights)
    parts = make().fit(data(target=target, weight=weight, columns=features))
    return alone.to_json(), parts.to_json()


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("case", CASES)
def test_files_give_the_same_model_as_memory(case, weight, tmp_path):
    rng = np.random.default_rng(list(CASES).index(case))
    table = all_rows(rng, 400)
    write_parts(rng, table, tmp_path)
    for memory in ("1GB", 0):
        alone, parts = fit_both(case, table, weight, partial(from_parquet, tmp_path, memory=memory))
        assert parts == alone
    assert alone.count('"feature') > 1


@pytest.mark.parametrize("weight", [None, "w", "n"])
@pytest.mark.parametrize(
    ("kind", "target"), [(ShapeTreeClassifier, "label"), (ShapeTreeRegressor, "y")]
)
def test_default_parameters_give_the_same_model_as_memory(kind, target, weight, tmp_path):
    # So few rows are resampled, in this process, and resamples teach the tree.
    rng = np.random.default_rng(7)
    table = all_rows(rng, 400)
    table = table.append_column("n", pa.array(rng.integers(0, 4, 400)))
    write_parts(rng, table, tmp_path)
    weights = None if weight is None else table[weight].to_numpy()
    alone = kind().fit(table.select(FEATURES), table[target].to_pandas(), weights)
    assert alone.get_n_leaves() > 1
    for memory in ("1GB", 0):
        data = from_parquet(tmp_path, target=target, weight=weight, columns=FEATURES, memory=memory)
        assert kind().fit(data).to_json() == alone.to_json()
        assert_nothing_left()


@examples(15)
@given(
    SEEDS, st.integers(20, 120), st.sampled_from(sorted(CASES)), st.sampled_from([None, "w"]),
    st.sampled_from(["1GB", "500B", "3KB", 0]),
)  # fmt: skip
def test_any_spread_over_files_and_batches_gives_the_same_model(seed, n_rows, case, weight, memory):
    rng = np.random.default_rng(seed)
    table = all_rows(rng, n_rows)
    with tempfile.TemporaryDirectory() as folder:
        write_parts(rng, table, folder)
        alone, parts = fit_both(case, table, weight, partial(from_parquet, folder, memory=memory))
        assert parts == alone
    batches = partial(from_batches, in_batches(rng, table), memory=memory)
    assert fit_both(case, table, weight, batches)[1] == alone


@pytest.mark.parametrize("case", ["classes", "means", "pairs", "chosen"])
def test_samples_are_the_same_from_files(case, tmp_path, monkeypatch):
    """Where bins come from a sample, and other rows lie between and beyond them."""
    for module in ("_binning", "_parts", "_stored"):
        monkeypatch.setattr(f"shapetree.data.{module}.MAX_BINNED_ROWS", 60)
    for module in ("_values", "_stored"):
        monkeypatch.setattr(f"shapetree.data.{module}.SCALE_ROWS", 60)
    rng = np.random.default_rng(0)
    table = all_rows(rng, 500)
    for weight in (None, "w"):
        for i, part in enumerate(in_batches(rng, table)):
            pq.write_table(part, tmp_path / f"{weight}{i:04}.parquet")
        data = partial(from_parquet, f"{tmp_path}/{weight}*.parquet")
        alone, parts = fit_both(case, table, weight, data)
        assert parts == alone


@pytest.mark.parametrize("resamples", [0, "auto"])
@pytest.mark.parametrize("memory", ["1GB", 0])
def test_tables_of_all_kinds_can_be_batches(memory, resamples):
    rng = np.random.default_rng(1)
    table = all_rows(rng, 200).drop(["size"])
    features = [name for name in FEATURES if name != "size"]
    model = ShapeTreeClassifier(resamples=resamples)
    alone = clone(model).fit(table.select(features), table["label"].to_pandas())
    parts = [table.slice(0, 70), table.slice(70, 0), table.slice(70, 130)]
    given = {
        "pyarrow": parts,
        "polars": [pl.from_arrow(part) for part in parts],
        "pandas": [part.to_pandas() for part in parts],
        "dataset": ds.dataset(parts[0::2], schema=table.schema),
        "function": lambda: iter(parts),
    }
    for name, batches in given.items():
        data = from_batches(batches, "label", columns=features, memory=memory)
        found = clone(model).fit(data)
        assert found.tree_.node_count > 3, name
        assert_array_equal(found.apply(data), alone.apply(table.select(features)), err_msg=name)
        assert found.to_json() == alone.to_json(), name


def test_folders_patterns_and_lists_of_files(tmp_path):
    table = all_rows(np.random.default_rng(2), 90)
    for number in (0, 1, 2):
        (tmp_path / f"year{number}").mkdir()
        pq.write_table(table.slice(30 * number, 30), tmp_path / f"year{number}" / "rows.parquet")
    (tmp_path / "notes.txt").write_text("no rows")
    (tmp_path / "_metadata.parquet").write_text("no rows")
    files = sorted(tmp_path.rglob("rows.parquet"))
    for path in (tmp_path, str(tmp_path), f"{tmp_path}/year*/rows.parquet", files):
        data = from_parquet(path, "label", columns=["number", "text"])
        assert data.n_rows == 90
        assert repr(data) == "<90 rows in parts, 2 columns to learn from>"
        read = pa.concat_tables(part for _, part in data.tables(["number"]))
        assert read["number"].to_pylist() == table["number"].to_pylist()
    assert from_parquet(files[0], "label").n_rows == 30


def test_very_many_pairs_read_the_columns_that_they_are_of(monkeypatch):
    # Of so many features that pairs are not listed, a date is not paired.
    monkeypatch.setattr(_pair_options, "MAX_SCREENED", 3)
    rng = np.random.default_rng(0)
    numbers = {name: rng.normal(size=600) for name in "abcdef"}
    days = np.datetime64("2024-01-01") + rng.integers(0, 900, 600)
    table = pa.table({"day": days.astype("datetime64[D]"), **numbers})
    y = (numbers["e"] + numbers["f"] > 0) ^ (numbers["e"] - numbers["f"] > 1)
    params = {"pairs": "auto", "pair_penalty": 0.0, "max_depth": 2, "random_state": 0}
    params["resamples"] = 0  # or all columns would be read at once
    alone = make_tree(ShapeTreeClassifier, **params).fit(table, pd.Series(y, name="y"))
    data = from_batches([table.append_column("y", pa.array(y))], target="y")
    assert (alone.tree_.second_feature >= 0).any()
    assert make_tree(ShapeTreeClassifier, **params).fit(data).to_json() == alone.to_json()


def test_folders_whose_names_are_values(tmp_path):
    table = all_rows(np.random.default_rng(3), 120)
    for number in range(3):
        (tmp_path / f"year={2020 + number}").mkdir()
        part = table.slice(40 * number, 40)
        pq.write_table(part, tmp_path / f"year={2020 + number}" / "rows.parquet")
    data = from_parquet(tmp_path, target="y", columns=["year", "number"])
    years = pa.array(np.repeat([2020, 2021, 2022], 40), pa.int32())
    X = pa.table({"year": years, "number": table["number"]})
    alone = ShapeTreeRegressor().fit(X, table["y"].to_pandas())
    assert ShapeTreeRegressor().fit(data).to_json() == alone.to_json()


def test_folders_whose_names_are_values_may_be_in_patterns_and_lists(tmp_path):
    table = all_rows(np.random.default_rng(3), 120)
    folders = [tmp_path / f"year={2020 + number}" / "month=7" for number in range(3)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        pq.write_table(table.slice(40 * number, 40), folder / "rows.parquet")
    whole = from_parquet(tmp_path, target="y")
    assert {"year", "month"} < set(whole.features)
    alone = ShapeTreeRegressor().fit(whole)
    files = [folder / "rows.parquet" for folder in folders]
    for path in (f"{tmp_path}/*/*/*.parquet", f"{tmp_path}/year=*", files, folders):
        data = from_parquet(path, target="y")
        assert data.features == whole.features
        assert ShapeTreeRegressor().fit(data).to_json() == alone.to_json()
    one = from_parquet(files[1], target="y")
    assert_array_equal(alone.predict(one), alone.predict(whole)[40:80])
    # Values of the files themselves come first.
    written = table.append_column("year", pa.array(["own"] * 120))
    pq.write_table(written.append_column("month", pa.array(["own"] * 120)), files[0])
    data = from_parquet(files[0])
    assert next(data.tables(["year"]))[1]["year"].to_pylist() == ["own"] * 120


def test_the_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": range(40), "y": [0, 1] * 20}, index=np.arange(40) * 3 + 1)
    frame.to_parquet(tmp_path / "rows.parquet")
    assert from_parquet(tmp_path, target="y").features == ["a"]


def test_a_column_without_values_in_one_file_goes_with_any_type(tmp_path):
    for number, values in enumerate([[None, None], ["a", "b"], [None, None]]):
        frame = pd.DataFrame({"a": values * 20, "y": [0, 1] * 20})
        frame.to_parquet(tmp_path / f"{number}.parquet")
    tree = ShapeTreeClassifier().fit(from_parquet(tmp_path, target="y"))
    assert tree._fitted.features[0].categories == ("a", "b")


def test_null_targets_of_whole_numbers_are_refused_and_booleans_are_classes(tmp_path):
    table = pa.table({"a": range(40), "y": [True, False] * 20})
    tree = ShapeTreeClassifier().fit(from_batches([table], target="y"))
    assert tree.classes_.tolist() == [False, True]


def test_categories_can_be_targets():
    frame = pd.DataFrame({"a": range(40), "y": pd.Categorical(["u", "v"] * 20)})
    for table in (frame, pa.Table.from_pandas(frame), pl.from_pandas(frame)):
        tree = ShapeTreeClassifier().fit(from_batches([table, table], target="y"))
        assert tree.classes_.tolist() == ["u", "v"]


# Predictions


@pytest.mark.parametrize("case", ["classes", "means", "pairs", "two numbers", "two labels"])
def test_batches_are_predicted_as_tables_are(case, tmp_path, tmp_path_factory):
    kind, target, options = CASES[case]
    rng = np.random.default_rng(5)
    table = all_rows(rng, 300)
    write_parts(rng, table, tmp_path)
    names = [target] if isinstance(target, str) else target
    features = [name for name in FEATURES if name not in names]
    data = from_parquet(tmp_path, target=target, weight="w", columns=features)
    tree = make_tree(kind, **options).fit(data)
    X, y = table.select(features), table.select(names).to_pandas().to_numpy()
    assert_array_equal(tree.apply(data), tree.apply(X))
    assert_array_equal(tree.predict(data), tree.predict(X))
    if kind is ShapeTreeClassifier:
        for found, expected in zip(tree.predict_proba(data), tree.predict_proba(X), strict=True):
            assert_array_equal(found, expected)
    y = y[:, 0] if len(names) == 1 else y
    y = y.astype(str) if kind is ShapeTreeClassifier and len(names) > 1 else y
    if len(names) == 1:
        assert tree.evaluate(data) == tree.evaluate(X, y, table["w"].to_numpy())
    path = tmp_path_factory.mktemp("out") / "predictions.pq"
    proba = kind is ShapeTreeClassifier
    assert predict_parquet(tree, data, path, proba=proba, leaf=True, keep=["whole"]) == 300
    read = pq.read_table(path)
    assert read["whole"].to_pylist() == table["whole"].to_pylist()
    assert read["leaf"].to_pylist() == tree.apply(X).tolist()
    columns = ["prediction"] if len(names) == 1 else [f"prediction of {name}" for name in names]
    predicted = tree.predict(X).reshape(300, -1)
    for number, name in enumerate(columns):
        assert read[name].to_pylist() == predicted[:, number].tolist()
    if case == "classes":
        shares = np.stack([read[f"p({label})"].to_numpy() for label in tree.classes_], axis=1)
        assert_array_equal(shares, tree.predict_proba(X))


def test_predictions_keep_all_columns_under_names_of_their_own(tmp_path):
    frame = pd.DataFrame({"prediction": range(40), "y": [0, 1] * 20})
    tree = ShapeTreeClassifier().fit(frame[["prediction"]], frame["y"])
    predict_parquet(tree, from_batches([frame, frame]), tmp_path / "p.parquet", keep="all")
    read = pd.read_parquet(tmp_path / "p.parquet")
    assert list(read) == ["prediction", "y", "prediction (2)"]
    assert len(read) == 80


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary("int8", "string")])
def test_text_is_read_as_codes_and_kept_as_it_is(tmp_path, kind):
    table = all_rows(np.random.default_rng(5), 400)
    table = table.set_column(FEATURES.index("text"), "text", table["text"].cast(kind))
    for number in range(4):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table.slice(100 * number, 100), path, row_group_size=30)
    data = from_parquet(tmp_path, target="label", columns=["text", "number"])
    tree = ShapeTreeClassifier().fit(data)
    alone = ShapeTreeClassifier().fit(table.select(["text", "number"]), table["label"].to_pandas())
    assert tree.to_json() == alone.to_json()
    out = tmp_path.with_suffix(".parquet")
    predict_parquet(tree, data, out, keep=["text"])
    read = pq.read_table(out)
    assert read.schema.field("text").type == pq.read_schema(path).field("text").type
    assert read["text"].to_pylist() == table["text"].to_pylist()


def test_predictions_do_not_overwrite_the_data(tmp_path):
    frame = pd.DataFrame({"a": range(40), "y": [0, 1] * 20})
    for folder in ("in", "in/year=1", "in/year=2"):
        (tmp_path / folder).mkdir()
        frame.to_parquet(tmp_path / folder / "rows.parquet")
    tree = ShapeTreeClassifier().fit(frame[["a"]], frame["y"])
    part = tmp_path / "in" / "rows.parquet"
    link, hard = tmp_path / "link.parquet", tmp_path / "hard.parquet"
    link.symlink_to(part)
    os.link(part, hard)
    before = part.read_bytes()
    for data in (
        from_parquet(tmp_path / "in"),
        from_parquet(f"{tmp_path}/in/*.parquet"),
        from_parquet([part]),
        from_batches(ds.dataset(str(part))),
    ):
        for path in (part, str(part), link, hard):
            with pytest.raises(ValueError, match="the rows are read from this file; name another"):
                predict_parquet(tree, data, path)
    years = from_parquet([tmp_path / "in/year=1", tmp_path / "in/year=2"])
    with pytest.raises(ValueError, match=r"it would be taken for data, as it is in .*year=2"):
        predict_parquet(tree, years, tmp_path / "in/year=2/predictions.parquet")
    assert part.read_bytes() == before
    assert predict_parquet(tree, years, part) == 80


def test_predictions_of_no_rows_are_a_file_without_rows(tmp_path):
    frame = pd.DataFrame({"id": ["a"] * 40, "x": range(40)})
    tree = ShapeTreeClassifier().fit(frame[["x"]], ["no", "yes"] * 20)
    numbers = ShapeTreeRegressor().fit(frame[["x"]], range(40))
    nothing = pa.Table.from_pandas(frame)[:0]
    (tmp_path / "year=1").mkdir()
    for path in ("rows.parquet", "year=1/rows.parquet"):
        pq.write_table(nothing, tmp_path / path)
        out, full = tmp_path / "out.parquet", tmp_path / "full.parquet"
        data = from_parquet(tmp_path / path)
        for model in (tree, numbers):
            options = {"keep": ["id", "x"], "leaf": True, "proba": model is tree}
            assert predict_parquet(model, data, out, **options) == 0
            predict_parquet(model, from_batches([pa.Table.from_pandas(frame)]), full, **options)
            read, expected = pq.read_table(out), pq.read_table(full)
            assert read.num_rows == 0
            assert read.schema.remove_metadata() == expected.schema.remove_metadata()
        assert len(tree.predict(data)) == 0


def test_only_columns_that_the_tree_uses_are_needed():
    rows = pd.DataFrame({"a": range(100), "b": [0] * 100})
    tree = ShapeTreeClassifier().fit(rows, np.arange(100) > 49)
    assert tree.predict(from_batches([rows[["a"]]])).sum() == 50
    with pytest.raises(ValueError, match="the tree names the column 'a', but the columns are 'b'"):
        tree.predict(from_batches([rows[["b"]]]))
    leaf = ShapeTreeClassifier().fit(rows[["b"]], np.arange(100) % 2)
    assert len(leaf.predict(from_batches([rows]))) == 100


def test_new_categories_are_told_once():
    rows = pd.DataFrame({"a": ["x", "y"] * 50})
    tree = ShapeTreeClassifier().fit(rows, [0, 1] * 50)
    with pytest.warns(UserWarning, match="categories that training has not seen") as told:
        tree.predict(from_batches([pd.DataFrame({"a": ["new"] * 50})] * 3))
    assert len(told) == 1


def test_lazy_tables_are_refused_alike_wherever_they_are_given():
    rows = pl.DataFrame({"a": range(40), "y": [0, 1] * 20})
    lazy, tree = rows.lazy(), ShapeTreeClassifier()
    for name, use in {
        "X": lambda: tree.fit(lazy.select("a"), rows["y"]),
        "y": lambda: tree.fit(rows.select("a"), lazy.select("y")),
        "batches": lambda: from_batches(lazy, target="y"),
        "part 1": lambda: from_batches([rows, lazy], target="y"),
    }.items():
        message = rf"{name} is a lazy table \(polars.*LazyFrame\).*collect\(\).*from_parquet"
        with pytest.raises(TypeError, match=message):
            use()
    assert tree.fit(from_batches([lazy.collect()], target="y")).classes_.tolist() == [0, 1]


def test_what_cannot_be_done_with_batches_is_said():
    rows = pd.DataFrame({"a": range(100), "y": [0, 1] * 50})
    data = from_batches([rows], target="y")
    tree = ShapeTreeClassifier().fit(data)
    with pytest.raises(ValueError, match="y must not be given with batches: name its column as ta"):
        ShapeTreeClassifier().fit(data, rows["y"])
    with pytest.raises(ValueError, match="sample_weight must not be given with batches: name its"):
        ShapeTreeClassifier().fit(data, sample_weight=rows["y"])
    with pytest.raises(TypeError, match="rows in parts are for fit, predict"):
        tree.explain(data)
    with pytest.raises(TypeError, match="rows in parts are for fit, predict"):
        shapetree.refine_tree(tree, data, rows["y"])
    with pytest.raises(ValueError, match="there is no target to learn: name its column"):
        ShapeTreeClassifier().fit(from_batches([rows]))
    with pytest.raises(ValueError, match="there is no target: name its column"):
        tree.evaluate(from_batches([rows]))
    nameless = ShapeTreeClassifier().fit(rows[["a"]].to_numpy(), rows["y"])
    with pytest.raises(ValueError, match="the tree was fitted without feature names"):
        nameless.predict(data)
    with pytest.raises(TypeError, match="data must come from from_parquet or from_batches"):
        predict_parquet(tree, rows, "p.parquet")


def test_a_path_of_strengths_can_be_had_of_batches():
    rng = np.random.default_rng(0)
    table = all_rows(rng, 200)
    for resamples in (0, "auto"):
        params = {"strength": [0.5, 2.0], "cv": 2, "random_state": 0, "resamples": resamples}
        model = make_tree(ShapeTreeClassifier, **params)
        data = from_batches(in_batches(rng, table), target="label", columns=FEATURES)
        found = model.strength_path(data)
        expected = model.strength_path(table.select(FEATURES), table["label"].to_pandas())
        for name in expected:
            assert_array_equal(found[name], expected[name])


# Faults


@pytest.fixture
def files(tmp_path):
    """Three good files."""
    table = all_rows(np.random.default_rng(4), 300)
    for number in range(3):
        path = tmp_path / f"part{number}.parquet"
        pq.write_table(table.slice(100 * number, 100), path, row_group_size=40)
    return tmp_path


def fit_files(folder, target="label", **options):
    """Fit in passes over files: few rows that are resampled would be read into memory."""
    return ShapeTreeClassifier(resamples=0).fit(from_parquet(folder, target=target, **options))


def rewrite(folder, change):
    """Change the second file."""
    path = folder / "part1.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def with_column(name, values):
    return lambda table: table.set_column(table.column_names.index(name), name, values(table))


BAD_PARTS = {
    "missing column": (
        lambda table: table.drop(["whole"]),
        "there is no column 'whole', which .*part0.parquet has",
    ),
    "other type": (
        with_column("whole", lambda table: table["whole"].cast(pa.string())),
        "column 'whole' holds string, but int64 in .*part0.parquet; give it the same type",
    ),
    "category that becomes text": (
        with_column("size", lambda table: table["size"].cast(pa.string())),
        "column 'size' holds string, but dictionary of string, ordered in .*part0.parquet",
    ),
    "another order": (
        with_column(
            "size",
            lambda table: pa.DictionaryArray.from_arrays(
                pa.array([0] * len(table), pa.int8()), ["M", "S", "L"], ordered=True
            ),
        ),
        "column 'size' has other categories, or another order of them, than in .*part0.parquet",
    ),
    "no labels": (
        with_column("label", lambda table: pa.nulls(len(table), pa.string())),
        "column 'label' lacks 100 of 100 values; leave those rows out",
    ),
    "some labels": (
        with_column("label", lambda table: pa.array([None, *table["label"].to_pylist()[1:]])),
        "column 'label' lacks 1 of 100 values; leave those rows out",
    ),
    "column of lists": (
        with_column("number", lambda table: pa.array([[1.0]] * len(table))),
        r"column 'number' holds list<.*>, but double in .*part0.parquet",
    ),
}


@pytest.mark.parametrize("memory", ["1GB", 0])
@pytest.mark.parametrize("what", BAD_PARTS)
def test_a_bad_part_is_named(files, what, memory):
    change, message = BAD_PARTS[what]
    rewrite(files, change)
    with pytest.raises(ValueError, match=f"^{re.escape(str(files))}/part1.parquet: {message}"):
        fit_files(files, memory=memory)
    assert_nothing_left()


def test_an_empty_part_is_no_fault(files):
    expected = fit_files(files).to_json()
    pq.write_table(pq.read_table(files / "part0.parquet").slice(0, 0), files / "part0x.parquet")
    assert fit_files(files).to_json() == expected


@pytest.mark.parametrize("keep", [0, 3, 100, 2000, -1])
def test_a_truncated_file_is_named(files, keep):
    path = files / "part1.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: "):
        fit_files(files)
    assert_nothing_left()


@pytest.mark.parametrize("memory", ["1GB", 0])
def test_a_damaged_file_is_named(files, memory):
    path = files / "part1.parquet"
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xff" * 1996
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: "):
        fit_files(files, memory=memory)
    assert_nothing_left()


@pytest.mark.parametrize("resamples", [0, "auto"])
def test_data_that_changes_between_passes_is_refused(resamples):
    table = all_rows(np.random.default_rng(0), 100)
    for n_rows in (90, 110):
        sizes = iter([100, 100])

        def parts(sizes=sizes, n_rows=n_rows):
            size = next(sizes, n_rows)
            yield table.slice(0, 60)
            yield pa.concat_tables([table, table]).slice(60, size - 60)

        data = from_batches(parts, target="label", columns=["number", "text"])
        n_now = "more" if n_rows > 100 else n_rows
        with pytest.raises(ValueError, match=f"there were 100, but now there are {n_now}"):
            ShapeTreeClassifier(resamples=resamples).fit(data)


def shuffled_anew(table, columns):
    """A function that yields rows of a table in another order each time."""
    rng, frame = np.random.default_rng(0), table.select(columns).to_pandas()

    def parts():
        rows = frame.iloc[rng.permutation(len(frame))]
        yield from (rows[:130], rows[130:])

    return parts


@pytest.mark.parametrize("resamples", [0, "auto"])
@pytest.mark.parametrize("target", ["label", "y"])
def test_rows_that_come_in_another_order_each_time_are_refused(target, resamples):
    table = all_rows(np.random.default_rng(0), 500)
    columns = ["number", "text", target]
    kind = ShapeTreeClassifier if target == "label" else ShapeTreeRegressor
    unsteady = from_batches(shuffled_anew(table, columns), target=target)
    model = kind(resamples=resamples)
    with pytest.raises(ValueError, match=r"column .* the same ones in another order.*ORDER BY"):
        model.fit(unsteady)
    assert not model.__sklearn_is_fitted__()
    model.fit(from_batches([table], target=target, columns=["number", "text"]))
    with pytest.raises(ValueError, match=r"another order.*ORDER BY"):
        model.evaluate(unsteady)
    assert len(model.predict(unsteady)) == 500  # in one pass


@pytest.mark.parametrize("resamples", [0, "auto"])
def test_rows_in_another_order_among_equal_targets_are_refused(resamples):
    table = all_rows(np.random.default_rng(1), 500)
    rng, frame = np.random.default_rng(2), table.select(["number", "label"]).to_pandas()

    def by_label():
        return [frame.sample(frac=1, random_state=rng).sort_values("label", kind="stable")]

    with pytest.raises(ValueError, match="column 'number' has other values now, or the same ones"):
        ShapeTreeClassifier(resamples=resamples).fit(from_batches(by_label, target="label"))


@examples(15)
@given(SEEDS)
def test_the_same_rows_may_be_cut_into_other_batches_each_time(seed):
    rng = np.random.default_rng(seed)
    table = all_rows(rng, 300)
    kind = [pa.Table.to_pandas, pl.from_arrow, lambda part: part][seed % 3]

    def parts():
        cuts = np.sort(rng.integers(0, 300, 4))
        each = zip([0, *cuts], [*cuts, 300], strict=True)
        return [kind(table.slice(a, b - a)) for a, b in each if a < b]

    columns = ["number", "text", "when"]
    data = from_batches(parts, target="label", weight="w", columns=columns)
    steady = from_batches([kind(table)], "label", "w", columns)
    model = ShapeTreeClassifier(resamples=seed // 3 % 2 * 4)
    found, expected = clone(model).fit(data), clone(model).fit(steady)
    assert found.to_json() == expected.to_json()


@examples(25)
@given(SEEDS)
def test_fingerprints_tell_the_order_of_rows_and_not_batches(seed):
    rng = np.random.default_rng(seed)
    table = all_rows(rng, 3_000).select([*FEATURES, "label"])
    forms = [table, pl.from_arrow(table), table.to_pandas()]
    coded = table.set_column(FEATURES.index("text"), "text", table["text"].dictionary_encode())

    def fingerprint(rows, n_cuts=0):
        found, cuts = Fingerprint(["label"]), np.sort(rng.integers(0, 3_000, n_cuts))
        frame = nw.from_native(rows, eager_only=True)
        for a, b in zip([0, *cuts], [*cuts, 3_000], strict=True):
            part = frame[int(a) : int(b)]
            found.add(len(part), ((column.name, column) for column in part.iter_columns()))
        return found

    for rows in (*forms, coded):
        assert fingerprint(rows, 7).differs_from(fingerprint(rows)) is None
    assert fingerprint(coded, 3).differs_from(fingerprint(table)) is None
    one, other = rng.choice(3_000, 2, replace=False)
    order = np.arange(3_000)
    order[[one, other]] = other, one
    swapped = fingerprint(table.take(order)).differs_from(fingerprint(table))
    assert (swapped is not None) >= (table["label"][int(one)] != table["label"][int(other)])


def test_rows_may_change_between_fits():
    frames = [pd.DataFrame({"a": range(n), "y": [0, 1] * (n // 2)}) for n in (40, 60)]
    held = [frames[0]]
    data = from_batches(lambda: held, target="y")
    ShapeTreeClassifier().fit(data)
    held[0] = frames[1]
    assert ShapeTreeClassifier().fit(data).tree_.n_node_samples[0] == 60


def test_a_part_that_goes_between_passes_is_named(files):
    data = from_parquet(files, target="label")
    (files / "part1.parquet").unlink()
    for resamples in (0, "auto"):
        with pytest.raises(ValueError, match=r"part1.parquet: .*[Nn]o such file"):
            ShapeTreeClassifier(resamples=resamples).fit(data)


@pytest.mark.parametrize("memory", [0, "2KB"])
def test_a_full_disk_is_said_before_rows_are_binned(files, memory, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"there is no room for \d.* of bins in .*set TMPDIR") as told:
        fit_files(files, memory=memory)
    assert told.value.errno == errno.ENOSPC
    assert_nothing_left()
    assert fit_files(files, memory="1GB").get_n_leaves() > 1


def open_files():
    """Files that this process has open or mapped and that have no name."""
    maps = Path("/proc/self/maps").read_text()
    return [line for line in maps.splitlines() if "shapetree-" in line or "(deleted)" in line]


def assert_nothing_left():
    gc.collect()
    assert not list(Path(tempfile.gettempdir()).glob("shapetree-*"))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at Linux' own files")
def test_files_of_bins_are_gone_after_a_fit(files):
    before = open_files()
    fit_files(files, memory=0)
    assert_nothing_left()
    assert open_files() == before


SCRIPT = """
import sys, time, shapetree
from shapetree.data import _stored
from shapetree.data._stored import StoredTable
folder = sys.argv[1]
data = shapetree.from_parquet(folder, target="label", memory=0)
read = StoredTable.read
def slowly(self, needed, what):
    for first, batch in read(self, needed, what):
        yield first, batch
        if what == "binning rows":
            print("binning", flush=True)
            time.sleep(30)
StoredTable.read = slowly
shapetree.ShapeTreeClassifier(resamples=0).fit(data)
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_an_interrupted_or_killed_fit(files, tmp_path_factory, sign):
    folder = tmp_path_factory.mktemp("temporary")
    command = [sys.executable, "-c", SCRIPT, str(files)]
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout.readline() == b"binning\n"
        time.sleep(0.1)
        process.send_signal(sign)
        process.wait(20)
    assert process.returncode != 0
    assert list(folder.iterdir()) == []


def test_predictions_that_fail_leave_no_file(files, tmp_path_factory):
    tree = fit_files(files, columns=["number"])
    assert tree.tree_.node_count > 1  # or nothing would have to be read
    folder = tmp_path_factory.mktemp("out")
    (folder / "old.parquet").write_text("as it was")
    path = files / "part1.parquet"
    content = bytearray(path.read_bytes())
    data = from_parquet(files)
    content[4:2000] = b"\xff" * 1996
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"part1.parquet: "):
        predict_parquet(tree, data, folder / "old.parquet")
    assert [file.name for file in folder.iterdir()] == ["old.parquet"]
    assert (folder / "old.parquet").read_text() == "as it was"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "nothing"}, "target names the column 'nothing', but the columns are 'number'"),
        ({"weight": "nothing"}, "weight names the column 'nothing', but the columns are 'number'"),
        (
            {"columns": ["a"]},
            "columns names the column 'a', but the columns are 'number'",
        ),
        ({"columns": ["y"]}, "columns names 'y', which is the target or the weight"),
        ({"memory": "much"}, "memory must be a number of bytes or a text like '500MB'"),
        ({"memory": -1}, "memory must be a number of bytes or a text like '500MB'"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(files, options, message):
    with pytest.raises(ValueError, match=message):
        from_parquet(files, **{"target": "y"} | options)


def test_paths_without_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .* holds no .parquet file"):
        from_parquet(tmp_path, target="y")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing"):
        from_parquet(tmp_path / "nothing*", target="y")


def test_batches_that_are_none_are_refused():
    rows = pd.DataFrame({"a": [1, 2], "y": [0, 1]})
    with pytest.raises(TypeError, match="batches can be read only once; give a list"):
        from_batches(iter([rows]), target="y")
    with pytest.raises(TypeError, match="batches is a single DataFrame; give a list of tables"):
        from_batches(rows, target="y")
    with pytest.raises(TypeError, match="part 1 is a ndarray; batches must be pandas, polars or"):
        from_batches([rows, rows.to_numpy()], target="y")
    with pytest.raises(ValueError, match="there is no part with rows"):
        from_batches([], target="y")
    with pytest.raises(ValueError, match="there are no rows to learn from"):
        ShapeTreeClassifier().fit(from_batches([rows[:0]], target="y"))
    with pytest.raises(ValueError, match="there is no column to learn from besides the target"):
        from_batches([rows[["y"]]], target="y")
    with pytest.raises(TypeError, match="part 0: columns must have names that are strings"):
        from_batches([rows.rename(columns={"a": 1})], target="y")


def test_pyarrow_is_asked_for_where_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'needs pyarrow; install it with pip install "shapetree'):
        from_parquet("rows.parquet", target="y")


def test_progress_is_shown_for_every_pass(files, capsys):
    data = from_parquet(files, target="label")
    ShapeTreeClassifier(verbose=1, max_depth=2, resamples=0).fit(data)
    shown = capsys.readouterr().err
    for what in ("reading rows", "binning rows"):
        assert re.search(rf"shapetree, {what}: 100%.*rows/s", shown), what
    # Without pairs and dates, nothing else needs the rows' values.
    passes = set(re.findall(r"shapetree, ([a-z ]+): 100%.*?rows/s", shown))
    assert passes == {"reading rows", "binning rows"}


# Room


def test_columns_are_in_memory_up_to_the_budget():
    store = Store(25)
    columns = store.columns(10, [np.dtype(np.uint8)] * 4)
    assert [column.base is None for column in columns] == [True, True, False, False]
    for number, column in enumerate(columns):
        column[:] = number
    assert [column.tolist() for column in columns] == [[number] * 10 for number in range(4)]
    del columns, column
    gc.collect()
    assert all(column.base is None for column in store.columns(10, [np.dtype(np.uint8)] * 2))
    assert [len(column) for column in store.columns(0, [np.dtype(np.float64)])] == [0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [("1GB", 10**9), ("200 mb", 2 * 10**8), ("1.5GiB", 3 * 2**29), ("7", 7), ("2k", 2000), (0, 0)],
)
def test_budgets_can_be_written_as_people_do(given, expected):
    assert bytes_of(given) == expected


@pytest.mark.parametrize("given", ["", "GB", "-1GB", "1XB", 1.5, True, None])
def test_budgets_that_are_none_are_refused(given):
    with pytest.raises(ValueError, match="memory must be a number of bytes or a text like"):
        bytes_of(given)
