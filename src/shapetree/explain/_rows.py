"""Why a row is predicted what it is: its path as data, and in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree.explain._conditions import (
    Condition,
    merge,
    missing_conditions,
    region_conditions,
    segment_condition,
)
from shapetree.explain._flips import Flip, Route, find_flips
from shapetree.explain._outcomes import python_values
from shapetree.tree._view import NodeView, TreeView
from shapetree.tree._words import listing, outcome_words


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


class Guide:
    """Tells which conditions rows satisfy in the nodes of a tree, all of them made once."""

    def __init__(self, view: TreeView) -> None:
        self.view = view
        self._missing = [missing_conditions(node) for node in view.nodes]
        self._parts = [list(_parts(node)) for node in view.nodes]

    def conditions(self, node: int, row: dict[str, Any]) -> tuple[Condition, ...]:
        """What a row satisfies in a node: that it lacks a value, or the part that it lies in."""
        missing = tuple(c for c in self._missing[node] if _accepts(c, row))
        if missing:
            return missing
        return next(part for part in self._parts[node] if all(_accepts(c, row) for c in part))


def _accepts(condition: Condition, row: dict[str, Any]) -> bool:
    return condition.accepts([row[name] for name in condition.names])


def _parts(node: NodeView) -> Iterator[tuple[Condition, ...]]:
    """Conditions of each segment or region of a node."""
    for segment in node.segments:
        yield (segment_condition(segment, node.features),)
    for region in node.joined_regions:
        yield region_conditions(region, node.features)


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
        The smallest change of a single feature that changes the prediction; None if no change of
        one feature does.
    """

    leaf: int
    row: dict[str, Any]
    flip: Flip | None
    _guide: Guide

    @property
    def prediction(self) -> tuple[Any, ...]:
        """Predicted class or number of each output."""
        return self._guide.view.nodes[self.leaf].prediction

    @cached_property
    def path(self) -> tuple[Step, ...]:
        """The nodes that the row passes, from the root on."""
        nodes = self._guide.view.path_to(self.leaf)
        return tuple(
            Step(
                node.number,
                node.children.index(child.number),
                self._guide.conditions(node.number, self.row),
            )
            for node, child in pairwise(nodes)
        )

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """What the row satisfies on its path, one condition for each feature or weighted sum."""
        return merge(condition for step in self.path for condition in step.conditions)

    def __str__(self) -> str:
        view = self._guide.view
        outcome = outcome_words(view, view.nodes[self.leaf])
        if not self.conditions:
            return f"Predicted {outcome} for every row"
        reasons = [condition.words() for condition in self.conditions]
        return f"Predicted {outcome} because {listing(reasons)}"

    def __repr__(self) -> str:
        return f"<Explanation: {self}>"


def explain_rows(
    view: TreeView, columns: Sequence[np.ndarray | None], leaves: np.ndarray, route: Route
) -> list[Explanation]:
    """Explain the prediction of each row.

    Parameters
    ----------
    view : TreeView
    columns : sequence of arrays or None
        The rows' numbers, or codes of categories, by feature; None for features that the tree does
        not use.
    leaves : int array
        The rows' leaves.
    route : callable
        Finds the leaves of rows with other columns.
    """
    flips = find_flips(view, columns, leaves, route)
    guide = Guide(view)
    values = {
        feature.name: python_values(column, feature)
        for feature, column in zip(view.features, columns, strict=True)
        if column is not None
    }
    return [
        Explanation(leaf, {name: its[i] for name, its in values.items()}, flip, guide)
        for i, (leaf, flip) in enumerate(zip(leaves.tolist(), flips, strict=True))
    ]
