"""A tree or a forest as an SQL expression."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from shapetree._files import PathLike, write_file
from shapetree.data._columns import Level
from shapetree.data._missing import MISSING_CODE
from shapetree.data._table import FeatureInfo
from shapetree.export._dialects import DIALECTS, Dialect
from shapetree.export._lists import fork_lists, values_of
from shapetree.export._routes import (
    Check,
    Plan,
    Way,
    plan_for,
    reasons_of,
    remark,
    require_distinct,
    used_features,
    ways_by_branch,
)
from shapetree.tree._digits import exact
from shapetree.tree._fitted import HoldsModel
from shapetree.tree._regions import Bound
from shapetree.tree._view import ModelView, NodeView, TreeView, model_view

OUTPUTS = ("prediction", "proba", "leaf", "reasons")
INDENT = "  "
# A check and what follows have a line each if they would make a longer one.
MAX_WIDTH = 90
# Databases limit how deep expressions are, which "a OR b OR c OR …" is, too.
MAX_ALTERNATIVES = 50
# DuckDB plans for seconds where there are thousands of conditions or categories. Trees with more of
# them than this are written as lists, which are not made to be read.
MAX_CONDITIONS = 1000
# Sums of more terms are deeper than SQLite and DuckDB allow.
MAX_TREES = 900
# Names of means, which no column is likely to have.
MEAN = "shapetree_mean_{}"


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
    model = model_view(estimator)
    if output == "proba" and model.classes is None:
        raise ValueError("output='proba' needs a model that predicts classes")
    if model.is_forest:
        _check_forest(model, DIALECTS[dialect], output)
    writer = _writer_for(model, DIALECTS[dialect], columns or {})
    text = writer.output(model, output)
    said = remark(model, has_dates=True).replace("/*", "/ *").replace("*/", "* /")
    if said:
        text = f"/* It {said}. */\n{text}"
    if path is not None:
        write_file(path, text, "the SQL expression")
    return text


def _require_one_of(parameter: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        shown = ", ".join(map(repr, allowed))
        raise ValueError(f"{parameter} must be one of {shown}, got {value!r}")


def _check_forest(model: ModelView, dialect: Dialect, output: str) -> None:
    """Refuse what cannot be written of a forest."""
    if output == "reasons":
        raise ValueError("output='reasons' needs a single tree: a forest has a path for each tree")
    if model.n_trees > MAX_TREES:
        raise ValueError(
            f"a forest of {model.n_trees} trees makes too deep an expression; set n_estimators to "
            f"at most {MAX_TREES}"
        )
    if output == "prediction" and model.classes is not None and not dialect.one_row:
        raise ValueError(
            f"{dialect.name} cannot compare the means of all classes in one expression; use "
            "output='proba', and choose the class whose probability is greatest"
        )


def _columns(model: ModelView, names: Mapping[str, str], dialect: Dialect) -> dict[str, str]:
    """The values of each feature that the model reads: a quoted column, or an expression."""
    known = [feature.name for feature in model.features]
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


def _writer_for(model: ModelView, dialect: Dialect, names: Mapping[str, str]) -> _Writer:
    columns = _columns(model, names, dialect)
    if dialect.has_lambdas and sum(map(_n_conditions, model.trees())) > MAX_CONDITIONS:
        return _ListWriter(dialect, columns, used_features(model))
    return _Writer(dialect, columns)


def _n_conditions(view: TreeView) -> int:
    """How many limits and categories the tree names, in all its nodes."""
    return sum(
        1 if bound.categories is None else len(bound.categories)
        for node in view.nodes
        for ways in ways_by_branch(node).values()
        for way in ways
        for bound in way
    )


class _Writer:
    """Writes trees in a dialect, with the columns of features by their names."""

    def __init__(self, dialect: Dialect, columns: Mapping[str, str]) -> None:
        self._dialect = dialect
        self._columns = columns

    # --- outcomes ---

    def output(self, model: ModelView, output: str) -> str:
        """The expressions of the output."""
        if output == "leaf":
            texts = [
                self._expression(view, lambda leaf: str(leaf.number)) for view in model.trees()
            ]
            if not model.is_forest:
                return texts[0]
            return self._listed([f"leaf_{number}" for number in range(len(texts))], texts)
        if output == "reasons":
            (view,) = model.trees()
            return self._expression(view, lambda leaf: self._reasons(view, leaf))
        return self._predictions(model) if output == "prediction" else self._shares(model)

    def _predictions(self, model: ModelView) -> str:
        """One expression for each target, named if there are several."""
        if not model.is_forest:
            (view,) = model.trees()
            targets = range(model.n_outputs)
            texts = [
                self._expression(view, partial(self._prediction, target)) for target in targets
            ]
        elif model.classes is None:
            texts = self._means(model, [(target, 0) for target in range(model.n_outputs)])
        else:
            texts = [
                self._likeliest(
                    labels, self._means(model, [(target, i) for i in range(len(labels))])
                )
                for target, labels in enumerate(model.classes)
            ]
        if len(texts) == 1:
            return texts[0]
        return self._listed([f"y{target}" for target in range(len(texts))], texts)

    def _shares(self, model: ModelView) -> str:
        """One expression for each class of each target."""
        assert model.classes is not None
        names, places = [], []
        for target, labels in enumerate(model.classes):
            start = "proba_" if model.n_outputs == 1 else f"proba_y{target}_"
            names += [f"{start}{label}" for label in labels]
            places += [(target, i) for i in range(len(labels))]
        if model.is_forest:
            return self._listed(names, self._means(model, places))
        (view,) = model.trees()
        texts = [self._expression(view, partial(self._value, target, i)) for target, i in places]
        return self._listed(names, texts)

    def _prediction(self, target: int, leaf: NodeView) -> str:
        return self._literal(leaf.prediction[target])

    def _value(self, target: int, i: int, leaf: NodeView) -> str:
        return self._literal(float(leaf.value[target, i]))

    def _reasons(self, view: TreeView, leaf: NodeView) -> str:
        return self._literal(reasons_of(view, leaf.number))

    def _expression(self, view: TreeView, outcome: Callable[[NodeView], str]) -> str:
        return self._selected(self._tree(view, outcome))

    def _tree(self, view: TreeView, outcome: Callable[[NodeView], str]) -> str:
        """The outcome of a row's leaf."""
        return "\n".join(self._lines(plan_for(view, outcome)))

    def _means(self, model: ModelView, places: Sequence[tuple[int, int]]) -> list[str]:
        """Means of some values of all trees, each a target's, added up as `predict` does."""
        terms: list[list[str]] = [[] for _ in places]
        for view in model.trees():
            for its, (target, i) in zip(terms, places, strict=True):
                its.append(self._tree(view, partial(self._value, target, i)))
        n_trees = self._literal(float(model.n_trees))
        return [self._selected("(" + "\n+ ".join(its) + f") / {n_trees}") for its in terms]

    def _likeliest(self, labels: Sequence[Any], means: Sequence[str]) -> str:
        """The class whose mean is greatest; of equals, the first."""
        names = [MEAN.format(i) for i in range(len(means))]
        row = self._dialect.one_row.format(
            ",\n".join(f"{mean} AS {name}" for mean, name in zip(means, names, strict=True))
        )
        *rest, last = map(self._literal, labels)
        whens = "".join(
            f"{INDENT}WHEN {' AND '.join(f'{names[i]} >= {other}' for other in names[i + 1 :])} "
            f"THEN {label}\n"
            for i, label in enumerate(rest)
        )
        chosen = f"CASE\n{whens}{INDENT}ELSE {last}\nEND" if rest else last
        return f"(SELECT {chosen}\nFROM {row})"

    def _selected(self, expression: str) -> str:
        """An expression of columns, with what it needs to find them."""
        return expression

    def _listed(self, names: Sequence[str], expressions: Sequence[str]) -> str:
        return ",\n".join(map(self._named, expressions, names))

    def _named(self, expression: str, name: str) -> str:
        return f"{expression} AS {self._dialect.write_name(name)}"

    def _literal(self, value: Any) -> str:
        """A label, a category or a number."""
        if isinstance(value, str):
            return self._dialect.write_text(value)
        if isinstance(value, bool):
            return str(value).upper() if self._dialect.has_bools else str(int(value))
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return self._dialect.write_number(value)
        raise TypeError(
            f"classes must be text, numbers or bools to be written as SQL, got {value!r}"
        )

    def _lines(self, plan: Plan) -> Iterator[str]:
        if not plan.steps:
            yield plan.otherwise
            return
        yield "CASE"
        for check, then in plan.steps:
            first, *more = self._lines(then)
            when = f"{INDENT}WHEN {self._check(check)}"
            is_long = len(when) + len(first) > MAX_WIDTH
            yield from [when, f"{INDENT}THEN {first}"] if is_long else [f"{when} THEN {first}"]
            yield from (INDENT + line for line in more)
        yield f"{INDENT}ELSE {plan.otherwise}"
        yield "END"

    # --- checks ---

    def _check(self, check: Check) -> str:
        held = _any_of([self._way(way, check.node) for way in check.ways])
        unbounded = [side for side in (0, 1) if _may_be_missing(check, side)]
        if unbounded:
            known = " AND ".join(self._known(check.node, side) for side in unbounded)
            held = known if () in check.ways else f"{known} AND ({held})"
        return self._dialect.negation.format(held) if check.is_negated else held

    def _way(self, way: Way, node: NodeView) -> str:
        bounds = [self._bound(bound, node) for bound in way] or [self._known(node, 0)]
        return " AND ".join(bounds)

    def _bound(self, bound: Bound, node: NodeView) -> str:
        side = bound.side
        if side is None:
            return self._bound_of_sum(bound, node)
        if bound.categories is not None:
            return self._among(node.features[side], bound.categories)
        number, limits = self._number(node.features[side]), []
        if bound.low > -math.inf:
            limits.append(f"{number} > {self._literal(bound.low)}")
        if bound.high < math.inf:
            limits.append(f"{number} <= {self._literal(bound.high)}")
        elif not node.regions and self._dialect.has_nan:
            limits.append(self._known(node, side))
        return " AND ".join(limits)

    def _bound_of_sum(self, bound: Bound, node: NodeView) -> str:
        first, second = (self._number(feature) for feature in node.features)
        return " AND ".join(
            self._dialect.compare_sum(bound.weights, (first, second), sign, limit)
            for sign, limit in ((">", bound.low), ("<=", bound.high))
            if math.isfinite(limit)
        )

    def _known(self, node: NodeView, side: int) -> str:
        """Condition that a feature is not missing."""
        feature = node.features[side]
        if feature.is_categorical:
            return self._among(feature, node.known_categories(side))
        number = self._number(feature)
        if self._dialect.has_nan:
            return f"{number} <= {self._literal(math.inf)}"
        return f"{number} IS NOT NULL"

    def _number(self, feature: FeatureInfo) -> str:
        values = self._columns[feature.name]
        return self._dialect.number.format(values) if feature.is_categorical else values

    def _among(self, feature: FeatureInfo, categories: Sequence[Level]) -> str:
        """Condition that a feature has one of some categories; there may be none."""
        if not categories:
            return "1 = 0"
        column, literals = self._compared(feature, categories)
        if len(literals) == 1:
            return f"{column} = {literals[0]}"
        if len(literals) <= self._dialect.few_categories:
            return f"({' OR '.join(f'{column} = {literal}' for literal in literals)})"
        most = self._dialect.most_listed
        lists = [literals[i : i + most] for i in range(0, len(literals), most)]
        among = [f"{column} IN ({', '.join(some)})" for some in lists]
        return among[0] if len(among) == 1 else f"({' OR '.join(among)})"

    def _compared(self, feature: FeatureInfo, categories: Sequence[Level]) -> tuple[str, list[str]]:
        """A feature's values and some of its categories, of types that can be compared."""
        column, known = self._columns[feature.name], feature.categories or ()
        if not self._dialect.is_typed or all(isinstance(c, str) for c in known):
            column = self._dialect.text.format(column)
        elif any(isinstance(c, str) for c in known):
            raise ValueError(
                f"{feature.name!r} has both text and numbers as categories, which no column of "
                f"{self._dialect.name} can hold"
            )
        elif any(isinstance(c, float) for c in known):
            column, categories = self._number(feature), [float(c) for c in categories]
        elif not all(isinstance(c, bool) for c in known):
            categories = [int(c) for c in categories]
        return column, [self._literal(category) for category in categories]


class _ListWriter(_Writer):
    """Writes trees as lists of tests, in subqueries that read each column of a row once.

    The table's columns are named only in a SELECT from nothing, where no name of the subquery's own
    can hide them.
    """

    def __init__(
        self, dialect: Dialect, columns: Mapping[str, str], features: Sequence[FeatureInfo]
    ) -> None:
        super().__init__(dialect, columns)
        self._places = values_of(features)
        given, tables = [], []
        values = [self._literal(0.0)]
        for i, feature in enumerate(features):
            column, read = columns[feature.name], f"r.c{i}"
            if feature.is_categorical:
                column, literals = self._compared(feature, feature.categories or ())
                # Categories that are the same in the database have one code.
                codes: dict[str, int] = {}
                for code, literal in enumerate(literals):
                    codes.setdefault(literal, code)
                known = ", ".join(f"({literal}, {code})" for literal, code in codes.items())
                tables.append(f"LEFT JOIN (VALUES {known}) AS k{i}(c, code) ON k{i}.c = {read}")
                values.append(f"coalesce(k{i}.code, {MISSING_CODE})")
            else:
                infinite = self._literal(math.inf)
                values += [
                    f"coalesce({read}, CAST('nan' AS DOUBLE))",
                    f"CASE WHEN {read} <= {infinite} THEN {read} ELSE -{infinite} END",
                    self._dialect.clamped(read),
                ]
            given.append(column)
        named = ", ".join(f"c{i}" for i in range(len(given)))
        self._source = "\n".join(
            [
                f"FROM (SELECT [{', '.join(values)}] AS x",
                f"FROM (SELECT {', '.join(given)}) AS r({named})",
                *tables,
            ]
        )

    def _selected(self, expression: str) -> str:
        return f"(SELECT {expression}\n{self._source}) AS v)"

    def _tree(self, view: TreeView, outcome: Callable[[NodeView], str]) -> str:
        tests = fork_lists(view, self._places, outcome)
        if not tests.first:
            return tests.outcomes[0]
        first, second = _list_of(tests.first, "INT"), _list_of(tests.second, "INT")
        weight, limit = _list_of(tests.weight, "DOUBLE"), _list_of(tests.limit, "DOUBLE")
        low, high = _list_of(tests.low, "INT"), _list_of(tests.high, "INT")
        value = f"v.x[{first}[n]]"
        if any(tests.second):
            place = (
                f"{_list_of(tests.places, 'DOUBLE')}[CAST(v.x[{second}[n]] AS INT) - {first}[n]]"
            )
            total = f"{value} + {weight}[n] * v.x[{second}[n]]"
            value = f"CASE WHEN {second}[n] = 0 THEN {value}\n"
            if tests.places:
                value += f"WHEN {first}[n] < 0 THEN {place}\n"
            value += f"ELSE {total} END"
        return (
            f"[{', '.join(tests.outcomes)}][-list_reduce(range(1, {tests.n_steps + 2}), "
            f"lambda n, i: CASE WHEN n < 0 THEN n\nWHEN {value} <= {limit}[n]\n"
            f"THEN {low}[n]\nELSE {high}[n] END)]"
        )


def _list_of(numbers: Sequence[float], kind: str) -> str:
    """A list as one literal, which is read much faster than literals of its numbers."""
    return f"CAST('[{','.join(map(exact, numbers))}]' AS {kind}[])"


def _may_be_missing(check: Check, side: int) -> bool:
    """Whether a check's ways could hold while one of a pair's features is missing."""
    if not check.node.regions:
        return False
    return not check.node.features[side].is_categorical or not all(
        any(bound.side == side for bound in way) for way in check.ways
    )


def _any_of(conditions: list[str]) -> str:
    """At least one condition holds; nested, if there are many."""
    if len(conditions) <= MAX_ALTERNATIVES:
        return " OR ".join(conditions)
    middle = len(conditions) // 2
    return f"({_any_of(conditions[:middle])}) OR ({_any_of(conditions[middle:])})"
