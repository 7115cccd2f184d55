"""Dates as features: read from all kinds of tables, said as dates, and true when read back."""

import datetime as dt
import json
import re
import subprocess

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from data import make_tree
from needs import needs
from numpy.testing import assert_array_equal

from shapetree import (
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    SqlExpression,
    export_dot,
    export_html,
    export_js,
    export_onnx,
    export_python,
    export_sql,
    export_text,
    from_json,
    plot_node,
    plot_tree,
)
from shapetree.cli._column_types import as_dates
from shapetree.data._moments import read_moment, readable_threshold, write_moment
from shapetree.data._table import encode_table, read_table
from shapetree.drawing._ticks import round_dates
from shapetree.tree._digits import beyond
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._view import view_of

KINDS = ("day", "time", "utc")


def rows_of(kind, n_rows=1500, seed=0):
    """Dates with some missing, a number, and classes that depend on both."""
    rng = np.random.default_rng(seed)
    when = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 10**8, n_rows), unit="s")
    x = rng.normal(size=n_rows)
    y = ((when > "2022-03-05 14:30") & (when < "2023-08-01")).astype(int) + (x > 1)
    dates = pd.Series(when)
    if kind == "day":
        dates = dates.dt.normalize()
    elif kind == "utc":
        dates = dates.dt.tz_localize("Europe/Berlin", ambiguous=True, nonexistent="shift_forward")
    dates[::40] = pd.NaT
    return pd.DataFrame({"when": dates, "x": x}), y


def tree_of(kind, **parameters):
    X, y = rows_of(kind)
    return make_tree(ShapeTreeClassifier, max_depth=3, random_state=0, **parameters).fit(X, y), X, y


def seconds_in(X):
    """What a column of pandas dates is as numbers."""
    dates = X["when"] if X["when"].dt.tz is None else X["when"].dt.tz_convert(None)
    return ((dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(1, "s")).to_numpy()


# --- reading ---

DATES = [dt.datetime(2024, 3, 5, 14, 30, 12, 500000), None, dt.datetime(1960, 1, 2)]
DAYS = [None if date is None else date.date() for date in DATES]
ZONED = pd.Series(DATES).dt.tz_localize("Europe/Berlin")
SECONDS = [1709649012.5, np.nan, -315532800.0]


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (pd.DataFrame({"when": pd.Series(DATES)}), "time"),
        (pd.DataFrame({"when": pd.Series(DATES, dtype=object)}), "time"),
        (pd.DataFrame({"when": pd.Series(DATES, dtype="timestamp[us][pyarrow]")}), "time"),
        (pd.DataFrame({"when": DAYS}), "day"),
        (pd.DataFrame({"when": pd.Series(DATES).dt.normalize()}), "day"),
        (pd.DataFrame({"when": ZONED}), "utc"),
        (pd.DataFrame({"when": ZONED.astype(object)}), "utc"),
        (pl.DataFrame({"when": DATES}), "time"),
        (pl.DataFrame({"when": pl.Series(DATES, dtype=pl.Datetime("ns"))}), "time"),
        (pl.DataFrame({"when": DAYS}), "day"),
        (pl.DataFrame({"when": pl.Series(DATES).dt.replace_time_zone("Europe/Berlin")}), "utc"),
        (pa.table({"when": pa.array(DATES)}), "time"),
        (pa.table({"when": pa.array(DAYS)}), "day"),
        (pa.table({"when": pa.array(DAYS, pa.date64())}), "day"),
        (pa.table({"when": pa.Array.from_pandas(ZONED)}), "utc"),
        (np.array(DATES, "M8[ms]")[:, None], "time"),
        (np.array(DAYS, "M8[D]")[:, None], "day"),
        (np.array(DATES, object)[:, None], "time"),
    ],
)  # fmt: skip
def test_dates_of_all_kinds_are_seconds(table, kind):
    read = read_table(table)
    expected = np.array(SECONDS)
    if kind == "day":
        expected = np.floor(expected / 86400) * 86400
    elif kind == "utc":
        expected -= 3600
    assert read.features[0].date == kind
    np.testing.assert_array_equal(read.columns[0], expected)
    np.testing.assert_array_equal(encode_table(table, read.features).columns[0], expected)


@pytest.mark.parametrize("now", [[1.0], ["2024-03-05"], [True], pd.Categorical(["a"])])
def test_what_is_no_date_now_is_an_error(now):
    tree, _, _ = tree_of("time")
    with pytest.raises(ValueError, match=r"'when' held dates .* in training, but holds"):
        tree.predict(pd.DataFrame({"when": now, "x": [0.0]}))
    with pytest.raises(ValueError, match="'when' held dates"), pytest.warns(match="names"):
        tree.predict(np.zeros((1, 2)))


def test_dates_where_training_had_numbers_are_an_error():
    X, y = rows_of("time")
    tree = ShapeTreeClassifier(max_depth=2).fit(X.assign(when=seconds_in(X)), y)
    with pytest.raises(ValueError, match=r"'when' holds dates where numbers are expected"):
        tree.predict(X)


def test_a_time_zone_must_stay():
    tree, X, _ = tree_of("utc")
    with pytest.raises(ValueError, match=r"'when' held moments with a time zone .* has none now"):
        tree.predict(X.assign(when=X["when"].dt.tz_localize(None)))
    expected = tree.predict(X)
    moved = X.assign(when=X["when"].dt.tz_convert("Asia/Tokyo"))
    assert (tree.predict(moved) == expected).all()
    with pytest.raises(ValueError, match="with and without a time zone"):
        read_table(pd.DataFrame({"when": pd.Series([DATES[0], ZONED[0]], dtype=object)}))
    with pytest.raises(TypeError, match="'when' holds dates and other values"):
        read_table(pd.DataFrame({"when": pd.Series([DATES[0], "soon"], dtype=object)}))


@pytest.mark.parametrize("nothing", [[None], [np.nan], [pd.NaT]])
def test_a_column_that_lacks_every_date_is_welcome(nothing):
    tree, X, _ = tree_of("day")
    expected = tree.predict(X.iloc[:1].assign(when=[pd.NaT], x=[0.0]))
    assert tree.predict(pd.DataFrame({"when": nothing, "x": [0.0]})) == expected


def test_dates_are_split_on_alone():
    X, y = rows_of("day")
    X["z"] = np.random.default_rng(1).normal(size=len(X))
    for pairs in ("auto", "all", 1):
        view = view_of(fitted_tree(ShapeTreeClassifier(max_depth=2, pairs=pairs).fit(X, y)))
        assert all(
            len(node.features) < 2 or "when" not in node.feature_words for node in view.nodes
        )
    with pytest.raises(ValueError, match="pairs holds 'when', a column of dates"):
        ShapeTreeClassifier(pairs=[("when", "x")]).fit(X, y)


# --- words ---


@pytest.mark.parametrize("kind", KINDS)
def test_moments_read_back(kind):
    rng = np.random.default_rng(0)
    for seconds in rng.normal(size=1000) * 10.0 ** rng.integers(-9, 11, 1000):
        for number in (float(seconds), float(np.floor(seconds)), float(86400 * (seconds // 86400))):
            assert read_moment(write_moment(number, kind)) == number


def test_thresholds_are_as_readable_as_they_can_be():
    rng = np.random.default_rng(1)
    for _ in range(1000):
        low = rng.normal() * 1e9
        high = low + 10.0 ** rng.uniform(-6, 7)
        threshold = readable_threshold((low + high) / 2, low, high)
        assert low <= threshold < high
        for step in (86400, 3600, 60, 1):  # the first that has a multiple between the two
            if np.floor(high / step) > np.floor(low / step):
                assert np.nextafter(threshold, np.inf) % step == 0
                break


def test_numbers_to_reach_are_reached():
    rng = np.random.default_rng(2)
    for origin, number in 1e9 * rng.normal(size=(500, 2)):
        for text in beyond(number, origin, "time"):
            reached = read_moment(text)
            assert reached >= number if number > origin else reached <= number
            assert abs(reached - number) <= abs(number - origin) / 50


MOMENT = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?: UTC)?"


def holding(words, seconds):
    """Which moments satisfy words such as "< 2024-03-05 or [2024-04-01, 2024-04-03)"."""
    held = np.zeros(len(seconds), dtype=bool)
    for part in words.split(" or "):
        if part == "missing":
            held |= np.isnan(seconds)
        elif part == "any date":
            held |= ~np.isnan(seconds)
        elif found := re.fullmatch(rf"([<≥]) ({MOMENT})", part):
            at = read_moment(found[2])
            held |= seconds < at if found[1] == "<" else seconds >= at
        else:
            low, high = re.fullmatch(rf"\[({MOMENT}), ({MOMENT})\)", part).groups()
            held |= (seconds >= read_moment(low)) & (seconds < read_moment(high))
    return held


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"refine": "tao"}, {"max_bins": None}, {"max_bins": 16}])
def test_what_is_said_of_a_split_is_true_of_every_row(kind, options):
    tree, X, _ = tree_of(kind, **options)
    path, seconds = tree.decision_path(X).toarray().astype(bool), seconds_in(X)
    view, text, n_seen = view_of(fitted_tree(tree)), export_text(tree), 0
    for node in view.nodes:
        if node.feature_words != "when":
            continue
        table = tree.shape_table(node.number)
        for child in node.children:
            rows = table[table["child"] == child]
            said = " or ".join(rows["dates"])
            here = path[:, node.number]
            if node.saw_missing or "missing" not in said:
                assert (holding(said, seconds)[here] == path[here, child]).all()
                n_seen += 1
            assert all(part in text for part in rows["dates"])
            if kind != "utc":
                assert ":" not in said or kind == "time"
        if "n_rows" in table:
            assert table["n_rows"].sum() == node.n_rows
    assert n_seen > 1
    assert not re.search(r"\d{9}", text + export_dot(tree) + "".join(map(str, tree.rules())))


@pytest.mark.parametrize("kind", KINDS)
def test_reasons_and_flips_are_true(kind):
    tree, X, _ = tree_of(kind)
    predicted = tree.predict(X)
    n_flips = 0
    for i, explanation in enumerate(tree.explain(X[:200])):
        assert not re.search(r"\d{9}", f"{explanation} {explanation.flip}")
        row = X.iloc[i].to_dict()
        assert all(condition.holds(row) for condition in explanation.conditions)
        changed = X.iloc[[i]].copy()
        for change in explanation.flip.changes:
            if change.feature == "x":
                changed["x"] = float(change.shown)
                continue
            moment = pd.Timestamp(change.shown.removesuffix(" UTC"))
            changed["when"] = [moment.tz_localize("UTC") if kind == "utc" else moment]
            was = "missing" if pd.isna(row["when"]) else write_moment(seconds_in(X)[i], kind)
            assert str(change) == f"when were {change.shown} instead of {was}"
            assert kind != "day" or len(change.shown) == 10
            n_flips += 1
        assert tree.predict(changed)[0] != predicted[i]
    assert n_flips > 20


def test_notes_say_dates():
    tree, X, _ = tree_of("day")
    row = X.iloc[[1]].assign(when=pd.Timestamp("2050-06-01"))
    (explanation,) = tree.explain(row)
    first, last = X["when"].min(), X["when"].max()
    assert f"when = 2050-06-01 is outside the range {first:%F} to {last:%F} seen" in str(
        explanation
    )


def test_marks_of_an_axis_are_beginnings():
    for length in 10.0 ** np.linspace(0.7, 10.5, 60):
        marks = round_dates(1.7e9, 1.7e9 + length, 6)
        assert 1 <= len(marks) <= 6
        assert all(1.7e9 <= at <= 1.7e9 + length for at, _ in marks)
        assert len({label for _, label in marks}) == len(marks)
        for at, label in marks:
            full = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=at)
            assert label in full.isoformat(" ")


# --- files, programs, pictures ---


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_file_keeps_dates(kind):
    tree, X, _ = tree_of(kind)
    text = tree.to_json()
    assert json.loads(text)["features"][0]["kind"] == {"day": "date"}.get(kind, kind)
    read = from_json(text)
    assert (read.predict_proba(X) == tree.predict_proba(X)).all()
    assert export_text(read) == export_text(tree)
    assert read.to_json() == text


@pytest.mark.parametrize("kind", KINDS)
def test_python_source_takes_dates_and_seconds(kind):
    tree, X, _ = tree_of(kind)
    source = export_python(tree)
    assert "seconds since 1970-01-01 00:00 UTC" in source
    module = {}
    exec(source, module)
    seconds, expected = seconds_in(X), tree.predict(X).tolist()
    assert [module["predict"](row) for row in X.to_dict("records")] == expected
    numbers = X.assign(when=seconds).to_dict("records")
    assert [module["predict"](row) for row in numbers] == expected


def test_other_programs_take_seconds(tmp_path):
    tree, X, _ = tree_of("utc")
    expected = tree.predict(X)
    numbers = X.assign(when=seconds_in(X))
    duckdb = pytest.importorskip("duckdb")
    seconds = {"when": SqlExpression('"when"')}
    query = f"SELECT {export_sql(tree, dialect='duckdb', columns=seconds)} FROM numbers"
    assert (duckdb.query(query).fetchnumpy().popitem()[1] == expected).all()
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(export_onnx(tree).SerializeToString())
    names = [given.name for given in session.get_inputs()]
    columns = [numbers[[name]].to_numpy(np.float64) for name in numbers.columns]
    feed = dict(zip(names, columns, strict=True)) if len(names) > 1 else {
        names[0]: numbers.to_numpy(np.float64)
    }  # fmt: skip
    assert (session.run(None, feed)[0].ravel() == expected).all()
    with pytest.raises(ValueError, match="'when' holds dates; use 'float64'"):
        export_onnx(tree, dtype="float32")


@needs("Node.js")
def test_javascript_takes_dates_and_seconds(tmp_path):
    tree, X, _ = tree_of("time")
    X = X[X["when"].notna()][:100]
    export_js(tree, tmp_path / "tree.mjs")
    rows = X.assign(when=seconds_in(X)).to_dict("records")
    script = (
        f"import {{ predict }} from './tree.mjs'; const rows = {json.dumps(rows)};"
        "const dated = rows.map((row) => ({ ...row, when: new Date(1000 * row.when) }));"
        "console.log(JSON.stringify([rows.map(predict), dated.map(predict)]));"
    )
    (tmp_path / "run.mjs").write_text(script)
    result = subprocess.run(["node", tmp_path / "run.mjs"], capture_output=True, check=True)
    assert json.loads(result.stdout) == [tree.predict(X).tolist()] * 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", ["auto", "log", "quantile"])
def test_pictures_and_pages_show_dates(kind, scale):
    plt = pytest.importorskip("matplotlib.pyplot")
    tree, X, _ = tree_of(kind)
    axes = plot_tree(tree, scale=scale, row=X.iloc[1])
    plot_node(tree, 0, scale=scale)
    texts = " ".join(text.get_text() for text in axes.figure.findobj(plt.Text))
    assert "2022" in texts
    assert not re.search(r"\d{7}", texts)
    plt.close("all")
    page = export_html(tree, scale=scale)
    data = json.loads(re.search(r'id="tree-data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["features"][0]["date"] == kind
    for node in data["nodes"]:
        if node.get("features") == [0]:
            labels = [label for _, label, *_ in node["density"]["thresholds"]]
            labels += [label for _, label in node["density"]["ends"] + node["density"]["ticks"]]
            assert all(re.match(r"\d{4}|\d\d-\d\d \d\d:\d\d", label) for label in labels)
            assert not re.search(r"\d{7}", " ".join(node["branchWords"]))


def test_numbers_are_learnt_from_dates():
    X, _ = rows_of("time")
    X = X[X["when"].notna()]
    y = X["when"].dt.year.to_numpy(float)
    tree = ShapeTreeRegressor(max_depth=1, max_branches=4, max_bins=None).fit(X, y)
    assert "≥ 2024-01-01" in export_text(tree)
    assert tree.score(X, y) > 0.99


# --- the command ---


@pytest.mark.parametrize(
    ("texts", "dates"),
    [
        (["2024-3-5", "2024/03/06 7:05"], [(2024, 3, 5), (2024, 3, 6, 7, 5)]),
        (["5.3.2024", "06.03.2024"], [(2024, 3, 5), (2024, 3, 6)]),
        (["03/05/2024", "03/16/2024"], [(2024, 3, 5), (2024, 3, 16)]),
        (["05/03/2024", "16/03/2024"], [(2024, 3, 5), (2024, 3, 16)]),
        (["05/03/2024", "06/03/2024"], None),
        (["05/13/2024", "13/05/2024"], None),
        (["2024-02-30"], None),
        (["2024-03-05T10:00:00Z", "2024-03-05 11:30"], None),
        (["soon"], None),
    ],
)
def test_dates_in_files(texts, dates):
    read = as_dates(pa.array(texts))
    if dates is None:
        assert read is None
    else:
        assert read.to_pylist() == [dt.datetime(*date) for date in dates]


def test_time_zones_in_files():
    texts = ["2024-03-05T10:00:00.25Z", "2024-03-05 11:30+01:30", "2024-03-05 10:00 UTC"]
    at = dt.datetime(2024, 3, 5, 10, tzinfo=dt.UTC)
    assert as_dates(pa.array(texts)).to_pylist() == [at.replace(microsecond=250000), at, at]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_a_few_rows_with_time_zones_are_read_like_many(zone, unit):
    rng = np.random.default_rng(0)
    whens = pd.Timestamp("1969-12-01") + pd.to_timedelta(rng.integers(-(10**16), 10**16, 300), "ns")
    X = pd.DataFrame({"when": whens.as_unit(unit).tz_localize("UTC").tz_convert(zone)})
    X.iloc[::7] = pd.NaT
    model = ShapeTreeClassifier(max_depth=3, resamples=0).fit(X, whens.day % 3)
    leaves = model.apply(X)
    assert len(set(leaves)) > 2
    assert_array_equal([model.apply(X.iloc[[i]])[0] for i in range(300)], leaves)
