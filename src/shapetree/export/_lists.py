"""Trees as SQL lists of tests, which DuckDB reads as quickly as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from shapetree.data._missing import MISSING_CODE
from shapetree.data._table import FeatureInfo
from shapetree.export._dialects import Dialect
from shapetree.export._forks import (
    Decision,
    Fork,
    fork_on_feature,
    fork_on_pair,
    oblique_weights,
    places_of,
)
from shapetree.export._sql_writer import SqlWriter
from shapetree.tree._digits import exact
from shapetree.tree._view import NodeView, TreeView

# Where the number 0 is.
ZERO = 1


class ListedTest(NamedTuple):
    """A test of a value: up to and including `limit` it goes to `low`, else, or if NaN, to `high`.

    The value is that at `first`. If there is a `second`, it is that at `first` plus `weight` times
    that at `second`; and if `first` is negative, it is one of the tree's places, at the sum of what
    is at `second` and minus `first`. `low` and `high` are numbers of tests, counted from 1, or
    -1 - k for the k-th outcome.
    """

    first: int
    second: int
    weight: float
    limit: float
    low: int
    high: int


class ValuePlaces(NamedTuple):
    """Where tests find the values of a feature, counted from 1."""

    plain: int  # its number, NaN if it is missing; or the code of its category
    low: int  # its number, -∞ if it is missing
    finite: int  # its number, finite


class TestLists:
    """Tests of a tree, to be made one after the other, from the first one on."""

    def __init__(
        self,
        view: TreeView,
        values: Mapping[str, ValuePlaces],
        outcome: Callable[[NodeView], str],
    ) -> None:
        self.places: list[float] = []  # of the categories of pairs
        # While they are added, tests are numbered from the last one, as each leads to known ones.
        self._added: list[ListedTest] = []
        number_of: dict[str, int] = {}
        starts: dict[int, Decision] = {}  # numbers of tests, of outcomes for leaves
        for node in reversed(view.nodes):  # children have greater numbers than their parents
            if node.is_leaf:
                starts[node.number] = -1 - number_of.setdefault(outcome(node), len(number_of))
            else:
                starts[node.number] = self._add(node, values, starts.__getitem__)
        self.outcomes = list(number_of)
        n_steps = [0]  # the most tests that rows need from each test on
        for test in self._added:
            n_steps.append(1 + max(n_steps[max(way, 0)] for way in (test.low, test.high)))
        self.n_steps = n_steps[-1]
        turned = len(self._added) + 1
        self.tests = [
            test._replace(
                low=turned - test.low if test.low > 0 else test.low,
                high=turned - test.high if test.high > 0 else test.high,
            )
            for test in reversed(self._added)
        ]

    def _add(
        self,
        node: NodeView,
        values: Mapping[str, ValuePlaces],
        follow: Callable[[int], Decision],
    ) -> int:
        """Add a node's tests, each after those that it leads to; gives the number of its first."""
        its = [values[feature.name] for feature in node.features]
        if len(its) == 1:
            decision = fork_on_feature(node, 0, follow)
            read = {0: (its[0].plain, 0, 0.0)}
        else:
            sums = {weights: 2 + i for i, weights in enumerate(oblique_weights(node))}
            decision = fork_on_pair(node, (0, 1), sums, follow)
            read = {side: self._value_of_side(node, side, its[side]) for side in (0, 1)}
            for pair, column in sums.items():
                read[column] = (its[0].finite if pair[0] else ZERO, its[1].finite, pair[1])
        number_of: dict[int, int] = {}  # tests may have several ways to them

        def known(way: Decision) -> int | None:
            return number_of.get(id(way)) if isinstance(way, Fork) else way

        waiting = [decision]
        while waiting:
            fork = waiting[-1]
            if not isinstance(fork, Fork) or known(fork) is not None:
                waiting.pop()
                continue
            low, high = known(fork.low), known(fork.high)
            if low is None or high is None:
                waiting += [way for way in (fork.low, fork.high) if known(way) is None]
                continue
            waiting.pop()
            first, second, weight = read[fork.column]
            if fork.missing_is_low and len(its) == 1:
                first = its[0].low
            self._added.append(ListedTest(first, second, weight, fork.threshold, low, high))
            number_of[id(fork)] = len(self._added)
        start = known(decision)
        assert start is not None
        return start

    def _value_of_side(self, node: NodeView, side: int, its: ValuePlaces) -> tuple[int, int, float]:
        """Where tests read a feature of a pair: its number, or the place of its category."""
        if not node.features[side].is_categorical:
            return its.plain, 0, 0.0
        self.places.append(math.nan)  # where the code of missing values leads
        start = len(self.places) - MISSING_CODE
        self.places += places_of(node, side)
        return -start, its.plain, 0.0


class ListWriter(SqlWriter):
    """Writes trees as lists of tests, in subqueries that read each column of a row once.

    The table's columns are named only in a SELECT from nothing, where no name of the subquery's own
    can hide them.
    """

    def __init__(
        self, dialect: Dialect, columns: Mapping[str, str], features: Sequence[FeatureInfo]
    ) -> None:
        super().__init__(dialect, columns)
        self._places: dict[str, ValuePlaces] = {}
        given, tables = [], []
        values = [self._literal(0.0)]  # at ZERO
        for i, feature in enumerate(features):
            column, read, n = columns[feature.name], f"r.c{i}", len(values)
            if feature.is_categorical:
                column, literals = self._compared(feature, feature.categories or ())
                # Categories that are the same in the database have one code.
                codes: dict[str, int] = {}
                for code, literal in enumerate(literals):
                    codes.setdefault(literal, code)
                known = ", ".join(f"({literal}, {code})" for literal, code in codes.items())
                tables.append(f"LEFT JOIN (VALUES {known}) AS k{i}(c, code) ON k{i}.c = {read}")
                values.append(f"coalesce(k{i}.code, {MISSING_CODE})")
                self._places[feature.name] = ValuePlaces(n + 1, n + 1, n + 1)
            else:
                infinite = self._literal(math.inf)
                values += [
                    f"coalesce({read}, CAST('nan' AS DOUBLE))",
                    f"CASE WHEN {read} <= {infinite} THEN {read} ELSE -{infinite} END",
                    self._dialect.clamped(read),
                ]
                self._places[feature.name] = ValuePlaces(n + 1, n + 2, n + 3)
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
        lists = TestLists(view, self._places, outcome)
        if not lists.tests:
            return lists.outcomes[0]
        kinds = ("INT", "INT", "DOUBLE", "DOUBLE", "INT", "INT")
        first, second, weight, limit, low, high = map(
            _list_of, zip(*lists.tests, strict=True), kinds
        )
        value = f"v.x[{first}[n]]"
        if any(test.second for test in lists.tests):
            place = f"CAST(v.x[{second}[n]] AS INT) - {first}[n]"
            total = f"{value} + {weight}[n] * v.x[{second}[n]]"
            value = f"CASE WHEN {second}[n] = 0 THEN {value}\n"
            if lists.places:
                value += f"WHEN {first}[n] < 0 THEN {_list_of(lists.places, 'DOUBLE')}[{place}]\n"
            value += f"ELSE {total} END"
        return (
            f"[{', '.join(lists.outcomes)}][-list_reduce(range(1, {lists.n_steps + 2}), "
            f"lambda n, i: CASE WHEN n < 0 THEN n\nWHEN {value} <= {limit}[n]\n"
            f"THEN {low}[n]\nELSE {high}[n] END)]"
        )


def _list_of(numbers: Sequence[float], kind: str) -> str:
    """A list as one literal, which is read much faster than literals of its numbers."""
    return f"CAST('[{','.join(map(exact, numbers))}]' AS {kind}[])"
