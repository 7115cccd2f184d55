"""Why a row gets its prediction: its path as data, and in a sentence."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree.data._moments import DateKind
from shapetree.explain._conditions import (
    Condition,
    conditions_of_parts,
    merge,
    missing_conditions,
    python_values,
)
from shapetree.explain._flip_constraints import FlipConstraints
from shapetree.explain._flips import Flip, FlipSearch, Route, tree_cells
from shapetree.tree._digits import exact, n_digits, rounded
from shapetree.tree._view import TreeView
from shapetree.tree._words import listing, outcome_words, printable

# Digits that numbers of notes have at most.
MOST_DIGITS = 9


@dataclass(frozen=True)
class Step:
    """A node that a row passes.

    Attributes
    ----------
    node : int
    branch : int
        Where the node sends the row.
    conditions : tuple of Condition
        What the row satisfies there: the segment it lies in, or the bounds of its region.
    """

    node: int
    branch: int
    conditions: tuple[Condition, ...]


def beyond_words(
    name: str, value: float, low: float, high: float, date: DateKind | None = None
) -> str:
    """Say that a number or date is outside a range.

    >>> beyond_words("age", 150.0, 17.0, 90.0)
    'age = 150 is outside the range 17 to 90 seen in training'
    """
    said, least, greatest = (_note_number(number, date) for number in (value, low, high))
    return f"{name} = {said} is outside the range {least} to {greatest} seen in training"


def _note_number(number: float, date: DateKind | None) -> str:
    written = exact(number, date)
    is_long = date is None and n_digits(written) > MOST_DIGITS
    return rounded(number, MOST_DIGITS) if is_long else written


def _accepts(condition: Condition, row: dict[str, Any]) -> bool:
    return condition.accepts([row[name] for name in condition.names])


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a row is predicted what it is; `str` of it is a sentence.

    Attributes
    ----------
    leaf : int
        The node it ends in.
    row : dict
        Its values in the features that the tree uses; None where one is missing or new.
    prediction : tuple
        Predicted class or number of each output.
    flip : Flip or None
        The smallest change of one feature, or of two where one is not enough, that changes the
        prediction as wanted; None if there is none.
    new_categories : dict
        Categories that training has not seen, by feature.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target_names[iris.target])
    >>> why = tree.explain(iris.data[:1])[0]
    >>> print(why)
    Predicted setosa (100 % of rows, 93 to 100 %; predicted 96 %) because petal width (cm) ≤ 0.8
    >>> [step.node for step in why.path]
    [0]
    """

    leaf: int
    row: dict[str, Any]
    flip: Flip | None
    new_categories: dict[str, Any]
    _explainer: Explainer

    @property
    def prediction(self) -> tuple[Any, ...]:
        """Predicted class or number of each output."""
        return self._explainer.view.nodes[self.leaf].prediction

    @cached_property
    def path(self) -> tuple[Step, ...]:
        """The nodes that the row passes, from the root on."""
        nodes = self._explainer.view.path_to(self.leaf)
        return tuple(
            Step(
                node.number,
                node.children.index(child.number),
                self._explainer.conditions(node.number, self.row),
            )
            for node, child in pairwise(nodes)
        )

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """What the row satisfies on its path, one condition for each feature or weighted sum."""
        return merge(condition for step in self.path for condition in step.conditions)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is unlike training in the values that decide: beyond its range, or new."""
        return tuple(
            note
            for name in dict.fromkeys(name for c in self.conditions for name in c.names)
            for note in self._explainer.notes(name, self.row[name], self.new_categories)
        )

    def __str__(self) -> str:
        notes = f". Note: {listing(self.notes)}" if self.notes else ""
        return printable(self.sentence + notes)

    @property
    def sentence(self) -> str:
        """Why the row is predicted what it is, without the notes."""
        view = self._explainer.view
        outcome = outcome_words(view, view.nodes[self.leaf])
        if view.target_name is not None:
            outcome = f"{view.target_name}: {outcome}"
        if not self.conditions:
            why = view.single_leaf_words
            return f"Predicted {outcome} for every row" + (f". {why}" if why else "")
        reasons = [condition.words() for condition in self.conditions]
        return f"Predicted {outcome} because {listing(reasons)}"

    def __repr__(self) -> str:
        return f"<Explanation: {self}>"

    def _repr_html_(self) -> str:
        """The sentences for notebooks."""
        said = [self.sentence, *self.notes, *([] if self.flip is None else [str(self.flip)])]
        return "".join(f"<p>{html.escape(printable(words))}.</p>" for words in said)


class Explainer:
    """Explains rows of a tree; what does not depend on the rows is found once."""

    def __init__(self, view: TreeView) -> None:
        self.view = view
        self._cells = tree_cells(view)
        self._made: dict[int, tuple[list[Condition], list[tuple[Condition, ...]]]] = {}
        self._number = {feature.name: j for j, feature in enumerate(view.features)}

    def conditions(self, node: int, row: dict[str, Any]) -> tuple[Condition, ...]:
        """What a row satisfies in a node: that it lacks a value, or the part that it lies in."""
        if node not in self._made:
            view = self.view.nodes[node]
            parts = [conditions for _, conditions in conditions_of_parts(view)]
            self._made[node] = missing_conditions(view), parts
        lacking, parts = self._made[node]
        missing = tuple(c for c in lacking if _accepts(c, row))
        if missing:
            return missing
        return next(part for part in parts if all(_accepts(c, row) for c in part))

    def notes(self, name: str, value: Any, new: Mapping[str, Any]) -> Iterator[str]:
        """How a feature's value differs from all those in training."""
        if name in new:
            yield f"{name} = {new[name]} was never seen in training"
        low, high = self.view.ranges[self._number[name]].tolist()
        if isinstance(value, float) and not low <= value <= high and not math.isnan(low):
            date = self.view.features[self._number[name]].date
            yield beyond_words(name, value, low, high, date)

    def explain(
        self,
        columns: Sequence[np.ndarray | None],
        leaves: np.ndarray,
        route: Route,
        constraints: FlipConstraints,
        new: Mapping[int, Mapping[int, Any]],
    ) -> list[Explanation]:
        """Explain the prediction of each row.

        Columns hold numbers, or codes of categories; None for features that the tree does not use.
        `new` has categories that training has not seen, by feature and row.
        """
        flips = FlipSearch(self.view, self._cells, route, constraints).find(columns, leaves)
        values = [
            (j, feature.name, python_values(column, feature))
            for j, (feature, column) in enumerate(zip(self.view.features, columns, strict=True))
            if column is not None
        ]
        return [
            Explanation(
                leaf,
                {name: its[i] for _, name, its in values},
                flip,
                {name: new[j][i] for j, name, _ in values if i in new.get(j, ())},
                self,
            )
            for i, (leaf, flip) in enumerate(zip(leaves.tolist(), flips, strict=True))
        ]
