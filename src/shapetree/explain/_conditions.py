"""Conditions on a row: as data that can be checked, and in words that stay true."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from shapetree.data._columns import GREATEST, Level
from shapetree.data._missing import MISSING_CODE, is_missing
from shapetree.data._moments import DATES, seconds_of
from shapetree.data._table import FeatureInfo
from shapetree.tree._regions import Bound
from shapetree.tree._view import NodeView
from shapetree.tree._words import category_words, interval, missing_words, weighted_sum


@dataclass(frozen=True)
class Condition:
    """What a row must satisfy in one feature, or in a weighted sum of two.

    Attributes
    ----------
    features : tuple of one or two FeatureInfo
    weights : tuple of floats
        Of each feature in the sum; (1,) for one feature.
    low, high : float
        The number lies above `low` and is at most `high`.
    categories : tuple or None
        The categories that satisfy the condition; None for numbers.
    is_missing : bool
        The feature is missing, or its category is new; all else has no meaning then.
    """

    features: tuple[FeatureInfo, ...]
    weights: tuple[float, ...] = (1.0,)
    low: float = -math.inf
    high: float = math.inf
    categories: tuple[Level, ...] | None = None
    is_missing: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of its features."""
        return tuple(feature.name for feature in self.features)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row, given by the names of its features, satisfies the condition.

        Examples
        --------
        >>> from shapetree.data._table import FeatureInfo
        >>> Condition((FeatureInfo("age"),), low=17.5).holds({"age": 18})
        True
        """
        return self.accepts(
            [known_value(row.get(feature.name), feature) for feature in self.features]
        )

    def accepts(self, values: Sequence[Any]) -> bool:
        """Whether values of its features satisfy the condition; None is missing or new."""
        if self.is_missing:
            return values[0] is None
        if None in values:
            return False
        if self.categories is not None:
            return values[0] in self.categories
        return self._encloses(total_of(self.weights, values))

    def _encloses(self, number: float) -> bool:
        """Whether a number is within the bounds; any number is within infinite ones."""
        return (self.low < number or self.low == -math.inf) and number <= self.high

    def merged(self, other: Condition) -> Condition:
        """Both conditions on the same features as one; one of the two may be of no effect."""
        if self.is_missing:
            return self
        if other.is_missing:
            return other
        categories = self.categories
        if categories is not None and other.categories is not None:
            categories = tuple(c for c in categories if c in other.categories)
        return replace(
            self,
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            categories=categories,
        )

    @property
    def is_always(self) -> bool:
        """Whether every value that is known satisfies it."""
        if self.is_missing:
            return False
        if self.categories is None:
            return self.low == -math.inf and self.high == math.inf
        return self.categories == self.features[0].categories

    def words(self, digits: int | None = None) -> str:
        """The condition in words, exactly as strict as it is unless digits are given."""
        if self.is_missing:
            return f"{self.names[0]} is {missing_words(self.features[0])}"
        if self.categories is not None:
            return category_words(self.features[0], self.categories)
        quantity = weighted_sum(self.weights, self.names, digits)
        date = self.features[0].date if len(self.features) == 1 else None
        return interval(quantity, self.low, self.high, digits, date)


def total_of(weights: tuple[float, ...], values: Sequence[float]) -> float:
    """The number that a condition bounds, as native code computes it."""
    if len(values) == 1:
        return float(values[0])
    first, second = (min(max(value, -GREATEST), GREATEST) for value in values)
    return weights[0] * first + weights[1] * second


def merge(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """One condition for each feature or weighted sum, in order of their first appearance."""
    merged: dict[tuple[Any, ...], Condition] = {}
    for condition in conditions:
        key = (condition.names, condition.weights)
        merged[key] = merged[key].merged(condition) if key in merged else condition
    return tuple(merged.values())


def _bound_condition(bound: Bound, features: tuple[FeatureInfo, ...]) -> Condition:
    """The condition of being within a bound of a node."""
    if all(bound.weights):
        return Condition(features, bound.weights, bound.low, bound.high)
    feature = features[0] if bound.weights[0] else features[1]
    if bound.categories is not None:
        return Condition((feature,), categories=bound.categories)
    return Condition((feature,), low=bound.low, high=bound.high)


def conditions_of_parts(node: NodeView) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    """The branch of each segment or region of a node, and the conditions of lying in it."""
    for segment in node.segments:
        yield segment.branch, (_bound_condition(segment, node.features),)
    for region in node.joined_regions:
        inside = tuple(_bound_condition(bound, node.features) for bound in region.bounds)
        # A region without bounds has all points that are known.
        known = (Condition((feature,), categories=feature.categories) for feature in node.features)
        yield region.branch, inside or tuple(known)


def missing_conditions(node: NodeView) -> list[Condition]:
    """What makes a row one that its node counts as missing; any of these is enough."""
    conditions = [Condition((feature,), is_missing=True) for feature in node.features]
    for feature, categories in zip(node.features, node.missing_categories, strict=False):
        if categories:
            conditions.append(Condition((feature,), categories=categories))
    return conditions


def known_value(value: Any, feature: FeatureInfo) -> Any:
    """The value, or None if it is missing or a category that training has not seen."""
    if is_missing(value):
        return None
    if feature.categories is not None and value not in feature.categories:
        return None
    return seconds_of(value) if feature.is_date and isinstance(value, DATES) else value


def python_values(column: np.ndarray, feature: FeatureInfo) -> list[Any]:
    """A column's numbers or categories; None where one is missing or new."""
    if feature.categories is None:
        return [None if is_missing(value) else value for value in column.astype(float).tolist()]
    categories = feature.categories
    return [None if code == MISSING_CODE else categories[code] for code in column.tolist()]
