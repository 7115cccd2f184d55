"""Read the nodes of a model and their shape functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shapetree.data._open import MAX_ROWS
from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import PREFIX, AlignedParts, Lists, NotAModel, Part
from shapetree.model_file._format import Frame
from shapetree.model_file._read_sketches import read_sketches
from shapetree.tree._arrays import TreeArrays, links_of
from shapetree.tree._shape import PairShape, ShapeFunction, flatten_shapes

MAX_BRANCHES = 254
# Shares of classes may add up to 1 with this error.
SHARE_TOLERANCE = 1e-6
SPLIT_MEMBERS = ("features", "branches", "branch_of_piece", "missing_branch", "saw_missing")

Shape = ShapeFunction | PairShape


def read_tree(part: Part, frame: Frame) -> TreeArrays:
    """The tree of a list of nodes, which come level by level."""
    nodes = part.together()
    nodes.have_only("rows", "weight", "impurity", "value", "split", "sketch")
    n_rows = nodes.member("rows").integers(0, MAX_ROWS)
    impurity = nodes.member("impurity").numbers(low=0, is_finite=False)
    value = _read_values(nodes.member("value"), frame)
    shapes = _read_shapes(nodes, frame)
    n_branches = np.array([0 if shape is None else shape.n_branches for shape in shapes])
    links = _read_links(part, n_branches)
    parent = links["parent"]
    _check_rows(nodes, n_rows, parent)
    try:
        return TreeArrays(
            **links,
            **flatten_shapes(shapes),
            n_node_samples=n_rows,
            weighted_n_node_samples=_read_weights(nodes, n_rows),
            impurity=impurity,
            value=value,
            sketches=read_sketches(nodes, n_rows, parent, shapes, frame),
        )
    except NotAModel:
        raise
    except ValueError as error:
        raise NotAModel(f"{PREFIX}: {error}") from None


def _read_weights(nodes: AlignedParts, n_rows: np.ndarray) -> np.ndarray:
    """Weights of all nodes, which are their numbers of rows unless they are said."""
    weights = n_rows.astype(np.float64)
    told = nodes.having("weight")
    weights[told] = nodes.take(told).member("weight").numbers(low=0, is_finite=False)
    return weights


def _read_links(part: Part, n_branches: np.ndarray) -> dict[str, np.ndarray]:
    """Parents, children and depths of all nodes, given their branches."""
    total = int(n_branches.sum())
    if 1 + total != len(n_branches):
        part.refuse(f"must be one more than their branches, {total}, got {len(n_branches)}")
    links = links_of(n_branches)
    if (links["parent"][1:] >= np.arange(1, len(n_branches))).any():
        part.refuse("must come level by level, parents before their children")
    return links


def _check_rows(nodes: AlignedParts, n_rows: np.ndarray, parent: np.ndarray) -> None:
    if n_rows[0] == 0:
        nodes.part(0).member("rows").refuse("must be at least 1, got 0")
    below = np.zeros(len(n_rows), dtype=np.int64)
    np.add.at(below, parent[1:], n_rows[1:])
    splits = np.unique(parent[1:])
    is_wrong = below[splits] != n_rows[splits]
    if is_wrong.any():
        node = int(splits[np.argmax(is_wrong)])
        nodes.part(node).member("rows").refuse(
            f"must be those of its children, {below[node]}, got {n_rows[node]}"
        )


def _read_values(parts: AlignedParts, frame: Frame) -> np.ndarray:
    """What the nodes predict, an array of shape (n_nodes, n_outputs, n_values)."""
    outputs = parts.items(frame.n_outputs)
    value = outputs.number_lists(frame.n_values).values
    value = value.reshape(len(parts), frame.n_outputs, frame.n_values)
    for output, n in enumerate(frame.n_classes or ()):
        shares = value[:, output]
        is_share = (shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) <= SHARE_TOLERANCE)
        if not is_share.all():
            parts.part(int(np.argmin(is_share))).item(output).refuse(
                "must be shares of classes, which are not negative and add up to 1"
            )
        if shares[:, n:].any():
            node = int(np.argmax(shares[:, n:].any(axis=1)))
            parts.part(node).item(output).refuse(f"must be 0 beyond the {n} classes of its output")
    return value


def _read_shapes(nodes: AlignedParts, frame: Frame) -> list[Shape | None]:
    """The nodes' shape functions; None for those that do not split."""
    shapes: list[Shape | None] = [None] * len(nodes)
    numbers = nodes.having("split")
    splits = nodes.take(numbers).member("split")
    features = splits.member("features").integer_lists(0, len(frame.features) - 1)
    n_branches = splits.member("branches").integers(2, MAX_BRANCHES)
    pieces = splits.member("branch_of_piece").integer_lists(0, n_branches - 1)
    pieces.values = pieces.values.astype(np.int32)
    missing = splits.member("missing_branch").integers(0, n_branches - 1)
    common = [
        {
            "n_branches": n,
            "branch_of_piece": branches,
            "missing_branch": branch,
            "saw_missing": saw_missing,
        }
        for n, branches, branch, saw_missing in zip(
            n_branches.tolist(), pieces, missing.tolist(),
            splits.member("saw_missing").booleans(), strict=True,
        )
    ]  # fmt: skip
    singles: dict[int, int] = {}
    for i, its in enumerate(features):
        if len(its) == 1:
            singles[i] = int(its[0])
        elif len(its) == 2 and its[0] < its[1]:
            shapes[numbers[i]] = _read_pair(splits.part(i), frame, its.tolist(), common[i])
        else:
            splits.part(i).member("features").refuse(
                "must be one feature, or two in ascending order"
            )
    for i, shape in _read_singles(splits, singles, common, frame):
        shapes[numbers[i]] = shape
    return shapes


def _read_singles(
    splits: AlignedParts, feature_of: dict[int, int], common: list[dict[str, Any]], frame: Frame
) -> Iterator[tuple[int, ShapeFunction]]:
    """Shape functions of one feature, each with the number of its split."""
    for i in feature_of:
        if not len(common[i]["branch_of_piece"]):
            splits.part(i).member("branch_of_piece").refuse("must have at least one item")
    ordered = [i for i, f in feature_of.items() if frame.features[f].categories is None]
    with_axis = splits.take(ordered)
    with_axis.have_only(*SPLIT_MEMBERS, "thresholds")
    n_pieces = np.array([len(common[i]["branch_of_piece"]) for i in ordered], dtype=np.int64)
    thresholds = with_axis.member("thresholds").ascending_lists(n_pieces - 1, is_strict=True)
    # The last piece of each has no bound.
    upper = Lists(np.insert(thresholds.values, thresholds.start[1:], np.inf), n_pieces)
    for i, its_upper in zip(ordered, upper, strict=True):
        yield i, ShapeFunction(feature=feature_of[i], upper=its_upper, **common[i])
    for i, feature in feature_of.items():
        categories = frame.features[feature].categories
        if categories is not None:
            part = splits.part(i)
            part.has_only(*SPLIT_MEMBERS)
            part.member("branch_of_piece").has_length(len(categories))
            yield i, ShapeFunction(feature=feature, upper=None, **common[i])


def _read_pair(part: Part, frame: Frame, features: list[int], common: dict[str, Any]) -> PairShape:
    part.has_only(*SPLIT_MEMBERS, "cuts", "positions")
    n_cuts = part.member("cuts").has_length(max(1, len(common["branch_of_piece"]) - 1))
    part.member("branch_of_piece").has_length(n_cuts + 1)
    if any(frame.features[feature].is_date for feature in features):
        part.member("features").refuse("must not pair a feature of dates with another")
    cuts = part.member("cuts").together()
    cuts.have_only("a", "b", "threshold", "low", "high")
    a, b = cuts.member("a").integers(0, 1), cuts.member("b").numbers()
    _check_slopes(cuts, a, b, [frame.features[feature] for feature in features])
    positions = [
        _read_positions(positions, frame.features[feature])
        for positions, feature in zip(part.member("positions").items(2), features, strict=True)
    ]
    low, high = (_read_targets_of_cuts(cuts, side) for side in ("low", "high"))
    if len(np.unique(np.append(low, high))) < 2 * n_cuts:
        part.member("cuts").refuse("must lead to every later cut and to every piece once")
    return PairShape(
        first=features[0],
        second=features[1],
        cut_a=a.astype(np.float64),
        cut_b=b,
        cut_threshold=cuts.member("threshold").numbers(),
        cut_low=low,
        cut_high=high,
        positions=(positions[0], positions[1]),
        **common,
    )


def _check_slopes(
    cuts: AlignedParts, a: np.ndarray, b: np.ndarray, features: list[FeatureInfo]
) -> None:
    """Refuse cuts in a direction that the features of a pair cannot have."""
    is_wrong = (a == 0) & (b != 1)
    if is_wrong.any():
        cut = int(np.argmax(is_wrong))
        cuts.part(cut).member("b").refuse(f"must be 1 where a is 0, got {b[cut]}")
    is_wrong = (a == 1) & (b != 0)
    if is_wrong.any() and any(feature.categories is not None for feature in features):
        cut = int(np.argmax(is_wrong))
        cuts.part(cut).member("b").refuse(
            f"must be 0 where a is 1 and a feature has categories, got {b[cut]}"
        )


def _read_targets_of_cuts(cuts: AlignedParts, side: str) -> np.ndarray:
    n = len(cuts)
    targets = cuts.member(side).integers(-n - 1, n - 1)
    is_wrong = (targets >= 0) & (targets <= np.arange(n))
    if is_wrong.any():
        cuts.part(int(np.argmax(is_wrong))).member(side).refuse("must be a later cut, or a piece")
    return targets.astype(np.int32)


def _read_positions(part: Part, info: FeatureInfo) -> np.ndarray:
    positions = part.numbers(len(info.categories or ()), is_finite=False)
    if np.isinf(positions).any():
        part.refuse("must be numbers, or NaN for categories that count as missing")
    if info.categories is not None and np.isnan(positions).all():
        part.refuse("must have a number for some category")
    return positions
