"""The estimators, and functions that take or make them."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions

from shapetree._base import BaseShapeTree
from shapetree._with_parameters import with_parameters
from shapetree.data._shares import ClassShares
from shapetree.fit import refine_fitted
from shapetree.fit._training_rows import row_weights
from shapetree.tree._evaluation import scores_of_shares
from shapetree.tree._from_estimator import fitted_model, fitted_tree

Tree = TypeVar("Tree", bound=BaseShapeTree)


class ScoresShares(ClassifierMixin):
    """A classifier that is scored by labels or by shares of classes."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of the predictions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or ClassShares
            With shares, a row is right to the share that it has of the predicted class.
        sample_weight : array-like of shape (n_samples,), optional
        """
        if not isinstance(y, ClassShares):
            return float(super().score(X, y, sample_weight))
        shares = fitted_model(self).read_shares(X, y)
        weights = row_weights(X, sample_weight)
        predicted: np.ndarray = self.predict_proba(X)
        return scores_of_shares(shares.values, predicted, weights)["accuracy"]


@with_parameters
class ShapeTreeClassifier(ScoresShares, BaseShapeTree):
    """A shape tree for classification.

    A decision tree whose every node sends rows to one of up to `max_branches` branches through a
    shape function: a piecewise-constant map from one feature, or from a pair of features, to
    branches, which can be drawn [1]_.

    Parameters
    ----------
    objective : {"log_loss", "error"}
        What the tree is to have least of, with the price of its size: log loss of its predicted
        probabilities, or wrong predictions. Growth, refinement and the choice of `strength` all
        serve the same objective.
    class_weight : dict, list of dicts, "balanced" or None
        How much the rows of each class matter; multiplies their weights. Only ratios count: {"no":
        1, "yes": 10} is the same as {"no": 0.1, "yes": 1}. "balanced" gives all classes the same
        total weight.

    Attributes
    ----------
    classes_ : array of shape (n_classes,), or list of such arrays
        Class labels, for each output if there are several.
    n_classes_ : int or list of int

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from shapetree import ShapeTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> scores = cross_val_score(ShapeTreeClassifier(max_depth=3), X, y, cv=10)
    >>> print(f"{scores.mean():.2f}")
    0.95
    """

    objective: str = "log_loss"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseShapeTree._parameter_constraints,
        "objective": [StrOptions({"log_loss", "error"})],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    @property
    def classes_(self) -> Any:
        """The class labels; a list if there are several outputs."""
        classes = self._labels()
        return classes[0] if len(classes) == 1 else list(classes)

    @property
    def n_classes_(self) -> Any:
        """The number of classes; a list if there are several outputs."""
        sizes = [len(labels) for labels in self._labels()]
        return sizes[0] if len(sizes) == 1 else sizes

    def _labels(self) -> tuple[np.ndarray, ...]:
        """Class labels of each output."""
        classes = self.__fitted_model__().classes
        assert classes is not None
        return classes

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes: their shares in the leaf's training rows."""
        leaves, value = self.apply(X), self.tree_.value
        if self.n_outputs_ == 1:
            return value[leaves, 0]
        return [value[leaves, output, :size] for output, size in enumerate(self.n_classes_)]

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the classes' probabilities."""
        probabilities = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            if self.n_outputs_ == 1:
                return np.log(probabilities)
            return [np.log(shares) for shares in probabilities]

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row; if tied, the first in `classes_`.

        `apply` says what `X` may be.
        """
        return self._of_leaves(self.apply(X))

    def _of_leaves(self, leaves: np.ndarray) -> np.ndarray:
        best = self.tree_.value.argmax(axis=2)
        columns = [labels[best[:, output]] for output, labels in enumerate(self._labels())]
        return columns[0].take(leaves) if len(columns) == 1 else np.stack(columns, axis=1)[leaves]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@with_parameters
class ShapeTreeRegressor(RegressorMixin, BaseShapeTree):
    """A shape tree for regression.

    A decision tree whose every node sends rows to one of up to `max_branches` branches through a
    shape function: a piecewise-constant map from one feature, or from a pair of features, to
    branches, which can be drawn [1]_.

    Parameters
    ----------
    objective : {"squared_error", "absolute_error"}
        What the tree is to have least of, with the price of its size. Growth, refinement and the
        choice of `strength` all serve the same objective. Absolute error is computed exactly if y
        has at most 512 distinct values, and from 64 quantile groups of them otherwise; leaves
        predict exact medians.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from shapetree import ShapeTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> scores = cross_val_score(ShapeTreeRegressor(max_depth=3), X, y, cv=10)
    >>> print(f"{scores.mean():.2f}")
    0.32
    """

    objective: str = "squared_error"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseShapeTree._parameter_constraints,
        "objective": [StrOptions({"squared_error", "absolute_error"})],
    }

    def predict(self, X: Any) -> np.ndarray:
        """Mean or median of the training rows in each row's leaf; `apply` says what `X` may be."""
        return self._of_leaves(self.apply(X))

    def _of_leaves(self, leaves: np.ndarray) -> np.ndarray:
        values = self.tree_.value[leaves, :, 0]
        return values[:, 0] if self.n_outputs_ == 1 else values


def refine_tree(
    estimator: Tree,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    refine_iter: int | None = None,
    refine_penalty: float | str | None = None,
) -> Tree:
    """Refine a fitted tree by tree alternating optimisation, on its own training rows or others.

    The tree keeps its features, categories and classes; shape functions, leaves and statistics are
    fitted to the given rows. Nodes that no row reaches are removed.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        Must be fitted. It is not changed.
    X : table of shape (n_samples, n_features)
        Has the features that the tree was fitted on.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Has no classes other than those that the tree was fitted on.
    sample_weight : array-like of shape (n_samples,), optional
    refine_iter : int, optional
        Maximum number of sweeps over the tree; by default that of the estimator's `search`.
    refine_penalty : float or "auto", optional
        Penalty for every part of the tree; by default that of the estimator's `search`.

    Returns
    -------
    estimator
        A new estimator, with the refined tree and its `refinement_history_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier, refine_tree
    >>> X, y = load_iris(return_X_y=True)
    >>> greedy = ShapeTreeClassifier(max_depth=2, refine=None).fit(X, y)
    >>> history = refine_tree(greedy, X, y).refinement_history_
    >>> bool(history[-1] <= history[0])
    True
    """
    fitted, refined = fitted_tree(estimator), copy(estimator)
    given = {"search__refine_iter": refine_iter, "search__refine_penalty": refine_penalty}
    given = {name: value for name, value in given.items() if value is not None}
    refined.search = copy(estimator.search)  # which set_params changes
    refined.set_params(**given)
    refined._validate_params()
    refined._fitted = refine_fitted(
        fitted, X, y, sample_weight, refined._parameters(), type(refined).__name__
    )
    return refined
