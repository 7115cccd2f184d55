"""What both estimators share: everything but their targets."""

from __future__ import annotations

import html
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import field, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Bunch, check_consistent_length
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._pprint import _EstimatorPrettyPrinter
from sklearn.utils.validation import _check_sample_weight

from shapetree._model_files import HasModelFile
from shapetree._teachers import ask_teacher, teacher_of_parts
from shapetree._threads import effective_threads, started_threads
from shapetree._with_parameters import with_parameters
from shapetree.data._batches import Batches, refuse_beside_batches
from shapetree.data._labels import read_targets
from shapetree.data._shares import ClassShares
from shapetree.data._stored import read_labels
from shapetree.data._sums import count_rows
from shapetree.data._table import Table, encode_table, new_categories
from shapetree.explain import (
    Explainer,
    Explanation,
    Rules,
    read_flip_constraints,
    rules_of,
    shape_table,
)
from shapetree.fit import (
    Parameters,
    SearchOptions,
    find_stability,
    fit_path,
    fit_tree,
    simplify_fitted,
)
from shapetree.plot import plot_tree
from shapetree.refine import prune_nodes, pruning_path
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._evaluation import HeldOut, scores_of, scores_of_shares
from shapetree.tree._fitted import FittedTree
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._intervals import unseen_leaves
from shapetree.tree._predictor import leaves_of, paths_to
from shapetree.tree._stability import Stability
from shapetree.tree._view import view_of
from shapetree.tree._words import printable

if TYPE_CHECKING:
    import pandas as pd

# Nodes up to which a notebook shows all of a tree.
MOST_DRAWN = 40
# What is the same for all rows of a tree takes much longer to find than a row's explanation.
_explainers: WeakKeyDictionary[FittedTree, Explainer] = WeakKeyDictionary()


@with_parameters
class BaseShapeTree(HasModelFile, metaclass=ABCMeta):
    """A shape tree, whatever its targets.

    Parameters
    ----------
    max_depth : int or None
        Maximum depth of the tree; None for no limit.
    max_branches : int
        Maximum number of branches of a node. A node uses fewer where more would gain nothing.
    max_parts : int or None
        Maximum number of parts of a node: segments of its feature's axis, or regions of its pair's
        plane. At most 12 categories are listed then; all others are one group. The search finds the
        best shape function within the limit. None for no limit.
    max_leaf_nodes : int or None
        Maximum number of leaves; the tree then grows where it gains most.
    min_samples_split : int or float
        Minimum number of rows a node needs to be split, or their fraction of all rows.
    min_samples_leaf : int, float or "auto"
        Minimum number of rows in each branch, or their fraction of all rows. If a shape function
        breaks this, the next best is taken. "auto" is 3 rows for classes and 5 for numbers; leaves
        that refinement makes smaller join their siblings.
    objective : str
        What the tree is to have least of, with the price of its size.
    strength : float, "cv" or array-like
        Multiplies all penalties of `search` that are "auto" (for leaves, segments, regions, pairs
        and refinement). Use it to set the size of the tree: 2 makes trees smaller and their shape
        functions plainer, 0 removes all penalties, as in the paper. "cv" chooses it from 0.3, 1 and
        3 by cross-validation on the training rows: it takes the one with the best mean score of the
        objective on held-out rows. Give a list to choose from other values. With `max_leaf_nodes`,
        the number of branches is chosen, too.
    cv : int, splitter, iterable or None
        Folds of the cross-validation that chooses `strength` or `shrinkage`: a number, any
        scikit-learn splitter, or pairs of the numbers of rows to fit and to hold out. None is 5
        folds up to 1,000 rows, and 3 beyond. With a number or None, each fold has its share of
        every class, and equal rows stay in one fold, as do rows of a group if `fit` is given
        `groups`.
    resamples : int or "auto"
        Number of resamples that decide whether there is anything to learn: small trees are grown on
        halves of the rows, and if what they say of the rows they have not seen is not clearly
        better than no tree, the tree is a single leaf. "auto" is 50 up to 5,000 rows, unless
        rows times classes are more than 500,000, and 0, none, beyond.
    teacher : "auto", "forest", estimator or None
        What the tree learns from besides the targets. "forest": the small trees of the resamples.
        The tree is fitted to a mixture of what these predict on the mean and the rows' own targets;
        the less of the targets they can predict, the more of these is noise, and the more counts
        what they say. From few rows, this gives better predictions, and fewer leaves. "auto" does
        so where there are resamples and no pairs, and `shrinkage` and `objective` are the default
        ones. An estimator, which may be fitted already, teaches the tree to predict as it does;
        `evaluate` then tells how well that works. Counts, shares and pictures are always those of
        the rows themselves.
    pairs : 0, int, "auto", "all" or list
        Which pairs of features a node may split on, besides single features: a shape function of a
        pair divides the plane of the two into regions, by oblique cuts if both are numbers. 0 means
        none. "auto" screens all pairs at each node and fits the 3 most promising on its rows, or on
        20,000 of them. Screening weighs every pair by what the cells of a rough grid reveal beyond
        noise, and then grows an oblique inner tree on a finer grid for half of the pairs, at most
        30. If there are more than 20,000 pairs (200 features), the paper's filter first picks
        20,000 of them, using at most 5,000 of the node's rows; of more than 1,000 features, only
        the 1,000 that gain most alone form pairs. An int fits that many of the best pairs after
        screening, "all" fits every pair. A list names pairs, or larger groups, of features that may
        interact, by name or by index; these are then screened as with "auto". Dates are never part
        of a pair.
    refine : {"tao"} or None
        How to refine the grown tree. "tao" is tree alternating optimisation: one node after
        another, from the leaves to the root, gets the shape function that sends its rows where the
        tree below loses least on them, or is removed if a single branch does as well. None keeps
        the tree as grown.
    ccp_alpha : float
        Minimal cost-complexity pruning, as in scikit-learn: a node becomes a leaf if its subtree
        removes less impurity than this for each further leaf. For numbers, impurity is in the units
        of `y`, squared for squared error; `strength` has no unit.
    shrinkage : float, "auto" or "cv"
        How much the predictions of nodes with few rows lean on those of the nodes above. A
        prediction is the root's value plus one step for each node on the way. With "auto", a step
        counts half if the split that it is made by gains no more than 4 bits (for numbers: takes
        away no more error than 6 rows of it have on average), or if it leads to a node of 3 rows
        (for numbers: of 1 row), and fully where both are large. A number is the λ of hierarchical
        shrinkage, by which a step below a node of λ rows counts half. "cv" chooses λ from 0 to 500
        by cross-validation. 0 is off.
    max_bins : int or None
        Maximum number of bins of an ordered feature, at most 65535. Features with fewer distinct
        values keep them all; up to 255 bins take one byte per value. Beyond 200,000 rows, quantiles
        are taken from a sample. None is exact: a threshold may lie between any two distinct values,
        as in CART. Thresholds are short numbers near the middle of the gap between two training
        values.
    categorical_features : "from_dtype", None or array-like
        Which features are categorical: those with category, string or boolean columns, none, or
        those listed by name, by index or by a boolean mask.
    search : SearchOptions or None
        Details of the search for splits and of the penalties; None for their defaults. An option
        can also be set by a name such as `search__lookahead`.
    n_threads : int or None
        Number of threads; None for all cores. The tree is the same for any number. A forked process
        uses one.
    random_state : int, RandomState instance or None
        Seeds the random orders and starts of `SearchOptions(assignment="coordinate_descent")` and
        `"random"`. Nothing else is random.
    verbose : int
        Whether to show a progress bar.

    Attributes
    ----------
    tree_ : TreeArrays
        The nodes as flat arrays.
    criterion_ : str
        The impurity that the tree was grown by.
    refinement_history_ : array of shape (n_sweeps + 1,)
        Penalised loss before refinement and after each sweep, if the tree was refined; it never
        rises. For numbers, the loss counts as n log(loss / loss of the root alone) for n rows.
    strength_ : float
        The strength in use.
    cv_results_ : dict
        How strength and shrinkage were chosen, in the form of scikit-learn's `GridSearchCV`: scores
        on held-out rows are the objective's: log losses (negated), accuracies, or the share of the
        error that the tree removes. Only if they were chosen, and not in model files.
    shrinkage_ : float
        The shrinkage in use.
    taught_ : float
        How much of what the tree was fitted to was its teacher's; 0 without a teacher.
    teacher_ : estimator
        The teacher, fitted, if an estimator was given as `teacher`.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Only if the columns' names are all strings.
    feature_importances_ : array of shape (n_features,)
        Each feature's share of the impurity that the splits remove.
    n_outputs_ : int

    Notes
    -----
    Missing values have their own bin, which each node sends where it fits best, or to its largest
    branch if training saw none there. Categories that training has not seen count as missing.
    Infinite numbers are ordinary extreme values.

    Sample weights count as evidence. If all of them are whole numbers, they are frequencies: a row
    of weight 2 is the same as a row given twice, in limits such as `min_samples_leaf` as well as in
    `n_node_samples`, shares, supports and pictures. Otherwise they are shares, and every row counts
    as one row: they are scaled to add up to the effective number of rows, (Σw)² / Σw², so that
    equal weights of any size give the same tree as no weights.

    References
    ----------
    .. [1] "Empowering Decision Trees via Shape Function Branching", NeurIPS 2025.
    """

    max_depth: int | None = 4
    max_branches: int = 3
    max_parts: int | None = 6
    max_leaf_nodes: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float | str = "auto"
    objective: str
    strength: Any = 1.0
    cv: Any = None
    resamples: int | str = "auto"
    teacher: Any = "auto"
    pairs: Any = 0
    refine: str | None = "tao"
    ccp_alpha: float = 0.0
    shrinkage: float | str = "auto"
    max_bins: int | None = 255
    categorical_features: Any = "from_dtype"
    search: SearchOptions | None = None
    n_threads: int | None = None
    random_state: Any = None
    verbose: int = 0

    _fitted: FittedTree = field(init=False)
    _family: ClassVar[str] = "ShapeTree"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_branches": [Interval(Integral, 2, 254, closed="both")],
        "max_parts": [Interval(Integral, 2, None, closed="left"), None],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
        ],
        "strength": [
            Interval(Real, 0, np.inf, closed="left"),
            StrOptions({"cv"}),
            "array-like",
        ],
        "cv": ["cv_object"],
        "resamples": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "teacher": [StrOptions({"auto", "forest"}), HasMethods(["fit", "predict"]), None],
        "pairs": [
            Interval(Integral, 0, None, closed="left"),
            StrOptions({"auto", "all"}),
            "array-like",
        ],
        "refine": [StrOptions({"tao"}), None],
        "ccp_alpha": [Interval(Real, 0, None, closed="left")],
        "shrinkage": [StrOptions({"auto", "cv"}), Interval(Real, 0, None, closed="left")],
        "max_bins": [Interval(Integral, 2, 65_535, closed="both"), None],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "search": [SearchOptions, None],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _validate_params(self) -> None:
        # Defaults need no check, and almost all parameters are at theirs.
        defaults = type(self).__init__.__kwdefaults__ or {}
        given = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in defaults or value is not defaults[name]
        }
        kind = type(self).__name__
        validate_parameter_constraints(self._parameter_constraints, given, caller_name=kind)
        if self.search is None:
            return
        constraints = {
            f"search.{name}": allowed
            for name, allowed in SearchOptions._parameter_constraints.items()
        }
        options = {f"search.{name}": value for name, value in self.search.get_params().items()}
        validate_parameter_constraints(constraints, options, caller_name=kind)
        if not is_classifier(self) and self.search.criterion != "auto":
            raise ValueError(
                f"The 'search.criterion' parameter of {kind} must be 'auto': a regressor grows by "
                f"its objective. Got {self.search.criterion!r} instead."
            )
        if self.search.refine_step == "inner_tree" and self.max_parts is not None:
            raise ValueError(
                f"The 'search.refine_step' parameter of {kind} can be 'inner_tree', the paper's "
                f"step, only with max_parts=None; got max_parts={self.max_parts}"
            )

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, or of its `search` or its `teacher`.

        Parameters
        ----------
        **params
            By name; `search__lookahead` is an option of `search`.

        Returns
        -------
        self
        """
        is_named = any(name.startswith("search__") for name in params)
        if is_named and params.get("search", self.search) is None:
            params = params | {"search": SearchOptions()}
        return super().set_params(**params)

    @classmethod
    def _written_names(cls) -> set[str]:
        """Names of all parameters as `set_params` takes them, options of the search among them."""
        options = {f"search__{name}" for name in SearchOptions._get_param_names()}
        return {*cls._get_param_names()} - {"search"} | options

    def _written_parameters(self) -> dict[str, Any]:
        """Parameters by these names; without the options if `search` is None."""
        params = self.get_params(deep=False)
        del params["search"]
        options = {} if self.search is None else self.search.get_params()
        return params | {f"search__{name}": value for name, value in options.items()}

    # --- fitting ---

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Grow the tree.

        If this fails or is interrupted, the estimator stays as it was.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or Batches
            A NumPy array, nested lists, or a pandas, polars or pyarrow table. Dates, with or
            without a time of day, become seconds since 1970-01-01 (in UTC if they have a time zone)
            and are always shown as dates. Rows that do not fit in memory come from `from_parquet`
            or `from_batches`, with their targets and weights.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or ClassShares
            Labels, numbers, or a classifier's `ClassShares`: how much each row is of each class.
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            Rows of a group, such as those of a patient, are held out together wherever rows are
            held out: to choose `strength` and `shrinkage`, and in resamples.

        Returns
        -------
        self
        """
        # Nothing is noted before the end, so that a fit that fails leaves all as it was.
        teacher, parameters = self._taught_parameters(X, y, sample_weight)
        fitted = fit_tree(X, y, sample_weight, parameters, is_classifier(self), groups)
        self._fitted = fitted if teacher is None else replace(fitted, teacher=teacher)
        return self

    def _taught_parameters(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Parameters]:
        """The teacher, fitted, if it is an estimator; and its predictions for the rows."""
        parameters = self._parameters()
        if parameters.teacher is None or isinstance(parameters.teacher, str):
            return None, parameters
        arguments = X, y, sample_weight, is_classifier(self)
        teacher, predictions = ask_teacher(parameters.teacher, *arguments)
        return teacher, replace(parameters, teacher=predictions)

    def _parameters(self) -> Parameters:
        given = self.get_params(deep=False) | (self.search or SearchOptions()).get_params()
        if not is_classifier(self):
            given["criterion"] = self.objective
        given["n_threads"] = started_threads(self.n_threads)
        names = [each.name for each in fields(Parameters) if each.name in given]
        return Parameters(**{name: given[name] for name in names})

    def __fitted_model__(self) -> FittedTree:
        return self._checked()

    # --- what a fit has found ---

    @property
    def tree_(self) -> TreeArrays:
        """The nodes as flat arrays."""
        return self.__fitted_model__().tree

    @property
    def criterion_(self) -> str:
        """The criterion in use."""
        return self.__fitted_model__().criterion

    @property
    def strength_(self) -> float:
        """The strength in use."""
        return self.__fitted_model__().strength

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores of strengths and criteria on held-out rows, if there was a choice."""
        results = self.__fitted_model__().cv_results
        if results is None:
            raise AttributeError(
                "cv_results_ is not available: either nothing was chosen by cross-validation, or "
                "the tree was read from a model file"
            )
        return results

    @property
    def shrinkage_(self) -> float:
        """The shrinkage in use."""
        return self.__fitted_model__().shrinkage

    @property
    def refinement_history_(self) -> np.ndarray:
        """Penalised loss before refinement and after each sweep, if the tree was refined."""
        history = self.__fitted_model__().history
        if history is None:
            raise AttributeError("the tree was not refined, so it has no refinement_history_")
        return history

    @property
    def taught_(self) -> float:
        """How much of what the tree was fitted to was its teacher's; 0 without a teacher."""
        return self.__fitted_model__().taught

    @property
    def teacher_(self) -> Any:
        """The estimator that taught the tree, fitted, if one was given as `teacher`."""
        teacher = self.__fitted_model__().teacher
        if teacher is None:
            raise AttributeError("no estimator was given as teacher, so there is no teacher_")
        return teacher

    @property
    def why_single_leaf_(self) -> str | None:
        """Why the tree has no split, and what to do about it; None if it has one."""
        return self.__fitted_model__().why_single_leaf

    @property
    def stability_(self) -> Stability:
        """What `stability` has found of the nodes; nothing of single rows is kept."""
        found = self.__fitted_model__().stability
        if found is None:
            raise AttributeError(
                "stability_ is not known; call stability with the rows of training"
            )
        return found

    @property
    def feature_importances_(self) -> np.ndarray:
        """Each feature's share of the impurity that the tree's splits remove."""
        return self.tree_.feature_importances(self.n_features_in_)

    def get_depth(self) -> int:
        """Depth of the deepest leaf."""
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        return self.tree_.n_leaves

    # --- using the fitted tree ---

    def _read_for_prediction(self, X: Any) -> Table:
        fitted = self.__fitted_model__()
        return fitted.read_table(X, type(self).__name__, fitted.tree.used_features)

    def apply(self, X: Any) -> np.ndarray:
        """The leaf that each row ends up in.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), row, list of rows, or Batches
            Columns that have names are found by them: their order does not matter, there may be
            others, and those that the tree does not use may be absent. A row is a mapping by the
            names of the features, or a pandas Series with these as its index; None and NaN are
            missing values.

        Returns
        -------
        array of shape (n_samples,)
            Indices of nodes of `tree_`.
        """
        n_threads = effective_threads(self.n_threads)
        if isinstance(X, Batches):
            batches = self.__fitted_model__().read_batches(X)
            each = [leaves_of(self.tree_, table, n_threads) for table, _ in batches]
            return np.concatenate([np.empty(0, dtype=np.int32), *each])
        return leaves_of(self.tree_, self._read_for_prediction(X), n_threads)

    @abstractmethod
    def _of_leaves(self, leaves: np.ndarray) -> np.ndarray:
        """What is predicted for rows in some leaves."""

    def decision_path(self, X: Any) -> csr_matrix:
        """The nodes that each row passes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        sparse matrix of shape (n_samples, node_count)
            1 where a row passes a node.
        """
        return paths_to(self.tree_, self.apply(X))

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, float]:
        """Score the tree on rows that it was not fitted on, and remember the scores.

        From then on, pictures, pages, texts and the model file show these scores next to those in
        training; and rules, explanations, texts and pages show what the new rows tell of each leaf.
        Evaluating again replaces them; fitting or changing the tree clears them. Scores on the rows
        of training are returned with a warning, but not remembered.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or Batches
            Rows that were not used in training. Batches bring their own targets and weights.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or ClassShares
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        dict
            `accuracy` and `balanced_accuracy`, or `r2` and `mean_absolute_error`, averaged over
            the targets if there are several. For `ClassShares`, a row is right to the share that it
            has of the predicted class, and `log_loss` is that of the predicted probabilities. With
            an estimator as `teacher`, also `fidelity`: the
            share of rows for which the tree predicts the same class as its teacher, or the R² of
            its predictions for those of the teacher.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import train_test_split
        >>> from shapetree import ShapeTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> X, X_new, y, y_new = train_test_split(X, y, random_state=0)
        >>> tree = ShapeTreeClassifier(max_depth=2).fit(X, y)
        >>> {name: round(score, 3) for name, score in tree.evaluate(X_new, y_new).items()}
        {'accuracy': 0.895, 'balanced_accuracy': 0.868}
        """
        fitted = self.__fitted_model__()
        if isinstance(X, Batches):
            refuse_beside_batches(y=y, sample_weight=sample_weight)
            X = X.watched()
            y, sample_weight = read_labels(X, fitted.classes is not None)
        targets: np.ndarray | ClassShares
        if isinstance(y, ClassShares):
            targets = fitted.read_shares(X, y)
        else:
            targets = read_targets(y, fitted.classes is not None, fitted.n_outputs)
        is_known = False
        if not isinstance(X, Batches):
            check_consistent_length(X, targets)
            is_known = fitted.is_of_training(X, targets)
        if is_known:
            warnings.warn(
                "evaluate was given the rows that the tree was fitted on, which tell little about "
                "new ones; the scores are not remembered",
                UserWarning,
                stacklevel=2,
            )
        leaves, taught = self.apply(X), None
        if fitted.teacher is not None and not isinstance(X, Batches):
            taught = np.asarray(fitted.teacher.predict(X))
        return self._evaluated(leaves, targets, sample_weight, is_known, taught)

    def _evaluated(
        self,
        leaves: np.ndarray,
        targets: np.ndarray | ClassShares,
        sample_weight: Any,
        is_known: bool = False,
        taught: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Scores of rows by their leaves, remembered unless the rows are those of training.

        They include how well the tree predicts what its teacher does, if that is given.
        """
        fitted, weights = self.__fitted_model__(), None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, leaves, dtype=np.float64, ensure_non_negative=True
            )
        # Sums of the same numbers may differ in the last digit if these are stored differently.
        weights = None if weights is None else np.ascontiguousarray(weights)
        if isinstance(targets, ClassShares):
            predicted, of_leaves = self._of_leaves(leaves), fitted.tree.value[:, 0][leaves]
            scores = scores_of_shares(targets.values, of_leaves, weights)
        else:
            targets = np.ascontiguousarray(targets)
            predicted = np.ascontiguousarray(self._of_leaves(leaves).reshape(targets.shape))
            scores = scores_of(targets, predicted, fitted.classes is not None, weights)
        if taught is not None:
            judge = accuracy_score if fitted.classes is not None else r2_score
            agreed = judge(taught.reshape(predicted.shape), predicted, sample_weight=weights)
            scores = scores | {"fidelity": float(agreed)}
        if not is_known:
            found = {}
            if isinstance(targets, ClassShares):
                own = of_leaves.argmax(axis=1)
                share = targets.values[np.arange(len(leaves)), own]
                found = unseen_leaves(leaves, own, share, weights)
            elif targets.size == len(targets):
                y, said = targets.ravel(), predicted.ravel()
                is_right = None if fitted.classes is None else y == said
                found = unseen_leaves(leaves, y, is_right, weights, fitted.predicts_medians)
            n_rows = count_rows(weights, len(leaves))
            self._fitted = replace(fitted, held_out=HeldOut(n_rows, scores, found))
        return scores

    def stability(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        n_resamples: Any = 50,
        random_state: Any = 0,
    ) -> Stability:
        """Measure how much of the tree stays the same if it is fitted to other rows.

        For each resample, half of the rows are drawn without replacement, and a tree is fitted to
        them with the estimator's own parameters. What they have in common with this tree is kept in
        `stability_`, and shown in texts, pictures, pages, rules and the model file, until the tree
        is fitted or changed. Nothing is kept of single rows, except in the result.

        Parameters
        ----------
        X, y, sample_weight
            Those that the tree was fitted to.
        groups : array-like of shape (n_samples,), optional
            Rows of a group, such as those of a patient, are drawn together.
        n_resamples : int, default=50
            Number of trees to fit.
        random_state : int, default=0
            Another number draws other halves. The result is the same for any number of threads,
            and for any order of the rows.

        Returns
        -------
        Stability
            `print` it. `to_frame()` says for each node how many resamples choose its feature, and
            how many a similar split; `rows_to_frame()` says for each row how often trees that have
            not drawn it predict the same class, or how far the numbers that they predict are from
            the tree's; `agreement` or `deviation` is the same of all rows.

        Notes
        -----
        A node counts as chosen if a node of the resample's tree, at whatever depth, splits more
        than half of its rows on the same feature, or the same pair. Its split is similar if such a
        node sends at least 90 % of its rows the same way, that is, if its
        thresholds are near. Trees of half the rows vary more than trees of all rows would, so the
        counts are rather too low than too high.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from shapetree import ShapeTreeClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> tree = ShapeTreeClassifier(max_depth=1).fit(X, y)
        >>> stability = tree.stability(X, y, n_resamples=10)
        >>> tree.stability_.words
        'agreement with 10 resamples 98 %'
        >>> stability.node_words(0)
        'same feature in 7 of 10 resamples, similar split in 7'
        """
        fitted = self.__fitted_model__()
        for name, number, least in (
            ("n_resamples", n_resamples, 1),
            ("random_state", random_state, 0),
        ):
            is_whole = isinstance(number, Integral) and not isinstance(number, bool | np.bool_)
            if not is_whole or number < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {number!r}")
        is_remote = isinstance(X, Batches) or hasattr(X, "__dask_graph__")
        if y is None or is_remote:
            raise ValueError(
                "stability needs X and y in memory, as it fits trees to halves of the rows"
            )
        self._validate_params()
        parameters, teach = self._parameters(), None
        if parameters.teacher is None and fitted.taught > 0:
            raise ValueError(
                "an estimator taught this tree, which a model file does not hold; set it with "
                "set_params(teacher=...) so that it can teach the trees of resamples"
            )
        if parameters.teacher is not None and not isinstance(parameters.teacher, str):
            arguments = X, y, sample_weight, is_classifier(self)
            teach = teacher_of_parts(parameters.teacher, *arguments)
        found = find_stability(
            *(X, y, sample_weight, groups, fitted, parameters),
            *(int(n_resamples), int(random_state), teach, type(self).__name__),
        )
        # A fitted tree, and so its pickle, holds nothing of single rows.
        self._fitted = replace(fitted, stability=replace(found, rows=None))
        return found

    # --- what the fitted tree does, in words ---

    def explain(
        self,
        X: Any,
        *,
        fixed: Any = None,
        only: Any = None,
        direction: Mapping[Any, str] | None = None,
        target: Any = None,
        unseen: bool = False,
    ) -> list[Explanation]:
        """Explain the prediction for each row, and what would change it.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), row, or list of rows
            As for `predict`: columns that have names are found by them.
        fixed : list of features, optional
            Features that a flip must not change, by name or by index.
        only : list of features, optional
            The only features that a flip may change.
        direction : mapping from features to "up" or "down", optional
            Features that can only go up or only go down, such as age.
        target : label, list of labels, number, or pair of numbers, optional
            The wanted prediction: a class, or one of several; a number to reach, from above or
            below; or the two ends of a range, with None for no limit. By default, any other class,
            or a number that differs by more than the standard deviation of the leaf's rows.
        unseen : bool, default=False
            Whether a flip may change a number to one beyond the range seen in training, or to a
            fraction where all numbers in training were whole.

        Returns
        -------
        list of Explanation
            `str` of each is a sentence; `path` and `conditions` hold the same as data. `flip` is
            the smallest change of one feature that changes the prediction, or of two features where
            one is not enough. `notes` lists values on the path that are outside the range seen in
            training, or categories that training has not seen. Every row that satisfies the
            sentence gets the same prediction, provided that both features of a pair are known.
            Changes are measured in standard deviations of the feature in training; a different
            category counts as one.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from shapetree import ShapeTreeClassifier
        >>> iris = load_iris(as_frame=True)
        >>> species = iris.target_names[iris.target]
        >>> tree = ShapeTreeClassifier(max_depth=1, shrinkage=0).fit(iris.data, species)
        >>> (why,) = tree.explain(iris.data.iloc[[70]])
        >>> print(why)
        Predicted virginica (98 %, 89 to 99.6 %) because petal width (cm) > 1.75
        >>> print(why.flip)
        It would be versicolor (91 %) if petal width (cm) fell from 1.8 to 1.75
        >>> (why,) = tree.explain(iris.data.iloc[[70]], target="setosa")
        >>> print(why.flip)
        It would be setosa (100 %) if petal width (cm) fell from 1.8 to 0.8
        """
        fitted = fitted_tree(self)
        view = view_of(fitted)
        constraints = read_flip_constraints(
            view, fitted.feature_names, fitted.classes, fixed, only, direction, target, unseen
        )
        used = fitted.tree.used_features
        opened = fitted.open_rows(X, type(self).__name__, used)
        table = encode_table(opened, fitted.features, used)
        n_threads = effective_threads(self.n_threads)

        def route(columns: Sequence[np.ndarray | None]) -> np.ndarray:
            used = next((len(column) for column in columns if column is not None), table.n_rows)
            return leaves_of(fitted.tree, Table(used, table.features, list(columns)), n_threads)

        explainer = _explainers.get(fitted)
        if explainer is None:
            explainer = _explainers[fitted] = Explainer(view)
        return explainer.explain(
            table.columns, route(table.columns), route, constraints, new_categories(opened, table)
        )

    def rules(self, digits: int | None = None) -> Rules:
        """The tree as if/then rules, one for each leaf.

        Parameters
        ----------
        digits : int, optional
            Significant digits of thresholds. By default they are exact: the rows that satisfy a
            rule are the rows of its leaf, missing values and new categories included.

        Returns
        -------
        Rules
            A sequence of rules; `print` it, or use its `to_frame()` or `to_markdown()`. Support is
            a rule's share of the training rows. Confidence is the share of these rows that belong
            to the predicted class, and lift is the ratio of that to the share among all rows. If
            weights or shrinkage make the tree predict a different probability, the rule shows it as
            well, and the table has a column `predicted`. Columns `low` and `high` bound the share,
            or the mean or median of the rows' targets, at a level of 95 %; after `evaluate`,
            `new_rows`, `new_value`, `new_low` and `new_high` tell the same of the new rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from shapetree import ShapeTreeClassifier
        >>> iris = load_iris(as_frame=True)
        >>> species = iris.target_names[iris.target]
        >>> tree = ShapeTreeClassifier(max_depth=1).fit(iris.data, species)
        >>> tree.rules()[0].premise(), tree.rules()[0].outcome
        ('petal width (cm) ≤ 0.8', 'setosa (100 % of rows, 93 to 100 %; predicted 96 %)')
        """
        if digits is not None and digits < 1:
            raise ValueError(f"digits must be at least 1, got {digits}")
        return rules_of(view_of(fitted_tree(self)), digits)

    def shape_table(self, node: int = 0) -> pd.DataFrame:
        """A node's shape function as a pandas DataFrame.

        Parameters
        ----------
        node : int, default=0
            Index of a node of `tree_` that splits.

        Returns
        -------
        DataFrame
            One row for each segment (values above `low` up to `high`, `dates` in words, or
            `categories`) or for each region of a pair, with the `branch` it goes to. Of a segment,
            `n_rows` is its number of training rows, and `share` how many of them are of the class
            that its branch predicts, or `mean` the mean of their targets. Of the branch, which may
            have more segments, `child` is the number of its node, `child_rows` its number of
            training rows, `child_low` and `child_high` the interval of its share, mean or median at
            a level of 95 %, and `leads_to` what it predicts or splits on. Missing values have their
            own row if training saw any.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from shapetree import ShapeTreeClassifier
        >>> iris = load_iris(as_frame=True)
        >>> tree = ShapeTreeClassifier(max_depth=1).fit(iris.data, iris.target)
        >>> tree.shape_table()[["low", "high", "branch", "n_rows"]]
            low  high  branch  n_rows
        0  -inf  0.80       0      50
        1  0.80  1.75       1      54
        2  1.75   inf       2      46
        """
        return shape_table(view_of(fitted_tree(self)), node)

    # --- in notebooks ---

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters, as scikit-learn writes them, and if the tree has no split, why."""
        words: str = super().__repr__(N_CHAR_MAX)
        why = self._why_single_leaf()
        return words if why is None else f"{words}  # {why}"

    def _why_single_leaf(self) -> str | None:
        return view_of(self._fitted).single_leaf_words if self.__sklearn_is_fitted__() else None

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._drawn()
        return bundle

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._drawn()

    def _drawn(self) -> str:
        """The fitted tree as a picture, below what scikit-learn shows of an estimator."""
        if not self.__sklearn_is_fitted__() or self._fitted.tree.sketches is None:
            return ""
        is_large = self.tree_.node_count > MOST_DRAWN
        why = self._why_single_leaf()
        said = "" if why is None else f"<p>{html.escape(printable(why))}.</p>"
        try:
            return said + (plot_tree(self, max_depth=2 if is_large else None)._repr_html_() or "")
        except ImportError:  # without matplotlib
            return said

    # --- choosing a size ---

    @_fit_context(prefer_skip_nested_validation=True)
    def strength_path(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Bunch:
        """Fit trees for a range of strengths, to see how accurate and how large each is.

        `shapetree.plot_path` draws the result, to help you pick a tree.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`. This estimator is not changed. If its `strength` is a list, that is the
            path; otherwise it goes from 0 to 10.

        Returns
        -------
        Bunch
            Arrays of equal length: each `strength`; its mean `score` on held-out rows (the
            objective's, see `score_name`) and the standard `error` of that; `n_leaves` and
            `n_parts` of the tree that `fit` makes with it; and `is_chosen`, the strength that
            `fit` chooses from these. Beside them `score_name`, what the score is called.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from shapetree import ShapeTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> path = ShapeTreeClassifier(strength=[0, 1, 100]).strength_path(X, y)
        >>> path.n_leaves
        array([6, 6, 1])
        """
        _, parameters = self._taught_parameters(X, y, sample_weight)
        has_classes = is_classifier(self)
        return Bunch(**fit_path(X, y, sample_weight, parameters, has_classes, groups))

    # --- making the fitted tree smaller ---

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Grow a tree and find the smaller trees that minimal cost-complexity pruning makes.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. This estimator is not changed.

        Returns
        -------
        Bunch
            `ccp_alphas`, the ascending values of `ccp_alpha` at which one more node is pruned, and
            `impurities`, the mean impurity of the leaves that remain.
        """
        grown = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        return pruning_path(grown.tree_)

    def prune(self, nodes: Iterable[int]) -> Self:
        """Turn some nodes into leaves.

        Parameters
        ----------
        nodes : iterable of int
            Indices of nodes of `tree_`, as in `apply` and the exports. Everything below them is
            removed, and the remaining nodes are renumbered.

        Returns
        -------
        estimator
            A new estimator; this one is not changed.
        """
        fitted = self.__fitted_model__()
        return self._with(fitted.with_tree(prune_nodes(fitted.tree, nodes)))

    def simplify(self) -> Self:
        """Join leaves that predict the same, and remove what makes no difference.

        `predict` returns the same as before, but `predict_proba` loses some detail where leaves
        were joined.

        Returns
        -------
        estimator
            A new estimator; this one is not changed.
        """
        return self._with(simplify_fitted(self.__fitted_model__()))

    def _with(self, fitted: FittedTree) -> Self:
        """A copy of this estimator with another fitted tree."""
        changed = copy(self)
        changed._fitted = fitted
        return changed


# scikit-learn breaks the lines of estimators that have its own `__repr__`.
_EstimatorPrettyPrinter._dispatch[BaseShapeTree.__repr__] = (
    _EstimatorPrettyPrinter._pprint_estimator
)
