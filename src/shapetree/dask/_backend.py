"""Training rows on a Dask cluster: how they are read, binned and held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree.dask._cluster import FEW, Cluster
from shapetree.dask._data import DaskBins, DaskTable, DaskTrainingRows, delayed_parts, first_rows
from shapetree.dask._lazy import LOOKING
from shapetree.dask._tasks import (
    GivenPart,
    Look,
    PartRows,
    bin_part,
    bin_values,
    binning_of,
    bins_of_values,
    encode_rows,
    hashed_part,
    hashes_of_part,
    hold_part,
    join_binnings,
    join_looks,
    join_profiles,
    keys_of_part,
    leaves_in_trees,
    leaves_of_part,
    length_of,
    look_at_part,
    profiles_of_part,
    sample_of,
    sketch_part,
    values_of,
    weights_and_importance,
    with_evidence,
    with_weight,
)
from shapetree.data._binning import MAX_BINNED_ROWS, BinnedTable
from shapetree.data._map_join import Question, add, every, join_distinct, one_after_another
from shapetree.data._parts import Reading
from shapetree.data._sums import (
    Numbers,
    evidence_of,
    exact_unit,
    ones_and_whole,
    sum_of_products,
    sum_of_values,
    weight_of,
    weights_alone,
)
from shapetree.data._table import Table
from shapetree.data._targets import Goal
from shapetree.fit._parameters import Parameters
from shapetree.fit._row_hashes import TargetCodes, codes_of_categories
from shapetree.fit._training_rows import (
    BinnedRows,
    RemoteRows,
    TrainingRows,
    check_ends,
    check_total,
    check_total_importance,
    factors_of_classes,
)
from shapetree.grow._joined_rows import JoinedRows
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedForest
from shapetree.tree._naming import target_names
from shapetree.tree._sketcher import SketchedRows


@dataclass(frozen=True, eq=False)
class DaskRows(RemoteRows):
    """What a fit is given: Dask collections, and the cluster that they are on."""

    cluster: Cluster
    X: Any
    y: Any
    weights: Any

    @property
    def backend(self) -> DaskBackend:
        """Where the rows are."""
        return DaskBackend()

    @property
    def target_names(self) -> tuple[str, ...] | None:
        """Names of the targets, if they have any."""
        with LOOKING:
            return target_names(getattr(self.y, "_meta", self.y))


class DaskBackend:
    """Rows on the workers of a cluster; see `Backend`."""

    def read(
        self, X: DaskRows, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
    ) -> TrainingRows:
        """Read targets and weights, and learn the features."""
        given, cluster = X, X.cluster
        with LOOKING:
            delayed = delayed_parts(given.X, given.y, given.weights)
            columns = list(given.X.columns) if hasattr(given.X, "columns") else None
            n_outputs = given.y.shape[1] if given.y.ndim == 2 else 1
        # At once: what X and y are made of is computed once, and gives the same rows to both.
        held = cluster.hold([part for each in delayed for part in each if part is not None])
        each_held = iter(held)
        columns_held = [
            [None if part is None else next(each_held) for part in each] for each in delayed
        ]
        raw = cluster.group(GivenPart, *columns_held, list(range(len(delayed[0]))))
        reading = Reading(
            (), tuple(map(str, range(n_outputs))), None, parameters.categorical_features,
            has_classes,
        )  # fmt: skip
        look = raw.ask(partial(look_at_part, reading=reading, names=columns), join_looks)
        _check(look, parameters.objective)
        factors, found = None, look.found
        prints = [look.prints[number] for number in sorted(look.prints)]
        lengths = np.array([each.n_rows for each in prints])
        encoded = raw.make(encode_rows, prints, first_rows(lengths), reading=reading, found=found)
        cluster.release(held)
        del raw
        if parameters.class_weight is not None and found.classes is not None:
            labels = Numbers(encoded.map(PartRows.numbers), found.n_rows)
            factors = factors_of_classes(found.classes, labels, parameters.class_weight)
            encoded = encoded.make(with_weight, factors=factors)
        table = DaskTable(
            found.n_rows, found.features, [None] * len(found.features), look.has_names,
            encoded=encoded, lengths=lengths,
        )  # fmt: skip
        nothing = np.empty((0, n_outputs), dtype=np.int32 if has_classes else np.float64)
        rows = DaskTrainingRows(table, nothing, found.classes, None, backend=self)
        has_weights = look.weight is not None
        return _weighed(rows, factors, has_weights) if has_weights or factors is not None else rows

    def bin(self, rows: TrainingRows, max_bins: int | None, n_threads: int) -> DaskBins:
        """Bin the rows; bounds of bins come from a sample of all."""
        table = _table_of(rows)
        assert table.kept is None
        encoded = table.encoded
        if max_bins is None:
            to_bins = partial(bins_of_values, features=table.features)
            features = encoded.ask(values_of, join_distinct, to_bins)
            bins = encoded.make(bin_values, features=features)
            return DaskBins.of(features, table.n_rows, bins)
        found = _find_binnings(table, max_bins)
        # Workers need not wait until this process has the bins, too.
        bins = encoded.make(bin_part, [found] * len(table.lengths))
        features = join_binnings(encoded.cluster.results(found)).features
        return DaskBins.of(features, table.n_rows, bins)

    def hashes(self, rows: BinnedRows, target_codes: TargetCodes) -> np.ndarray:
        """A hash of each row."""
        table, bins = _table_of(rows.rows), _bins_of(rows.binned)
        assert table.kept is None
        parts = table.encoded.make(hashed_part, bins.parts, target_codes=target_codes)
        codes = codes_of_categories(parts.ask(profiles_of_part, join_profiles))
        keys = parts.ask(partial(keys_of_part, codes=codes), add)
        return np.concatenate(parts.make(hashes_of_part, codes=codes, keys=keys).results())

    def hold(self, rows: BinnedRows, goal: Goal, n_threads: int) -> JoinedRows:
        """A holder of the rows."""
        table, bins = _table_of(rows.rows), _bins_of(rows.binned)
        coarse = None if rows.coarse is None else _bins_of(rows.coarse)
        # Every part has its own rows; here, what was agreed for all is enough.
        agreed = goal.without_rows()
        parts = table.rows.make(
            hold_part, bins.parts, [None] * len(table.lengths) if coarse is None else coarse.parts,
            goal=agreed, needed=table.needed, unit_of_one=_unit_of_one(table, goal),
        )  # fmt: skip
        return JoinedRows(parts, bins, coarse, agreed, n_threads)

    def leaves(self, rows: BinnedRows, tree: TreeArrays, n_threads: int) -> np.ndarray:
        """The leaf of each row."""
        table, bins = _table_of(rows.rows), _bins_of(rows.binned)
        leaves = table.rows.make(leaves_of_part, bins.parts, tree=tree)
        return np.concatenate(leaves.results()).astype(np.int32)

    def leaves_in_forest(
        self, table: Table, forest: FittedForest, n_threads: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Leaves of rows in all trees, part by part."""
        assert isinstance(table, DaskTable)
        yield from table.rows.make(leaves_in_trees, trees=forest.trees).one_by_one()

    def to_sketch(self, rows: BinnedRows, tree: TreeArrays, n_threads: int) -> SketchedRows:
        """The rows, under a finished tree."""
        about, table, bins = rows.rows, _table_of(rows.rows), _bins_of(rows.binned)
        has_classes = about.classes is not None
        parts = table.rows.make(sketch_part, bins.parts, tree=tree, has_classes=has_classes)
        return SketchedRows(parts, bins, bins.n_rows, about.weights is not None)


def _table_of(rows: TrainingRows) -> DaskTable:
    assert isinstance(rows.table, DaskTable)
    return rows.table


def _bins_of(binned: BinnedTable) -> DaskBins:
    assert isinstance(binned, DaskBins)
    return binned


def _check(look: Look, objective: str) -> None:
    """Refuse rows that nothing can be learnt from."""
    found = look.found
    if found.n_rows == 0:
        raise ValueError("there are no rows to learn from")
    if found.classes is None:
        check_ends(found.least, found.greatest, objective)
    if look.weight is not None:
        check_total(found.n_weighted > 0, look.weight)


def _weighed(
    rows: DaskTrainingRows, factors: list[np.ndarray] | None, has_weights: bool
) -> DaskTrainingRows:
    """Take weights as evidence, as `TrainingRows.weighed` does where all rows are at hand."""
    table = _table_of(rows)
    encoded = table.encoded
    lengths = np.array(encoded.make(length_of).results())
    n_rows = int(lengths.sum())
    weights = Numbers(encoded.map(partial(weights_and_importance, factors=factors)), n_rows)
    if factors is not None:
        total = weights.ask(sum_of_products, add) if n_rows else 0.0
        check_total_importance(n_rows > 0, float(total))
    evidence, counted = evidence_of(weights), None
    are_ones = bool(weights.map(evidence.columns).ask(ones_and_whole, every)[0])
    if evidence.are_counts and has_weights:
        n_counted = int(weights.map(weights_alone).ask(sum_of_values, add))
        counted = None if n_counted == n_rows else n_counted
    are_weighed, are_counted = not are_ones or counted is not None, counted is not None
    encoded = encoded.make(
        with_evidence, first_rows(lengths), evidence=evidence, factors=factors,
        are_weighed=are_weighed, are_counted=are_counted,
    )  # fmt: skip
    is_short = n_rows < table.n_rows
    table = replace(table, n_rows=n_rows, lengths=lengths, encoded=encoded, n_counted=counted)
    return replace(
        rows,
        table=table.with_seen_categories() if is_short else table,
        weights=np.empty(0) if are_weighed else None,
        weight_size=evidence.size,
        counts=np.empty(0) if are_counted else None,
    )


def _find_binnings(table: DaskTable, max_bins: int) -> list[Any]:
    """Where bins begin and end; a few workers find those of some features each."""
    parts, n_rows, n_features = table.encoded, table.n_rows, len(table.features)
    n_together = min(len(parts.futures), FEW, n_features)
    ends = np.linspace(0, n_features, n_together + 1).astype(int).tolist()
    about: dict[str, Any] = {"is_sample": n_rows > MAX_BINNED_ROWS, "max_bins": max_bins}
    return parts.find(
        *(
            Question(
                partial(sample_of, first=first, last=last, n_total=n_rows),
                one_after_another,
                partial(binning_of, features=table.features[first:last], **about),
            )
            for first, last in pairwise(ends)
        )
    )


def _unit_of_one(table: DaskTable, goal: Goal) -> float | None:
    """Grid of weights of rows that are drawn one by one; None if weights are those of all copies.

    See `Draws.rows`.
    """
    if goal.weights is None or goal.counts is not None or table.n_counted is None:
        return None
    every = Numbers(table.encoded.map(PartRows.numbers), int(table.lengths.sum()))
    return exact_unit(weight_of(every))
