"""Shape functions as binary tests, for formats that have no others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from shapetree.data._columns import GREATEST
from shapetree.data._missing import MISSING_CODE
from shapetree.tree._regions import AXES
from shapetree.tree._view import NodeView

Weights: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Fork:
    """A test of one column: values up to and including the threshold go low, others high."""

    column: int
    threshold: float
    low: Decision
    high: Decision
    missing_is_low: bool = False


# What a test leads to: a further one, or a result.
Decision: TypeAlias = Fork | int
# What the child with some number means to a format.
Follow: TypeAlias = Callable[[int], Decision]


def search(
    column: int, uppers: Sequence[float], results: Sequence[Decision], home: int = 0
) -> Decision:
    """Find the piece of an axis that a value lies in, by halving; `home` is that of missing values.

    `uppers` are the greatest values of the pieces, ascending; the last one is not tested. `results`
    are what pieces lead to.
    """

    def between(first: int, last: int) -> Decision:
        if first == last:
            return results[first]
        middle = (first + last) // 2
        low, high = between(first, middle), between(middle + 1, last)
        return Fork(column, uppers[middle], low, high, home <= middle)

    return between(0, len(results) - 1)


def _unless_missing(column: int, present: Decision, missing: Decision) -> Decision:
    """Only NaN is not at most infinite."""
    return Fork(column, math.inf, present, missing)


# --- one feature ---


def pieces_of(node: NodeView) -> tuple[list[float], list[int]]:
    """Upper bounds and branches along the axis of a node's feature.

    A categorical feature's axis has the categories' codes, and that of missing values.
    """
    (feature,) = node.features
    if feature.categories is None:
        return [part.high for part in node.segments], [part.branch for part in node.segments]
    assert node.missing_branch is not None
    branch_of = {level: part.branch for part in node.segments for level in part.categories or ()}
    branches = [node.missing_branch]
    for level in feature.categories:
        # A category that does not come here makes no piece of its own.
        branches.append(branch_of.get(level, branches[-1]))
    ends = [i for i, pair in enumerate(pairwise(branches)) if pair[0] != pair[1]]
    uppers = [float(MISSING_CODE + i) for i in ends]
    return [*uppers, math.inf], [*(branches[i] for i in ends), branches[-1]]


def fork_on_feature(node: NodeView, column: int, follow: Follow) -> Decision:
    """Tests of a node with one feature, which stands in a column."""
    uppers, branches = pieces_of(node)
    results = {branch: follow(node.children[branch]) for branch in set(branches)}
    home = node.missing_branch
    assert home is not None
    found = [results[branch] for branch in branches]
    if home in results:
        return search(column, uppers, found, branches.index(home))
    return _unless_missing(column, search(column, uppers, found), follow(node.children[home]))


def fork_on_levels(code_of: Mapping[float, int]) -> Decision:
    """Tests of column 0 that result in the code of its value, or in that of missing ones.

    Known values ascend.
    """
    uppers: list[float] = []
    codes: list[int] = []
    for value, code in code_of.items():
        below = math.nextafter(value, -math.inf)
        if below < value and (not uppers or below > uppers[-1]):
            uppers.append(below)
            codes.append(MISSING_CODE)
        uppers.append(value)
        codes.append(code)
    if math.inf not in code_of:
        uppers.append(math.inf)
        codes.append(MISSING_CODE)
    return search(0, uppers, codes, codes.index(MISSING_CODE))


# --- pairs ---


def oblique_weights(node: NodeView) -> list[Weights]:
    """Weights of the sums that a pair's regions are bounded by, without the features themselves."""
    found = {bound.weights: None for bound in node.bounds}
    oblique = [weights for weights in found if weights not in AXES]
    if oblique and any(feature.is_categorical for feature in node.features):
        raise ValueError(f"node {node.number} weighs a category as if it was a number")
    return oblique


def places_of(node: NodeView, side: int) -> list[float]:
    """A place on the axis for each category of a pair's feature; NaN if it counts as missing.

    All categories between the same two cuts share the upper one as their place.
    """
    categories = node.features[side].categories
    assert categories is not None
    place = dict.fromkeys(categories, math.inf)
    for bound in node.bounds:
        if bound.weights == AXES[side]:
            for level in bound.categories or ():
                place[level] = min(place[level], bound.high)
    place.update(dict.fromkeys(node.missing_categories[side], math.nan))
    return list(place.values())


def fork_on_pair(
    node: NodeView,
    columns: tuple[int, int],
    sums: Mapping[Weights, int],
    follow: Follow,
) -> Decision:
    """Tests of a node with a pair of features: numbers or places of categories, in two columns.

    `sums` has the columns of weighted sums.
    """
    column_of = {**dict(zip(AXES, columns, strict=True)), **sums}
    assert node.missing_branch is not None
    missing = follow(node.children[node.missing_branch])
    inside = _fork_at_cuts(node, column_of, [follow(child) for child in node.children])
    first, second = columns
    return _unless_missing(first, _unless_missing(second, inside, missing), missing)


def _fork_at_cuts(
    node: NodeView, column_of: Mapping[Weights, int], results: Sequence[Decision]
) -> Decision:
    """Tests of a pair's cuts, except those whose sides lead to the same branch."""
    # What cuts, by their numbers, and regions lead to: a branch, None if to several, and the tests.
    reached: dict[int, tuple[int | None, Decision]] = {
        -1 - number: (region.branch, results[region.branch])
        for number, region in enumerate(node.regions)
    }
    for number in reversed(range(len(node.cuts))):  # cuts come before those of their sides
        cut = node.cuts[number]
        (branch, low), (other, high) = reached[cut.low], reached[cut.high]
        if branch is not None and branch == other:
            reached[number] = branch, low
            continue
        # Infinite values count as the greatest finite one, so they are not above it.
        is_last = cut.threshold == GREATEST and cut.weights in AXES
        limit = math.inf if is_last else cut.threshold
        reached[number] = None, Fork(column_of[cut.weights], limit, low, high)
    return reached[0][1]
