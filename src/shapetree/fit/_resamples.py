"""Small trees on resamples of the rows, tried on the others.

Their out-of-bag predictions decide whether there is anything to learn: a price per split that keeps
trees off noise would also keep them off small tables, and tells the two apart far less well. The
tree that is shown may also be fitted to these predictions (`fit/_teaching.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from shapetree._core.columns import Columns
from shapetree._core.sampling import keys_of_columns, row_hashes
from shapetree.data._sums import exact_unit, on_grid
from shapetree.fit._folds import contents_of
from shapetree.fit._growth import grower, grown_together, hold, pair_frames
from shapetree.fit._parameters import Parameters, path_of
from shapetree.fit._scores import Score
from shapetree.fit._training_rows import BinnedRows, TrainingRows
from shapetree.grow._feature_draw import HalfDraw
from shapetree.grow._feature_order import feature_order
from shapetree.grow._grower import Trees
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._progress import Progress
from shapetree.refine import Shrinkage, shrink
from shapetree.tree._arrays import TreeArrays

# Resamples up to this many rows; among more, noise does not earn the price of a split so often.
N_RESAMPLES, MAX_ROWS = 100, 5_000
# Shares of classes that small trees may predict for all rows: each takes memory and time.
MAX_SHARES = 500_000
# Share of the rows that each resample draws. Halves tell signal from noise better than the 63 %
# that a bootstrap sample has: more trees have not seen a row, and they have less in common.
SHARE_DRAWN = 0.5
# Equal rows are drawn together, so that rows given twice are no evidence of their own, unless they
# are more than this: then they are values that recur.
MAX_DRAWN_TOGETHER = 5
# The small trees. Nodes of classes may split on half of the features, drawn anew for each: trees
# have less in common, and weak features have their say beside strong ones. Their leaves may then be
# small and hardly smoothed, as many are averaged. Numbers are predicted better from all features.
MAX_DEPTH = 3
MIN_ROWS_OF_CLASSES, MIN_ROWS_OF_NUMBERS = 3, 10
SHRINKAGE_OF_CLASSES, SHRINKAGE_OF_NUMBERS = Shrinkage(2.0, 2.0), Shrinkage(3.0, 1.0)
# Predictions must go with the targets of unseen rows more clearly than chance does in this share of
# tables if rows were predicted independently. Trees share the rows that they are grown on, and with
# them what these have by chance, numbers more than classes as some are far out: of noise, 4 or 5
# tables in 100 get so far, from 50 rows to 5,000. A second question, for pairs, has half of it.
CHANCE_OF_CLASSES, CHANCE_OF_NUMBERS = 0.02, 0.0125


@dataclass(frozen=True)
class Evidence:
    """How much better small trees are than no tree on rows that they have not seen.

    Attributes
    ----------
    gain : float
        Mean gain of the score per row.
    trend : float
        What a small step from no tree towards what the trees predict gains, in standard errors.
        What noise gains on the mean is below 0, but its step is as often right as wrong, so that
        one limit fits few rows and many, classes and numbers.
    n_units : float
        Rows, or groups of them, that are evidence of their own.
    n_resamples : int
    explained : float
        Gain as a share of what is lost without a tree: of the log loss, or of the error.
    chance : float
        How often chance may get as far, if rows were predicted independently.
    """

    gain: float
    trend: float
    n_units: float
    n_resamples: int
    explained: float
    chance: float

    @property
    def needed(self) -> float:
        """Trend that is convincing; the standard error of few units is itself uncertain."""
        return float(stdtrit(max(self.n_units - 1.0, 1.0), 1.0 - self.chance))

    @property
    def is_convincing(self) -> bool:
        """Whether there is something to learn."""
        return self.gain > 0.0 and self.trend > self.needed


NO_EVIDENCE = Evidence(0.0, 0.0, 1.0, 0, 0.0, CHANCE_OF_NUMBERS)


@dataclass(frozen=True, eq=False)
class Resamples:
    """What small trees on resamples predict for the rows.

    Attributes
    ----------
    evidence : Evidence
    predicted : array of shape (n_rows, n_outputs, n_values)
        What the trees that have not drawn a row predict for it on the mean, so that its own target
        has no part in it: shares of classes, or a number.
    """

    evidence: Evidence
    predicted: np.ndarray


def n_resamples_of(rows: TrainingRows, parameters: Parameters) -> int:
    """How many resamples to draw; 0 for none."""
    if max(path_of(parameters.strength)) == 0.0 or parameters.max_depth == 0:
        return 0
    if parameters.resamples != "auto":
        return int(parameters.resamples)
    n_classes = max(rows.n_classes or [1])
    is_asked = rows.n_counted <= MAX_ROWS and rows.n_counted * n_classes <= MAX_SHARES
    is_asked = is_asked and not parameters.is_cart
    return N_RESAMPLES if is_asked and parameters.leaf_penalty == "auto" else 0


def resample(
    binned: BinnedRows, parameters: Parameters, pairs: PairOptions, groups: np.ndarray | None
) -> Resamples | None:
    """Fit small trees to resamples of rows in this process; None if there are to be none."""
    n_resamples, targets = n_resamples_of(binned.rows, parameters), binned.rows.targets
    if n_resamples == 0 or (targets == targets[0]).all():
        return None
    content = contents_of(binned)  # whatever classes and categories are called
    ranks = _ranks_of_classes(binned.rows, content)
    binned = _with_ranks(binned, ranks)
    without_names = _with_ranked_categories(binned, content)
    draw = HalfSamples(without_names, content, groups)
    found = _ask(without_names, parameters, pairs.without_pairs(), draw, n_resamples)
    if not found.evidence.is_convincing and len(pairs.pairs) > 0:
        # Which takes longer.
        second = _ask(binned, parameters, pairs, draw, n_resamples)
        evidence = replace(second.evidence, chance=second.evidence.chance / 2.0)
        found = replace(second, evidence=evidence)
    predicted = found.predicted
    for output, rank in enumerate(ranks):
        predicted[:, output, : len(rank)] = predicted[:, output, rank]
    return found


def _ranks_of_classes(rows: TrainingRows, content: np.ndarray) -> list[np.ndarray]:
    """A rank for each class of each output that its name does not decide; none for numbers.

    In small samples, shape functions are often equally good, and the order of classes decides.
    """
    if rows.n_classes is None:
        return []
    summed = _summed(content, rows)
    each = zip(rows.targets.T.astype(np.intp), rows.n_classes, strict=True)
    return [_ranked(labels, summed, n_classes) for labels, n_classes in each]


def _with_ranks(binned: BinnedRows, ranks: list[np.ndarray]) -> BinnedRows:
    """Rows with the ranks of their classes as targets."""
    if not ranks:
        return binned
    labels = binned.rows.targets.astype(np.intp)
    targets = np.stack([rank[own] for rank, own in zip(ranks, labels.T, strict=True)], axis=1)
    return replace(binned, rows=replace(binned.rows, targets=targets.astype(labels.dtype)))


def _with_ranked_categories(binned: BinnedRows, content: np.ndarray) -> BinnedRows:
    """Rows whose categories are numbered by what they hold, instead of by their names."""
    rows, features = binned.rows, binned.binned.features
    if not any(feature.is_categorical for feature in features):
        return binned
    targets = row_hashes(np.ascontiguousarray(rows.targets[:, 0], dtype=np.float64).view(np.int64))
    summed = _summed(content + targets, rows)
    bins = _bins(binned, np.arange(rows.table.n_rows))
    for number, feature in enumerate(features):
        if feature.is_categorical:
            # Missing values keep their bin.
            rank = np.append(_ranked(bins[number], summed, feature.n_bins), feature.n_bins)
            bins[number] = rank.astype(bins[number].dtype)[bins[number]]
    columns = Columns(bins, rows.table.n_rows)
    return replace(binned, binned=replace(binned.binned, columns=columns))


def _summed(content: np.ndarray, rows: TrainingRows) -> np.ndarray:
    """What each row adds to hashes of sets of rows, in which it counts as often as it does."""
    mixed = row_hashes(content.view(np.int64))
    return mixed if rows.counts is None else mixed * rows.counts.astype(np.uint64)


def _ranked(number: np.ndarray, content: np.ndarray, n: int) -> np.ndarray:
    """Ranks of the numbers 0 .. n-1 by the hashes of the rows that have them."""
    sums = np.zeros(n + 1, dtype=np.uint64)
    np.add.at(sums, number, content)
    rank = np.empty(n, dtype=np.intp)
    rank[np.argsort(sums[:n], kind="stable")] = np.arange(n)
    return rank


def half_samples(binned: BinnedRows, groups: np.ndarray | None, seed: int) -> HalfSamples:
    """Halves of the rows that are others than those that `resample` draws, of them or of parts."""
    content = contents_of(binned)
    ranked = _with_ranks(binned, _ranks_of_classes(binned.rows, content))
    return HalfSamples(_with_ranked_categories(ranked, content), content, groups, seed)


class HalfSamples:
    """Which rows each resample draws.

    Rows are known by what they hold, so that neither order nor names of any kind matter, nor
    whether a row is given twice or has a weight of 2.

    Attributes
    ----------
    n_copies : array of shape (n_rows,)
        As how many rows each counts.
    kind : int array of shape (n_rows,)
        The same for rows that hold the same, or belong to one group.
    row : int array of shape (n_drawn,)
        Of which row each is a copy, or all copies, that is drawn one by one.
    times : array of shape (n_drawn,)
        How many copies these are.
    is_alone : bool array of shape (n_rows,)
        Whether the copies of a row are drawn one by one; all other rows of a kind are drawn
        together, and are evidence once.
    features : uint64 array of shape (n_features,)
        What stands for each feature, by which it is drawn.
    """

    def __init__(
        self,
        binned: BinnedRows,
        content: np.ndarray,
        groups: np.ndarray | None,
        seed: int | None = None,
    ) -> None:
        rows = binned.rows
        self._salt = np.uint64(0)
        if seed is not None:
            # Away from the first hash, which is that of the resamples without a seed.
            self._salt = row_hashes(row_hashes(np.array([seed], dtype=np.int64)).view(np.int64))[0]
        n_rows = rows.table.n_rows
        self.n_copies = np.ones(n_rows) if rows.counts is None else rows.counts
        times = None if rows.counts is None else rows.counts.astype(np.uint64)
        self.features = keys_of_columns(binned.binned.columns, content, times)
        number = content if groups is None else groups.astype(np.uint64)
        self.kind = kind = np.unique(number, return_inverse=True)[1]
        self.is_alone = np.zeros(n_rows, dtype=bool)
        if groups is None:
            self.is_alone = np.bincount(kind, self.n_copies)[kind] > MAX_DRAWN_TOGETHER
        # The copies that are drawn one by one, each known by its place among those of its kind.
        # Kinds do not tell categories apart that hold the same targets; their bins do.
        alone, together = np.flatnonzero(self.is_alone), np.flatnonzero(~self.is_alone)
        weight = 1.0 if rows.weights is None else (rows.weights / self.n_copies)[alone]
        each = np.broadcast_to(weight, alone.shape)
        keys = *_bins(binned, alone), each, *rows.targets[alone].T, kind[alone]
        alone = alone[np.lexsort(keys)]
        row_of_copy = np.repeat(alone, self.n_copies[alone].astype(np.int64))
        of_copy = kind[row_of_copy]
        starts = np.flatnonzero(np.diff(of_copy, prepend=-1) != 0)
        place = np.arange(len(of_copy)) - np.repeat(starts, np.diff(starts, append=len(of_copy)))
        copy = number[row_of_copy] + row_hashes(place.astype(np.int64))
        self.row = np.concatenate([together, row_of_copy])
        self.times = np.concatenate([self.n_copies[together], np.ones(len(row_of_copy))])
        self._number = np.concatenate([number[together], copy])
        # Independent pieces of evidence.
        self.n_units = len(np.unique(kind)) if groups is not None else float(self.n_copies.sum())

    def seed(self, resample: int) -> np.uint64:
        """A number that tells a resample from others."""
        with np.errstate(over="ignore"):
            return row_hashes(np.array([resample + 1], dtype=np.int64))[0] + self._salt

    def are_drawn(self, resample: int) -> np.ndarray:
        """Which of the rows and copies that are drawn one by one a resample draws."""
        number = row_hashes((self._number + self.seed(resample)).view(np.int64))
        return number.astype(np.float64) / 2.0**64 < SHARE_DRAWN

    def drawn(self, resample: int) -> np.ndarray:
        """How many copies of each row a resample draws."""
        times = np.where(self.are_drawn(resample), self.times, 0.0)
        return np.bincount(self.row, times, len(self.n_copies))

    def one_by_one(self, binned: BinnedRows) -> BinnedRows:
        """The rows and copies that are drawn one by one, each as a row."""
        return binned if not self.is_alone.any() else part_of(binned, self.times, self.row)


def _ask(
    binned: BinnedRows,
    parameters: Parameters,
    pairs: PairOptions,
    draw: HalfSamples,
    n_resamples: int,
) -> Resamples:
    """Fit a small tree to each resample, and score its predictions for rows that are not drawn."""
    rows = binned.rows
    # As is right for as many rows as a resample has.
    few = round(SHARE_DRAWN * rows.n_counted)
    min_rows = MIN_ROWS_OF_NUMBERS if rows.classes is None else MIN_ROWS_OF_CLASSES
    small = replace(
        parameters,
        min_weight_fraction_leaf=SHARE_DRAWN * parameters.min_weight_fraction_leaf,
        max_depth=MAX_DEPTH,
        max_leaf_nodes=None,
        lookahead=1,
        refine=None,
        leaf_penalty=0.0,
        ccp_alpha=0.0,
        strength=1.0,
        min_samples_leaf=max(1, min(min_rows, rows.n_counted // 8)),
        random_state=0,
        verbose=0,
    )
    shrinkage = SHRINKAGE_OF_NUMBERS if rows.classes is None else SHRINKAGE_OF_CLASSES
    n_values = 1 if rows.n_classes is None else max(rows.n_classes)
    shape = rows.targets.shape[1], n_values
    # What all trees predict for each row. Of the rows and copies that are drawn one by one: what
    # those not grown on them predict, and what these would without a split.
    every, row = np.zeros((rows.table.n_rows, *shape)), draw.row
    unseen, without = np.zeros((len(row), *shape)), np.zeros((len(row), *shape))
    n_asked, n_trees = np.zeros(len(row)), 0
    resamples = {number: draw.are_drawn(number) for number in range(n_resamples)}
    resamples = {number: drawn for number, drawn in resamples.items() if drawn.any()}
    seeds, drawn = np.array([*map(draw.seed, resamples)]), list(resamples.values())
    features = None if rows.classes is None else HalfDraw(draw.features, seeds)
    trees = _small_trees(draw.one_by_one(binned), small, pairs, drawn, features, few)
    for are_drawn, grown in zip(drawn, trees, strict=True):
        tree = shrink(grown, shrinkage)
        values, left = tree.value[binned.backend.leaves(binned, tree, small.n_threads)], ~are_drawn
        every += values
        unseen[left] += values[row[left]]
        without[left] += tree.value[0]
        n_asked += left
        n_trees += 1
    asked = n_asked > 0
    if not asked.any():
        return Resamples(NO_EVIDENCE, every)
    every /= n_trees
    times = n_asked[asked, None, None]
    predicted, base = unseen[asked] / times, without[asked] / times
    evidence = _evidence(rows, parameters, draw, asked, predicted, base, n_trees)
    # Rows whose copies are drawn one by one keep what all trees predict, as each has seen some.
    is_whole = ~draw.is_alone[row[asked]]
    every[row[asked][is_whole]] = predicted[is_whole]
    return Resamples(evidence, every)


def _small_trees(
    binned: BinnedRows,
    small: Parameters,
    pairs: PairOptions,
    drawn: list[np.ndarray],
    features: HalfDraw | None,
    few: int,
) -> Iterator[TreeArrays]:
    """A tree for each resample; a resample is a mask of the rows."""
    goal = binned.rows.goal(small)
    goal = goal.counting(None, few)
    every = hold(binned, small, goal)
    numbers = range(len(drawn))
    for some in grown_together(numbers, every, binned.rows.table.n_rows, pairs):
        rows = [np.flatnonzero(drawn[number]).astype(np.int32) for number in some]
        held = every.at_roots(rows)
        its = None if features is None else replace(features, seeds=features.seeds[list(some)])
        trees = Trees(np.zeros(len(some), dtype=np.int64), its)
        order = np.stack([feature_order(held, root) for root in range(len(some))])
        with Progress(0, held.n_rows, MAX_DEPTH) as silent:
            frames = pair_frames(held, pairs, len(some))
            grown = grower(held, frames, small, silent, order, trees, lays_out=True).grow()
        for root in range(len(some)):
            yield grown.arrays(binned.binned.features, goal.impurity_scale, root)


def _bins(binned: BinnedRows, rows: np.ndarray) -> list[np.ndarray]:
    """Bins of some rows, an array for each feature."""
    columns = binned.binned.columns
    return [columns.array(number)[rows] for number in range(columns.n_columns)]


def part_of(binned: BinnedRows, drawn: np.ndarray, of_rows: np.ndarray | None = None) -> BinnedRows:
    """The rows of which some copies are drawn, with as much weight as these have.

    Parameters
    ----------
    binned : BinnedRows
    drawn : array of shape (n_rows,)
        How many copies of each.
    of_rows : int array of shape (n_rows,), optional
        Which rows these are, if they are not all, each once.
    """
    if of_rows is None:
        of_rows, drawn = np.flatnonzero(drawn > 0), drawn[drawn > 0]
    part = binned.take(of_rows)
    rows = part.rows
    if rows.counts is None or np.array_equal(drawn, rows.counts):
        return part
    assert rows.weights is not None
    weights = drawn
    if rows.counts is not rows.weights and not np.array_equal(rows.counts, rows.weights):
        unit = exact_unit(float(rows.weights.sum()))
        weights = on_grid(rows.weights * (drawn / rows.counts), unit)
    return replace(part, rows=replace(rows, weights=weights, counts=drawn))


def _evidence(
    rows: TrainingRows,
    parameters: Parameters,
    draw: HalfSamples,
    asked: np.ndarray,
    predicted: np.ndarray,
    without: np.ndarray,
    n_trees: int,
) -> Evidence:
    """What predictions of trees gain on those without, for rows and copies that were asked."""
    row, times = draw.row[asked], draw.times[asked]
    weights = np.ones(rows.table.n_rows) if rows.weights is None else rows.weights
    objective = "log_loss" if rows.classes is not None else parameters.objective
    score, targets = Score(objective, rows.targets, weights), rows.targets[row]
    base, weights = score.of(without, targets), (weights / draw.n_copies)[row] * times
    gain = float((score.of(predicted, targets) - base) @ weights / weights.sum())
    lost = float((score.best - base) @ weights / weights.sum())
    # Rows of a kind are evidence once, unless they are drawn one by one.
    steps, alone = score.of_step(without, predicted, targets), draw.is_alone[row]
    off = weights * (steps - steps @ weights / weights.sum())
    together = np.bincount(draw.kind[row], np.where(alone, 0.0, off))
    error = float(np.sqrt(together @ together + off[alone] @ off[alone]))
    total = float(steps @ weights)
    trend = total / error if error > 0 else (np.inf if total > 0 else 0.0)
    explained = gain / lost if lost > 0 else 0.0
    chance = CHANCE_OF_NUMBERS if rows.classes is None else CHANCE_OF_CLASSES
    return Evidence(gain, float(trend), draw.n_units, n_trees, explained, chance)


@dataclass(frozen=True)
class NearestSplit:
    """The best split of the root: its features, what it gains, and what it would have to.

    In bits of entropy, rows of Gini mass, or rows of average error.
    """

    features: tuple[int, ...]
    gain: float
    needed: float


def nearest_split(
    binned: BinnedRows, parameters: Parameters, pairs: PairOptions
) -> NearestSplit | None:
    """The split of the root that comes nearest to its price; None if there is none at all."""
    free = replace(parameters, max_depth=1, leaf_penalty=0.0, max_leaf_nodes=None, lookahead=1)
    held = hold(binned, free)
    with Progress(0, held.n_rows, 1) as silent:
        grown = grower(held, pair_frames(held, pairs), free, silent).grow()
    split = grown.splits[0]
    if split is None:
        return None
    root, *children = grown.statistics
    gain = root.weight * root.impurity
    gain -= sum(child.weight * child.impurity for child in children)
    needed = parameters.prices(held.goal).leaf * (len(children) - 1)
    unit = held.goal.penalty_unit(root)
    return NearestSplit(split.features, gain / unit if unit > 0 else 0.0, needed)
