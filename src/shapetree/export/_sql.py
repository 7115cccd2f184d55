"""A tree or a forest as an SQL expression."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from shapetree._files import PathLike, write_file
from shapetree.data._table import FeatureInfo
from shapetree.export._dialects import DIALECTS, Dialect
from shapetree.export._lists import ListWriter
from shapetree.export._routes import remark, require_distinct, used_features, ways_by_branch
from shapetree.export._sql_writer import SqlWriter
from shapetree.tree._fitted import FittedForest, TreeOrForest
from shapetree.tree._from_estimator import HoldsModel, fitted_model
from shapetree.tree._view import TreeView, views_of

OUTPUTS = ("prediction", "proba", "leaf", "reasons")
# DuckDB plans for seconds where there are thousands of conditions or categories. Trees with more of
# them than this are written as lists, which are not made to be read.
MAX_CONDITIONS = 1000
# Sums of more terms are deeper than SQLite and DuckDB allow.
MAX_TREES = 900


class SqlExpression(str):
    """An SQL expression that gives a feature's values, where `export_sql` takes a column.

    Examples
    --------
    >>> from shapetree.export import SqlExpression
    >>> columns = {"age": SqlExpression("date_part('year', now()) - birth_year"), "sex": "gender"}
    """

    __slots__ = ()


def export_sql(
    estimator: HoldsModel,
    path: PathLike | None = None,
    *,
    dialect: str = "sqlite",
    output: str = "prediction",
    columns: Mapping[str, str] | None = None,
) -> str:
    """Write a fitted tree or forest as an SQL expression, for use in a query.

    Every row gets exactly what the estimator predicts, if the table's columns have the names of the
    features and hold the same kind of values as in training: numbers of any type, text or an
    enumeration, or bools. NULL and NaN are missing. PostgreSQL does not take bools for numbers or
    numbers for bools; cast such columns. A column of dates is one of the database's own types for
    dates and moments; in SQLite, text such as "2024-12-31 23:59:59" or seconds since 1970-01-01.
    Databases may return rows in any order; ask for one with ORDER BY.

    Tests run the expressions in SQLite, DuckDB and PostgreSQL. For the other dialects they only
    check that the expressions can be read. There, sums of numbers near the largest ones may be
    refused as overflows, T-SQL and MySQL have no infinite numbers, T-SQL ignores spaces at the end
    of text, and Oracle takes empty text for a missing value.

    For DuckDB, the expression of a tree of more than 1,000 conditions and categories is a subquery
    with lists of the tree's tests, which DuckDB 1.3 or later plans in a small part of the time. It
    has no place where DuckDB takes no subqueries, such as in a generated column.

    The expression of a forest adds up what its trees predict, in their order, and divides by their
    number. That of a predicted class is a subquery, as it compares the means of all classes;
    Snowflake, Oracle and Spark allow no such subquery, so there is only "proba" for them. Forests
    of few and small trees make expressions that databases can plan: their length is that of all
    trees together.

    Parameters
    ----------
    estimator : ShapeTreeClassifier, ShapeTreeRegressor, ShapeForestClassifier or \
            ShapeForestRegressor
        A fitted estimator.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written.
    dialect : {"sqlite", "duckdb", "postgres", "bigquery", "snowflake", "tsql", "mysql", "oracle", \
            "spark"}, default="sqlite"
        The database that the expression is for; "tsql" is that of SQL Server.
    output : {"prediction", "proba", "leaf", "reasons"}, default="prediction"
        "prediction" is one expression for the predicted class or number; if there are several
        targets, one for each, separated by commas and named "y0", "y1", … "proba" is an expression
        for the probability of each class, named `proba_` and the class; if there are several
        targets, `proba_y0_` and the class, and so on. "leaf" is the number of the leaf, as `apply`
        gives it, and "reasons" are the names of the features on the path to it, from the root on,
        with semicolons between them. For a forest there is a "leaf" of each tree, named "leaf_0",
        "leaf_1", …, and no "reasons".
    columns : dict, optional
        Names of columns by feature, where they differ. A `SqlExpression` is written as it is, in
        parentheses; that of a date gives seconds since 1970-01-01 00:00 UTC, as
        ``epoch(…)`` does in DuckDB. All other names are quoted.

    Returns
    -------
    str
        The expression, or expressions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> from shapetree.export import export_sql
    >>> iris = load_iris(as_frame=True)
    >>> species = iris.target_names[iris.target]
    >>> tree = ShapeTreeClassifier(max_depth=1).fit(iris.data, species)
    >>> expression = export_sql(tree, dialect="duckdb", columns={"petal width (cm)": "width"})
    >>> print(f"SELECT {expression} AS species FROM flowers")
    SELECT CASE
      WHEN CAST("width" AS DOUBLE) <= 0.8e0 THEN 'setosa'
      WHEN CAST("width" AS DOUBLE) > 1.75e0 AND CAST("width" AS DOUBLE) <= CAST('inf' AS DOUBLE)
      THEN 'virginica'
      ELSE 'versicolor'
    END AS species FROM flowers
    """
    _require_one_of("dialect", dialect, tuple(DIALECTS))
    _require_one_of("output", output, OUTPUTS)
    model = fitted_model(estimator)
    if output == "proba" and model.shown_classes is None:
        raise ValueError("output='proba' needs a model that predicts classes")
    if isinstance(model, FittedForest):
        _check_forest(model, DIALECTS[dialect], output)
    writer = _writer_for(model, DIALECTS[dialect], columns or {})
    text = writer.output(model, output)
    said = remark(model, has_dates=True).replace("/*", "/ *").replace("*/", "* /")
    if said:
        text = f"/* It {said}. */\n{text}"
    write_file(path, text, "the SQL expression")
    return text


def _require_one_of(parameter: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        shown = ", ".join(map(repr, allowed))
        raise ValueError(f"{parameter} must be one of {shown}, got {value!r}")


def _check_forest(model: TreeOrForest, dialect: Dialect, output: str) -> None:
    """Refuse what cannot be written of a forest."""
    if output == "reasons":
        raise ValueError("output='reasons' needs a single tree: a forest has a path for each tree")
    if len(model.trees) > MAX_TREES:
        raise ValueError(
            f"a forest of {len(model.trees)} trees makes too deep an expression; set n_estimators "
            f"to at most {MAX_TREES}"
        )
    if output == "prediction" and model.shown_classes is not None and not dialect.one_row:
        raise ValueError(
            f"{dialect.name} cannot compare the means of all classes in one expression; use "
            "output='proba', and choose the class whose probability is greatest"
        )


def _columns(model: TreeOrForest, names: Mapping[str, str], dialect: Dialect) -> dict[str, str]:
    """The values of each feature that the model reads: a quoted column, or an expression."""
    known = [feature.name for feature in model.shown_features]
    for name in names:
        if name not in known:
            raise ValueError(f"columns names {name!r}, which is not a feature of the tree")
    features = used_features(model)
    used = {f.name: names.get(f.name, f.name) for f in features}
    plain = [name for name in used.values() if not isinstance(name, SqlExpression)]
    told_apart = [_lower(name) if dialect.ignores_case else name for name in plain]
    require_distinct(told_apart, f"{dialect.name} could not tell them apart; use columns")
    return {feature.name: _values_of(feature, used[feature.name], dialect) for feature in features}


def _values_of(feature: FeatureInfo, column: str, dialect: Dialect) -> str:
    """A feature's values: numbers as doubles, everything else as the column holds it."""
    if isinstance(column, SqlExpression):
        if not column.strip():
            raise ValueError(f"columns gives {feature.name!r} an empty SqlExpression")
        values = f"({column})"
    else:
        values = dialect.write_name(column)
        if feature.is_date:
            return (dialect.zoned if feature.date == "utc" else dialect.moment).format(values)
    return values if feature.is_categorical else dialect.number.format(values)


def _lower(name: str) -> str:
    return name.translate(str.maketrans(string.ascii_uppercase, string.ascii_lowercase))


def _writer_for(model: TreeOrForest, dialect: Dialect, names: Mapping[str, str]) -> SqlWriter:
    columns = _columns(model, names, dialect)
    if dialect.has_lambdas and sum(map(_n_conditions, views_of(model))) > MAX_CONDITIONS:
        return ListWriter(dialect, columns, used_features(model))
    return SqlWriter(dialect, columns)


def _n_conditions(view: TreeView) -> int:
    """How many limits and categories the tree names, in all its nodes."""
    return sum(
        1 if bound.categories is None else len(bound.categories)
        for node in view.nodes
        for ways in ways_by_branch(node).values()
        for way in ways
        for bound in way
    )
