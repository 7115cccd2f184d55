"""Read the nodes of a model: their shape functions, and sketches of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import PREFIX, AlignedParts, Json, Lists, NotAModel, Part
from shapetree.model_file._format import Frame, features_kind, node_kinds
from shapetree.model_file._kinds import INT32, SparseMember
from shapetree.tree._arrays import TreeArrays, links_of
from shapetree.tree._shape import PairShape, ShapeFunction, flatten_shapes, starts
from shapetree.tree._sketch import MAX_DENSE, Density, NodeSketch, PackedCounts, Scatter, packed

# Shares of classes may add up to 1 with this error.
SHARE_TOLERANCE = 1e-6

Shape = ShapeFunction | PairShape


class NodeGroup(NamedTuple):
    """Nodes of a kind: their numbers in the tree, where they are in the file, and what they say."""

    numbers: list[int]
    parts: AlignedParts
    told: Json


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


# --- sketches ---


def read_sketches(
    nodes: AlignedParts,
    groups: Mapping[str, NodeGroup],
    n_rows: np.ndarray,
    parent: np.ndarray,
    shapes: Sequence[ShapeFunction | PairShape | None],
    frame: Frame,
) -> tuple[NodeSketch, ...] | None:
    """Sketches of all nodes; None if they have none."""
    if not frame.has_sketches:
        return None
    counted = n_rows.astype(np.int64) * frame.steps
    nodes.refuse_where(
        counted > INT32,
        f"must be at most {INT32 // frame.steps} where each row has {frame.steps} steps",
        "rows",
    )
    counts = _read_counts(groups["leaf"], counted, parent, frame)
    of_nodes: list[dict[str, Any]] = [{"counts": its} for its in counts]
    for group in groups.values():
        for name, its in group.told["sketch"].items():
            if name in ("mean", "deviation", "skewness", "median", "weighed", "squared_weights"):
                is_sparse = isinstance(its, SparseMember)
                for i, values in its.each().items() if is_sparse else enumerate(its):
                    of_nodes[group.numbers[i]][name] = values
    for name in groups.keys() & {"ordered", "categorical"}:
        for number, density in _read_densities(groups[name], shapes, counts, counted, frame):
            of_nodes[number]["density"] = density
    if "pair" in groups:
        for number, scatter in _read_scatters(groups["pair"], shapes, n_rows, frame):
            of_nodes[number]["scatter"] = scatter
    return tuple(map(_make_sketch, of_nodes))


def _make_sketch(told: dict[str, Any]) -> NodeSketch:
    for name in {"mean", "deviation", "skewness", "squared_weights"} & told.keys():
        told[name] = float(told[name])
    middle = tuple(told.pop("median").tolist()) if "median" in told else None
    return NodeSketch(middle=middle, **told)


def _read_counts(
    leaves: NodeGroup, n_rows: np.ndarray, parent: np.ndarray, frame: Frame
) -> np.ndarray:
    """Counts of all nodes: those of leaves, and for the others the sums of their children's."""
    told, rows = leaves.told["sketch"]["counts"], n_rows[leaves.numbers]
    parts = leaves.parts.member("sketch").member("counts")
    parts.items().within(told.values, 0, np.repeat(rows, told.lengths))
    unit = "" if frame.steps == 1 else " steps"
    parts.refuse_where(
        told.sums() != rows,
        lambda i: f"must add up to the node's rows, {rows[i]}{unit}, got {told.sums()[i]}",
    )
    counts = np.zeros((len(n_rows), frame.n_counts or 0), dtype=np.int32)
    counts[leaves.numbers] = told.values.reshape(len(rows), -1)
    for node in range(len(counts) - 1, 0, -1):  # children before their parents
        counts[parent[node]] += counts[node]
    return counts


def _read_densities(
    group: NodeGroup,
    shapes: Sequence[ShapeFunction | PairShape | None],
    in_nodes: np.ndarray,
    rows_of_nodes: np.ndarray,
    frame: Frame,
) -> Iterator[tuple[int, Density]]:
    """How rows lie on the features of nodes that split on one, with the numbers of these nodes."""
    parts, told = group.parts.member("sketch").member("density"), group.told["sketch"]["density"]
    n_rows, n_groups = rows_of_nodes[group.numbers], frame.n_groups or 0
    splits = [shapes[number] for number in group.numbers]
    edges: Any = told.get("edges")
    n_cells = np.array([len(its.branch_of_piece) for its in splits if its is not None], int)
    if edges is not None:
        n_cells = edges.lengths - 1
    kept, in_cells = _read_cells(parts.member("counts"), told["counts"], n_rows, n_cells, n_groups)
    missing = np.zeros((len(parts), n_groups), dtype=np.int32)
    lacking, of_lacking = told["missing"]
    parts.take(lacking).member("missing").items().within(
        of_lacking.values, 0, np.repeat(n_rows[lacking], n_groups)
    )
    missing[lacking] = of_lacking.values.reshape(-1, n_groups)
    in_all = in_nodes[group.numbers] if frame.has_classes else n_rows[:, None]
    reason = "must add up, with the missing, to the node's rows"
    parts.refuse_where((in_cells + missing != in_all).any(axis=1), reason, "counts")
    nothing: list[Any] = [None] * len(parts)
    totals, missing_totals = nothing, nothing
    if not frame.has_classes:
        totals = told["totals"]
        parts.member("totals").have_lengths(told["totals"].lengths, n_cells)
        of_lacking = told["missing_total"].each()
        missing_totals = [float(of_lacking.get(i, 0.0)) for i in range(len(parts))]
    of_ends = told["ends"].each() if "ends" in told else {}
    ends = [tuple(of_ends[i].tolist()) if i in of_ends else None for i in range(len(parts))]
    each = zip(
        group.numbers,
        nothing if edges is None else edges,
        kept,
        totals,
        missing,
        missing_totals,
        ends,
        strict=True,
    )
    for number, *its in each:
        yield number, Density(*its)


def _read_cells(
    parts: AlignedParts, counts: Lists, n_rows: np.ndarray, n_cells: np.ndarray, n_groups: int
) -> tuple[list[np.ndarray | PackedCounts], np.ndarray]:
    """Rows of nodes by cell and class, and by class."""
    groups, runs = parts.items(), counts.values
    rows, cells = np.repeat(n_rows, n_groups), np.repeat(n_cells, n_groups)
    is_packed = cells * n_groups > MAX_DENSE
    groups.have_lengths(runs.lengths, np.where(is_packed, runs.lengths, cells))
    low = np.where(is_packed, -cells, 0)
    groups.items().within(runs.values, np.repeat(low, runs.lengths), np.repeat(rows, runs.lengths))
    for i in np.flatnonzero(is_packed).tolist():
        _check_runs(groups.part(i), runs.values[runs.start[i] : runs.start[i + 1]], int(cells[i]))
    in_groups = Lists(np.maximum(runs.values, 0), runs.lengths).sums().reshape(-1, n_groups)
    kept: list[np.ndarray | PackedCounts] = []
    flat = Lists(runs.values.astype(np.int32), runs.lengths.reshape(-1, n_groups).sum(axis=1))
    for i, its in enumerate(flat):
        if is_packed[i * n_groups]:
            lengths = runs.lengths[i * n_groups : (i + 1) * n_groups]
            kept.append(PackedCounts(its, starts(lengths.tolist()), int(n_cells[i])))
        else:
            kept.append(packed(np.ascontiguousarray(its.reshape(n_groups, -1).T)))
    return kept, in_groups


def _check_runs(part: Part, runs: np.ndarray, n_cells: int) -> None:
    """Refuse counts in which runs of empty cells are not written as one negative number each."""
    is_empty = runs < 0
    if (runs == 0).any() or (is_empty[1:] & is_empty[:-1]).any():
        part.refuse("must have one negative number for all cells side by side that have no rows")
    found = len(runs) - is_empty.sum() - runs[is_empty].sum()
    if found != n_cells:
        part.refuse(f"must stand for {n_cells} cells, got {found}")


def _read_scatters(
    group: NodeGroup,
    shapes: Sequence[ShapeFunction | PairShape | None],
    n_rows: np.ndarray,
    frame: Frame,
) -> Iterator[tuple[int, Scatter]]:
    """How rows lie in the planes of nodes that split on a pair, with the numbers of these nodes."""
    told, all_parts = (
        group.told["sketch"]["scatter"],
        group.parts.member("sketch").member("scatter"),
    )
    names = "low", "high", "first", "second", "targets", "missing"
    each = zip(group.numbers, all_parts, *(told[name] for name in names), strict=True)
    for number, part, low, high, first, second, targets, missing in each:
        shape, rows = shapes[number], int(n_rows[number])
        assert isinstance(shape, PairShape)
        part.alone().member("missing").within(missing[None], 0, rows)
        if len(first) > rows - missing:
            part.member("first").refuse(
                f"must have at most {rows - missing} items, got {len(first)}"
            )
        for name in ("second", "targets"):
            part.member(name).has_length(len(first))
        for name, its, feature in (("first", first, shape.first), ("second", second, shape.second)):
            _check_codes(part.member(name), its, frame.features[feature])
        if not (low < high).all():
            part.member("low").refuse("must be below high")
        yield (
            number,
            Scatter(
                low=low,
                high=high,
                points=np.stack([first, second], axis=1),
                targets=targets.astype(np.int32) if frame.has_classes else targets,
                n_missing=int(missing),
            ),
        )


def _check_codes(part: Part, values: np.ndarray, info: FeatureInfo) -> None:
    """Refuse values of a feature of categories that are not their codes."""
    if info.categories is not None:
        part.together().within(values, 0, len(info.categories) - 1)
