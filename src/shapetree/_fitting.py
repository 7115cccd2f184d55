"""The order of a fit: from a table to a FittedTree, and from one FittedTree to another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from shapetree._choice import (
    MANY_ROWS,
    PATH,
    USUAL_STRENGTH,
    Choice,
    FoldTest,
    Loss,
    LossOfClasses,
    LossOfNumbers,
    Plan,
    Record,
    Result,
    Trial,
    choose,
    hashes_of_rows,
    make_folds,
    path_of,
    race_for,
    run_together,
    strata_of,
    test_of,
    usual_of,
)
from shapetree._core.criterion import Criterion
from shapetree._threads import effective_threads
from shapetree.data._batches import Batches, refuse_beside_batches
from shapetree.data._binning import BinnedTable, bin_table
from shapetree.data._labels import find_classes, read_targets
from shapetree.data._moments import readable_threshold
from shapetree.data._stored import read_stored
from shapetree.data._sums import exact_weights
from shapetree.data._table import FeatureInfo, Table, read_table
from shapetree.data._targets import ClassGoal, Goal, MeanGoal, MedianGoal, RegressionGoal
from shapetree.grow._candidates import (
    CandidateSearch,
    InnerTreeOptions,
    Penalties,
    SearchOptions,
)
from shapetree.grow._grower import ANYWHERE, Grower, Limits, Start, finish
from shapetree.grow._local import hold_rows
from shapetree.grow._nodes import GrowingNode, TreeNode, tree_of
from shapetree.grow._pairs import PairFrame, PairOptions, PairSearch, pair_options
from shapetree.grow._progress import Progress, TestProgress
from shapetree.grow._rows import HeldRows
from shapetree.refine import (
    PairTools,
    RefineOptions,
    fitting_bins,
    prune_by_cost,
    refine,
    refine_tree_arrays,
    shrink,
    simplify,
)
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedTree
from shapetree.tree._naming import Names, target_names
from shapetree.tree._predictor import leaves_of_bins
from shapetree.tree._sketcher import sketch_tree, summarise
from shapetree.tree._spread import (
    NeighboursOfThresholds,
    SpreadRows,
    sole_target,
    spread_of,
)

UNLIMITED = 2**30
# By default, a split must remove the impurity of this many rows.
SPLIT_PENALTY = 6.0
# A tree is in doubt if it removes less than this share of the impurity, and if its first split
# gains less than noise would by this many cuts (for classes, and for numbers, which may have
# outliers; four times as many for a pair) or by this many times the categories. It must then hold
# up on new rows: a tree grown on either half must predict the other, by this many standard errors.
SHARE_IN_DOUBT = 0.6
CUTS_IN_DOUBT = (35.0, 200.0)
CATEGORIES_IN_DOUBT = 2.0
CLEARLY = 3.0
# Distinct rows for each feature without which no tree is beyond doubt.
ROWS_PER_FEATURE = 10
# Fewest distinct rows that can be halved, and their smallest share of all rows: if most rows are
# copies, there is little to choose from, and the halves would have nothing in common.
LEAST_TO_HALVE = 50
LEAST_DISTINCT = 0.25
# Rows per distinct row from which rows count as copies of each other.
COPIED = 1.25
# What `shrinkage="cv"` chooses from, with this many folds unless the strength is chosen, too.
SHRINKAGES = (0.0, 0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0)
N_FOLDS = 5
# Growth is greedy, so where the strength is chosen, a tree is also begun in other ways: looking
# ahead at this many features, with this many other first splits that gain at least this share of
# what the best one gains, at a weaker or greater strength, and by another criterion. Of these, the
# first few are tried; fewer where a fit takes long.
LOOKAHEAD = 3
N_RIVAL_ROOTS = 2
LEAST_SHARE_OF_RIVAL = 0.5
WEAK_GROWTH, STRONG_GROWTH = 0.3, 3.0
N_BEGINNINGS, N_BEGINNINGS_IF_SLOW = 5, 2
# By how many times the square root of what counts a penalised loss must be lower to be better.
LEAD = 0.6
# How far targets may be apart, so that sums of their (squared) distances stay finite.
MAX_SPREAD = {"squared_error": 1e152, "absolute_error": 1e300}
# Features that are compared one level deeper; each takes as long as a level of the tree.
MAX_LOOKAHEAD = 10
# Bins that pairs are screened with where single features have one for each value.
COARSE_BINS = 255


@dataclass(frozen=True)
class Parameters:
    """The parameters of an estimator, which says what they mean; all have been checked."""

    max_depth: int | None
    max_branches: int
    criterion: str
    strength: Any
    folds: int | None
    pairs: Any
    pair_screen: str
    pair_penalty: float | str
    n_orientations: int
    min_samples_split: float
    min_samples_leaf: float
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    max_leaf_nodes: int | None
    lookahead: int
    inner_tree: str
    inner_max_leaf_nodes: int | None
    inner_min_samples_leaf: float
    inner_max_depth: int | None
    segment_penalty: float | str
    split_penalty: float | str
    branch_penalty: float
    assignment: str
    refine: str | None
    refine_iter: int
    refine_penalty: float | str
    ccp_alpha: float
    shrinkage: float | str
    max_bins: int | None
    categorical_features: Any
    n_threads: int | None
    random_state: Any
    verbose: int
    class_weight: Any = None
    # Not a user's: how many rows must gain together what one must otherwise, and what the strength
    # is multiplied by while a tree grows.
    copies: float = 1.0
    growth: float = 1.0

    @property
    def threads(self) -> int:
        """Number of threads to use."""
        return effective_threads(self.n_threads)

    @property
    def is_cart(self) -> bool:
        """Whether splits are CART's own, thresholds to two branches."""
        return self.max_branches == 2 and self.inner_max_leaf_nodes == 2

    @property
    def prices_splits(self) -> bool:
        """Whether it is ours to say what a split must earn."""
        return self.split_penalty == "auto" and self.strength > 0 and not self.is_cart

    def penalty(self, name: str, automatic: float) -> float:
        """A penalty as the user gave it, or the automatic one at the strength in use."""
        given = getattr(self, name)
        strength = float(self.strength) * self.copies
        return strength * automatic if given == "auto" else float(given)

    @property
    def shrinkages(self) -> tuple[float, ...]:
        """Shrinkages to choose from."""
        if self.shrinkage == "cv":
            return SHRINKAGES
        if self.shrinkage == "auto":
            return (0.0,) if isinstance(self.strength, Real) else SHRINKAGES
        return (float(self.shrinkage),)

    @property
    def while_growing(self) -> Parameters:
        """The parameters that a tree grows with; later, its refinement may be at another price."""
        return replace(self, strength=self.strength * self.growth, growth=1.0)

    def with_trial(self, trial: Trial) -> Parameters:
        """The same with a strength and a criterion that may have been chosen."""
        return replace(self, strength=trial.strength, criterion=trial.criterion)


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from.

    Attributes
    ----------
    table : Table
    targets : array of shape (n_rows, n_outputs)
        Numbers, or numbers of classes.
    classes : tuple of arrays or None
        Class labels of each output; None for numbers.
    weights : array of shape (n_rows,) or None
        As evidence, see `exact_weights`; None if all are 1.
    weight_size : float
        What evidence of 1 weighs by the user's own weights.
    """

    table: Table
    targets: np.ndarray
    classes: tuple[np.ndarray, ...] | None
    weights: np.ndarray | None
    weight_size: float = 1.0

    @property
    def n_classes(self) -> list[int] | None:
        """Number of classes of each output; None for numbers."""
        return None if self.classes is None else [len(labels) for labels in self.classes]

    @property
    def total_weight(self) -> float:
        """Weight of all rows, or their number."""
        return self.table.n_rows if self.weights is None else float(self.weights.sum())

    @property
    def strata(self) -> np.ndarray:
        """Classes, or groups of similar numbers, that every fold should have its share of."""
        return strata_of(self.targets, self.classes is not None)

    def take(self, kept: np.ndarray) -> TrainingRows:
        """Keep the rows that a boolean mask marks."""
        return replace(
            self,
            table=self.table.take(kept),
            targets=self.targets[kept],
            weights=None if self.weights is None else self.weights[kept],
        )

    def with_evidence(self, importance: np.ndarray | None) -> TrainingRows:
        """Take weights as evidence; rows of weight zero go, and so do weights that are all 1."""
        if self.weights is None and importance is None:
            return self
        weights = np.ones(self.table.n_rows) if self.weights is None else self.weights
        kept = weights > 0
        if importance is not None:
            kept = weights * importance > 0
            importance = importance[kept]
        rows = self if kept.all() else self.take(kept)
        weights, size = exact_weights(weights[kept], importance)
        is_equal = bool((weights == 1).all())
        return replace(rows, weights=None if is_equal else weights, weight_size=size)

    def weighed(self, importance: np.ndarray | None) -> TrainingRows:
        """The same, without categories that only rows of weight zero have."""
        rows = self.with_evidence(importance)
        if rows.table.n_rows == self.table.n_rows:
            return rows
        return replace(rows, table=rows.table.with_seen_categories())

    def goal(self, parameters: Parameters) -> Goal:
        """What a tree is to learn of them."""
        if self.classes is not None:
            criterion = "entropy" if parameters.criterion == "log_loss" else parameters.criterion
            sizes = [len(labels) for labels in self.classes]
            return ClassGoal(self.targets, sizes, self.weights, criterion, parameters.max_branches)
        kind = MeanGoal if parameters.criterion == "squared_error" else MedianGoal
        return kind(self.targets, self.weights)


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """Rows and their bins, which fits of all of them and of parts of them share.

    Attributes
    ----------
    rows : TrainingRows
    binned : BinnedTable
    coarse : BinnedTable or None
        Bins that pairs are screened with, if they are others.
    """

    rows: TrainingRows
    binned: BinnedTable
    coarse: BinnedTable | None

    def take(self, kept: np.ndarray) -> BinnedRows:
        """Keep the rows that a boolean mask marks."""
        coarse = None if self.coarse is None else self.coarse.take(kept)
        return BinnedRows(self.rows.take(kept), self.binned.take(kept), coarse)

    def leaves(self, tree: TreeArrays, n_threads: int) -> np.ndarray:
        """Leaves of the rows in a tree that was grown on such bins."""
        return leaves_in(self.binned, self.rows.table, tree, n_threads)


@singledispatch
def leaves_in(binned: BinnedTable, table: Table, tree: TreeArrays, n_threads: int) -> np.ndarray:
    """Leaves of binned rows, wherever they are; see `leaves_of_bins`."""
    return leaves_of_bins(tree, table, binned, n_threads)


@dataclass(frozen=True)
class _Outcome:
    """A tree as it was learnt from rows, by which criterion, and how its refinement went.

    Attributes
    ----------
    tree : TreeArrays
    criterion : str
    history : array or None
        Penalised losses before and after each sweep of refinement; None without it.
    root : tuple of int
        Features that the root was split on when the tree grew.
    root_gain : float
        Impurity mass that this took away.
    """

    tree: TreeArrays
    criterion: str
    history: np.ndarray | None = None
    root: tuple[int, ...] = ()
    root_gain: float = 0.0

    def better(self, other: _Outcome, has_classes: bool, weight: float) -> _Outcome:
        """The other outcome if its penalised loss is lower by more than chance, or else this one.

        Losses are in rows: those of the wrong class, or those that would lose half as much.
        """
        assert self.history is not None
        assert other.history is not None
        loss = float(self.history[-1])
        # Both losses count rows: those of the wrong class, or all of them times a logarithm.
        spread = math.sqrt(max(loss, 0.0) if has_classes else weight)
        return other if float(other.history[-1]) < loss - LEAD * spread else self


# --- the order of a fit ---


def fit_tree(
    X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
) -> FittedTree:
    """Fit a tree.

    Parameters
    ----------
    X, y, sample_weight
        As given by the user.
    parameters : Parameters
    has_classes : bool
        Whether y holds classes rather than numbers.
    """
    rows = _read_rows(X, y, sample_weight, parameters, has_classes)
    # Rows that are elsewhere know their targets' names.
    names = Names(targets=getattr(X, "target_names", None) or target_names(y))
    pairs = _read_pairs(rows.table, parameters)
    # Bins come first: making them takes more memory than anything else.
    binned = _bin(rows, parameters, pairs)
    choice = _choose(binned, parameters, pairs)
    is_chosen = not isinstance(parameters.strength, Real)
    parameters = parameters.with_trial(choice.trial)
    with Progress(parameters.verbose, rows.table.n_rows, parameters.max_depth) as progress:
        if is_chosen:
            outcome = _learn_from_many_starts(binned, parameters, pairs, progress, choice.rivals)
        else:
            outcome = _learn(binned, parameters, pairs, progress, must_hold_up=True, owns_bins=True)
    del binned  # what follows needs its memory
    return replace(_finish(outcome, rows, parameters, choice), names=names)


def refine_fitted(
    fitted: FittedTree, X: Any, y: Any, sample_weight: Any, parameters: Parameters, reader: str
) -> FittedTree:
    """Refine a fitted tree for some rows, which `reader` reads."""
    choice = Choice(Trial(fitted.strength, fitted.criterion), fitted.shrinkage)
    parameters = parameters.with_trial(choice.trial)
    targets = fitted.read_targets(X, y)
    if fitted.classes is None:
        check_spread(targets, parameters.criterion)
    weights = _row_weights(X, sample_weight)
    rows = TrainingRows(fitted.read_table(X, reader), targets, fitted.classes, weights)
    rows = rows.with_evidence(_importance(y, weights, parameters.class_weight))
    binned = bin_table(rows.table, rows.weights, parameters.max_bins, parameters.threads)
    binned = fitting_bins(fitted.tree, rows.table, binned)
    pairs = _read_pairs(rows.table, parameters)
    coarse = _coarse_bins(rows, binned, parameters, pairs)
    held = _hold(BinnedRows(rows, binned, coarse), parameters)
    goal = held.goal
    with Progress(parameters.verbose, rows.table.n_rows, parameters.max_depth) as progress:
        refined, history = refine_tree_arrays(
            fitted.tree,
            held,
            _refine_options(binned.n_rows, goal, parameters),
            _pair_tools(held, parameters, pairs),
            progress.sweep,
            owns_bins=True,
        )
    tree = tree_of(refined, goal.impurity_scale)
    outcome = _Outcome(tree, goal.criterion_name, np.array(history))
    finished = _finish(outcome, rows, parameters, choice)
    return replace(finished, has_names=fitted.has_names, names=fitted.names)


def fit_path(
    X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
) -> dict[str, np.ndarray]:
    """Fit trees along a path of strengths, and test each on rows held out.

    Parameters
    ----------
    X, y, sample_weight
        As given by the user.
    parameters : Parameters
        A list of strengths is the path; otherwise it is our own.
    has_classes : bool
        Whether y holds classes rather than numbers.

    Returns
    -------
    dict of arrays
    """
    if isinstance(parameters.strength, Real | str):
        parameters = replace(parameters, strength=PATH)
    rows = _read_rows(X, y, sample_weight, parameters, has_classes)
    pairs = _read_pairs(rows.table, parameters)
    binned = _bin(rows, parameters, pairs)
    criterion = rows.goal(parameters).criterion_name
    path = path_of(parameters.strength)
    trials = tuple(Trial(strength, criterion) for strength in path)
    usual = Trial(usual_of(path), criterion)
    n_folds = parameters.folds or N_FOLDS
    with TestProgress(parameters.verbose, rows.table.n_rows) as progress:
        tester = _Tester(binned, parameters, pairs, n_folds, parameters.shrinkages, progress)
        if not tester.folds.are_filled:
            raise ValueError(
                f"folds={n_folds} needs at least as many distinct rows; use fewer folds"
            )
        record = Record(trials, tester.folds)
        record.add(tester.test, trials, range(n_folds))
        trees = tester.trees(trials)
    chosen = record.choose(usual)
    scores, errors = np.array([record.score(trial) for trial in trials]).T
    return {
        "strength": np.array([trial.strength for trial in trials]),
        "score": scores,
        "error": errors,
        "n_leaves": np.array([tree.n_leaves for tree in trees]),
        "n_segments": np.array([tree.n_segments for tree in trees]),
        "is_chosen": np.array([trial == chosen for trial in trials]),
    }


def simplify_fitted(fitted: FittedTree) -> FittedTree:
    """Join leaves that predict the same, and leave out what makes no difference."""
    sizes = fitted.n_classes
    if sizes is None:
        return fitted.with_tree(simplify(fitted.tree, None, np.array_equal))
    criterion = Criterion(fitted.criterion, sizes)

    def impurity(value: np.ndarray) -> float:
        shares = np.concatenate([v[:n] for v, n in zip(value, sizes, strict=True)])
        return float(criterion.impurity(shares) / criterion.weight(shares))

    def predicts_the_same(value: np.ndarray, other: np.ndarray) -> bool:
        return np.array_equal(value.argmax(axis=1), other.argmax(axis=1))

    return fitted.with_tree(simplify(fitted.tree, impurity, predicts_the_same))


def _read_rows(
    X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
) -> TrainingRows:
    if not isinstance(parameters.strength, Real):
        path_of(parameters.strength)  # which says so if it makes no sense
    return read_rows(X, y, sample_weight, parameters, has_classes)


@singledispatch
def read_rows(
    X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
) -> TrainingRows:
    """Read what a user gives to learn from, wherever it is."""
    table = read_table(X, parameters.categorical_features)
    targets, classes = read_targets(y, has_classes), None
    check_consistent_length(X, targets)
    if has_classes:
        classes, targets = find_classes(targets)
    else:
        check_spread(targets, parameters.criterion)
    weights = _row_weights(X, sample_weight)
    importance = _importance(y, weights, parameters.class_weight)
    return TrainingRows(table, targets, classes, weights).weighed(importance)


@read_rows.register
def _read_batches(
    batches: Batches, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
) -> TrainingRows:
    """Rows in parts, which bring their targets and weights along."""
    refuse_beside_batches(y=y, sample_weight=sample_weight)
    found = read_stored(batches, parameters.categorical_features, has_classes, parameters.verbose)
    if found.classes is None:
        check_spread(found.targets, parameters.criterion)
    check_weights(found.weights)
    about = found.targets, found.classes, found.weights
    importance = importance_of(*about, parameters.class_weight)
    return TrainingRows(found.table, *about).weighed(importance)


def importance_of(
    targets: np.ndarray,
    classes: tuple[np.ndarray, ...] | None,
    weights: np.ndarray | None,
    class_weight: Any,
) -> np.ndarray | None:
    """What each row's weight is multiplied by for its class, whose number is given."""
    if class_weight is None or classes is None:
        return None
    each = zip(classes, targets.T, strict=True)
    labels = np.column_stack([names[numbers] for names, numbers in each])
    return _importance(labels[:, 0] if labels.shape[1] == 1 else labels, weights, class_weight)


def _row_weights(X: Any, sample_weight: Any) -> np.ndarray | None:
    """Weights of the rows; None if all are 1."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_weights(weights)
    return weights


def check_weights(weights: np.ndarray | None) -> None:
    """Refuse weights that are no use, though each of them is a number that is not negative."""
    if weights is None:
        return
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; give some row a positive weight")
    if not _has_finite_sum(weights):
        raise ValueError(
            "sample_weight adds up to more than a number can hold; divide it by a large number"
        )


def _importance(y: Any, weights: np.ndarray | None, class_weight: Any) -> np.ndarray | None:
    """What each row's weight is multiplied by for its class; None if by 1."""
    if class_weight is None:
        return None
    by_class = compute_sample_weight(class_weight, y)
    if (by_class < 0).any() or not np.isfinite(by_class).all():
        raise ValueError("class_weight must hold finite weights that are not negative")
    with np.errstate(over="ignore"):
        total = by_class if weights is None else weights * by_class
    if not total.any():
        raise ValueError("class_weight and sample_weight together give every row a weight of zero")
    if not _has_finite_sum(total):
        raise ValueError(
            "class_weight gives rows weights that add up to more than a number can hold; divide it "
            "by a large number"
        )
    return by_class


def _has_finite_sum(weights: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(weights.sum()))


def check_spread(targets: np.ndarray, criterion: str) -> None:
    """Refuse targets that are too far apart for their sums to stay finite."""
    limit = MAX_SPREAD[criterion]
    apart = targets.max(axis=0) / 2 - targets.min(axis=0) / 2
    if (apart > limit / 2).any():
        raise ValueError(
            f"the targets in y are more than {limit:g} apart, which is too much for "
            f"criterion={criterion!r}; divide y by a large number"
        )


def _bin(rows: TrainingRows, parameters: Parameters, pairs: PairOptions) -> BinnedRows:
    binned = bin_table(rows.table, rows.weights, parameters.max_bins, parameters.threads)
    coarse = _coarse_bins(rows, binned, parameters, pairs)
    # Splits on pairs read values.
    table = rows.table.with_values(pairs.pairs.features() if len(pairs.pairs) else [])
    return BinnedRows(replace(rows, table=table), binned, coarse)


def _coarse_bins(
    rows: TrainingRows, binned: BinnedTable, parameters: Parameters, pairs: PairOptions
) -> BinnedTable | None:
    """Bins to screen pairs with where those of single features will not do.

    They may be one for each value, or categories with an order of their own: in a pair, a node
    finds its own order for them.
    """
    if len(pairs.pairs) == 0:
        return None
    if parameters.max_bins is None:
        return bin_table(rows.table, rows.weights, COARSE_BINS, parameters.threads).without_order()
    has_order = any(feature.has_places for feature in binned.features)
    return binned.without_order() if has_order else None


def _learn(
    binned_rows: BinnedRows,
    parameters: Parameters,
    pairs: PairOptions,
    progress: Progress,
    must_hold_up: bool = False,
    start: Start = ANYWHERE,
    owns_bins: bool = False,
) -> _Outcome:
    """Grow a tree, and refine it unless told otherwise; noise has a leaf if it must hold up.

    Refinement may reorder the rows' bins if nobody else will read them, see `refine`.
    """
    binned, held = binned_rows.binned, _hold(binned_rows, parameters)
    goal, tools = held.goal, _pair_tools(held, parameters, pairs)
    root = _grow(held, tools, parameters.while_growing, progress, start)
    first_split = () if root.split is None else root.split.features, _gain_of_first_split(root)
    if must_hold_up:
        instead = _instead_of_chance(root, binned_rows, goal, parameters, pairs)
        if instead is not None:
            outcome = _learn(
                binned_rows, instead, pairs, progress, must_hold_up, owns_bins=owns_bins
            )
            return replace(outcome, root=())
    if parameters.refine is None:
        finish(root, binned.features)
        tree = tree_of(root, goal.impurity_scale)
        return _Outcome(tree, goal.criterion_name, None, *first_split)
    refined, history = refine(
        root,
        held,
        _refine_options(binned.n_rows, goal, parameters),
        tools,
        progress.sweep,
        owns_bins,
    )
    tree = tree_of(refined, goal.impurity_scale)
    return _Outcome(tree, goal.criterion_name, np.array(history), *first_split)


def _learn_from_many_starts(
    binned_rows: BinnedRows,
    parameters: Parameters,
    pairs: PairOptions,
    progress: Progress,
    other_criteria: tuple[str, ...] = (),
) -> _Outcome:
    """The tree of least penalised loss among those that begin in several ways.

    What gains most at the root need not be the best beginning of a tree. All rows judge: the loss
    counts what a tree's parts cost. Where parts are free, it would only tell who overfits most.
    """
    rows, usual = binned_rows.rows, parameters
    best = _learn(binned_rows, usual, pairs, progress, must_hold_up=True)
    if best.history is None or not best.root or usual.penalty("refine_penalty", 1.0) == 0.0:
        return best  # nothing to compare by, or nothing learnt
    least_gain, avoid = LEAST_SHARE_OF_RIVAL * best.root_gain, {best.root}
    ways = _other_beginnings(usual, pairs, rows.total_weight, other_criteria)
    while ways:
        way = ways.pop(0)
        start = Start(frozenset(avoid), least_gain) if way is usual else ANYWHERE
        with Progress(0, rows.table.n_rows, None) as silent:
            rival = _learn(binned_rows, way, pairs, silent, start=start)
        if rival.root:
            best = best.better(rival, rows.classes is not None, rows.total_weight)
            avoid.add(rival.root)
        else:  # and no other root will do
            ways = [other for other in ways if other is not way]
    return best


def _other_beginnings(
    usual: Parameters, pairs: PairOptions, weight: float, criteria: tuple[str, ...]
) -> list[Parameters]:
    """How else to begin a tree, the most promising first; the usual way has to avoid a root."""
    has_pairs = len(pairs.pairs) > 0
    ways = [replace(usual, lookahead=LOOKAHEAD)] * (usual.lookahead == 1 and not has_pairs)
    ways += [usual] * N_RIVAL_ROOTS
    ways += [replace(usual, growth=WEAK_GROWTH)]
    ways += [replace(usual, criterion=criterion) for criterion in criteria]
    ways += [replace(usual, growth=STRONG_GROWTH)]
    # Weak penalties make for large trees, and pairs take long.
    is_slow = weight > MANY_ROWS or (has_pairs and usual.strength < USUAL_STRENGTH)
    return ways[: N_BEGINNINGS_IF_SLOW if is_slow else N_BEGINNINGS]


def _finish(
    outcome: _Outcome, rows: TrainingRows, parameters: Parameters, choice: Choice
) -> FittedTree:
    """What was learnt, pruned and shrunk as the parameters say, and sketched."""
    tree = shrink(prune_by_cost(outcome.tree, parameters.ccp_alpha), choice.shrinkage)
    features, has_classes = rows.table.features, rows.classes is not None
    y = sole_target(rows.targets, has_classes)
    spread = spread_of(tree, rows.table, y, parameters.threads)
    tree = _with_readable_dates(tree, features, spread)
    is_number = y is not None and not has_classes
    summary = summarise(spread, features, tree.used_features, is_number)
    sketches = None
    if y is not None:
        sketches = sketch_tree(tree, features, spread, rows.n_classes, summary.target_edges)
    weights = tree.weighted_n_node_samples * rows.weight_size
    return FittedTree(
        tree=tree.with_nodes(weights=weights, sketches=sketches),
        features=features,
        has_names=rows.table.has_names,
        classes=rows.classes,
        criterion=outcome.criterion,
        strength=choice.trial.strength,
        shrinkage=choice.shrinkage,
        summary=summary,
        history=outcome.history,
        cv_results=choice.results,
    )


def _with_readable_dates(
    tree: TreeArrays, features: tuple[FeatureInfo, ...], rows: SpreadRows
) -> TreeArrays:
    """The same tree, with thresholds on dates at moments that are told in few digits."""
    dates = [number for number in tree.used_features if features[number].is_date]
    nodes = {number: _nodes_on(tree, number) for number in dates}
    asked = [NeighboursOfThresholds(number, _thresholds(tree, nodes[number])) for number in dates]
    upper = tree.piece_upper.copy()
    for question, (below, above) in zip(asked, rows.ask(*asked) if asked else [], strict=True):
        for node in nodes[question.feature]:
            inner = upper[tree.pieces(node)][:-1]
            places = np.searchsorted(question.thresholds, inner)
            inner[:] = [
                # Where other rows chose the threshold, these may lie all on one side of it.
                readable_threshold(at, low, high) if np.isfinite([low, high]).all() else at
                for at, low, high in zip(
                    inner.tolist(), below[places].tolist(), above[places].tolist(), strict=True
                )
            ]
    return tree.with_thresholds(upper) if (upper != tree.piece_upper).any() else tree


def _nodes_on(tree: TreeArrays, feature: int) -> list[int]:
    """Nodes that split on a single feature."""
    return np.flatnonzero((tree.feature == feature) & (tree.second_feature < 0)).tolist()


def _thresholds(tree: TreeArrays, nodes: list[int]) -> np.ndarray:
    """Thresholds of some nodes, ascending."""
    each = [tree.piece_upper[tree.pieces(node)][:-1] for node in nodes]
    return np.unique(np.concatenate([*each, np.empty(0)]))


# --- noise ---


def _instead_of_chance(
    root: GrowingNode,
    rows: BinnedRows,
    goal: Goal,
    parameters: Parameters,
    pairs: PairOptions,
) -> Parameters | None:
    """How to learn instead if a tree may be nothing but noise, and does not hold up on new rows.

    Where rows are there twice, noise gains twice as much, and pays for shapes that tell almost all
    rows apart: what the rows have to tell is then learnt at twice the price. Otherwise, a leaf is.
    """
    if root.split is None or not parameters.prices_splits:
        return None
    before = root.statistics.weight * root.statistics.impurity
    gain = max(_gain_of_first_split(root), np.finfo(float).tiny)
    doubt = _noise(root, rows.binned, goal) / gain
    if doubt <= LEAST_DISTINCT**3:
        return None  # not to be doubted, however often rows are repeated
    hashes = _hashes(rows.rows, rows.binned)
    n_distinct = len(np.unique(hashes))
    if n_distinct < max(LEAST_TO_HALVE, LEAST_DISTINCT * goal.total_weight):
        return None
    copies = goal.total_weight / n_distinct
    unpaid = copies / parameters.copies
    is_clear = unpaid <= COPIED and before - _impurity_below(root) >= SHARE_IN_DOUBT * before
    # With many features to choose from, trees of noise take that much away, too.
    is_clear &= n_distinct >= ROWS_PER_FEATURE * len(rows.binned.features)
    if is_clear or doubt * copies * unpaid**2 <= 1.0:
        return None
    if _holds_up(rows, hashes, parameters, pairs):
        return None
    if unpaid > COPIED:
        return replace(parameters, copies=copies)
    return replace(parameters, max_depth=0)


def _gain_of_first_split(root: GrowingNode) -> float:
    """Impurity mass that the root's split takes away."""
    after = sum(child.statistics.weight * child.statistics.impurity for child in root.children)
    return root.statistics.weight * root.statistics.impurity - after if root.children else 0.0


def _impurity_below(root: GrowingNode) -> float:
    """Impurity mass that a whole tree leaves."""
    left = 0.0
    pending: list[TreeNode] = [root]
    while pending:
        node = pending.pop()
        pending.extend(node.children)
        if not node.children:
            left += node.statistics.weight * node.statistics.impurity
    return left


def _noise(root: GrowingNode, binned: BinnedTable, goal: Goal) -> float:
    """What a first split on such features might gain where there is nothing but noise."""
    assert root.split is not None
    features = [binned.features[feature] for feature in root.split.features]
    n_categories = sum(feature.n_bins for feature in features if feature.is_categorical)
    n_cuts = CUTS_IN_DOUBT[isinstance(goal, RegressionGoal)] * len(features) ** 2
    return goal.noise(root.statistics) * (n_cuts + CATEGORIES_IN_DOUBT * n_categories)


def _hashes(rows: TrainingRows, binned: BinnedTable) -> np.ndarray:
    """A hash of each row and its target."""
    return hashes_of_rows(binned, rows.targets, rows.weights, with_targets=True)


def _holds_up(
    rows: BinnedRows, hashes: np.ndarray, parameters: Parameters, pairs: PairOptions
) -> bool:
    """Whether trees that grow on one half of the rows tell anything of the other half."""
    content = np.unique(hashes, return_inverse=True)[1]
    told = np.zeros(content.max() + 1)
    # Half of the rows can pay half of the price.
    parameters = replace(parameters, copies=parameters.copies / 2)
    # Hashes are numbered in order, which halves them at random.
    for half in (0, 1):
        is_new = content % 2 != half
        held, new = _hold(rows.take(~is_new), parameters), rows.take(is_new)
        with Progress(0, held.n_rows, parameters.max_depth) as silent:
            root = _grow(held, _pair_tools(held, parameters, pairs), parameters, silent)
        finish(root, rows.binned.features)
        tree = tree_of(root, held.goal.impurity_scale)
        values = tree.value[new.leaves(tree, parameters.threads)]
        told += np.bincount(content[is_new], _told(values - tree.value[0], new.rows), len(told))
    return bool(told.sum() > CLEARLY * np.sqrt((told**2).sum()))


def _told(moves: np.ndarray, rows: TrainingRows) -> np.ndarray:
    """What each row adds to the covariance of targets, or classes, with how far leaves move them.

    How far is not judged: leaves that overdo it have something to tell all the same.
    """
    observed = rows.targets[:, :, None]
    if rows.classes is not None:
        observed = (observed == np.arange(moves.shape[2])).astype(float)
    else:
        # Numbers of any size: only their ratios matter.
        greatest = np.abs(observed).max(axis=0, initial=np.finfo(float).tiny)
        observed, moves = observed / greatest, moves / greatest
    weights = np.ones(len(moves)) if rows.weights is None else rows.weights
    mean = np.average(observed, axis=0, weights=weights)
    return (moves * (observed - mean)).sum(axis=(1, 2)) * weights


# --- strength, criterion and shrinkage, chosen ---


def _choose(binned: BinnedRows, parameters: Parameters, pairs: PairOptions) -> Choice:
    """The strength, criterion and shrinkage asked for, or those that are best on rows held out."""
    rows, n_rows = binned.rows, binned.rows.table.n_rows
    plan = _plan(rows, parameters, len(pairs.pairs) > 0)
    if len(plan.trials) == 1 and len(plan.shrinkages) == 1:
        return Choice(plan.usual, plan.shrinkages[0])
    n_folds = plan.race.n_folds if plan.race else parameters.folds or N_FOLDS
    with TestProgress(parameters.verbose, n_rows) as progress:
        tester = _Tester(binned, parameters, pairs, n_folds, plan.shrinkages, progress)
        if tester.folds.are_filled:
            return choose(plan, tester.folds, tester.test)
    if parameters.shrinkage == "cv":
        raise ValueError(
            f"shrinkage='cv' needs at least {n_folds} distinct rows, got {n_rows} sample(s); "
            "give a number"
        )
    return Choice(plan.usual, plan.shrinkages[0])


class _Tester:
    """Fits trials and tests them on folds, as many at a time as there are threads.

    Parameters
    ----------
    binned : BinnedRows
    parameters : Parameters
    pairs : PairOptions
    n_folds : int
    shrinkages : sequence of float
    progress : TestProgress
    """

    def __init__(
        self,
        binned: BinnedRows,
        parameters: Parameters,
        pairs: PairOptions,
        n_folds: int,
        shrinkages: Sequence[float],
        progress: TestProgress,
    ) -> None:
        # One seed for all fits, in whatever order they run.
        seed = int(check_random_state(parameters.random_state or 0).randint(2**31 - 1))
        self._parameters = replace(parameters, random_state=seed)
        self._binned = binned
        self._pairs = pairs
        self._shrinkages = shrinkages
        self._progress = progress
        rows = binned.rows
        hashes = hashes_of_rows(binned.binned, rows.targets, rows.weights)
        self.folds = make_folds(hashes, rows.strata, rows.weights, n_folds, seed)
        self._loss: Loss = LossOfClasses()
        if rows.classes is None:
            is_absolute = parameters.criterion == "absolute_error"
            self._loss = LossOfNumbers(rows.targets, self.folds.weights, is_absolute)

    def test(self, wanted: list[tuple[Trial, int]]) -> list[FoldTest]:
        """Test trials on folds that they are fitted without."""
        return self._run([partial(self._test, trial, fold) for trial, fold in wanted])

    def trees(self, trials: Sequence[Trial]) -> list[TreeArrays]:
        """Trees of all rows."""
        return self._run([partial(self._fit, trial, self._binned, False) for trial in trials])

    def _run(self, jobs: list[Callable[[int], Result]]) -> list[Result]:
        n_threads = self._parameters.threads
        self._progress.expect(len(jobs))
        each = 1 if len(jobs) > 1 else n_threads
        return run_together([partial(job, each) for job in jobs], n_threads, self._progress.stop)

    def _fit(self, trial: Trial, binned: BinnedRows, owns_bins: bool, n_threads: int) -> TreeArrays:
        parameters = replace(self._parameters.with_trial(trial), n_threads=n_threads)
        progress = self._progress.of_test()
        outcome = _learn(binned, parameters, self._pairs, progress, owns_bins=owns_bins)
        self._progress.tested()
        return prune_by_cost(outcome.tree, parameters.ccp_alpha)

    def _test(self, trial: Trial, fold: int, n_threads: int) -> FoldTest:
        held_out, start = self.folds.held_out(fold), perf_counter()
        tree = self._fit(trial, self._binned.take(~held_out), True, n_threads)
        seconds, new = perf_counter() - start, self._binned.take(held_out)
        leaves, y, weights = new.leaves(tree, n_threads), new.rows.targets, self.folds.weights
        return test_of(tree, leaves, y, weights[held_out], self._loss, self._shrinkages, seconds)


def _plan(rows: TrainingRows, parameters: Parameters, has_pairs: bool) -> Plan:
    """What to try: a single trial if there is nothing to choose."""
    shrinkages = parameters.shrinkages
    if isinstance(parameters.strength, Real):
        usual = Trial(float(parameters.strength), parameters.criterion)
        return Plan((usual,), usual, shrinkages)
    path = path_of(parameters.strength)
    criteria = [parameters.criterion]
    if criteria == ["auto"]:
        usual_criterion = rows.goal(parameters).criterion_name
        criteria = [usual_criterion, "entropy" if usual_criterion == "gini" else "gini"]
    trials = tuple(Trial(strength, criterion) for criterion in criteria for strength in path)
    usual = Trial(usual_of(path), criteria[0])
    race = None if parameters.folds else race_for(rows.total_weight, has_pairs)
    return Plan(trials, usual, shrinkages, race)


# --- growing and refining ---


def _grow(
    rows: HeldRows,
    pairs: PairTools | None,
    parameters: Parameters,
    progress: Progress,
    start: Start = ANYWHERE,
) -> GrowingNode:
    """Grow a tree on binned rows."""
    features, goal = rows.binned.features, rows.goal
    options = _search_options(rows.binned.n_rows, goal, parameters)
    return Grower(
        rows,
        features,
        goal,
        CandidateSearch(features, goal, options),
        None if pairs is None else PairSearch(pairs[0], goal, pairs[1]),
        parameters.max_bins is None,
        _limits(rows.n_rows, goal, parameters),
        progress,
        start,
    ).grow()


def _hold(binned_rows: BinnedRows, parameters: Parameters) -> HeldRows:
    """The rows, ready to be asked."""
    rows, binned, coarse = binned_rows.rows, binned_rows.binned, binned_rows.coarse
    return hold_rows(binned, rows.table, rows.goal(parameters), parameters.threads, coarse)


def _pair_tools(rows: HeldRows, parameters: Parameters, options: PairOptions) -> PairTools | None:
    """How pairs are searched; None if no pair may interact."""
    if len(options.pairs) == 0:
        return None
    weights = rows.goal.weights_behind(rows.at(0, rows.n_rows).histogram())
    frame = PairFrame(rows.coarse.features, weights, options)
    return frame, _search_options(rows.n_rows, rows.goal, parameters)


# --- options made of parameters ---


def _read_pairs(table: Table, parameters: Parameters) -> PairOptions:
    return pair_options(
        parameters.pairs,
        parameters.pair_screen,
        parameters.n_orientations,
        parameters.max_bins is None,
        table.features,
    )


def _search_options(n_rows: int, goal: Goal, parameters: Parameters) -> SearchOptions:
    """What the searches of single features and of pairs have in common."""
    # CART's own splits have nothing extra to earn.
    is_cart = parameters.is_cart
    pair = 0.0 if is_cart else None
    if parameters.pair_penalty != "auto":
        pair = float(parameters.pair_penalty)
    # A pair costs as much as a segment; a segment's own price has its strength in it already.
    is_given = parameters.segment_penalty != "auto"
    return SearchOptions(
        InnerTreeOptions(
            kind=parameters.inner_tree,
            max_leaves=_at_most(parameters.inner_max_leaf_nodes),
            min_rows=_as_rows(parameters.inner_min_samples_leaf, n_rows),
            max_depth=_at_most(parameters.inner_max_depth),
            assignment=parameters.assignment,
        ),
        Penalties(
            segment=parameters.penalty("segment_penalty", goal.segment_penalty),
            split=parameters.penalty("split_penalty", 0.0 if is_cart else SPLIT_PENALTY),
            branch=parameters.branch_penalty,
            pair=pair,
            segments_per_pair=parameters.strength if is_given else 1.0,
            many_rows=math.inf if is_given else goal.many_rows,
        ),
        min_samples_leaf=_as_rows(parameters.min_samples_leaf, n_rows),
        min_weight_leaf=max(_min_weight_leaf(goal, parameters), _least_leaf(goal, parameters)),
        seed=int(check_random_state(parameters.random_state).randint(2**31 - 1)),
        n_threads=parameters.threads,
    )


def _limits(n_rows: int, goal: Goal, parameters: Parameters) -> Limits:
    return Limits(
        max_depth=_at_most(parameters.max_depth),
        max_branches=parameters.max_branches,
        max_leaf_nodes=_at_most(parameters.max_leaf_nodes),
        lookahead=min(parameters.lookahead, MAX_LOOKAHEAD),
        min_samples_split=max(2, _as_rows(parameters.min_samples_split, n_rows)),
        min_samples_leaf=_as_rows(parameters.min_samples_leaf, n_rows),
        min_impurity_decrease=parameters.min_impurity_decrease / goal.impurity_scale,
    )


def _refine_options(n_rows: int, goal: Goal, parameters: Parameters) -> RefineOptions:
    max_segments = _at_most(parameters.inner_max_leaf_nodes)
    if parameters.inner_max_depth is not None and parameters.inner_max_depth < 30:
        max_segments = min(max_segments, 2**parameters.inner_max_depth)
    return RefineOptions(
        max_sweeps=parameters.refine_iter,
        penalty=parameters.penalty("refine_penalty", goal.refine_penalty),
        max_segments=max_segments,
        min_segment_rows=_as_rows(parameters.inner_min_samples_leaf, n_rows),
        min_samples_split=max(2, _as_rows(parameters.min_samples_split, n_rows)),
        min_samples_leaf=_as_rows(parameters.min_samples_leaf, n_rows),
        min_weight_leaf=_min_weight_leaf(goal, parameters),
        least_leaf=_least_leaf(goal, parameters),
        many_rows=goal.many_rows if parameters.refine_penalty == "auto" else math.inf,
    )


def _min_weight_leaf(goal: Goal, parameters: Parameters) -> float:
    return parameters.min_weight_fraction_leaf * goal.total_weight


def _least_leaf(goal: Goal, parameters: Parameters) -> float:
    """Weight that a leaf has at least unless the user prices splits."""
    return goal.least_leaf * parameters.copies if parameters.prices_splits else 0.0


def _at_most(limit: int | None) -> int:
    """A limit as a number that native code can hold."""
    return UNLIMITED if limit is None else min(limit, UNLIMITED)


def _as_rows(limit: float, n_rows: int) -> int:
    """Turn a number of rows, or a fraction of all, into a number of rows."""
    return min(int(limit), n_rows + 1) if limit >= 1 else int(np.ceil(limit * n_rows))
