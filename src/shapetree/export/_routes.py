"""Where a tree sends rows, as a list of checks: what the exporters of source code write down.

A node's largest subtree stands last, after the checks for the others. So the checks are nested only
as deep as the logarithm of the number of leaves, however deep the tree: databases and parsers
allow few levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

from shapetree.data._columns import GREATEST
from shapetree.data._table import FeatureInfo
from shapetree.tree._fitted import TreeOrForest
from shapetree.tree._regions import Bound, Segment
from shapetree.tree._view import NodeView, TreeView

# Bounds that hold together; without any, all values that are not missing.
Way: TypeAlias = tuple[Bound, ...]
# How to get to each branch.
Ways: TypeAlias = dict[int, tuple[Way, ...]]


def reasons_of(view: TreeView, number: int) -> str:
    """The features that lead to a node, from the root on, as one text."""
    return "; ".join(view.reasons(number))


def remark(model: TreeOrForest, has_dates: bool = False) -> str:
    """What a program predicts, and what numbers it takes; empty where there is nothing to say.

    A program that has dates needs no numbers in their place.
    """
    names = model.names
    said = [f"predicts {' and '.join(names.name_targets(True) or ())}"] if names.targets else []
    inputs = {name: unit for name, unit in names.units.items() if name not in (names.targets or ())}
    said += [f"{name} is in {unit}" for name, unit in inputs.items()]
    if not has_dates and any(feature.is_date for feature in features_read(model)):
        said.append("takes dates as seconds since 1970-01-01 00:00 UTC")
    # On one line, which whatever counts as white space cannot end.
    return " ".join("; ".join(said).encode("utf-8", "replace").decode("utf-8").split())


@dataclass(frozen=True)
class Check:
    """What rows have to satisfy: no feature of the node is missing, and one of the ways holds."""

    node: NodeView
    ways: tuple[Way, ...]
    is_negated: bool = False  # rows must not satisfy all this; then missing values pass


@dataclass(frozen=True)
class Plan:
    """A tree as checks, to be made one after the other until one of them holds."""

    steps: tuple[tuple[Check, Plan], ...]  # what to go on with if the check holds
    otherwise: str  # the outcome if none of them does


def plan_for(view: TreeView, outcome: Callable[[NodeView], str]) -> Plan:
    """Plan that leads to the outcomes of the leaves; where all are the same, nothing is checked."""
    ways = [ways_by_branch(node) for node in view.nodes]
    outcomes = _outcomes(view, ways, outcome)
    nesting = _nesting(view, ways)

    def plan(number: int) -> Plan:
        steps = []
        while (reached := outcomes[number]) is None:
            node, missing = view.nodes[number], view.nodes[number].missing_branch
            child_of = {branch: node.children[branch] for branch in ways[number]}
            last = max(child_of, key=lambda b: (nesting[child_of[b]], b == missing))
            for branch, child in child_of.items():
                if branch not in (last, missing):
                    steps.append((Check(node, ways[number][branch]), plan(child)))
            if missing is not None and missing != last:
                # What is left goes to the last branch or, missing or not, to this one.
                check = Check(node, ways[number][last], is_negated=True)
                steps.append((check, plan(child_of[missing])))
            number = child_of[last]
        return Plan(tuple(steps), reached)

    return plan(0)


def _outcomes(
    view: TreeView, ways: list[Ways], outcome: Callable[[NodeView], str]
) -> dict[int, str | None]:
    """The one outcome that is possible below each node; None if there are several."""
    found: dict[int, str | None] = {}
    for node in reversed(view.nodes):  # children have greater numbers than their parents
        below = {found[node.children[branch]] for branch in ways[node.number]}
        if node.is_leaf:
            found[node.number] = outcome(node)
        else:
            found[node.number] = below.pop() if len(below) == 1 else None
    return found


def _nesting(view: TreeView, ways: list[Ways]) -> dict[int, int]:
    """How deep plans are nested within each node's plan, if the deepest always comes last."""
    levels: dict[int, int] = {}
    for node in reversed(view.nodes):
        below = sorted((levels[node.children[b]] for b in ways[node.number]), reverse=True)
        levels[node.number] = max([*below[:1], *(1 + level for level in below[1:])], default=0)
    return levels


def ways_by_branch(node: NodeView) -> Ways:
    """How to get to each branch; only missing values need none, other branches are left out."""
    parts: list[tuple[int, Way]] = [
        *((segment.branch, (segment,)) for segment in _merged(node.segments)),
        *((region.branch, tuple(map(_simplified, region.bounds))) for region in node.regions),
    ]
    ways: dict[int, list[Way]] = {}
    for branch, bounds in parts:
        if not any(map(_is_empty, bounds)):
            way = tuple(bound for bound in bounds if not _is_everything(bound))
            ways.setdefault(branch, []).append(way)
    if node.missing_branch is not None:
        ways.setdefault(node.missing_branch, [])
    return {branch: tuple(ways[branch]) for branch in sorted(ways)}


def features_read(model: TreeOrForest) -> list[FeatureInfo]:
    """Features that some tree reads, in the order of the table."""
    return [model.shown_features[j] for j in model.used_features]


def used_features(model: TreeOrForest) -> list[FeatureInfo]:
    """The same features, whose names must differ."""
    features = features_read(model)
    require_distinct([feature.name for feature in features])
    return features


def require_plain(value: Any, language: str) -> None:
    """Refuse labels that are no values of other languages."""
    if not isinstance(value, str | bool | int | float):
        raise TypeError(
            f"classes must be text, numbers or bools to be written as {language}, got {value!r}"
        )


def require_distinct(names: Iterable[str], advice: str = "rename them") -> None:
    """Refuse names by which rows cannot be read."""
    for one, other in pairwise(sorted(names)):
        if one == other:
            raise ValueError(f"two features are both named {one!r}; {advice}")


def _merged(segments: tuple[Segment, ...]) -> list[Segment]:
    """The segments, neighbours of the same branch as one."""
    merged: list[Segment] = []
    for segment in segments:
        if merged and segment.categories is None and merged[-1].branch == segment.branch:
            merged[-1] = replace(merged[-1], high=segment.high)
        else:
            merged.append(segment)
    return merged


def _simplified(bound: Bound) -> Bound:
    """The same bound for values that may be infinite, which a pair takes for the greatest ones."""
    if bound.categories is not None or bound.side is None:
        return bound
    return replace(
        bound,
        low=bound.low if bound.low < GREATEST else math.inf,
        high=bound.high if bound.high < GREATEST else math.inf,
    )


def _is_empty(bound: Bound) -> bool:
    return bound.low >= bound.high if bound.categories is None else not bound.categories


def _is_everything(bound: Bound) -> bool:
    return bound.categories is None and bound.low == -math.inf and bound.high == math.inf
