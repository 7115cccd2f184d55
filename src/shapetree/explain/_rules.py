"""A tree as a list of if/then rules, one for each leaf."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from shapetree.data._table import FeatureInfo
from shapetree.explain._conditions import Condition, conditions_of_parts, merge, missing_conditions
from shapetree.tree._digits import percent, rounded
from shapetree.tree._intervals import Sure, UnseenLeaf
from shapetree.tree._view import NodeView, TreeView
from shapetree.tree._words import SAME_SHARE, is_joined, n_rows_words, outcome_words, printable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Clause:
    """A part of a rule: a row must satisfy all conditions of one of the options.

    Attributes
    ----------
    features : tuple of FeatureInfo
        The features that it is about.
    options : tuple of tuples of Condition
        None if nothing can satisfy it.
    """

    features: tuple[FeatureInfo, ...]
    options: tuple[tuple[Condition, ...], ...]

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row, given by the names of its features, satisfies the clause."""
        return any(all(condition.holds(row) for condition in option) for option in self.options)

    def words(self, digits: int | None = None) -> str:
        """The clause in words; numbers are exact unless digits are given."""
        options = [_option_words(option, digits) for option in self.options]
        if len(self.features) == 1:
            # The name is not repeated: "age ≤ 3 or in (5, 7] or missing".
            name = f"{self.features[0].name} "
            options[1:] = [words.removeprefix(name).removeprefix("is ") for words in options[1:]]
        if len(options) > 1:
            options = [f"({words})" if is_joined(words) else words for words in options]
        return " or ".join(options) or "never"


# What Markdown takes for more than text, and signs that make an address of it.
MARKUP = re.compile(r"[\\|`\[\]]")
ADDRESS = re.compile(r":(?=//)|(?<=www)\.|@", re.IGNORECASE)
# What new rows tell of a leaf: how many they are, and their share or mean with its interval.
UNSEEN_COLUMNS = ("new_rows", "new_value", "new_low", "new_high")
# What the rule of a tree that is a single leaf holds for.
EVERY_ROW = "every row"
# Clauses of a rule, by their one feature, or by their number if they are of a pair.
Clauses: TypeAlias = dict[Any, Clause]


def _option_words(option: tuple[Condition, ...], digits: int | None) -> str:
    """All conditions except those that others imply: a bounded number is known."""
    bounded = {name for c in option if not c.is_always for name in c.names}
    said = [c for c in option if not (c.is_always and set(c.names) <= bounded)]
    return " and ".join(condition.words(digits) for condition in said)


@dataclass(frozen=True)
class Rule:
    """What leads to a leaf, and what is predicted there.

    Attributes
    ----------
    leaf : int
        Number of the leaf.
    clauses : tuple of Clause
        A row must satisfy all of them; it then ends in the leaf, and no other row does.
    prediction : tuple
        Predicted class or number of each output.
    outcome : str
        The same in words, with the share of the class or the spread of the numbers.
    n_rows : int
        Training rows in the leaf.
    support : float
        Their share of all rows.
    confidence : float or None
        Share of the leaf's rows that are of the predicted class; None for numbers, for several
        outputs, and if it is not known.
    lift : float or None
        Ratio of that to the class's share of all rows.
    predicted : float or None
        The probability that the tree gives the class: the confidence, unless rows have weights or
        predictions are shrunk. None for numbers and for several outputs.
    deviation : float or None
        Standard deviation of the target in the leaf; None for classes and for several outputs.
    sure : Sure or None
        The share, mean or median of the leaf's training rows, and its interval at a level of 95 %.
    unseen : UnseenLeaf or None
        The same of rows that the tree was not fitted on, if it was evaluated.
    agreement : float or None
        Share of predictions for its rows, by trees of resamples that have not drawn them, that are
        the same as the tree's; None for numbers, and if `stability` was not called.
    resample_deviation : tuple of float or None
        For each output, how far these predictions are from the tree's, as a root mean square; None
        for classes, and if `stability` was not called.
    stability_words : str or None
        Either of them in words.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target_names[iris.target])
    >>> rule = tree.rules()[0]
    >>> rule.premise()
    'petal width (cm) ≤ 0.8'
    >>> rule.n_rows, rule.confidence
    (50, 1.0)
    """

    leaf: int
    clauses: tuple[Clause, ...]
    prediction: tuple[Any, ...]
    outcome: str
    n_rows: int
    support: float
    confidence: float | None
    lift: float | None
    predicted: float | None
    deviation: float | None
    sure: Sure | None = None
    unseen: UnseenLeaf | None = None
    agreement: float | None = None
    resample_deviation: tuple[float, ...] | None = None
    stability_words: str | None = None

    @property
    def differs(self) -> bool:
        """Whether the probability of the class is not its share of the rows."""
        if self.predicted is None or self.confidence is None:
            return self.predicted is not None
        return abs(self.predicted - self.confidence) > SAME_SHARE

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row, given by the names of its features, ends in the leaf."""
        return all(clause.holds(row) for clause in self.clauses)

    def premise(self, digits: int | None = None) -> str:
        """What must hold, in words; numbers are exact unless digits are given."""
        words = [clause.words(digits) for clause in self.clauses]
        if len(words) > 1:
            has_options = [len(clause.options) > 1 for clause in self.clauses]
            words = [f"({w})" if many else w for w, many in zip(words, has_options, strict=True)]
        return " and ".join(words) or EVERY_ROW

    def __str__(self) -> str:
        return self.words()

    def words(self, digits: int | None = None) -> str:
        """The rule on a line; numbers are exact unless digits are given."""
        notes = [n_rows_words(self.n_rows), f"support {percent(self.support)}"]
        if self.lift is not None:
            notes.append(f"lift {rounded(self.lift, 3)}")
        if self.stability_words is not None:
            notes.append(self.stability_words)
        start = f"if {self.premise(digits)} then" if self.clauses else f"{EVERY_ROW}:"
        return printable(f"{start} {self.outcome}  [{', '.join(notes)}]")


class Rules(Sequence[Rule]):
    """A tree's rules, in the order of its leaves from the first branch to the last.

    Parameters
    ----------
    rules : sequence of Rule
    digits : int, optional
        Significant digits of the numbers in words; by default they are exact.
    note : str, optional
        Why there is only one rule.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target_names[iris.target])
    >>> rules = tree.rules()
    >>> len(rules)
    5
    >>> rules[-1].prediction
    ('virginica',)
    """

    def __init__(
        self, rules: Sequence[Rule], digits: int | None = None, note: str | None = None
    ) -> None:
        self._rules = tuple(rules)
        self._digits = digits
        self._note = note

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> Rules: ...
    def __getitem__(self, index: int | slice) -> Rule | Rules:
        return (
            Rules(self._rules[index], self._digits, self._note)
            if isinstance(index, slice)
            else self._rules[index]
        )

    def __len__(self) -> int:
        return len(self._rules)

    def __str__(self) -> str:
        lines = [rule.words(self._digits) for rule in self._rules]
        return "\n".join(lines if self._note is None else [*lines, printable(self._note)])

    def __repr__(self) -> str:
        return f"<{len(self)} {'rule' if len(self) == 1 else 'rules'}>\n{self}"

    def to_frame(self) -> pd.DataFrame:
        """The rules as a pandas DataFrame, one row each."""
        import pandas as pd

        return pd.DataFrame(self._records())

    def to_markdown(self) -> str:
        """The rules as a Markdown table; names can make neither HTML nor links in it."""
        records = self._records()
        head = list(records[0]) if records else ["if", "then"]
        lines = [head, ["---"] * len(head)]
        lines += [[_cell(value) for value in record.values()] for record in records]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return table if self._note is None else f"{table}\n\n{_cell(self._note)}"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _records(self) -> list[dict[str, Any]]:
        records = []
        # What the tree predicts has its own column where it differs from the rows' share.
        has_shares = any(rule.differs for rule in self._rules)
        has_sure = any(rule.sure is not None for rule in self._rules)
        has_unseen = any(rule.unseen is not None for rule in self._rules)
        for rule in self._rules:
            prediction = rule.prediction[0] if len(rule.prediction) == 1 else rule.prediction
            record = {"if": rule.premise(self._digits), "then": prediction, "rows": rule.n_rows}
            record["support"] = rule.support
            if rule.confidence is not None:
                record |= {"confidence": rule.confidence, "lift": rule.lift}
            if rule.deviation is not None:
                record["deviation"] = rule.deviation
            if has_sure:
                low, high = (None, None) if rule.sure is None else rule.sure[1:3]
                record |= {"low": low, "high": high}
            if has_shares:
                record["predicted"] = rule.predicted
            if has_unseen:
                unseen = rule.unseen or (0, None, None, None)
                record |= dict(zip(UNSEEN_COLUMNS, unseen, strict=True))
            if rule.agreement is not None:
                record["agreement"] = rule.agreement
            if rule.resample_deviation is not None:
                off = rule.resample_deviation
                record["resample_deviation"] = off[0] if len(off) == 1 else off
            records.append({**record, "leaf": rule.leaf})
        return records


def rules_of(view: TreeView, digits: int | None = None) -> Rules:
    """The rules of a tree; the digits are those of `Rules`."""
    rules = [_rule(view, leaf, clauses) for leaf, clauses in _leaves(view)]
    return Rules(rules, digits, view.single_leaf_words)


def _leaves(view: TreeView) -> Iterator[tuple[NodeView, tuple[Clause, ...]]]:
    """Leaves from the first branch to the last, and what leads to each."""
    pending: list[tuple[int, Clauses]] = [(0, {})]
    while pending:
        number, clauses = pending.pop()
        node = view.nodes[number]
        if node.is_leaf:
            yield node, tuple(clauses.values())
        for branch, child in reversed([*enumerate(node.children)]):
            pending.append((child, _merged(clauses, _clause(node, branch))))


def _rule(view: TreeView, leaf: NodeView, clauses: tuple[Clause, ...]) -> Rule:
    root = view.nodes[0]
    confidence = lift = predicted = None
    if view.classes is not None and view.n_outputs == 1:
        best = int(leaf.value[0].argmax())
        predicted = float(leaf.value[0, best])
        if leaf.row_shares is not None and root.row_shares is not None:
            confidence, share = float(leaf.row_shares[0, best]), float(root.row_shares[0, best])
            lift = confidence / share if share > 0 else None
    agreement = off = None
    if view.stability is not None:
        values = view.stability.nodes[leaf.number].values
        agreement, off = (values[0], None) if view.classes is not None else (None, values)
    return Rule(
        leaf=leaf.number,
        clauses=clauses,
        prediction=leaf.prediction,
        outcome=outcome_words(view, leaf),
        n_rows=leaf.n_rows,
        support=leaf.n_rows / root.n_rows,
        confidence=confidence,
        lift=lift,
        predicted=predicted,
        deviation=leaf.deviation,
        sure=leaf.sure,
        unseen=view.unseen(leaf),
        agreement=agreement,
        resample_deviation=off,
        stability_words=view.stability_words(leaf),
    )


def _clause(node: NodeView, branch: int) -> Clause:
    """What sends a row to a branch of a node."""
    known = _unless_missing(node) if node.regions else []
    options: list[tuple[Condition, ...]] = [
        (*conditions, *known)
        for its, conditions in conditions_of_parts(node)
        if its == branch and (node.regions or conditions[0].categories != ())
    ]
    if node.missing_branch == branch:
        options += [(condition,) for condition in missing_conditions(node)]
    return Clause(node.features, tuple(merge(option) for option in options))


def _unless_missing(node: NodeView) -> list[Condition]:
    """What keeps a row out of a pair's regions if it does not hold: both values are known."""
    known = []
    for side, feature in enumerate(node.features):
        has_odd = feature.is_categorical and bool(node.missing_categories[side])
        kept = node.known_categories(side) if has_odd else feature.categories
        known.append(Condition((feature,), categories=kept))
    return known


def _merged(clauses: Clauses, more: Clause) -> Clauses:
    """With one clause more: one for each feature; those of pairs stay as they are."""
    key = more.features if len(more.features) == 1 else len(clauses)
    return {**clauses, key: _both(clauses[key], more) if key in clauses else more}


def _both(one: Clause, other: Clause) -> Clause:
    """Two clauses of the same single feature as one."""
    options = []
    for (first,) in one.options:
        for (second,) in other.options:
            if first.is_missing != second.is_missing:
                continue
            both = first.merged(second)
            if both.is_missing or (both.low < both.high and both.categories != ()):
                options.append((both,))
    return Clause(one.features, tuple(options))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return rounded(value)
    text = printable(" ".join(str(value).splitlines()))
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    text = MARKUP.sub(r"\\\g<0>", text)
    # Addresses become links without any markup.
    return ADDRESS.sub(lambda found: f"&#{ord(found[0])};", text)
