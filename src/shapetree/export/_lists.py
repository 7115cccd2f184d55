"""A tree as lists of tests, which databases with functions over lists read as quickly as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from shapetree.data._missing import MISSING_CODE
from shapetree.data._table import FeatureInfo
from shapetree.export._forks import (
    Decision,
    Fork,
    Weights,
    fork_on_feature,
    fork_on_pair,
    oblique_weights,
    places_of,
)
from shapetree.tree._view import NodeView, TreeView

# Where the number 0 is.
ZERO = 1


@dataclass
class ForkLists:
    """Tests of single values, to be made one after the other, from the first one on.

    Tests are counted from 1. A test reads the value at `first`. If it has a `second`, the value is
    that at `first` plus `weight` times that at `second`; and if `first` is negative, the value is
    one of `places`, at the sum of what is at `second` and minus `first`. Values up to and including
    `limit` go to the test `low`, others, NaN among them, to `high`; -1 - k is the k-th outcome.

    Attributes
    ----------
    first, second, weight, limit, low, high : lists
    places : list of float
        Places of the categories of pairs.
    outcomes : list of str
        All that the tree can lead to.
    n_steps : int
        The most tests that a row needs.
    """

    first: list[int] = field(default_factory=list)
    second: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    limit: list[float] = field(default_factory=list)
    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)
    places: list[float] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    n_steps: int = 0


@dataclass(frozen=True)
class ValuePlaces:
    """Where tests find the values of a feature, counted from 1.

    Attributes
    ----------
    plain : int
        Its number, NaN if it is missing; or the code of its category.
    low : int
        Its number, -∞ if it is missing.
    finite : int
        Its number, finite.
    """

    plain: int
    low: int
    finite: int


def values_of(features: Sequence[FeatureInfo]) -> dict[str, ValuePlaces]:
    """Where values are: first 0, then for each feature its plain value, for numbers two others."""
    found, n = {}, ZERO
    for feature in features:
        if feature.is_categorical:
            found[feature.name] = ValuePlaces(n + 1, n + 1, n + 1)
            n += 1
        else:
            found[feature.name] = ValuePlaces(n + 1, n + 2, n + 3)
            n += 3
    return found


def fork_lists(
    view: TreeView, values: Mapping[str, ValuePlaces], outcome: Callable[[NodeView], str]
) -> ForkLists:
    """The tests of a tree.

    Parameters
    ----------
    view : TreeView
    values : mapping of features' names to ValuePlaces
    outcome : callable
        What a leaf says.
    """
    tests = ForkLists()
    number_of: dict[str, int] = {}
    starts: dict[int, Decision] = {}  # numbers of tests, of outcomes for leaves
    depth_of: dict[int, int] = {}  # the most tests from a test on
    for node in reversed(view.nodes):  # children have greater numbers than their parents
        if node.is_leaf:
            starts[node.number] = -1 - number_of.setdefault(outcome(node), len(number_of))
        else:
            starts[node.number] = _add(tests, node, values, starts.__getitem__, depth_of)
    tests.outcomes = list(number_of)
    # The root's test was added last, and is to be the first.
    n_tests = len(tests.first)
    for numbers in (tests.first, tests.second, tests.low, tests.high):
        numbers.reverse()
    tests.weight.reverse()
    tests.limit.reverse()
    for ways in (tests.low, tests.high):
        ways[:] = [way if way < 0 else n_tests + 1 - way for way in ways]
    tests.n_steps = depth_of.get(n_tests, 0)
    return tests


def _add(
    tests: ForkLists,
    node: NodeView,
    values: Mapping[str, ValuePlaces],
    follow: Callable[[int], Decision],
    depth_of: dict[int, int],
) -> int:
    """Add a node's tests, each after those that it leads to; returns the number of its first."""
    its = [values[feature.name] for feature in node.features]
    read: dict[int, tuple[int, int, float]] = {}
    if len(node.features) == 1:
        decision = fork_on_feature(node, 0, follow)
        read[0] = (its[0].plain, 0, 0.0)
    else:
        weights = oblique_weights(node)
        sums: dict[Weights, int] = {each: 2 + i for i, each in enumerate(weights)}
        decision = fork_on_pair(node, (0, 1), sums, follow)
        for side, feature in enumerate(node.features):
            if feature.is_categorical:
                tests.places.append(math.nan)  # where the code of missing values leads
                start = len(tests.places) - MISSING_CODE
                tests.places += places_of(node, side)
                read[side] = (-start, its[side].plain, 0.0)
            else:
                read[side] = (its[side].plain, 0, 0.0)
        for pair, column in sums.items():
            read[column] = (its[0].finite if pair[0] else ZERO, its[1].finite, pair[1])
    number_of: dict[int, int] = {}  # tests may have several ways to them
    waiting: list[Decision] = [decision]
    while waiting:
        fork = waiting[-1]
        if not isinstance(fork, Fork) or id(fork) in number_of:
            waiting.pop()
            continue
        below = [side for side in (fork.low, fork.high) if isinstance(side, Fork)]
        if left := [side for side in below if id(side) not in number_of]:
            waiting += left
            continue
        waiting.pop()
        ways = [
            number_of[id(side)] if isinstance(side, Fork) else side
            for side in (fork.low, fork.high)
        ]
        first, second, weight = read[fork.column]
        if fork.missing_is_low and len(node.features) == 1:
            first = its[0].low
        tests.first.append(first)
        tests.second.append(second)
        tests.weight.append(weight)
        tests.limit.append(fork.threshold)
        tests.low.append(ways[0])
        tests.high.append(ways[1])
        number_of[id(fork)] = len(tests.first)
        depth_of[len(tests.first)] = 1 + max(depth_of.get(way, 0) for way in ways)
    return number_of[id(decision)] if isinstance(decision, Fork) else decision
