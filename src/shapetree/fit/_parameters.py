"""What a user may say of a fit, and the options that are made of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from shapetree._threads import effective_threads
from shapetree.data._table import Table
from shapetree.data._targets import Goal
from shapetree.fit._choice import Trial
from shapetree.grow._candidates import InnerTreeOptions, Penalties, SearchOptions
from shapetree.grow._grower import Limits
from shapetree.grow._pair_options import PairOptions, pair_options
from shapetree.refine import RefineOptions

UNLIMITED = 2**30
# By default, a split must remove the impurity of this many rows.
SPLIT_PENALTY = 6.0
# What `shrinkage="cv"` chooses from, with this many folds unless the strength is chosen, too.
SHRINKAGES = (0.0, 0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0)
# Features that are compared one level deeper; each takes as long as a level of the tree.
MAX_LOOKAHEAD = 10


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


def read_pairs(table: Table, parameters: Parameters) -> PairOptions:
    return pair_options(
        parameters.pairs,
        parameters.pair_screen,
        parameters.n_orientations,
        parameters.max_bins is None,
        table.features,
    )


def search_options(n_rows: int, goal: Goal, parameters: Parameters) -> SearchOptions:
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


def limits_of(n_rows: int, goal: Goal, parameters: Parameters) -> Limits:
    return Limits(
        max_depth=_at_most(parameters.max_depth),
        max_branches=parameters.max_branches,
        max_leaf_nodes=_at_most(parameters.max_leaf_nodes),
        lookahead=min(parameters.lookahead, MAX_LOOKAHEAD),
        min_samples_split=max(2, _as_rows(parameters.min_samples_split, n_rows)),
        min_samples_leaf=_as_rows(parameters.min_samples_leaf, n_rows),
        min_impurity_decrease=parameters.min_impurity_decrease / goal.impurity_scale,
    )


def refine_options(n_rows: int, goal: Goal, parameters: Parameters) -> RefineOptions:
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
