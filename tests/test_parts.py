"""Parts of the data: described, joined and encoded, they are the table that has all their rows."""

import datetime as dt

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shapetree.data._binning import bin_table, find_binning
from shapetree.data._labels import find_classes, number_classes, read_targets
from shapetree.data._parts import (
    Reading,
    empty_description,
    encode_features,
    errors_prefixed_by,
    join_descriptions,
    join_samples,
    read_part,
    read_part_targets,
    sample_part,
)
from shapetree.data._table import read_table

FEATURES = ("number", "whole", "text", "flag", "size", "day", "blank")


def all_rows(rng, n_rows):
    """A table with columns of all sorts, with missing values."""
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 99, n_rows)]
    columns = {
        "number": rng.normal(size=n_rows),
        "whole": rng.integers(0, 9, n_rows),
        "text": rng.choice(["b", "a", "c", "é"], n_rows),
        "flag": rng.random(n_rows) < 0.5,
        "size": rng.integers(0, 3, n_rows),
        "day": np.array(days, dtype=object),
        "blank": np.full(n_rows, None),
        "weight": rng.integers(0, 3, n_rows) / 2,
        "label": rng.choice(["no", "yes", "perhaps"], n_rows),
        "y": rng.normal(size=n_rows),
    }
    arrays = {}
    for name, values in columns.items():
        lacks = rng.random(n_rows) < 0.2 if name in FEATURES else np.zeros(n_rows, bool)
        if name == "size":
            codes = pa.array(values, pa.int32(), mask=lacks)
            arrays[name] = pa.DictionaryArray.from_arrays(codes, ["S", "M", "L"], ordered=True)
        else:
            arrays[name] = pa.array(values, mask=lacks)
    return pa.table(arrays)


def parts_of(rng, table):
    cuts = np.sort(rng.integers(0, len(table) + 1, rng.integers(0, 5)))
    return [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.booleans())
def test_parts_are_read_as_one_table_is(seed, n_rows, has_classes):
    rng = np.random.default_rng(seed)
    whole = all_rows(rng, n_rows)
    parts = parts_of(rng, whole)
    target = "label" if has_classes else "y"
    reading = Reading(FEATURES, (target,), "weight", "from_dtype", has_classes)
    found = join_descriptions(
        [describe_part(part, reading, f"part {i}") for i, part in enumerate(parts)]
    )
    expected = read_table(whole.select(FEATURES))
    targets = read_targets(whole[target].to_numpy(), has_classes)
    weights = whole["weight"].to_numpy()
    assert found.features == expected.features
    assert found.n_rows == n_rows
    assert found.n_weighted == np.count_nonzero(weights)
    if has_classes:
        classes, targets = find_classes(targets)
        assert_array_equal(found.classes[0], classes[0])
    else:
        assert (found.least[0], found.greatest[0]) == (targets.min(), targets.max())
    encoded = [encode_part(part, reading, found) for part in parts]
    tables, their_targets, their_weights = zip(*encoded, strict=True)
    for j, column in enumerate(expected.columns):
        assert_array_equal(np.concatenate([table.columns[j] for table in tables]), column)
    assert_array_equal(np.concatenate(their_targets), targets)
    assert_array_equal(np.concatenate(their_weights), weights)


@pytest.mark.parametrize("most", [40, 10**6])
def test_parts_are_binned_as_one_table_is(monkeypatch, most):
    for module in ("shapetree.data._binning", "shapetree.data._parts"):
        monkeypatch.setattr(f"{module}.MAX_BINNED_ROWS", most)
    rng = np.random.default_rng(0)
    whole = all_rows(rng, 300)
    weights = rng.random(300)
    expected = bin_table(read_table(whole.select(FEATURES)), weights, 20, 1)
    reading = Reading(FEATURES, ("label",), None, "from_dtype", has_classes=True)
    parts = [whole.slice(0, 50), whole.slice(50, 0), whole.slice(50, 250)]
    found = join_descriptions([describe_part(part, reading, "a part") for part in parts])
    tables = [encode_part(part, reading, found)[0] for part in parts]
    firsts = np.cumsum([0, *(table.n_rows for table in tables)])
    sample = join_samples(
        [sample_part(part, int(first), 300) for part, first in zip(tables, firsts, strict=False)]
    )
    table, its_weights = sample.table(found.features), weights[sample.rows]
    binning = find_binning(table, None, len(sample.rows) < 300, its_weights, 20, 1)
    assert (len(sample.rows) < 300) == (most == 40)
    for j, feature in enumerate(expected.features):
        assert vars(feature).keys() == vars(binning.features[j]).keys()
        for name, value in vars(feature).items():
            assert_array_equal(getattr(binning.features[j], name), value)
    for table, first in zip(tables, firsts, strict=False):
        bins = [np.empty(table.n_rows, dtype) for dtype in binning.dtypes]
        binning.bin(table, bins, 1)
        for j, column in enumerate(bins):
            rows = slice(first, first + table.n_rows)
            assert_array_equal(column, expected.columns.array(j)[rows])


def describe_part(part, reading, name):
    """What a part holds."""
    with errors_prefixed_by(name):
        if len(part) == 0:
            return empty_description(reading)
        frame = nw.from_native(part, eager_only=True)
        X, about = frame.select(reading.features).to_native(), read_part_targets(frame, reading)
        return read_part(X, *about, reading, name)[1]


def encode_part(part, reading, found):
    """The features, targets and weights of a part, by what all parts hold."""
    frame = nw.from_native(part, eager_only=True)
    targets, weights = read_part_targets(frame, reading)
    if found.classes is not None and len(targets):
        targets = number_classes(targets, found.classes)
    return (
        encode_features(frame.select(reading.features).to_native(), found.features),
        targets,
        weights,
    )


def describe(*frames, **options):
    settings = {"weight": None, "categorical_features": "from_dtype", "has_classes": True}
    reading = Reading(("a",), ("y",), **settings | options)
    return join_descriptions(
        [describe_part(frame, reading, f"part {i}") for i, frame in enumerate(frames)]
    )


def test_parts_that_do_not_fit_are_named():
    texts = pd.DataFrame({"a": ["x", "y"], "y": [0, 1]})
    numbers = pd.DataFrame({"a": [1.5, 2.0], "y": [0, 1]})
    blank = pd.DataFrame({"a": [None, None], "y": [0, 1]})
    with pytest.raises(ValueError, match=r"part 1: column 'a' holds numbers, but categories in"):
        describe(texts, numbers)
    with pytest.raises(ValueError, match=r"part 2: column 'a' holds categories, but numbers in"):
        describe(blank, numbers, texts)
    assert describe(blank, texts).features[0].categories == ("x", "y")
    assert describe(numbers, blank).features[0].categories is None


def test_ordered_categories_must_be_the_same():
    def part(*order):
        sizes = pd.Categorical(["S", "M"], order, ordered=True)
        return pd.DataFrame({"a": sizes, "y": [0, 1]})

    assert describe(part("S", "M"), part("S", "M")).features[0].categories == ("S", "M")
    with pytest.raises(ValueError, match=r"part 1: column 'a' has other categories, or another or"):
        describe(part("S", "M"), part("M", "S"))


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        ({"y": [0, None]}, {}, "column 'y' lacks 1 of 2 values; leave those rows out"),
        ({"y": [0.5, np.inf]}, {"has_classes": False}, "contains infinity"),
        ({"w": [1, -1]}, {"weight": "w"}, "column 'w' holds weights that are negative"),
        ({"w": ["a", "b"]}, {"weight": "w"}, "column 'w' is to hold weights, but holds no numbers"),
        ({"w": [1, None]}, {"weight": "w"}, "column 'w' lacks 1 of 2 values"),
        ({"a": [[1], [2]]}, {}, "Column 'a' holds"),
    ],
)
def test_what_is_wrong_in_a_part_is_said_with_its_name(column, options, message):
    good = {"a": [1.0, 2.0], "y": [0, 1], "w": [1, 1]}
    with pytest.raises((ValueError, TypeError), match=f"^part 1: .*{message}"):
        describe(pa.table(good), pa.table(good | column), **options)


def test_more_rows_than_can_be_numbered_are_refused(monkeypatch):
    monkeypatch.setattr("shapetree.data._parts.MAX_ROWS", 3)
    frame = pd.DataFrame({"a": [1, 2], "y": [0, 1]})
    with pytest.raises(ValueError, match="at most 3 are supported"):
        describe(frame, frame)
