"""Read the sketches of a model's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import Part
from shapetree.model_file._model import INT32, Frame
from shapetree.tree._shape import PairShape, ShapeFunction
from shapetree.tree._sketch import (
    MAX_DENSE,
    Axis,
    Density,
    NodeSketch,
    PackedCounts,
    Scatter,
    packed,
    starts,
)

# Cells of a part of an axis, where their counts are packed; sketches have fewer.
MAX_CELLS = 64


def read_sketches(
    nodes: list[Part],
    n_rows: list[int],
    parent: np.ndarray,
    shapes: Sequence[ShapeFunction | PairShape | None],
    frame: Frame,
) -> tuple[NodeSketch, ...] | None:
    """Sketches of all nodes; None if there are several outputs."""
    if frame.n_outputs > 1:
        for node in nodes:
            node.has_only("rows", "weight", "impurity", "value", "split")
        return None
    parts = [node.member("sketch") for node in nodes]
    counts = [
        _read_counts(part.member("counts"), rows, frame.n_counts) if shape is None else None
        for part, rows, shape in zip(parts, n_rows, shapes, strict=True)
    ]
    return tuple(
        _read_sketch(part, shape, its, frame)
        for part, shape, its in zip(parts, shapes, _summed(counts, parent), strict=True)
    )


def _summed(counts: list[np.ndarray | None], parent: np.ndarray) -> np.ndarray:
    """The counts of all nodes: those of leaves, and for the others the sums of their children's."""
    length = next(len(of_leaf) for of_leaf in counts if of_leaf is not None)
    sums = np.zeros((len(counts), length), dtype=np.int32)
    for node in range(len(counts) - 1, -1, -1):  # children before their parents
        of_leaf = counts[node]
        if of_leaf is not None:
            sums[node] = of_leaf
        if node:
            sums[parent[node]] += sums[node]
    return sums


def _read_sketch(
    part: Part, shape: ShapeFunction | PairShape | None, counts: np.ndarray, frame: Frame
) -> NodeSketch:
    special, density, scatter = "counts", None, None
    if isinstance(shape, ShapeFunction):
        special = "density"
        density = _read_density(part.member(special), shape, counts, frame)
    elif shape is not None:
        special = "scatter"
        scatter = _read_scatter(part.member(special), shape, int(counts.sum()), frame)
    if frame.n_classes is not None:
        part.has_only(special)
        return NodeSketch(counts, density=density, scatter=scatter)
    part.has_only(special, "mean", "deviation")
    mean, deviation = (part.member(name).number(is_finite=False) for name in ("mean", "deviation"))
    return NodeSketch(counts, mean, deviation, density, scatter)


def _read_counts(part: Part, n_rows: int, length: int) -> np.ndarray:
    counts = part.integers(0, n_rows, length)
    if counts.sum() != n_rows:
        part.refuse(f"must add up to the node's rows, {n_rows}, got {counts.sum()}")
    return counts


def _read_density(part: Part, split: ShapeFunction, of_node: np.ndarray, frame: Frame) -> Density:
    is_number, is_axis = frame.n_classes is None, split.upper is not None
    part.has_only(
        *("counts", "missing"),
        *(("totals", "missing_total") if is_number else ()),
        # Versions before the third said where to draw the bounds.
        *(("bounds", "cells", "ends" if frame.version > 2 else "places") if is_axis else ()),
    )
    n_rows = int(of_node.sum())
    axis = _read_axis(part) if is_axis else Axis(None, np.array([len(split.branch_of_piece)]))
    counts, in_cells = _read_cells(part.member("counts"), n_rows, axis, frame)
    lacking, lacking_total = part.optional("missing"), part.optional("missing_total")
    missing = np.zeros(frame.n_groups, dtype=np.int32)
    if lacking is not None:
        missing = lacking.integers(0, n_rows, frame.n_groups).astype(np.int32)
    in_all = np.array([n_rows]) if is_number else of_node
    if not np.array_equal(in_cells + missing, in_all):
        part.member("counts").refuse("must add up, with the missing, to the node's rows")
    missing_total = 0.0 if lacking_total is None else lacking_total.number(is_finite=False)
    return Density(
        axis=axis,
        kept=counts,
        totals=part.member("totals").numbers(axis.n_cells, False) if is_number else None,
        missing=missing,
        missing_total=missing_total if is_number else None,
        ends=_read_ends(part) if is_axis else None,
    )


def _read_cells(
    part: Part, n_rows: int, axis: Axis, frame: Frame
) -> tuple[np.ndarray | PackedCounts, np.ndarray]:
    """Rows of a node by cell and class, and by class."""
    n_cells = axis.n_cells
    if frame.version == 1 or n_cells * frame.n_groups <= MAX_DENSE:
        counts = part.table(0, n_rows, frame.n_groups, n_cells)
        return packed(counts.T.astype(np.int32, order="C")), counts.sum(axis=1)
    if n_cells > MAX_CELLS * len(axis.cells) and axis.bounds is not None:
        part.refuse(f"must have at most {MAX_CELLS} cells for each part of the axis")
    runs = [_read_runs(group, n_rows, n_cells) for group in part.items(frame.n_groups)]
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


def _read_axis(part: Part) -> Axis:
    cells = part.member("cells")
    numbers = cells.integers(1, INT32)
    if not len(numbers):
        cells.refuse("must have at least one item")
    return Axis(part.member("bounds").ascending(len(numbers) + 1), numbers)


def _read_ends(part: Part) -> tuple[float, float] | None:
    """The least and the greatest of a node's numbers, if they are known."""
    ends = part.optional("ends")
    if ends is None:
        return None
    low, high = ends.numbers(2).tolist()
    if low > high:
        ends.refuse("must ascend")
    return low, high


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
