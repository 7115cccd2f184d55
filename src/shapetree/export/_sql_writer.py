"""Trees as SQL: an expression of nested CASEs for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.export._dialects import Dialect
from shapetree.export._routes import Check, Plan, Way, plan_for, reasons_of, require_plain
from shapetree.tree._fitted import FittedForest, TreeOrForest
from shapetree.tree._regions import Bound
from shapetree.tree._view import NodeView, TreeView, views_of

INDENT = "  "
# A check and what follows have a line each if they would make a longer one.
MAX_WIDTH = 90
# Databases limit how deep expressions are, which "a OR b OR c OR …" is, too.
MAX_ALTERNATIVES = 50
# Names of means, which no column is likely to have.
MEAN = "shapetree_mean_{}"


class SqlWriter:
    """Writes trees in a dialect, with the columns of features by their names."""

    def __init__(self, dialect: Dialect, columns: Mapping[str, str]) -> None:
        self._dialect = dialect
        self._columns = columns

    # --- outcomes ---

    def output(self, model: TreeOrForest, output: str) -> str:
        """The expressions of the output, named if there are several."""
        if output == "proba":
            return self._shares(model)
        if output == "prediction":
            start, texts = "y", self._predictions(model)
        elif output == "leaf":
            start = "leaf_"
            texts = [
                self._outcomes(view, lambda leaf: str(leaf.number)) for view in views_of(model)
            ]
        else:
            start, (view,) = "reasons_", views_of(model)
            texts = [
                self._outcomes(view, lambda leaf: self._literal(reasons_of(view, leaf.number)))
            ]
        if len(texts) == 1 and not (output == "leaf" and isinstance(model, FittedForest)):
            return texts[0]
        return self._listed([f"{start}{number}" for number in range(len(texts))], texts)

    def _predictions(self, model: TreeOrForest) -> list[str]:
        """One expression for each target."""
        targets = range(model.n_outputs)
        if model.shown_classes is None:
            return self._values(model, [(target, 0) for target in targets])
        if isinstance(model, FittedForest):
            return [
                self._likeliest(
                    labels, self._values(model, [(target, i) for i in range(len(labels))])
                )
                for target, labels in enumerate(model.shown_classes)
            ]
        (view,) = views_of(model)
        return [self._outcomes(view, partial(self._prediction, target)) for target in targets]

    def _shares(self, model: TreeOrForest) -> str:
        """One expression for each class of each target."""
        assert model.shown_classes is not None
        names, places = [], []
        for target, labels in enumerate(model.shown_classes):
            start = "proba_" if model.n_outputs == 1 else f"proba_y{target}_"
            names += [f"{start}{label}" for label in labels]
            places += [(target, i) for i in range(len(labels))]
        return self._listed(names, self._values(model, places))

    def _values(self, model: TreeOrForest, places: Sequence[tuple[int, int]]) -> list[str]:
        """Some values, each a target's; those of all trees are added up as `predict` does."""
        terms: list[list[str]] = [[] for _ in places]
        for view in views_of(model):
            for its, place in zip(terms, places, strict=True):
                its.append(self._tree(view, partial(self._value, place)))
        if not isinstance(model, FittedForest):
            return [self._selected(text) for (text,) in terms]
        n_trees = self._literal(float(len(model.trees)))
        return [self._selected("(" + "\n+ ".join(its) + f") / {n_trees}") for its in terms]

    def _prediction(self, target: int, leaf: NodeView) -> str:
        return self._literal(leaf.prediction[target])

    def _value(self, place: tuple[int, int], leaf: NodeView) -> str:
        return self._literal(float(leaf.value[place]))

    def _outcomes(self, view: TreeView, outcome: Callable[[NodeView], str]) -> str:
        """What the tree says of a row's leaf, where it can be asked for."""
        return self._selected(self._tree(view, outcome))

    def _tree(self, view: TreeView, outcome: Callable[[NodeView], str]) -> str:
        """What a tree says of a row's leaf."""
        return "\n".join(self._lines(plan_for(view, outcome)))

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
        named = zip(expressions, names, strict=True)
        return ",\n".join(f"{each} AS {self._dialect.write_name(name)}" for each, name in named)

    def _literal(self, value: Any) -> str:
        """A label, a category or a number."""
        if isinstance(value, str):
            return self._dialect.write_text(value)
        if isinstance(value, bool):
            return str(value).upper() if self._dialect.has_bools else str(int(value))
        if isinstance(value, int):
            return str(value)
        require_plain(value, "SQL")
        return self._dialect.write_number(value)

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
