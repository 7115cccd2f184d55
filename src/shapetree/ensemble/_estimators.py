"""The forests as scikit-learn expects them."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.base import RegressorMixin, _fit_context, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from shapetree._base import BaseShapeTree
from shapetree._estimators import ScoresShares, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree._model_files import HasModelFile
from shapetree._threads import effective_threads
from shapetree._with_parameters import with_parameters
from shapetree.data._batches import Batches
from shapetree.data._names import is_index
from shapetree.data._table import Table
from shapetree.ensemble._draws import Draws
from shapetree.ensemble._forest import ForestOptions, draw_rows, fit_forest
from shapetree.ensemble._out_of_bag import permuted_scores, predict_left_out
from shapetree.fit import SearchOptions
from shapetree.refine import Shrinkage
from shapetree.tree._fitted import FittedForest
from shapetree.tree._predictor import paths_to

Shared = BaseShapeTree._parameter_constraints
# How much leaves lean on the nodes above. Shares in leaves of one row are 0 or 1, and where all
# trees have such leaves, their mean rules classes out. Measured on 12 tables of 700 to 13,000 rows:
# log loss falls by 6 %, and accuracy stays as it is.
OF_CLASSES, OF_NUMBERS = Shrinkage(of_node=0.25), Shrinkage()
# What segments beyond two cost in a node, as `strength` has it: deep trees part an axis again.
# Measured on 13 tables with classes and 7 with numbers, together with `max_features`.
STRENGTH_OF_CLASSES, STRENGTH_OF_NUMBERS = 4.0, 1.0


@with_parameters
class BaseShapeForest(HasModelFile, metaclass=ABCMeta):
    """A forest of shape trees, whatever its targets.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    max_samples : int, float or None
        Number of rows that each tree draws, or their fraction of all rows; None for as many as
        there are.
    bootstrap : bool
        Whether each tree draws its rows, with replacement; otherwise it sees all of them.
    max_features : int, float, "sqrt", "log2" or None
        Features that each node may split on: their number, their fraction of all features, its
        square root or logarithm, or None for all. Where none of them splits the node, more are
        drawn.
    criterion : str
        Impurity that growth lowers.
    max_depth : int or None
        Maximum depth of the trees; None for no limit.
    max_leaf_nodes : int or None
        Maximum number of leaves of a tree, which then grows where it gains most.
    min_samples_leaf : int, float or "auto"
        Minimum number of rows in each branch, or their fraction of all rows. "auto" is 3 rows for
        classes and 5 for numbers.
    max_branches : int
        Maximum number of branches of a node.
    pairs : 0, int, "auto", "all" or list
        Which pairs of features a node may split on, as in `ShapeTreeClassifier`; all of these,
        whatever `max_features` says. This takes much longer.
    oob_score : bool or callable
        Whether to predict each row by the trees that have not drawn it. A callable is the score of
        these predictions, with `(y_true, y_pred)` as its arguments; by default it is accuracy or
        R².
    warm_start : bool
        Whether `fit` keeps the trees of the last fit, and adds as many as `n_estimators` lacks.
    max_bins : int or None
        Maximum number of bins of an ordered feature, as in `ShapeTreeClassifier`.
    categorical_features : "from_dtype", None or array-like
        Which features are categorical, as in `ShapeTreeClassifier`.
    n_threads : int or None
        Number of trees that grow at once; None for all cores. The forest is the same for any
        number.
    random_state : int, RandomState instance or None
        Seeds the draws of rows and features.
    verbose : int
        Whether to show a progress bar.

    Attributes
    ----------
    estimators_ : list of ShapeTreeClassifier or ShapeTreeRegressor
        The trees. They do not keep how rows are spread over their nodes: pictures of them need X
        and y.
    oob_score_ : float
        Score of the out-of-bag predictions; only with `oob_score`.
    feature_importances_ : array of shape (n_features,)
        Each feature's share of the impurity that splits remove, the mean of all trees.
        `oob_permutation_importances` tells what predictions owe to each.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Only if the columns' names are all strings.
    n_outputs_ : int

    Notes
    -----
    Neither the order of the rows matters, nor whether a row is given twice or has a weight of 2.
    Weights other than whole numbers are shares, as in `ShapeTreeClassifier`; such rows are drawn
    alike.
    """

    n_estimators: int = 100
    max_samples: float | None = None
    bootstrap: bool = True
    max_features: float | str | None = 0.5
    criterion: str
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_leaf: float | str
    max_branches: int = 2
    pairs: Any = 0
    oob_score: bool | Callable[..., float] = False
    warm_start: bool = False
    max_bins: int | None = 255
    categorical_features: Any = "from_dtype"
    n_threads: int | None = None
    random_state: Any = None
    verbose: int = 0

    _fitted: FittedForest = field(init=False)
    _left_out: np.ndarray | None = field(default=None, init=False)
    _family: ClassVar[str] = "ShapeForest"
    _shrinkage: ClassVar[Shrinkage]
    _strength: ClassVar[float]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            None,
        ],
        "bootstrap": ["boolean"],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        **{
            name: Shared[name]
            for name in (
                *("max_depth", "max_leaf_nodes", "min_samples_leaf", "max_branches", "pairs"),
                *("max_bins", "categorical_features", "n_threads", "random_state", "verbose"),
            )
        },
        "oob_score": ["boolean", callable],
        "warm_start": ["boolean"],
    }

    # --- fitting ---

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the trees.

        If this fails or is interrupted, the estimator stays as it was.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or Batches
            A NumPy array, nested lists, or a pandas, polars or pyarrow table. Rows that do not fit
            in memory come from `from_parquet` or `from_batches`, with their targets and weights.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._check_options()
        before = self._fitted if self.warm_start and self.__sklearn_is_fitted__() else None
        if before is not None and self.n_estimators < len(before.trees):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least the {len(before.trees)} trees "
                "of the forest if warm_start=True"
            )
        if before is not None and self.n_estimators == len(before.trees):
            warnings.warn(
                "warm_start=True adds no trees to the forest unless n_estimators is greater than "
                "before",
                UserWarning,
                stacklevel=2,
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        seed = seed if before is None else before.seed
        has_classes = is_classifier(self)
        about = self._tree()._parameters(), self._options(), has_classes, seed
        fitted, draws = fit_forest(X, y, sample_weight, *about, before)
        left_out = None
        if self.oob_score:
            left_out, score = self._judge_left_out(fitted, draws, y, sample_weight)
            fitted = replace(fitted, oob_score=score)
        # Nothing is noted before the end, so that a fit that fails leaves all as it was.
        self._fitted, self._left_out = fitted, left_out
        return self

    def _check_options(self) -> None:
        if not self.bootstrap:
            for name in ("max_samples", "oob_score"):
                if getattr(self, name) not in (None, False):
                    raise ValueError(
                        f"{name} needs bootstrap=True: without it, each tree sees every row"
                    )

    def _options(self) -> ForestOptions:
        return ForestOptions(
            self.n_estimators,
            self.bootstrap,
            self.max_samples,
            self.max_features,
            self._shrinkage,
        )

    @abstractmethod
    def _tree(self) -> BaseShapeTree:
        """A tree with the forest's parameters."""

    def _shared_parameters(self) -> dict[str, Any]:
        """Parameters of each tree."""
        names = (
            *("max_depth", "max_leaf_nodes", "min_samples_leaf", "max_branches", "pairs"),
            *("max_bins", "categorical_features", "n_threads", "verbose"),
        )
        return {name: getattr(self, name) for name in names} | {
            "refine": None,
            "resamples": 0,
            "teacher": None,
            "shrinkage": 0.0,
            "strength": self._strength,
        }

    def _written_parameters(self) -> dict[str, Any]:
        return super()._written_parameters() | {"oob_score": bool(self.oob_score)}

    def __fitted_model__(self) -> FittedForest:
        return self._checked()

    # --- rows that trees have not seen ---

    def _judge_left_out(
        self, fitted: FittedForest, draws: Draws, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, float]:
        """Predictions for the rows given by trees that have not seen them, and their score."""
        predicted = predict_left_out(fitted, draws, effective_threads(self.n_threads))
        rows = draws.binned.rows
        if np.isnan(predicted[:, 0, 0]).any():
            warnings.warn(
                "some rows were drawn by every tree, so that there are no out-of-bag predictions "
                "for them; set n_estimators to more",
                UserWarning,
                stacklevel=3,
            )
        score = self._score_of(draws, predicted)
        return rows.given(predicted, np.nan), score

    def _score_of(self, draws: Draws, predicted: np.ndarray) -> float:
        """How good predictions of the training rows are, apart from those that are NaN."""
        rows = draws.binned.rows
        told = ~np.isnan(predicted[:, 0, 0])
        if not told.any():
            return float("nan")
        classes, n_outputs = rows.classes, rows.targets.shape[1]
        truth, said = rows.targets[told], self._decide(predicted[told])
        if classes is not None:
            columns = [labels[truth[:, i].astype(np.intp)] for i, labels in enumerate(classes)]
            truth = np.stack(columns, axis=1)
        truth = truth[:, 0] if n_outputs == 1 else truth
        said = self._named(said, classes)
        if callable(self.oob_score):
            return float(self.oob_score(truth, said))
        if classes is not None and n_outputs > 1:
            return float(np.mean(truth == said))
        weights = None if rows.counts is None else rows.counts[told]
        judge = accuracy_score if classes is not None else r2_score
        return float(judge(truth, said, sample_weight=weights))

    @abstractmethod
    def _decide(self, predicted: np.ndarray) -> np.ndarray:
        """Predictions from means of the trees' values, (n_rows, n_outputs)."""

    @staticmethod
    def _named(said: np.ndarray, classes: tuple[np.ndarray, ...] | None) -> np.ndarray:
        """Predictions as labels or numbers, in the shape of `y`."""
        if classes is not None:
            said = np.stack([labels[said[:, i]] for i, labels in enumerate(classes)], axis=1)
        return said[:, 0] if said.shape[1] == 1 else said

    @property
    def oob_score_(self) -> float:
        """Score of the out-of-bag predictions, if `oob_score` asks for it."""
        score = self.__fitted_model__().oob_score
        if score is None:
            raise AttributeError("the forest was fitted with oob_score=False, so it has no scores")
        return score

    def _out_of_bag(self) -> np.ndarray:
        assert self.oob_score_ is not None
        if self._left_out is None:
            raise AttributeError("model files hold no out-of-bag predictions; fit the forest again")
        return self._left_out

    @_fit_context(prefer_skip_nested_validation=True)
    def oob_permutation_importances(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, n_repeats: int = 5
    ) -> Bunch:
        """How much worse predictions of unseen rows get if a feature's values change places.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the forest was fitted on. Each is predicted by the trees that have not
            seen it.
        n_repeats : int, default=5
            How often each feature's values change places at random.

        Returns
        -------
        Bunch
            `importances`, of shape (n_features, n_repeats): by how much the score, accuracy or R²,
            falls; `importances_mean` and `importances_std` of the repeats; and `score`, with all
            values in their places.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from shapetree import ShapeForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = ShapeForestClassifier(n_estimators=20, random_state=0).fit(X, y)
        >>> found = forest.oob_permutation_importances(X, y)
        >>> found.importances_mean.argsort()[-2:].tolist()
        [2, 3]
        """
        fitted = self.__fitted_model__()
        if not self.bootstrap:
            raise ValueError("out-of-bag rows need bootstrap=True: every tree has seen every row")
        if not is_index(n_repeats) or n_repeats < 1:
            raise ValueError(f"n_repeats must be a whole number from 1 on, got {n_repeats!r}")
        if isinstance(X, Batches):
            raise NotImplementedError(
                "out-of-bag importances need rows in memory; fit a forest to a sample of the rows"
            )
        about = self._tree()._parameters(), self._options(), is_classifier(self), fitted.seed
        draws = draw_rows(X, y, sample_weight, *about)
        if draws.contents != fitted.contents:
            raise ValueError("X and y must be the rows that the forest was fitted on")
        n_threads = effective_threads(self.n_threads)
        score = self._score_of(draws, predict_left_out(fitted, draws, n_threads))
        random = np.random.default_rng(fitted.seed)
        scores = permuted_scores(
            fitted, draws, lambda predicted: self._score_of(draws, predicted),
            int(n_repeats), random, n_threads,
        )  # fmt: skip
        lost = np.where(np.isnan(scores), 0.0, score - scores)
        return Bunch(
            importances_mean=lost.mean(axis=1),
            importances_std=lost.std(axis=1),
            importances=lost,
            score=score,
        )

    # --- what a fit has found ---

    @property
    def estimators_(self) -> list[Any]:
        """The trees as fitted estimators of their own, without sketches of their rows."""
        fitted = self.__fitted_model__()
        return [self._tree()._with(fitted.fitted_tree(i)) for i in range(len(fitted.trees))]

    @property
    def feature_importances_(self) -> np.ndarray:
        """Each feature's share of the impurity that splits remove, the mean of all trees."""
        return self.__fitted_model__().importances()

    # --- using the fitted forest ---

    def _tables(self, X: Any) -> list[Table] | Any:
        fitted = self.__fitted_model__()
        if isinstance(X, Batches):
            return (table for table, _ in fitted.read_batches(X))
        return [fitted.read_table(X, type(self).__name__, fitted.used_features)]

    def apply(self, X: Any) -> np.ndarray:
        """The leaf that each row ends up in, in each tree.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), row, list of rows, or Batches
            Columns that have names are found by them: their order does not matter, and there may be
            others.

        Returns
        -------
        array of shape (n_samples, n_estimators)
            Indices of the trees' nodes.
        """
        fitted, n_threads = self.__fitted_model__(), effective_threads(self.n_threads)
        each = [fitted.leaves(table, n_threads) for table in self._tables(X)]
        return np.concatenate([np.empty((0, len(fitted.trees)), dtype=np.int32), *each])

    def decision_path(self, X: Any) -> tuple[csr_matrix, np.ndarray]:
        """The nodes that each row passes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes)
            1 where a row passes a node; the nodes of all trees side by side.
        n_nodes_ptr : array of shape (n_estimators + 1,)
            Where the nodes of each tree start, and the end.
        """
        leaves, trees = self.apply(X), self.__fitted_model__().trees
        each = [paths_to(tree, own) for tree, own in zip(trees, leaves.T, strict=True)]
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])
        return hstack(each).tocsr(), starts

    def _mean(self, X: Any) -> np.ndarray:
        """What trees predict on the mean, (n_rows, n_outputs, n_values)."""
        fitted, n_threads = self.__fitted_model__(), effective_threads(self.n_threads)
        each = [fitted.means(table, n_threads) for table in self._tables(X)]
        return np.concatenate([np.empty((0, *fitted.trees.packed[0].value.shape[1:])), *each])

    def predict(self, X: Any) -> np.ndarray:
        """Predict each row by the mean of the trees' predictions; for `X` see `apply`."""
        mean = self._mean(X)
        return self._named(self._decide(mean), self.__fitted_model__().classes)


@with_parameters
class ShapeForestClassifier(ScoresShares, BaseShapeForest):
    """A forest of shape trees for classification.

    Each tree is grown on a bootstrap sample of the rows, and each of its nodes may split on a few
    features that are drawn for it. Nodes are those of `ShapeTreeClassifier`: shape functions of one
    feature with several segments, or of a pair.

    Parameters
    ----------
    criterion : {"auto", "gini", "entropy", "log_loss"}
        Impurity that growth lowers; "auto" and "log_loss" are entropy.
    class_weight : dict, list of dicts, "balanced" or None
        How much the rows of each class matter; multiplies their weights.

    Attributes
    ----------
    classes_ : array of shape (n_classes,), or list of such arrays
        Class labels, for each output if there are several.
    n_classes_ : int or list of int
    oob_decision_function_ : array of shape (n_samples, n_classes), or list of such arrays
        Probabilities for the training rows by the trees that have not drawn them; NaN where all
        have. Only with `oob_score`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from shapetree import ShapeForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = ShapeForestClassifier(oob_score=True, random_state=0).fit(X, y)
    >>> print(f"{forest.oob_score_:.2f}")
    0.96
    """

    criterion: str = "auto"
    min_samples_leaf: float | str = 1
    class_weight: Any = None

    _shrinkage, _strength = OF_CLASSES, STRENGTH_OF_CLASSES
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseShapeForest._parameter_constraints,
        "criterion": SearchOptions._parameter_constraints["criterion"],
        "class_weight": ShapeTreeClassifier._parameter_constraints["class_weight"],
    }

    def _tree(self) -> ShapeTreeClassifier:
        search = SearchOptions(criterion=self.criterion, leaf_penalty=0.0)
        shared = self._shared_parameters()
        return ShapeTreeClassifier(class_weight=self.class_weight, search=search, **shared)

    def _labels(self) -> tuple[np.ndarray, ...]:
        """Class labels of each output."""
        classes = self.__fitted_model__().classes
        assert classes is not None
        return classes

    classes_ = ShapeTreeClassifier.classes_
    n_classes_ = ShapeTreeClassifier.n_classes_
    predict_log_proba = ShapeTreeClassifier.predict_log_proba

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes: means of what the trees' leaves say."""
        return self._by_output(self._mean(X))

    def _by_output(self, mean: np.ndarray) -> Any:
        if self.n_outputs_ == 1:
            return mean[:, 0]
        return [mean[:, output, :size] for output, size in enumerate(self.n_classes_)]

    @property
    def oob_decision_function_(self) -> Any:
        """Probabilities for the training rows by the trees that have not seen them."""
        return self._by_output(self._out_of_bag())

    def _decide(self, predicted: np.ndarray) -> np.ndarray:
        return predicted.argmax(axis=2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@with_parameters
class ShapeForestRegressor(RegressorMixin, BaseShapeForest):
    """A forest of shape trees for regression.

    Each tree is grown on a bootstrap sample of the rows, and each of its nodes may split on a few
    features that are drawn for it. Nodes are those of `ShapeTreeRegressor`: shape functions of one
    feature with several segments, or of a pair.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error"}
        Impurity that growth lowers. Leaves predict means, or medians of absolute errors.

    Attributes
    ----------
    oob_prediction_ : array of shape (n_samples,) or (n_samples, n_outputs)
        Predictions for the training rows by the trees that have not drawn them; NaN where all
        have. Only with `oob_score`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from shapetree import ShapeForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = ShapeForestRegressor(oob_score=True, random_state=0).fit(X, y)
    >>> print(f"{forest.oob_score_:.2f}")
    0.44
    """

    criterion: str = "squared_error"
    min_samples_leaf: float | str = 3

    _shrinkage, _strength = OF_NUMBERS, STRENGTH_OF_NUMBERS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseShapeForest._parameter_constraints,
        "criterion": ShapeTreeRegressor._parameter_constraints["objective"],
    }

    def _tree(self) -> ShapeTreeRegressor:
        search = SearchOptions(leaf_penalty=0.0)
        return ShapeTreeRegressor(
            objective=self.criterion, search=search, **self._shared_parameters()
        )

    @property
    def oob_prediction_(self) -> np.ndarray:
        """Predictions for the training rows by the trees that have not seen them."""
        return self._named(self._decide(self._out_of_bag()), None)

    def _decide(self, predicted: np.ndarray) -> np.ndarray:
        return predicted[:, :, 0]
