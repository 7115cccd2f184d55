"""An estimator's parameters, checked, and the options of each package that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from shapetree.data._table import Table
from shapetree.data._targets import ClassGoal, Goal, Prices
from shapetree.grow._candidates import CandidateOptions, InnerTreeOptions, Penalties
from shapetree.grow._grower import Limits
from shapetree.grow._pair_options import PairOptions, pair_options
from shapetree.refine import OF_CLASSES, OF_NUMBERS, CopiesOptions, RefineOptions, Shrinkage

UNLIMITED = 2**30
# Most categories that a shape function lists, if its parts are limited: two lines of words.
MAX_LISTED = 12
# What `strength="cv"` and `shrinkage="cv"` choose from.
STRENGTHS = (0.3, 1.0, 3.0)
SHRINKAGES = (0.0, 0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0)
# Features that are compared one level deeper; each takes as long as a level of the tree.
MAX_LOOKAHEAD = 10
# As many where leaves are limited: a split that opens the way to others then counts for more.
LOOKAHEAD_FOR_LEAVES = 3


@dataclass(frozen=True)
class Parameters:
    """The parameters of an estimator and of its `search`, which say what they mean; all checked.

    The `criterion` of a regressor is its objective.
    In place of an estimator as `teacher`, its predictions; see `fit._teaching.TeacherPredictions`.
    """

    max_depth: int | None
    max_branches: int
    max_parts: int | None
    objective: str
    criterion: str
    strength: Any
    cv: Any
    resamples: int | str
    teacher: Any
    pairs: Any
    pair_screen: str
    pair_penalty: float | str
    n_orientations: int
    min_samples_split: float
    min_samples_leaf: float | str
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    max_leaf_nodes: int | None
    lookahead: int | str
    inner_tree: str
    inner_max_leaf_nodes: int | None
    inner_min_samples_leaf: float
    inner_max_depth: int | None
    segment_penalty: float | str
    leaf_penalty: float | str
    branch_penalty: float
    assignment: str
    refine: str | None
    refine_iter: int
    refine_step: str
    refine_penalty: float | str
    ccp_alpha: float
    shrinkage: float | str
    max_bins: int | None
    categorical_features: Any
    n_threads: int
    random_state: Any
    verbose: int
    class_weight: Any = None

    @property
    def is_cart(self) -> bool:
        """Whether splits are CART's own, thresholds to two branches."""
        return self.max_branches == 2 and self.inner_max_leaf_nodes == 2

    def penalty(self, name: str, automatic: float) -> float:
        """A penalty as the user gave it, or the automatic one at the strength in use."""
        given = getattr(self, name)
        return float(self.strength) * automatic if given == "auto" else float(given)

    def prices(self, goal: Goal) -> Prices:
        """What leaves and parts of a growing tree cost; CART's own splits have nothing to pay."""
        return Prices(
            self.penalty("leaf_penalty", 0.0 if self.is_cart else goal.prices.leaf),
            self.penalty("segment_penalty", goal.prices.part),
        )

    def refine_prices(self, goal: Goal) -> Prices:
        """What they cost when the tree is refined: the same, unless the units are others.

        The paper's step has only leaves to pay for.
        """
        prices = self._refine_prices(goal)
        return prices if self.refine_step == "exact" else prices._replace(part=0.0)

    def _refine_prices(self, goal: Goal) -> Prices:
        if self.refine_penalty != "auto":
            return Prices(float(self.refine_penalty), float(self.refine_penalty))
        if goal.refine_prices is None:
            return self.prices(goal)
        return Prices(*(float(self.strength) * price for price in goal.refine_prices))

    @property
    def shrinkages(self) -> tuple[Shrinkage, ...]:
        """Shrinkages to choose from."""
        if self.shrinkage == "auto":
            has_classes = self.criterion not in ("squared_error", "absolute_error")
            return (OF_CLASSES if has_classes else OF_NUMBERS,)
        given = SHRINKAGES if self.shrinkage == "cv" else (float(self.shrinkage),)
        return tuple(Shrinkage(each) for each in given)


def read_pairs(table: Table, parameters: Parameters) -> PairOptions:
    return pair_options(
        parameters.pairs,
        parameters.pair_screen,
        parameters.n_orientations,
        parameters.max_bins is None,
        table.features,
    )


def candidate_options(goal: Goal, parameters: Parameters) -> CandidateOptions:
    """What the searches of single features and of pairs have in common."""
    pair = 0.0 if parameters.is_cart else None
    if parameters.pair_penalty != "auto":
        pair = float(parameters.pair_penalty)
    # A pair costs as much as a segment; a segment's own price has its strength in it already.
    is_given = parameters.segment_penalty != "auto"
    return CandidateOptions(
        _inner_tree_options(goal, parameters),
        Penalties(
            *parameters.prices(goal),
            branch=parameters.branch_penalty,
            pair=pair,
            parts_per_pair=parameters.strength if is_given else 1.0,
            many_rows=math.inf if is_given else goal.many_rows,
        ),
        exact=parameters.max_bins is None,
        max_parts=_at_most(parameters.max_parts),
        max_listed=_max_listed(parameters),
        per_leaf=parameters.max_leaf_nodes is not None,
        min_samples_leaf=min_rows_of_leaf(goal, parameters),
        min_samples_leaf_is_soft=parameters.min_samples_leaf == "auto",
        min_weight_leaf=_min_weight_leaf(goal, parameters),
        seed=_seed(parameters),
        n_threads=parameters.n_threads,
    )


def _seed(parameters: Parameters) -> int:
    """Seeds the assignments that are random; to draw it takes longer than to find a split."""
    if parameters.assignment in ("auto", "kmeans"):
        return 0
    return int(check_random_state(parameters.random_state).randint(2**31 - 1))


def _inner_tree_options(goal: Goal, parameters: Parameters) -> InnerTreeOptions:
    return InnerTreeOptions(
        kind=parameters.inner_tree,
        max_leaves=_at_most(parameters.inner_max_leaf_nodes),
        min_rows=_as_rows(parameters.inner_min_samples_leaf, goal.n_counted),
        max_depth=_at_most(parameters.inner_max_depth),
        assignment=parameters.assignment,
    )


def limits_of(goal: Goal, parameters: Parameters) -> Limits:
    return Limits(
        max_depth=_at_most(parameters.max_depth),
        max_branches=parameters.max_branches,
        max_leaf_nodes=_at_most(parameters.max_leaf_nodes),
        lookahead=_lookahead(parameters),
        min_samples_split=max(2, _as_rows(parameters.min_samples_split, goal.n_counted)),
        min_samples_leaf=min_rows_of_leaf(goal, parameters),
        min_impurity_decrease=parameters.min_impurity_decrease / goal.impurity_scale,
    )


def _lookahead(parameters: Parameters) -> int:
    if parameters.lookahead != "auto":
        return min(int(parameters.lookahead), MAX_LOOKAHEAD)
    has_pairs = not isinstance(parameters.pairs, Integral) or int(parameters.pairs) > 0
    looks_ahead = parameters.max_leaf_nodes is not None and not has_pairs
    return LOOKAHEAD_FOR_LEAVES if looks_ahead and not parameters.is_cart else 1


def refine_options(goal: Goal, parameters: Parameters) -> RefineOptions:
    max_segments = min(_at_most(parameters.inner_max_leaf_nodes), _at_most(parameters.max_parts))
    if parameters.inner_max_depth is not None and parameters.inner_max_depth < 30:
        max_segments = min(max_segments, 2**parameters.inner_max_depth)
    is_automatic = parameters.min_samples_leaf == "auto"
    least_rows = min_rows_of_leaf(goal, parameters)
    copies = None
    if parameters.refine_step == "inner_tree":
        criterion = goal.criterion_name if isinstance(goal, ClassGoal) else "gini"
        copies = CopiesOptions(_inner_tree_options(goal, parameters), criterion)
    return RefineOptions(
        max_sweeps=parameters.refine_iter,
        prices=parameters.refine_prices(goal),
        max_segments=max_segments,
        max_listed=_max_listed(parameters),
        # The paper's inner trees have their own rows, which are copies.
        min_segment_rows=1
        if copies
        else _as_rows(parameters.inner_min_samples_leaf, goal.n_counted),
        min_samples_split=max(2, _as_rows(parameters.min_samples_split, goal.n_counted)),
        min_samples_leaf=1 if is_automatic else least_rows,
        min_weight_leaf=_min_weight_leaf(goal, parameters),
        least_rows=least_rows if is_automatic else 1,
        many_rows=goal.many_rows if parameters.refine_penalty == "auto" else math.inf,
        copies=copies,
    )


def min_rows_of_leaf(goal: Goal, parameters: Parameters) -> int:
    """Fewest rows of a leaf."""
    if parameters.min_samples_leaf == "auto":
        return goal.least_rows
    return _as_rows(float(parameters.min_samples_leaf), goal.n_counted)


def _max_listed(parameters: Parameters) -> int:
    return UNLIMITED if parameters.max_parts is None else MAX_LISTED


def _min_weight_leaf(goal: Goal, parameters: Parameters) -> float:
    return parameters.min_weight_fraction_leaf * goal.total_weight


def _at_most(limit: int | None) -> int:
    """A limit as a number that native code can hold."""
    return UNLIMITED if limit is None else min(limit, UNLIMITED)


def _as_rows(limit: float, n_rows: int) -> int:
    """Turn a number of rows, or a fraction of all, into a number of rows."""
    return min(int(limit), n_rows + 1) if limit >= 1 else int(np.ceil(limit * n_rows))


def path_of(strength: Any) -> tuple[float, ...]:
    """The strengths to choose from, by the parameter `strength`, ascending."""
    if isinstance(strength, str):
        return STRENGTHS
    try:
        given = np.atleast_1d(np.asarray(strength, dtype=np.float64))
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 1 or len(given) == 0 or not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError(
            "strength must be a number, 'cv', or a list of strengths to choose from, all of them "
            f"finite and 0 or greater; got {strength!r}"
        )
    return tuple(np.unique(given).tolist())
