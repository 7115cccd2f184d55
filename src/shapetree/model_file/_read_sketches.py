"""Read the sketches of a model's nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import AlignedParts, Json, Lists, Part
from shapetree.model_file._format import Frame
from shapetree.model_file._kinds import INT32, Told
from shapetree.tree._shape import PairShape, ShapeFunction, starts
from shapetree.tree._sketch import (
    MAX_DENSE,
    Density,
    NodeSketch,
    PackedCounts,
    Scatter,
    packed,
)


class NodeGroup(NamedTuple):
    """Nodes of a kind: their numbers in the tree, where they are in the file, and what they say."""

    numbers: list[int]
    parts: AlignedParts
    told: Json


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
                told = its if isinstance(its, Told) else Told([*range(len(group.parts))], its)
                for i, values in told.each().items():
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
