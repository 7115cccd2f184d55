"""Read the nodes of a model and their shape functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from shapetree.data._table import MAX_ROWS, FeatureInfo
from shapetree.model_file._check import PREFIX, NotAModel, Part
from shapetree.model_file._model import Frame
from shapetree.model_file._sketches import read_sketches
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._shape import PairShape, ShapeFunction, flatten_shapes

MAX_BRANCHES = 254
# Shares of classes may add up to 1 with this error.
SHARE_TOLERANCE = 1e-6
SPLIT_MEMBERS = ("features", "branches", "branch_of_piece", "missing_branch", "saw_missing")

Shape = ShapeFunction | PairShape


def read_tree(part: Part, frame: Frame) -> TreeArrays:
    """The tree of a list of nodes, which come level by level."""
    nodes = part.items()
    for node in nodes:
        node.has_only("rows", "weight", "impurity", "value", "split", "sketch")
    n_rows = [node.member("rows").integer(0, MAX_ROWS) for node in nodes]
    weights = [_read_weight(node, rows) for node, rows in zip(nodes, n_rows, strict=True)]
    impurity = [node.member("impurity").number(low=0, is_finite=False) for node in nodes]
    value = _read_values([node.member("value") for node in nodes], frame)
    shapes = [_read_shape(node.optional("split"), frame) for node in nodes]
    n_branches = np.array([0 if shape is None else shape.n_branches for shape in shapes])
    parent = _read_parents(part, n_branches)
    _check_rows(nodes, n_rows, parent)
    try:
        return TreeArrays(
            parent=parent,
            depth=_depths(parent),
            first_child=np.where(n_branches == 0, -1, 1 + np.cumsum(n_branches) - n_branches),
            n_branches=n_branches,
            **flatten_shapes(shapes),
            n_node_samples=np.array(n_rows),
            weighted_n_node_samples=np.array(weights),
            impurity=np.array(impurity),
            value=value,
            sketches=read_sketches(nodes, n_rows, parent, shapes, frame),
        )
    except NotAModel:
        raise
    except ValueError as error:
        raise NotAModel(f"{PREFIX}: {error}") from None


def _read_weight(node: Part, n_rows: int) -> float:
    weight = node.optional("weight")
    return n_rows if weight is None else weight.number(low=0, is_finite=False)


def _read_parents(part: Part, n_branches: np.ndarray) -> np.ndarray:
    """The parent of each node, -1 for the root."""
    total = int(n_branches.sum())
    if 1 + total != len(n_branches):
        part.refuse(f"must be one more than their branches, {total}, got {len(n_branches)}")
    parent = np.append(-1, np.repeat(np.arange(len(n_branches)), n_branches))
    if (parent[1:] >= np.arange(1, len(parent))).any():
        part.refuse("must come level by level, parents before their children")
    return parent


def _depths(parent: np.ndarray) -> np.ndarray:
    depths = [0] * len(parent)
    for node, above in enumerate(parent[1:].tolist(), start=1):
        depths[node] = depths[above] + 1
    return np.array(depths)


def _check_rows(nodes: list[Part], n_rows: list[int], parent: np.ndarray) -> None:
    if n_rows[0] == 0:
        nodes[0].member("rows").refuse("must be at least 1, got 0")
    below = [0] * len(nodes)
    for node, above in enumerate(parent[1:].tolist(), start=1):
        below[above] += n_rows[node]
    for node in np.unique(parent[1:]).tolist():
        if n_rows[node] != below[node]:
            nodes[node].member("rows").refuse(
                f"must be those of its children, {below[node]}, got {n_rows[node]}"
            )


def _read_values(parts: list[Part], frame: Frame) -> np.ndarray:
    """What the nodes predict, an array of shape (n_nodes, n_outputs, n_values)."""
    value = np.array(
        [
            [output.numbers(frame.n_values) for output in part.items(frame.n_outputs)]
            for part in parts
        ]
    ).reshape(len(parts), frame.n_outputs, frame.n_values)
    for output, n in enumerate(frame.n_classes or ()):
        shares = value[:, output]
        is_share = (shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) <= SHARE_TOLERANCE)
        if not is_share.all():
            parts[int(np.argmin(is_share))].items()[output].refuse(
                "must be shares of classes, which are not negative and add up to 1"
            )
        if shares[:, n:].any():
            node = int(np.argmax(shares[:, n:].any(axis=1)))
            parts[node].items()[output].refuse(f"must be 0 beyond the {n} classes of its output")
    return value


def _read_shape(part: Part | None, frame: Frame) -> Shape | None:
    """A node's shape function; None if it does not split."""
    if part is None:
        return None
    features = part.member("features").integers(0, len(frame.features) - 1).tolist()
    n_branches = part.member("branches").integer(2, MAX_BRANCHES)
    branch_of_piece = part.member("branch_of_piece").integers(0, n_branches - 1)
    common: dict[str, Any] = {
        "n_branches": n_branches,
        "branch_of_piece": branch_of_piece.astype(np.int32),
        "missing_branch": part.member("missing_branch").integer(0, n_branches - 1),
        "saw_missing": part.member("saw_missing").boolean(),
    }
    if len(features) == 2 and features[0] < features[1]:
        part.has_only(*SPLIT_MEMBERS, "cuts", "positions")
        return _read_pair(part, frame, features, common)
    if len(features) != 1:
        part.member("features").refuse("must be one feature, or two in ascending order")
    info = frame.features[features[0]]
    part.has_only(*SPLIT_MEMBERS, *(("thresholds",) if info.categories is None else ()))
    return _read_single(part, info, features[0], common)


def _read_single(
    part: Part, info: FeatureInfo, feature: int, common: dict[str, Any]
) -> ShapeFunction:
    pieces, n_pieces = part.member("branch_of_piece"), len(common["branch_of_piece"])
    if info.categories is not None:
        pieces.has_length(len(info.categories))
    if not n_pieces:
        pieces.refuse("must have at least one item")
    if info.categories is not None:
        return ShapeFunction(feature=feature, upper=None, **common)
    thresholds = part.member("thresholds").ascending(n_pieces - 1, is_strict=True)
    return ShapeFunction(feature=feature, upper=np.append(thresholds, np.inf), **common)


def _read_pair(part: Part, frame: Frame, features: list[int], common: dict[str, Any]) -> PairShape:
    cuts = part.member("cuts").items(max(1, len(common["branch_of_piece"]) - 1))
    part.member("branch_of_piece").has_length(len(cuts) + 1)
    if any(frame.features[feature].is_date for feature in features):
        part.member("features").refuse("must not pair a feature of dates with another")
    is_plain = all(frame.features[feature].categories is None for feature in features)
    for cut in cuts:
        cut.has_only("a", "b", "threshold", "low", "high")
        a, b = cut.member("a").integer(0, 1), cut.member("b").number()
        if a == 0 and b != 1:
            cut.member("b").refuse(f"must be 1 where a is 0, got {b}")
        if a == 1 and b != 0 and not is_plain:
            cut.member("b").refuse(f"must be 0 where a is 1 and a feature has categories, got {b}")
    positions = [
        _read_positions(positions, frame.features[feature])
        for positions, feature in zip(part.member("positions").items(2), features, strict=True)
    ]
    low, high = (_read_targets_of_cuts(cuts, side) for side in ("low", "high"))
    if len({*low.tolist(), *high.tolist()}) < 2 * len(cuts):
        part.member("cuts").refuse("must lead to every later cut and to every piece once")
    return PairShape(
        first=features[0],
        second=features[1],
        cut_a=np.array([cut.member("a").number() for cut in cuts]),
        cut_b=np.array([cut.member("b").number() for cut in cuts]),
        cut_threshold=np.array([cut.member("threshold").number() for cut in cuts]),
        cut_low=low,
        cut_high=high,
        positions=(positions[0], positions[1]),
        **common,
    )


def _read_targets_of_cuts(cuts: list[Part], side: str) -> np.ndarray:
    n = len(cuts)
    targets = [cut.member(side).integer(-n - 1, n - 1) for cut in cuts]
    for number, (cut, target) in enumerate(zip(cuts, targets, strict=True)):
        if 0 <= target <= number:
            cut.member(side).refuse("must be a later cut, or a piece")
    return np.array(targets, dtype=np.int32)


def _read_positions(part: Part, info: FeatureInfo) -> np.ndarray:
    positions = part.numbers(len(info.categories or ()), is_finite=False)
    if np.isinf(positions).any():
        part.refuse("must be numbers, or NaN for categories that count as missing")
    if info.categories is not None and np.isnan(positions).all():
        part.refuse("must have a number for some category")
    return positions
