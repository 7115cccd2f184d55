"""Read the nodes of a model and their shape functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import PREFIX, AlignedParts, Json, Lists, NotAModel, Part
from shapetree.model_file._format import Frame, features_kind, node_kinds
from shapetree.model_file._read_sketches import NodeGroup, read_sketches
from shapetree.tree._arrays import TreeArrays, links_of
from shapetree.tree._shape import PairShape, ShapeFunction, flatten_shapes

# Shares of classes may add up to 1 with this error.
SHARE_TOLERANCE = 1e-6

Shape = ShapeFunction | PairShape


def read_tree(part: Part, frame: Frame) -> TreeArrays:
    """The tree of a list of nodes, which come level by level."""
    nodes = part.together()
    groups = _read_groups(nodes, frame)
    order = np.argsort(np.concatenate([np.array(its.numbers, int) for its in groups.values()]))

    def of_all(read: Callable[[Json], np.ndarray]) -> np.ndarray:
        """What all nodes say, in their order."""
        return np.concatenate([read(its.told) for its in groups.values()])[order]

    n_rows = of_all(lambda told: told["rows"])
    impurity = of_all(lambda told: told["impurity"])
    shape = (-1, frame.n_outputs or 1, frame.n_values or 1)
    value = of_all(lambda told: told["value"].values.values.reshape(shape))
    _check_values(nodes, value, frame)
    weights = n_rows.astype(np.float64)
    for its in groups.values():
        weighted, told_weights = its.told["weight"]
        weights[np.array(its.numbers, int)[weighted]] = told_weights
    shapes: list[Shape | None] = [None] * len(nodes)
    for name, its in groups.items():
        for number, its_shape in zip(its.numbers, _SHAPES[name](its, frame), strict=True):
            shapes[number] = its_shape
    n_branches = np.array([0 if shape is None else shape.n_branches for shape in shapes])
    links = _find_links(part, n_branches)
    parent = links["parent"]
    _check_rows(nodes, n_rows, parent)
    try:
        return TreeArrays(
            **links,
            **flatten_shapes(shapes),
            n_node_samples=n_rows,
            weighted_n_node_samples=weights,
            impurity=impurity,
            value=value,
            sketches=read_sketches(nodes, groups, n_rows, parent, shapes, frame),
        )
    except NotAModel:
        raise
    except ValueError as error:
        raise NotAModel(f"{PREFIX}: {error}") from None


def _read_groups(nodes: AlignedParts, frame: Frame) -> dict[str, NodeGroup]:
    """Nodes by their kind, which the features of their split tell."""
    if not nodes.are_all(dict):
        for part in nodes:
            part.as_object()
    kinds = node_kinds(frame)
    numbers: dict[str, list[int]] = {name: [] for name in kinds}
    having = nodes.having("split")
    splits = nodes.take(having).member("split")
    each = features_kind(frame).read_all(splits.member("features"))
    name_of = dict.fromkeys(range(len(nodes)), "leaf")
    for i, its in enumerate(each):
        if len(its) == 1:
            is_ordered = frame.features[int(its[0])].categories is None
            name_of[having[i]] = "ordered" if is_ordered else "categorical"
        elif len(its) == 2 and its[0] < its[1]:
            name_of[having[i]] = "pair"
        else:
            splits.part(i).member("features").refuse(
                "must be one feature, or two in ascending order"
            )
    for number, name in name_of.items():
        numbers[name].append(number)
    parts = {name: nodes.take(its) for name, its in numbers.items()}
    return {
        name: NodeGroup(numbers[name], parts[name], kind.read_all(parts[name]))
        for name, kind in kinds.items()
        if numbers[name]
    }


def _find_links(part: Part, n_branches: np.ndarray) -> dict[str, np.ndarray]:
    """Parents, children and depths of all nodes, given their branches."""
    total = int(n_branches.sum())
    if 1 + total != len(n_branches):
        part.refuse(f"must be one more than their branches, {total}, got {len(n_branches)}")
    links = links_of(n_branches)
    if (links["parent"][1:] >= np.arange(1, len(n_branches))).any():
        part.refuse("must come level by level, parents before their children")
    return links


def _check_rows(nodes: AlignedParts, n_rows: np.ndarray, parent: np.ndarray) -> None:
    nodes.refuse_where(n_rows[:1] == 0, "must be at least 1, got 0", "rows")
    below = np.zeros(len(n_rows), dtype=np.int64)
    np.add.at(below, parent[1:], n_rows[1:])
    has_children = np.bincount(parent[1:], minlength=len(n_rows)) > 0
    nodes.refuse_where(
        has_children & (below != n_rows),
        lambda node: f"must be those of its children, {below[node]}, got {n_rows[node]}",
        "rows",
    )


def _check_values(nodes: AlignedParts, value: np.ndarray, frame: Frame) -> None:
    """Refuse what are no shares of classes, in values of shape (n_nodes, n_outputs, n_values)."""
    for output, n in enumerate(frame.n_classes or ()):
        shares = value[:, output]
        is_share = (shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) <= SHARE_TOLERANCE)
        reason = "must be shares of classes, which are not negative and add up to 1"
        nodes.refuse_where(~is_share, reason, "value", output)
        reason = f"must be 0 beyond the {n} classes of its output"
        nodes.refuse_where(shares[:, n:].any(axis=1), reason, "value", output)


def _splits_of(group: NodeGroup) -> tuple[AlignedParts, list[dict[str, Any]]]:
    """Where the splits of nodes are in the file, and what shape functions of all kinds have."""
    splits, told = group.parts.member("split"), group.told["split"]
    n_branches, pieces = told["branches"], told["branch_of_piece"]
    branches = splits.member("branch_of_piece").items()
    branches.within(pieces.values, 0, np.repeat(n_branches, pieces.lengths) - 1)
    pieces.values = pieces.values.astype(np.int32)
    missing = splits.member("missing_branch").within(told["missing_branch"], 0, n_branches - 1)
    names = "n_branches", "branch_of_piece", "missing_branch", "saw_missing"
    each = zip(n_branches.tolist(), pieces, missing.tolist(), told["saw_missing"], strict=True)
    return splits, [dict(zip(names, its, strict=True)) for its in each]


def _make_ordered(group: NodeGroup, frame: Frame) -> list[ShapeFunction]:
    splits, common = _splits_of(group)
    told = group.told["split"]
    n_pieces, thresholds = told["branch_of_piece"].lengths, told["thresholds"]
    splits.member("thresholds").have_lengths(thresholds.lengths, n_pieces - 1)
    # The last piece of each has no bound.
    upper = Lists(np.insert(thresholds.values, thresholds.start[1:], np.inf), n_pieces)
    return [
        ShapeFunction(feature=feature, upper=its_upper, **its)
        for feature, its_upper, its in zip(
            told["features"].values.tolist(), upper, common, strict=True
        )
    ]


def _make_categorical(group: NodeGroup, frame: Frame) -> list[ShapeFunction]:
    splits, common = _splits_of(group)
    told, infos = group.told["split"], frame.features
    features = told["features"].values.tolist()
    n_categories = np.array([len(infos[feature].categories or ()) for feature in features], int)
    splits.member("branch_of_piece").have_lengths(told["branch_of_piece"].lengths, n_categories)
    return [
        ShapeFunction(feature=feature, upper=None, **its)
        for feature, its in zip(features, common, strict=True)
    ]


def _make_pairs(group: NodeGroup, frame: Frame) -> list[PairShape]:
    splits, common = _splits_of(group)
    told, infos = group.told["split"], frame.features
    cuts, n_pieces = told["cuts"], told["branch_of_piece"].lengths
    splits.member("cuts").have_lengths(cuts.lengths, np.maximum(1, n_pieces - 1))
    splits.member("branch_of_piece").have_lengths(n_pieces, cuts.lengths + 1)
    pairs = told["features"].values.reshape(-1, 2).tolist()
    positions = iter(told["positions"].values)
    made = []
    for i, (features, start, stop) in enumerate(
        zip(pairs, cuts.start[:-1].tolist(), cuts.start[1:].tolist(), strict=True)
    ):
        part, its_infos = splits.part(i), [infos[feature] for feature in features]
        if any(info.is_date for info in its_infos):
            part.member("features").refuse("must not pair a feature of dates with another")
        its = {name: column[start:stop] for name, column in cuts.values.items()}
        _check_cuts(part.member("cuts"), its, its_infos)
        on_axes = part.member("positions").together()
        made.append(
            PairShape(
                first=features[0],
                second=features[1],
                cut_a=its["a"].astype(np.float64),
                cut_b=its["b"],
                cut_threshold=its["threshold"],
                cut_low=its["low"].astype(np.int32),
                cut_high=its["high"].astype(np.int32),
                positions=(
                    _check_positions(on_axes.part(0), next(positions), its_infos[0]),
                    _check_positions(on_axes.part(1), next(positions), its_infos[1]),
                ),
                **common[i],
            )
        )
    return made


_SHAPES: dict[str, Callable[[NodeGroup, Frame], list[Any]]] = {
    "leaf": lambda group, _: [None] * len(group.numbers),
    "ordered": _make_ordered,
    "categorical": _make_categorical,
    "pair": _make_pairs,
}


def _check_cuts(part: Part, cuts: dict[str, np.ndarray], infos: list[FeatureInfo]) -> None:
    """Refuse cuts in a direction that the features of a pair cannot have, or that lead nowhere."""
    a, b, parts = cuts["a"], cuts["b"], part.together()
    n_cuts = len(parts)
    parts.refuse_where(
        (a == 0) & (b != 1), lambda cut: f"must be 1 where a is 0, got {b[cut]}", "b"
    )
    if any(info.categories is not None for info in infos):
        reason = "must be 0 where a is 1 and a feature has categories, got"
        parts.refuse_where((a == 1) & (b != 0), lambda cut: f"{reason} {b[cut]}", "b")
    for side in ("low", "high"):
        targets = parts.member(side).within(cuts[side], -n_cuts - 1, n_cuts - 1)
        is_wrong = (targets >= 0) & (targets <= np.arange(n_cuts))
        parts.refuse_where(is_wrong, "must be a later cut, or a piece", side)
    if len(np.unique(np.append(cuts["low"], cuts["high"]))) < 2 * n_cuts:
        part.refuse("must lead to every later cut and to every piece once")


def _check_positions(part: Part, positions: np.ndarray, info: FeatureInfo) -> np.ndarray:
    part.has_length(len(info.categories or ()))
    if info.categories is not None and np.isnan(positions).all():
        part.refuse("must have a number for some category")
    return positions
