"""Read the sketches of a model's nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import AlignedParts, Lists, Part
from shapetree.model_file._format import INT32, Frame
from shapetree.tree._shape import PairShape, ShapeFunction, starts
from shapetree.tree._sketch import (
    MAX_DENSE,
    Density,
    NodeSketch,
    PackedCounts,
    Scatter,
    packed,
)

# What tells how sure nodes are: of classes only what weights make of their rows.
OF_WEIGHTS = ("weighed", "squared_weights")
SURENESS = ("skewness", "median", *OF_WEIGHTS)


def read_sketches(
    nodes: AlignedParts,
    n_rows: np.ndarray,
    parent: np.ndarray,
    shapes: Sequence[ShapeFunction | PairShape | None],
    frame: Frame,
) -> tuple[NodeSketch, ...] | None:
    """Sketches of all nodes; None if they have none."""
    if not frame.has_sketches:
        nodes.have_only("rows", "weight", "impurity", "value", "split")
        return None
    sketches = nodes.member("sketch")
    of_kind: dict[str, list[int]] = {"counts": [], "density": [], "scatter": []}
    for number, shape in enumerate(shapes):
        kind = "density" if isinstance(shape, ShapeFunction) else "scatter"
        of_kind["counts" if shape is None else kind].append(number)
    of_target = ("mean", "deviation") if frame.n_classes is None else ()
    optional = SURENESS if frame.n_classes is None else OF_WEIGHTS
    for kind, numbers in of_kind.items():
        sketches.take(numbers).have_only(kind, *of_target, *optional)
    sure = [_read_sureness(sketches, name, frame) for name in SURENESS]
    targets = [sketches.member(name).numbers(is_finite=False).tolist() for name in of_target]
    counted = n_rows.astype(np.int64) * frame.steps
    if counted.max() > INT32:
        nodes.part(int(counted.argmax())).member("rows").refuse(
            f"must be at most {INT32 // frame.steps} where each row has {frame.steps} steps"
        )
    counts = _read_counts(sketches, of_kind["counts"], counted, parent, frame)
    densities = _read_densities(sketches, of_kind["density"], shapes, counts, counted, frame)
    made = []
    for number, shape in enumerate(shapes):
        mean, deviation = (its[number] for its in targets) if targets else (None, None)
        scatter = None
        if isinstance(shape, PairShape):
            scatter = _read_scatter(
                sketches.part(number).member("scatter"), shape, int(n_rows[number]), frame
            )
        skewness, median, weighed, squares = (its.get(number) for its in sure)
        made.append(
            NodeSketch(
                *(counts[number], mean, deviation, densities.get(number), scatter),
                skewness=None if skewness is None else float(skewness[0]),
                middle=None if median is None else tuple(median.tolist()),
                weighed=weighed,
                squared_weights=None if squares is None else float(squares[0]),
            )
        )
    return tuple(made)


def _read_sureness(sketches: AlignedParts, name: str, frame: Frame) -> dict[int, np.ndarray]:
    """What some sketches have, by number of their nodes, to tell how sure they are."""
    having = sketches.having(name)
    parts = sketches.take(having).member(name)
    if name in ("skewness", "squared_weights"):
        low = -np.inf if name == "skewness" else 0.0
        return dict(zip(having, parts.numbers(low)[:, None], strict=True))
    length = frame.n_counts if name == "weighed" and frame.n_classes is not None else 3
    lists = parts.number_lists(length, is_finite=False)
    return dict(zip(having, lists, strict=True))


def _read_counts(
    sketches: AlignedParts, leaves: list[int], n_rows: np.ndarray, parent: np.ndarray, frame: Frame
) -> np.ndarray:
    """Counts of all nodes: those of leaves, and for the others the sums of their children's."""
    parts, rows = sketches.take(leaves).member("counts"), n_rows[leaves]
    of_leaves = parts.integer_lists(0, rows, frame.n_counts)
    is_wrong = of_leaves.sums() != rows
    if is_wrong.any():
        wrong = int(np.argmax(is_wrong))
        found = of_leaves.sums()[wrong]
        parts.part(wrong).refuse(
            f"must add up to the node's rows, {_so_many(rows[wrong], frame)}, got {found}"
        )
    counts = np.zeros((len(n_rows), frame.n_counts), dtype=np.int32)
    counts[leaves] = of_leaves.values.reshape(len(leaves), frame.n_counts)
    for node in range(len(counts) - 1, 0, -1):  # children before their parents
        counts[parent[node]] += counts[node]
    return counts


def _so_many(counted: int, frame: Frame) -> str:
    return f"{counted}" if frame.steps == 1 else f"{counted} steps"


def _read_densities(
    sketches: AlignedParts,
    numbers: list[int],
    shapes: Sequence[ShapeFunction | PairShape | None],
    in_nodes: np.ndarray,
    rows_of_nodes: np.ndarray,
    frame: Frame,
) -> dict[int, Density]:
    """How rows lie on the features of nodes that split on one, by the numbers of these nodes."""
    parts, n_rows = sketches.take(numbers).member("density"), rows_of_nodes[numbers]
    is_number = frame.n_classes is None
    splits = [shape for shape in shapes if isinstance(shape, ShapeFunction)]
    axes, ends = _read_axes(parts, splits, frame)
    n_cells = np.array(
        [
            len(split.branch_of_piece) if edges is None else len(edges) - 1
            for split, edges in zip(splits, axes, strict=True)
        ],
        dtype=np.int64,
    )
    kept, in_cells = _read_cells(parts.member("counts"), n_rows, n_cells, frame)
    missing = np.zeros((len(numbers), frame.n_groups), dtype=np.int32)
    lacking = parts.having("missing")
    missing[lacking] = (
        parts.take(lacking)
        .member("missing")
        .integer_lists(0, n_rows[lacking], frame.n_groups)
        .values.reshape(len(lacking), frame.n_groups)
    )
    in_all = n_rows[:, None] if is_number else in_nodes[numbers]
    is_wrong = (in_cells + missing != in_all).any(axis=1)
    if is_wrong.any():
        parts.part(int(np.argmax(is_wrong))).member("counts").refuse(
            "must add up, with the missing, to the node's rows"
        )
    totals: Iterable[np.ndarray | None] = repeat(None, len(numbers))
    missing_total: list[float] | list[None] = [None] * len(numbers)
    if is_number:
        totals = parts.member("totals").number_lists(n_cells, is_finite=False)
        lacking, of_lacking = parts.having("missing_total"), np.zeros(len(numbers))
        of_lacking[lacking] = parts.take(lacking).member("missing_total").numbers(is_finite=False)
        missing_total = of_lacking.tolist()
    return {
        number: Density(*its)
        for number, *its in zip(
            numbers, axes, kept, totals, missing, missing_total, ends, strict=True
        )
    }


def _read_axes(
    parts: AlignedParts, splits: list[ShapeFunction], frame: Frame
) -> tuple[list[np.ndarray | None], list[tuple[float, float] | None]]:
    """Edges of the cells of ordered features, and the ends of the rows' numbers there."""
    of_target = ("totals", "missing_total") if frame.n_classes is None else ()
    known = ("counts", "missing", *of_target)
    axes: list[np.ndarray | None] = [None] * len(splits)
    ends: list[tuple[float, float] | None] = [None] * len(splits)
    ordered = [i for i, split in enumerate(splits) if split.upper is not None]
    parts.take([i for i, split in enumerate(splits) if split.upper is None]).have_only(*known)
    with_axis = parts.take(ordered)
    with_axis.have_only(*known, "edges", "ends")
    edges = with_axis.member("edges")
    lists = edges.ascending_lists()  # the cell of infinite numbers has no width
    is_short = np.diff(lists.start) < 2
    if is_short.any():
        edges.part(int(np.argmax(is_short))).refuse("must have at least two items")
    for i, its_edges in zip(ordered, lists, strict=True):
        axes[i] = its_edges
    told = [i for i in parts.having("ends") if splits[i].upper is not None]
    for i, its in zip(told, _read_ends(parts.take(told).member("ends")), strict=True):
        ends[i] = its
    return axes, ends


def _read_ends(parts: AlignedParts) -> list[tuple[float, float]]:
    """The least and the greatest of nodes' numbers."""
    return [(low, high) for low, high in parts.ascending_lists(2).values.reshape(-1, 2).tolist()]


def _read_cells(
    parts: AlignedParts, n_rows: np.ndarray, n_cells: np.ndarray, frame: Frame
) -> tuple[list[np.ndarray | PackedCounts], np.ndarray]:
    """Rows of nodes by cell and class, and by class."""
    n_groups, kept = frame.n_groups, dict[int, np.ndarray | PackedCounts]()
    in_groups = np.zeros((len(parts), n_groups), dtype=np.int64)
    is_dense = n_cells * n_groups <= MAX_DENSE
    for i in np.flatnonzero(~is_dense).tolist():
        kept[i], in_groups[i] = _read_packed(
            parts.part(i), int(n_rows[i]), int(n_cells[i]), n_groups
        )
    dense = np.flatnonzero(is_dense).tolist()
    groups = parts.take(dense).items(n_groups)
    limits, lengths = (np.repeat(each[dense], n_groups) for each in (n_rows, n_cells))
    counts = groups.integer_lists(0, limits, lengths)
    in_groups[dense] = counts.sums().reshape(len(dense), n_groups)
    of_nodes = Lists(counts.values.astype(np.int32), n_groups * n_cells[dense])
    for i, flat in zip(dense, of_nodes, strict=True):
        kept[i] = packed(np.ascontiguousarray(flat.reshape(n_groups, -1).T))
    return [kept[i] for i in range(len(parts))], in_groups


def _read_packed(
    part: Part, n_rows: int, n_cells: int, n_groups: int
) -> tuple[PackedCounts, np.ndarray]:
    """The same of one node with many cells or classes."""
    runs = [_read_runs(group, n_rows, n_cells) for group in part.items(n_groups)]
    in_groups = np.array([np.maximum(its, 0).sum() for its in runs])
    start = starts([len(its) for its in runs])
    return PackedCounts(np.concatenate(runs).astype(np.int32), start, n_cells), in_groups


def _read_runs(part: Part, n_rows: int, n_cells: int) -> np.ndarray:
    """Rows in each cell; runs of empty cells are written as one negative number."""
    runs = part.integers(-n_cells, n_rows)
    is_empty = runs < 0
    if (runs == 0).any() or (is_empty[1:] & is_empty[:-1]).any():
        part.refuse("must have one negative number for all cells side by side that have no rows")
    found = len(runs) - is_empty.sum() - runs[is_empty].sum()
    if found != n_cells:
        part.refuse(f"must stand for {n_cells} cells, got {found}")
    return runs


def _read_scatter(part: Part, split: PairShape, n_rows: int, frame: Frame) -> Scatter:
    part.has_only("low", "high", "first", "second", "targets", "missing")
    columns = [part.member(name) for name in ("first", "second")]
    n_points = columns[0].length()
    n_missing = part.member("missing").integer(0, n_rows)
    if n_points > n_rows - n_missing:
        columns[0].refuse(f"must have at most {n_rows - n_missing} items, got {n_points}")
    points = [
        _read_points(column, frame.features[feature], n_points)
        for column, feature in zip(columns, (split.first, split.second), strict=True)
    ]
    low, high = (part.member(name).numbers(2) for name in ("low", "high"))
    if not (low < high).all():
        part.member("low").refuse("must be below high")
    targets = part.member("targets")
    return Scatter(
        low=low,
        high=high,
        points=np.stack(points, axis=1),
        targets=(
            targets.numbers(n_points)
            if frame.n_classes is None
            else targets.integers(0, frame.n_classes[0] - 1, n_points).astype(np.int32)
        ),
        n_missing=n_missing,
    )


def _read_points(part: Part, info: FeatureInfo, n_points: int) -> np.ndarray:
    if info.categories is None:
        return part.numbers(n_points)
    return part.integers(0, len(info.categories) - 1, n_points).astype(np.float64)
