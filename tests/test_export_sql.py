"""Trees as SQL: three databases predict what the tree predicts."""

import math
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import UNRESTRAINED, make_tree
from exports import SPECS, case, chain, random_cases, reasons_of
from hypothesis import given
from hypothesis import strategies as st
from needs import path_in_postgres

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.export import SqlExpression, export_sql
from shapetree.export._dialects import DIALECTS

pa = pytest.importorskip("pyarrow")

TYPES = {
    "sqlite": {
        "float64": "REAL",
        "float32": "REAL",
        "int64": "INTEGER",
        "text": "TEXT",
        "grade": "INTEGER",
        "bool": "INTEGER",
    },
    "duckdb": {
        "float64": "DOUBLE",
        "float32": "FLOAT",
        "int64": "BIGINT",
        "text": "VARCHAR",
        "grade": "SMALLINT",
        "bool": "BOOLEAN",
    },
    "postgres": {
        "float64": "float8",
        "float32": "float4",
        "int64": "bigint",
        "text": "text",
        "grade": "smallint",
        "bool": "boolean",
    },
}
ARROW_TYPES = {
    "float64": pa.float64(),
    "float32": pa.float32(),
    "int64": pa.int64(),
    "text": pa.string(),
    "grade": pa.int16(),
    "bool": pa.bool_(),
}


# Databases


class Database:
    """A database with a table t, whose column "row" numbers its rows."""

    def __init__(self, dialect, run):
        self.dialect = dialect
        self.run = run

    def fill(self, kinds, columns):
        """Make the table anew."""
        name_of, types = DIALECTS[self.dialect].write_name, TYPES[self.dialect]
        declared = [f"{name_of(name)} {types[kind]}" for name, kind in kinds.items()]
        self.run("DROP TABLE IF EXISTS t")
        self.run(f"CREATE TABLE t ({', '.join(['row INTEGER', *declared])})")
        self.insert(kinds, columns)

    def select(self, expressions):
        """Values of the expressions by row; not in tuples if there is but one."""
        rows = self.run(f"SELECT {expressions} FROM t ORDER BY row")
        return [row[0] if len(row) == 1 else row for row in rows]


class Sqlite(Database):
    def __init__(self):
        self.connection = sqlite3.connect(":memory:")
        super().__init__("sqlite", lambda query: self.connection.execute(query).fetchall())

    def insert(self, kinds, columns):
        rows = zip(*columns.values(), strict=True)
        places = ", ".join("?" * (1 + len(kinds)))
        self.connection.executemany(
            f"INSERT INTO t VALUES ({places})", [(i, *row) for i, row in enumerate(rows)]
        )


class DuckDB(Database):
    def __init__(self):
        self.connection = pytest.importorskip("duckdb").connect()
        super().__init__("duckdb", lambda query: self.connection.execute(query).fetchall())

    def insert(self, kinds, columns):
        # Arrow knows both NULL and NaN.
        arrays = [
            pa.array(columns[name], ARROW_TYPES[kind], from_pandas=False)
            for name, kind in kinds.items()
        ]
        rows = pa.array(range(len(arrays[0])))
        names = [f"c{i}" for i in range(len(arrays) + 1)]
        self.connection.register("given", pa.table([rows, *arrays], names=names))
        self.connection.execute("INSERT INTO t SELECT * FROM given")


class Postgres(Database):
    def __init__(self, connection):
        self.connection = connection
        super().__init__("postgres", self._run)

    def _run(self, query):
        cursor = self.connection.execute(query)
        return cursor.fetchall() if cursor.description else None

    def insert(self, kinds, columns):
        rows = zip(*columns.values(), strict=True)
        with self.connection.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
            for i, row in enumerate(rows):
                copy.write_row((i, *row))


def as_postgres(*command):
    """The command, by somebody whom the server does not refuse to run for."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]


@pytest.fixture(scope="session")
def postgres():
    psycopg = pytest.importorskip("psycopg")
    initdb, server = path_in_postgres("initdb"), path_in_postgres("pg_ctl")
    if initdb is None or server is None:
        pytest.skip("needs PostgreSQL")
    is_root = os.name == "posix" and os.geteuid() == 0
    if is_root and (shutil.which("setpriv") is None or not has_user("postgres")):
        pytest.skip("PostgreSQL does not run for root, and there is no user for it")
    by = as_postgres if is_root else (lambda *command: list(command))
    # A short path, as that of a socket must be.
    folder = Path(subprocess.check_output(by("mktemp", "-d", "/tmp/pgXXXXXX"), text=True).strip())
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    control = by(server, "-D", str(folder / "data"), "-w", "-s")
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    initialise = [initdb, "-D", str(folder / "data"), "-E", "UTF8", "--locale=C", "-U", "tester"]
    subprocess.run(by(*initialise, "--auth=trust", "--no-sync"), **quiet)
    subprocess.run([*control, "-o", options, "-l", str(folder / "log"), "start"], **quiet)
    try:
        where = f"host={folder} user=tester dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            yield Postgres(connection)
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
        shutil.rmtree(folder, ignore_errors=True)


def has_user(name):
    import pwd

    return name in {user.pw_name for user in pwd.getpwall()}


@pytest.fixture(scope="session")
def sqlite():
    return Sqlite()


@pytest.fixture(scope="session")
def duck():
    return DuckDB()


@pytest.fixture(params=["sqlite", "duck", "postgres"])
def database(request):
    return request.getfixturevalue(request.param)


# What is predicted


def exported(model, database, **options):
    return export_sql(model, dialect=database.dialect, **options)


def as_tuples(rows):
    """Rows of a table in the form that `Database.select` gives."""
    return [tuple(row) if isinstance(row, list) else row for row in rows]


@pytest.mark.parametrize("name", SPECS)
def test_databases_predict_what_the_tree_predicts(name, database):
    this = case(name)
    database.fill(this.kinds, this.columns)
    found = database.select(exported(this.model, database))
    assert found == as_tuples(this.predictions)
    if database.dialect != "sqlite":  # which has no bools
        assert type(found[0]) is type(as_tuples(this.predictions)[0])
    if isinstance(this.model, ShapeTreeClassifier):
        shares = this.shares
        if this.model.n_outputs_ > 1:
            shares = [[share for some in row for share in some] for row in shares]
        found = database.select(exported(this.model, database, output="proba"))
        assert found == as_tuples(shares)


@examples(40)
@given(this=random_cases())
@pytest.mark.parametrize("name", ["sqlite", "duck", "postgres"])
def test_databases_follow_any_tree(request, name, this):
    database = request.getfixturevalue(name)
    database.fill(this.kinds, this.columns)
    assert database.select(exported(this.model, database)) == this.predictions


def test_very_deep_trees_fit_into_an_expression(database):
    this = chain(400)
    database.fill(this.kinds, this.columns)
    assert database.select(exported(this.model, database)) == this.predictions


def test_shape_functions_of_many_segments_fit_into_an_expression(database):
    X = np.arange(3000.0)[:, None]
    params = {**UNRESTRAINED, "max_depth": 1, "max_branches": 2}
    tree = make_tree(ShapeTreeRegressor, **params).fit(X, X[:, 0] % 2)
    assert len(tree.tree_.piece_upper) > 2500
    database.fill({"x0": "float64"}, {"x0": X[:, 0].tolist()})
    assert database.select(exported(tree, database)) == tree.predict(X).tolist()


def tree_of_many_categories(n_levels=200, max_depth=4):
    """A tree with many lists of categories, and its table."""
    rng = np.random.default_rng(0)
    levels = [f"level {i}" for i in range(n_levels)]
    X = pd.DataFrame({name: rng.choice(levels, 3000) for name in ("code", "k0")})
    X["c0"] = rng.random(3000).round(3)
    X.loc[::50, "code"], X.loc[::70, "c0"] = None, np.nan
    effects = dict(zip(levels, rng.normal(size=n_levels), strict=True))
    y = X["code"].map(effects).fillna(0) * X["c0"].fillna(1) - X["k0"].map(effects)
    return make_tree(ShapeTreeRegressor, **{**UNRESTRAINED, "max_depth": max_depth}).fit(X, y), X


def test_duckdb_looks_categories_up_once_per_feature_of_a_large_tree(duck):
    tree, X = tree_of_many_categories()
    expression = exported(tree, duck)
    assert " IN (" not in expression
    assert expression.count("'level 7'") == 2  # once for each of the two features
    # The table's columns may be named as the expression's own are.
    duck.fill(
        {"code": "text", "k0": "text", "c0": "float64"},
        {name: X[name].astype(object).where(X[name].notna(), None).tolist() for name in X},
    )
    assert duck.select(expression) == tree.predict(X).tolist()
    unknown = X.assign(k0=None)
    duck.run("UPDATE t SET k0 = 'of no level'")
    assert duck.select(expression) == tree.predict(unknown).tolist()


@pytest.mark.parametrize("name", SPECS)
def test_duckdb_predicts_the_same_from_lists(name, duck, monkeypatch):
    monkeypatch.setattr("shapetree.export._sql.MAX_CONDITIONS", 0)
    this = case(name)
    duck.fill(this.kinds, this.columns)
    assert duck.select(exported(this.model, duck)) == as_tuples(this.predictions)
    leaves = this.model.apply(this.table).tolist()
    assert duck.select(exported(this.model, duck, output="leaf")) == leaves


@examples(40)
@given(this=random_cases())
def test_duckdb_follows_any_tree_from_lists(duck, this):
    duck.fill(this.kinds, this.columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shapetree.export._sql.MAX_CONDITIONS", 0)
        expression = exported(this.model, duck)
    assert duck.select(expression) == this.predictions


@pytest.mark.parametrize("pairs", [0, 1])
def test_duckdb_plans_large_trees_in_a_short_time(duck, pairs):
    """A tree of some 2,000 leaves took half a second to plan, and one of 8,000 three seconds."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((20_000, 4)).round(4), columns=list("abcd"))
    X[X > 0.99] = np.nan
    params = {**UNRESTRAINED, "max_depth": 12, "min_samples_leaf": 5, "max_bins": 255}
    tree = make_tree(ShapeTreeRegressor, pairs=pairs, **params).fit(X, rng.random(20_000))
    assert tree.get_n_leaves() > 1500
    duck.fill(
        dict.fromkeys(X, "float64"),
        {name: [None if math.isnan(v) else v for v in X[name]] for name in X},
    )
    expression = exported(tree, duck)
    started = time.process_time()
    (first, *_) = duck.run(f"SELECT {expression} FROM t WHERE row = 0")
    assert time.process_time() - started < 1
    assert first == (tree.predict(X.iloc[:1])[0],)
    assert duck.select(expression) == tree.predict(X).tolist()


def test_small_trees_and_other_databases_keep_conditions():
    small, _ = tree_of_many_categories(20, max_depth=1)
    assert export_sql(small, dialect="duckdb").startswith("CASE")
    large, _ = tree_of_many_categories()
    expression = export_sql(large)
    assert expression.startswith("CASE")
    assert " IN (" in expression


@given(st.floats(allow_nan=False))
def test_sqlite_reads_literals_exactly(number):
    check_literals([number], Sqlite())


def check_literals(numbers, database):
    write = DIALECTS[database.dialect].write_number
    for start in range(0, len(numbers), 400):
        some = numbers[start : start + 400]
        (found,) = database.run(f"SELECT {', '.join(map(write, some))}")
        assert list(found) == some
        assert all(isinstance(number, float) for number in found)


def test_databases_read_literals_exactly(database):
    rng = np.random.default_rng(0)
    bits = struct.unpack("20000d", rng.bytes(160_000))
    numbers = [number for number in bits if math.isfinite(number)]
    numbers += rng.random(20_000).round(4).tolist()  # short decimals
    numbers += [2.0**k for k in range(-1074, 1024)] + [10.0**k for k in range(-323, 309)]
    numbers += [5e-324 * int(k) for k in rng.integers(1, 2**40, 2000)]  # subnormal
    numbers += [sys.float_info.max, sys.float_info.min, math.inf, -math.inf, 0.0, 2.0**53]
    check_literals(numbers, database)


# Columns of other types than in training


def small_tree(X, y, **params):
    return make_tree(ShapeTreeClassifier, **UNRESTRAINED, **params).fit(X, y)


def test_numbers_may_be_of_any_numeric_type(duck, postgres):
    tree = small_tree(pd.DataFrame({"x": [0.1, 0.3]}), ["low", "high"])
    for database, types in [
        (duck, ["DECIMAL(9, 3)", "UTINYINT", "HUGEINT", "FLOAT", "BOOLEAN"]),
        (postgres, ["numeric", "smallint", "real"]),
    ]:
        expression = exported(tree, database)
        for kind in types:
            query = f"SELECT {expression} FROM (SELECT CAST(1 AS {kind}) AS x) s"
            assert database.run(query) == [("high",)]
            query = f"SELECT {expression} FROM (SELECT CAST(NULL AS {kind}) AS x) s"
            assert database.run(query) == [(tree.predict(pd.DataFrame({"x": [np.nan]}))[0],)]


def test_sqlite_compares_text_as_text_and_numbers_as_numbers(sqlite):
    X = pd.DataFrame({"x": ["1", "b", None] * 10})
    tree = small_tree(X, ["one", "b", "missing"] * 10)
    expression = export_sql(tree)
    for declared, value, found in [
        ("TEXT", "'1'", "one"),
        ("INTEGER", "1", "missing"),
        ("", "1", "missing"),
        ("TEXT COLLATE NOCASE", "'B'", "missing"),
    ]:
        sqlite.run("DROP TABLE IF EXISTS s")
        sqlite.run(f"CREATE TABLE s (x {declared})")
        sqlite.run(f"INSERT INTO s VALUES ({value})")
        assert sqlite.run(f"SELECT {expression} FROM s") == [(found,)]


def test_categories_may_be_both_text_and_numbers_only_in_sqlite(sqlite):
    X = pd.DataFrame({"x": ["1", 1, 2.5, None] * 10}, dtype=object)
    tree = small_tree(X, ["text", "number", "half", "missing"] * 10, categorical_features=["x"])
    sqlite.run("DROP TABLE IF EXISTS s")
    sqlite.run("CREATE TABLE s (x)")
    sqlite.run("INSERT INTO s VALUES ('1'), (1), (1.0), (2.5), ('2.5'), (NULL)")
    found = [label for (label,) in sqlite.run(f"SELECT {export_sql(tree)} FROM s")]
    assert found == ["text", "number", "number", "half", "missing", "missing"]
    for dialect in ("duckdb", "postgres"):
        with pytest.raises(ValueError, match="both text and numbers"):
            export_sql(tree, dialect=dialect)


def test_enumerations_and_collations_do_not_matter(duck, postgres):
    X = pd.DataFrame({"x": ["a", "b", "c", None] * 10})
    tree = small_tree(X, ["A", "B", "C", "missing"] * 10, max_branches=4)
    duck.run("CREATE TYPE letters AS ENUM ('a', 'z')")
    duck.run("CREATE TABLE s (x letters); INSERT INTO s VALUES ('a'), ('z')")
    assert duck.run(f"SELECT {exported(tree, duck)} FROM s") == [("A",), ("missing",)]
    duck.run("DROP TABLE s")
    duck.run("CREATE TABLE s (x VARCHAR COLLATE NOCASE); INSERT INTO s VALUES ('A')")
    assert duck.run(f"SELECT {exported(tree, duck)} FROM s") == [("missing",)]
    postgres.run("DROP TYPE IF EXISTS letters CASCADE")
    postgres.run("CREATE TYPE letters AS ENUM ('a', 'z')")
    query = f"SELECT {exported(tree, postgres)} FROM (SELECT CAST('z' AS letters) AS x) s"
    assert postgres.run(query) == [("missing",)]


def test_categories_may_be_fractions_or_large(database):
    large = [2**53, 2**53 + 1, 7]
    for levels, kind in [([0.1, 2.5, math.inf], "float64"), (large, "int64")]:
        X = pd.DataFrame({"x": levels * 10})
        labels = ["a", "b", "c"]
        tree = small_tree(X, labels * 10, categorical_features=["x"])
        database.fill({"x": kind}, {"x": [*levels, 1]})
        assert database.select(exported(tree, database))[:3] == labels


# Dates


def tree_on_dates(zone):
    days = pd.Series(pd.date_range("2024-01-01", periods=400, freq="8h", tz=zone))
    return small_tree(pd.DataFrame({"day": days}), np.arange(400) // 100), days


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_dates_may_be_of_the_types_of_a_database(database, zone):
    tree, days = tree_on_dates(zone)
    late = days + pd.Timedelta("3h 59min 59.999s")
    shown = pd.concat([days, late, pd.Series([pd.NaT])], ignore_index=True)
    texts = ["NULL" if pd.isna(day) else f"'{day.isoformat(sep=' ')}'" for day in shown]
    kind = {"sqlite": "TEXT", "duckdb": "TIMESTAMP", "postgres": "timestamp"}[database.dialect]
    if zone is not None and database.dialect != "sqlite":
        kind = "TIMESTAMPTZ"
    database.run("DROP TABLE IF EXISTS t")
    database.run(f"CREATE TABLE t (row INTEGER, day {kind})")
    values = ", ".join(f"({i}, {text})" for i, text in enumerate(texts))
    database.run(f"INSERT INTO t VALUES {values}")
    expected = tree.predict(pd.DataFrame({"day": shown})).tolist()
    assert database.select(exported(tree, database)) == expected
    assert "seconds since" not in exported(tree, database)


def test_whole_days_may_be_dates(duck, postgres):
    tree, days = tree_on_dates(None)
    expected = tree.predict(pd.DataFrame({"day": days[:1]})).tolist()
    for database in (duck, postgres):
        query = f"SELECT {exported(tree, database)} FROM (SELECT DATE '2024-01-01' AS day) s"
        assert [value for (value,) in database.run(query)] == expected


def test_columns_may_be_expressions_if_they_are_marked(database):
    tree, days = tree_on_dates("UTC")
    seconds = [day.timestamp() for day in days]
    database.fill({"minutes": "float64"}, {"minutes": [number / 60 for number in seconds]})
    columns = {"day": SqlExpression("60.0 * minutes")}
    expected = tree.predict(pd.DataFrame({"day": days})).tolist()
    assert database.select(exported(tree, database, columns=columns)) == expected
    assert '"60.0 * minutes"' in export_sql(
        tree, dialect="duckdb", columns={"day": "60.0 * minutes"}
    )


def test_two_features_may_be_of_the_same_expression(sqlite):
    X = pd.DataFrame({"a": [0, 1, 0, 1] * 9, "b": [0, 0, 1, 1] * 9})
    tree = small_tree(X, [0, 1, 2, 3] * 9)
    columns = {"a": SqlExpression("n % 2"), "b": SqlExpression("n / 2")}
    sqlite.fill({"n": "int64"}, {"n": [0, 1, 2, 3]})
    assert sqlite.select(export_sql(tree, columns=columns)) == [0, 1, 2, 3]


# Leaves and reasons


@pytest.mark.parametrize("name", SPECS)
def test_databases_tell_leaves_and_reasons(name, database):
    this = case(name)
    database.fill(this.kinds, this.columns)
    leaves = this.model.apply(this.table).tolist()
    assert database.select(exported(this.model, database, output="leaf")) == leaves
    reasons = ["; ".join(each) for each in reasons_of(this.model, leaves)]
    assert database.select(exported(this.model, database, output="reasons")) == reasons


# Dialects whose databases are not at hand

OTHERS = ["bigquery", "snowflake", "tsql", "mysql", "oracle", "spark"]


@pytest.mark.parametrize("dialect", OTHERS)
@pytest.mark.parametrize(
    ("name", "output"),
    [
        *((name, "leaf") for name in SPECS),
        *product(
            ["two branches, text", "five branches, pairs, bools", "medians, many segments"],
            ["prediction", "proba", "reasons"],
        ),
    ],
)
def test_other_dialects_can_be_read(name, dialect, output):
    sqlglot = pytest.importorskip("sqlglot")
    this = case(name)
    if output == "proba" and isinstance(this.model, ShapeTreeRegressor):
        return
    used = {this.model.feature_names_in_[j] for j in this.model.tree_.used_features}
    # BigQuery has no columns of such names.
    columns = {name: f"c{i}" for i, name in enumerate(used)} if dialect == "bigquery" else {}
    expression = export_sql(this.model, dialect=dialect, output=output, columns=columns)
    parsed = sqlglot.parse_one(f"SELECT {expression} FROM t", dialect=dialect)
    used = set(columns.values()) or used
    found = {column.name for column in parsed.find_all(sqlglot.exp.Column)}
    found -= {"BINARY_DOUBLE_INFINITY", "BINARY", "Latin1_General_100_BIN2", "utf8mb4_0900_bin"}
    assert found <= used
    if name != "one leaf" and output == "leaf":
        assert found == used


@pytest.mark.parametrize("dialect", OTHERS)
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_dates_of_other_dialects_can_be_read(dialect, zone):
    sqlglot = pytest.importorskip("sqlglot")
    tree, _ = tree_on_dates(zone)
    parsed = sqlglot.parse_one(f"SELECT {export_sql(tree, dialect=dialect)} FROM t", dialect)
    assert any(column.name == "day" for column in parsed.find_all(sqlglot.exp.Column))


@pytest.mark.parametrize("dialect", OTHERS)
def test_other_dialects_translated_predict_what_the_tree_predicts(dialect, duck):
    """As far as the translator knows them, which leaves out what is said of text and of dates."""
    sqlglot = pytest.importorskip("sqlglot")
    X = pd.DataFrame({"a": np.arange(60.0), "b": np.tile(np.arange(4.0), 15)})
    X.loc[::7, "a"] = np.nan
    y = np.where(X["a"].fillna(20) > 30, X["b"] % 2, 2 + X["b"])
    tree = small_tree(X, y.astype(int), pairs=1, max_branches=3)
    values = {name: [None if v != v else v for v in X[name]] for name in X}
    duck.fill({"a": "float64", "b": "float64"}, values)
    expression = export_sql(tree, dialect=dialect)
    query = sqlglot.transpile(f"SELECT {expression} FROM t ORDER BY row", dialect, "duckdb")[0]
    query = query.replace("BINARY_DOUBLE_INFINITY", "CAST('inf' AS DOUBLE)")
    query = query.replace("AS BINARY_DOUBLE", "AS DOUBLE")
    assert [value for (value,) in duck.run(query)] == tree.predict(X).tolist()


@pytest.mark.parametrize(
    ("dialect", "written"),
    [
        ("bigquery", r"""'it\'s \\ "a"\n'"""),
        ("spark", r"""'it\'s \\ "a"\n'"""),
        ("snowflake", "'it''s \\\\ \"a\"\n'"),
        ("tsql", "N'it''s \\ \"a\"\n'"),
        ("oracle", "'it''s \\ \"a\"\n'"),
        ("mysql", "CONVERT(x'" + b'it\'s \\ "a"\n'.hex() + "' USING utf8mb4)"),
    ],
)
def test_texts_are_written_as_a_dialect_reads_them(dialect, written):
    assert DIALECTS[dialect].write_text('it\'s \\ "a"\n') == written


def test_oracle_lists_at_most_a_thousand_values():
    levels = [f"c{i}" for i in range(2500)]
    X = pd.DataFrame({"x": levels * 3})
    tree = small_tree(
        X, [0] * 1200 + [1] * 1300 + [0] * 1200 + [1] * 1300 + [0] * 1200 + [1] * 1300
    )
    lists = export_sql(tree, dialect="oracle").split(" IN (")[1:]
    assert lists
    assert max(text.split(")")[0].count(",") for text in lists) < 1000


# How it is written


def test_sql_reads_well():
    X = pd.DataFrame({"age": [1.0, 2, 3, 4] * 9})
    tree = small_tree(X, X["age"] > 1)
    assert export_sql(tree, dialect="postgres").splitlines() == [
        "/* It predicts age. */",
        "CASE",
        "  WHEN CAST(\"age\" AS float8) <= '1'::float8 THEN FALSE",
        "  ELSE TRUE",
        "END",
    ]
    assert export_sql(tree, output="proba", columns={"age": "t`x"}).splitlines() == [
        "/* It predicts age. */",
        "CASE",
        "  WHEN CAST(`t``x` AS REAL) <= 1.0 THEN 1.0",
        "  ELSE 0.0",
        "END AS `proba_False`,",
        "CASE",
        "  WHEN CAST(`t``x` AS REAL) <= 1.0 THEN 0.0",
        "  ELSE 1.0",
        "END AS `proba_True`",
    ]


def test_outputs_have_names(database):
    this = case("two classifications")
    database.fill(this.kinds, {name: values[:5] for name, values in this.columns.items()})
    expression = exported(this.model, database)
    query = f"SELECT y0, y1 FROM (SELECT {expression} FROM t) s"
    assert sorted(database.run(query)) == sorted(map(tuple, this.predictions[:5]))
    expression = exported(this.model, database, output="proba")
    names = [f"proba_y{i}_{label}" for i in (0, 1) for label in this.model.classes_[i]]
    quoted = ", ".join(map(DIALECTS[database.dialect].write_name, names))
    assert len(database.run(f"SELECT {quoted} FROM (SELECT {expression} FROM t) s")) == 5


@pytest.mark.parametrize("setting", ["on", "off"])
def test_backslashes_are_backslashes_whatever_the_server_is_set_to(postgres, setting):
    X = pd.DataFrame({"x": ["a\\", "b\\'"] * 10})
    tree = small_tree(X, ["c\\", "d\\'"] * 10)
    postgres.fill({"x": "text"}, {"x": ["a\\", "b\\'"]})
    postgres.run(f"SET standard_conforming_strings = {setting}")
    try:
        assert postgres.select(exported(tree, postgres)) == ["c\\", "d\\'"]
    finally:
        postgres.run("RESET standard_conforming_strings")


def test_a_column_that_is_not_there_is_an_error(database):
    database.fill({"other": "float64"}, {"other": [1.0]})
    tree = small_tree(pd.DataFrame({"x": [0.0, 1.0]}), [0, 1])
    with pytest.raises(Exception, match="x"):
        database.select(exported(tree, database))


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dialect": "db2"}, "dialect must be one of 'sqlite', 'duckdb', .*, got 'db2'"),
        ({"output": "leaves"}, "output must be one of 'prediction', 'proba', .*, got 'leaves'"),
        ({"columns": {"x": SqlExpression(" ")}}, "'x' an empty SqlExpression"),
        ({"columns": {"z": "y"}}, "columns names 'z', which is not a feature"),
        ({"columns": {"x": "nul\0"}}, "null character"),
        ({"columns": {"x": "\ud800"}}, "not valid Unicode"),
        ({"columns": {"x": ""}}, "without a name"),
    ],
)
def test_bad_options_are_explained(options, message):
    tree = small_tree(pd.DataFrame({"x": [0.0, 1.0]}), [0, 1])
    with pytest.raises(ValueError, match=message):
        export_sql(tree, **options)


def test_numbers_have_no_probabilities():
    tree = ShapeTreeRegressor(n_threads=1).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="classes"):
        export_sql(tree, output="proba")


def test_names_that_a_database_cannot_tell_apart_are_refused():
    X = pd.DataFrame({"a": [0, 1, 0, 1] * 9, "A": [0, 0, 1, 1] * 9})
    tree = small_tree(X, [0, 1, 2, 3] * 9)
    assert len(tree.tree_.used_features) == 2
    for dialect in ("sqlite", "duckdb"):
        with pytest.raises(ValueError, match="columns"):
            export_sql(tree, dialect=dialect)
        export_sql(tree, dialect=dialect, columns={"A": "b"})
    export_sql(tree, dialect="postgres")
