"""The order of a fit: from a table to a FittedTree, and from one FittedTree to another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from shapetree._core.content import hash_contents
from shapetree._core.criterion import Criterion
from shapetree._core.sampling import row_hashes
from shapetree._threads import effective_threads
from shapetree.data._binning import BinnedTable, bin_table
from shapetree.data._labels import find_classes, read_targets
from shapetree.data._sums import exact_weights
from shapetree.data._table import Table, read_table
from shapetree.data._targets import ClassGoal, Goal, MeanGoal, MedianGoal, RegressionGoal
from shapetree.grow._candidates import (
    CandidateSearch,
    InnerTreeOptions,
    Penalties,
    SearchOptions,
)
from shapetree.grow._grower import Grower, Limits, finish
from shapetree.grow._local import LocalRows
from shapetree.grow._nodes import GrowingNode, tree_of
from shapetree.grow._pairs import PairFrame, PairOptions, PairSearch, pair_options
from shapetree.grow._progress import Progress
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
from shapetree.tree._fitted import FittedTree, sketch_nodes
from shapetree.tree._predictor import leaves_of
from shapetree.tree._sketch import summarise

UNLIMITED = 2**30
# Rows whose impurity a split must take away by default.
SPLIT_PENALTY = 6.0
# A first split that gains less than this share of the impurity, and less than noise does by so many
# cuts (for classes, for numbers that may have outliers; four times as many for a pair) or so many
# times the categories, must hold up on new rows: trees grown on either half must tell of the other,
# by so many standard errors.
SHARE_IN_DOUBT = 0.6
CUTS_IN_DOUBT = (60.0, 200.0)
CATEGORIES_IN_DOUBT = 2.0
CLEARLY = 1.0
# Distinct rows that can be halved, and how many there must be for each row: where most are the same
# as others, there is little to choose from, and halves would have nothing in common.
LEAST_TO_HALVE = 50
LEAST_DISTINCT = 0.25
# What `shrinkage="cv"` chooses from, by so many folds; no share of a class counts as less.
SHRINKAGES = (0.0, 0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0)
N_FOLDS = 5
LEAST_SHARE = 1e-3
# Bins that pairs are screened with where single features have one for each value.
COARSE_BINS = 255


@dataclass(frozen=True)
class Parameters:
    """The parameters of an estimator, which says what they mean; all have been checked."""

    max_depth: int | None
    max_branches: int
    criterion: str
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

    @property
    def threads(self) -> int:
        """Number of threads to use."""
        return effective_threads(self.n_threads)

    @property
    def is_cart(self) -> bool:
        """Whether splits are CART's own, thresholds to two branches."""
        return self.max_branches == 2 and self.inner_max_leaf_nodes == 2


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
    weight_scale : float
        Factor by which the user's own weights were multiplied for that.
    """

    table: Table
    targets: np.ndarray
    classes: tuple[np.ndarray, ...] | None
    weights: np.ndarray | None
    weight_scale: float = 1.0

    @property
    def n_classes(self) -> list[int] | None:
        """Number of classes of each output; None for numbers."""
        return None if self.classes is None else [len(labels) for labels in self.classes]

    def take(self, kept: np.ndarray) -> TrainingRows:
        """Keep the rows that a boolean mask marks."""
        return replace(
            self,
            table=self.table.take(kept),
            targets=self.targets[kept],
            weights=None if self.weights is None else self.weights[kept],
        )

    def with_evidence(self) -> TrainingRows:
        """Take weights as evidence; rows of weight zero go, and so do weights that are all 1."""
        if self.weights is None:
            return self
        rows = self if self.weights.all() else self.take(self.weights > 0)
        assert rows.weights is not None
        weights, scale = exact_weights(rows.weights)
        is_equal = bool((weights == 1).all())
        return replace(rows, weights=None if is_equal else weights, weight_scale=scale)

    def goal(self, parameters: Parameters) -> Goal:
        """What a tree is to learn of them."""
        if self.classes is not None:
            criterion = "entropy" if parameters.criterion == "log_loss" else parameters.criterion
            sizes = [len(labels) for labels in self.classes]
            return ClassGoal(self.targets, sizes, self.weights, criterion, parameters.max_branches)
        kind = MeanGoal if parameters.criterion == "squared_error" else MedianGoal
        return kind(self.targets, self.weights)


@dataclass(frozen=True)
class _Outcome:
    """A tree as it was learnt from rows, by which criterion, and how its refinement went."""

    tree: TreeArrays
    criterion: str
    history: np.ndarray | None = None


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
    pairs = _read_pairs(rows.table, parameters)
    shrinkage = _choose_shrinkage(rows, parameters, pairs)
    with Progress(parameters.verbose, rows.table.n_rows, parameters.max_depth) as progress:
        outcome = _learn(rows, parameters, pairs, progress)
    return _finish(outcome, rows, parameters, shrinkage)


def refine_fitted(
    fitted: FittedTree, X: Any, y: Any, sample_weight: Any, parameters: Parameters, reader: str
) -> FittedTree:
    """Refine a fitted tree for some rows, which `reader` reads."""
    rows = TrainingRows(
        fitted.read_table(X, reader),
        fitted.read_targets(X, y),
        fitted.classes,
        _row_weights(X, y, sample_weight, parameters),
    ).with_evidence()
    binned = bin_table(rows.table, rows.weights, parameters.max_bins, parameters.threads)
    binned = fitting_bins(fitted.tree, rows.table, binned)
    pairs = _read_pairs(rows.table, parameters)
    held = _hold(rows, binned, parameters, pairs)
    goal = held.goal
    with Progress(parameters.verbose, rows.table.n_rows, parameters.max_depth) as progress:
        refined, history = refine_tree_arrays(
            fitted.tree,
            held,
            _refine_options(binned.n_rows, goal, parameters),
            _pair_tools(held, parameters, pairs),
            progress.sweep,
        )
    tree = tree_of(refined, goal.impurity_scale)
    outcome = _Outcome(tree, goal.criterion_name, np.array(history))
    return replace(_finish(outcome, rows, parameters, fitted.shrinkage), has_names=fitted.has_names)


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
    table = read_table(X, parameters.categorical_features)
    targets, classes = read_targets(y, has_classes), None
    if has_classes:
        classes, targets = find_classes(targets)
    check_consistent_length(X, targets)
    weights = _row_weights(X, y, sample_weight, parameters)
    return TrainingRows(table, targets, classes, weights).with_evidence()


def _row_weights(X: Any, y: Any, sample_weight: Any, parameters: Parameters) -> np.ndarray | None:
    """Weights of the rows; None if all are 1."""
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is zero for every row; give some row a positive weight")
    if parameters.class_weight is None:
        return weights
    by_class = compute_sample_weight(parameters.class_weight, y)
    if (by_class < 0).any() or not np.isfinite(by_class).all():
        raise ValueError("class_weight must hold finite weights that are not negative")
    weights = by_class if weights is None else weights * by_class
    if not weights.any():
        raise ValueError("class_weight and sample_weight together leave every row weightless")
    return weights


def _learn(
    rows: TrainingRows, parameters: Parameters, pairs: PairOptions, progress: Progress
) -> _Outcome:
    """Grow a tree, and refine it unless told otherwise."""
    # Bins come first: making them takes more memory than anything else.
    binned = bin_table(rows.table, rows.weights, parameters.max_bins, parameters.threads)
    held = _hold(rows, binned, parameters, pairs)
    goal, tools = held.goal, _pair_tools(held, parameters, pairs)
    root = _grow(held, tools, parameters, progress)
    if _is_chance(root, rows, binned, held.goal, parameters, pairs):
        return _learn(rows, replace(parameters, max_depth=0), pairs, progress)
    if parameters.refine is None:
        finish(root, binned.features)
        return _Outcome(tree_of(root, goal.impurity_scale), goal.criterion_name)
    refined, history = refine(
        root,
        held,
        _refine_options(binned.n_rows, goal, parameters),
        tools,
        progress.sweep,
    )
    return _Outcome(tree_of(refined, goal.impurity_scale), goal.criterion_name, np.array(history))


def _finish(
    outcome: _Outcome, rows: TrainingRows, parameters: Parameters, shrinkage: float
) -> FittedTree:
    """What was learnt, pruned and shrunk as the parameters say, and sketched."""
    tree = shrink(prune_by_cost(outcome.tree, parameters.ccp_alpha), shrinkage)
    is_number = rows.classes is None and rows.targets.shape[1] == 1
    summary = summarise(rows.table, tree.used_features, rows.targets[:, 0] if is_number else None)
    sketches = sketch_nodes(
        tree, rows.table, rows.targets, rows.n_classes, summary.target_edges, parameters.threads
    )
    weights = tree.weighted_n_node_samples / rows.weight_scale
    return FittedTree(
        tree=tree.with_nodes(weights=weights, sketches=sketches),
        features=rows.table.features,
        has_names=rows.table.has_names,
        classes=rows.classes,
        criterion=outcome.criterion,
        shrinkage=shrinkage,
        summary=summary,
        history=outcome.history,
    )


# --- noise ---


def _is_chance(
    root: GrowingNode,
    rows: TrainingRows,
    binned: BinnedTable,
    goal: Goal,
    parameters: Parameters,
    pairs: PairOptions,
) -> bool:
    """Whether a tree may be nothing but noise, and does not hold up on new rows."""
    if root.split is None or parameters.split_penalty != "auto" or parameters.is_cart:
        return False
    doubt = _doubt(root, binned, goal)
    if doubt <= LEAST_DISTINCT:
        return False
    content = _contents(rows, binned)
    n_distinct = int(content.max()) + 1
    if n_distinct < max(LEAST_TO_HALVE, LEAST_DISTINCT * goal.total_weight):
        return False
    return doubt * goal.total_weight > n_distinct and not _holds_up(
        rows, content, parameters, pairs
    )


def _doubt(root: GrowingNode, binned: BinnedTable, goal: Goal) -> float:
    """How many times as much noise might gain as the first split does; 0 if that tells so much.

    Rows that are there twice make twice as much of noise.
    """
    about = root.statistics
    before = about.weight * about.impurity
    after = sum(child.statistics.weight * child.statistics.impurity for child in root.children)
    if before - after >= SHARE_IN_DOUBT * before:
        return 0.0
    assert root.split is not None
    features = [binned.features[feature] for feature in root.split.features]
    n_categories = sum(feature.n_bins for feature in features if feature.is_categorical)
    n_cuts = CUTS_IN_DOUBT[isinstance(goal, RegressionGoal)] * len(features) ** 2
    by_chance = goal.noise(about) * (n_cuts + CATEGORIES_IN_DOUBT * n_categories)
    return by_chance / max(before - after, np.finfo(float).tiny)


def _contents(rows: TrainingRows, binned: BinnedTable) -> np.ndarray:
    """A number for each row, counted from 0, the same for rows that are the same."""
    targets = np.unique(rows.targets, axis=0, return_inverse=True)[1].reshape(-1)
    hashes = hash_contents(binned.columns, np.arange(rows.table.n_rows, dtype=np.int32))
    hashes ^= row_hashes(targets.astype(np.int64))
    return np.unique(hashes, return_inverse=True)[1]


def _holds_up(
    rows: TrainingRows, content: np.ndarray, parameters: Parameters, pairs: PairOptions
) -> bool:
    """Whether trees that grow on one half of the rows tell anything of the other half."""
    weights = np.ones(len(content)) if rows.weights is None else rows.weights
    saved = np.zeros(content.max() + 1)
    # Hashes are numbered in order, which halves them at random.
    for half in (0, 1):
        fitted, new = rows.take(content % 2 == half), rows.take(content % 2 != half)
        if fitted.table.n_rows == 0 or new.table.n_rows == 0:
            continue
        binned = bin_table(fitted.table, fitted.weights, parameters.max_bins, parameters.threads)
        held = _hold(fitted, binned, parameters, pairs)
        with Progress(0, fitted.table.n_rows, parameters.max_depth) as silent:
            root = _grow(held, _pair_tools(held, parameters, pairs), parameters, silent)
        finish(root, binned.features)
        tree = tree_of(root, held.goal.impurity_scale)
        values = tree.value[leaves_of(tree, new.table, parameters.threads)]
        lost = [_distances(each, new.targets, parameters) for each in (tree.value[:1], values)]
        saved += np.bincount(
            content[content % 2 != half],
            (lost[0] - lost[1]) * weights[content % 2 != half],
            len(saved),
        )
    return bool(saved.sum() > CLEARLY * np.sqrt((saved**2).sum()))


def _distances(values: np.ndarray, targets: np.ndarray, parameters: Parameters) -> np.ndarray:
    """How far predictions are from rows' targets: Brier's score, or as the criterion has it."""
    if parameters.criterion in ("squared_error", "absolute_error"):
        off = values[:, :, 0] - targets
        return (off**2 if parameters.criterion == "squared_error" else np.abs(off)).sum(axis=1)
    values = np.broadcast_to(values, (len(targets), *values.shape[1:]))
    shares = np.take_along_axis(values, targets[:, :, None].astype(np.intp), axis=2)[:, :, 0]
    return ((values**2).sum(axis=2) - 2 * shares + 1).sum(axis=1)


# --- shrinkage ---


def _choose_shrinkage(rows: TrainingRows, parameters: Parameters, pairs: PairOptions) -> float:
    """The shrinkage asked for, or the one that is best on rows held out of the fit."""
    if parameters.shrinkage != "cv":
        return float(parameters.shrinkage)
    n_rows = rows.table.n_rows
    if n_rows < N_FOLDS:
        raise ValueError(
            f"shrinkage='cv' needs at least {N_FOLDS} rows, got {n_rows}; give a number"
        )
    losses = np.zeros(len(SHRINKAGES))
    weights = np.ones(n_rows) if rows.weights is None else rows.weights
    rows = replace(rows, weights=weights)
    for _, fold in KFold(N_FOLDS, shuffle=True, random_state=0).split(rows.targets):
        held_out = np.isin(np.arange(n_rows), fold)
        with Progress(0, n_rows, parameters.max_depth) as silent:
            tree = _learn(rows.take(~held_out), parameters, pairs, silent).tree
        leaves = leaves_of(tree, rows.table.take(held_out), parameters.threads)
        for number, shrinkage in enumerate(SHRINKAGES):
            values = shrink(tree, shrinkage).value[leaves]
            lost = _losses(values, rows.targets[held_out], parameters.criterion, rows.classes)
            losses[number] += lost @ weights[held_out]
    return SHRINKAGES[int(losses.argmin())]


def _losses(
    values: np.ndarray,
    targets: np.ndarray,
    criterion: str,
    classes: tuple[np.ndarray, ...] | None,
) -> np.ndarray:
    """What rows lose for which a tree predicts some values."""
    if classes is not None:
        shares = np.take_along_axis(values, targets[:, :, None].astype(np.intp), axis=2)
        return -np.log(np.maximum(shares[:, :, 0], LEAST_SHARE)).sum(axis=1)
    off = values[:, :, 0] - targets
    return (off**2 if criterion == "squared_error" else np.abs(off)).sum(axis=1)


# --- growing and refining ---


def _grow(
    rows: LocalRows, pairs: PairTools | None, parameters: Parameters, progress: Progress
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
    ).grow()


def _hold(
    rows: TrainingRows, binned: BinnedTable, parameters: Parameters, pairs: PairOptions
) -> LocalRows:
    """The rows, ready to be asked."""
    coarse = None
    if len(pairs.pairs) > 0 and parameters.max_bins is None:
        coarse = bin_table(rows.table, rows.weights, COARSE_BINS, parameters.threads)
    return LocalRows(rows.table, binned, rows.goal(parameters), parameters.threads, coarse=coarse)


def _pair_tools(rows: LocalRows, parameters: Parameters, options: PairOptions) -> PairTools | None:
    """How pairs are searched; None if no pair may interact."""
    if len(options.pairs) == 0:
        return None
    weights = rows.goal.weights_behind(rows.at(0).histogram())
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
    return SearchOptions(
        InnerTreeOptions(
            kind=parameters.inner_tree,
            max_leaves=_at_most(parameters.inner_max_leaf_nodes),
            min_rows=_as_rows(parameters.inner_min_samples_leaf, n_rows),
            max_depth=_at_most(parameters.inner_max_depth),
            assignment=parameters.assignment,
        ),
        Penalties(
            segment=_given(parameters.segment_penalty, goal.segment_penalty),
            split=_given(parameters.split_penalty, 0.0 if is_cart else SPLIT_PENALTY),
            branch=parameters.branch_penalty,
            pair=pair,
            many_rows=goal.many_rows if parameters.segment_penalty == "auto" else np.inf,
        ),
        min_samples_leaf=_as_rows(parameters.min_samples_leaf, n_rows),
        min_weight_leaf=max(_min_weight_leaf(goal, parameters), _least_leaf(goal, parameters)),
        seed=int(check_random_state(parameters.random_state).randint(2**31 - 1)),
        n_threads=parameters.threads,
    )


def _limits(n_rows: int, goal: Goal, parameters: Parameters) -> Limits:
    return Limits(
        max_depth=UNLIMITED if parameters.max_depth is None else parameters.max_depth,
        max_branches=parameters.max_branches,
        max_leaf_nodes=(
            UNLIMITED if parameters.max_leaf_nodes is None else parameters.max_leaf_nodes
        ),
        lookahead=parameters.lookahead,
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
        penalty=_given(parameters.refine_penalty, goal.refine_penalty),
        max_segments=max_segments,
        min_segment_rows=_as_rows(parameters.inner_min_samples_leaf, n_rows),
        min_samples_split=max(2, _as_rows(parameters.min_samples_split, n_rows)),
        min_samples_leaf=_as_rows(parameters.min_samples_leaf, n_rows),
        min_weight_leaf=_min_weight_leaf(goal, parameters),
        least_leaf=_least_leaf(goal, parameters),
        many_rows=goal.many_rows if parameters.refine_penalty == "auto" else np.inf,
    )


def _min_weight_leaf(goal: Goal, parameters: Parameters) -> float:
    return parameters.min_weight_fraction_leaf * goal.total_weight


def _least_leaf(goal: Goal, parameters: Parameters) -> float:
    """Weight that a leaf has at least unless the user prices splits."""
    is_ours = parameters.split_penalty == "auto" and not parameters.is_cart
    return goal.least_leaf if is_ours else 0.0


def _at_most(limit: int | None) -> int:
    """A limit as a number that native code can hold."""
    return min(limit or UNLIMITED, UNLIMITED)


def _given(penalty: float | str, automatic: float) -> float:
    """A penalty as a number."""
    return automatic if penalty == "auto" else float(penalty)


def _as_rows(limit: float, n_rows: int) -> int:
    """Turn a number of rows, or a fraction of all, into a number of rows."""
    return min(int(limit), n_rows + 1) if limit >= 1 else int(np.ceil(limit * n_rows))
