"""The estimators, and functions that take or make them."""

from __future__ import annotations

from copy import copy
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from shapetree._base import BaseShapeTree
from shapetree.fit import refine_fitted
from shapetree.tree._fitted import fitted_tree

Tree = TypeVar("Tree", bound=BaseShapeTree)


class ShapeTreeClassifier(ClassifierMixin, BaseShapeTree):
    """A shape tree for classification.

    A decision tree whose every node sends rows to one of up to `max_branches` branches through a
    shape function: a piecewise-constant map from one feature, or from a pair of features, to
    branches, which can be drawn [1]_.

    Parameters
    ----------
    max_depth : int or None, default=4
        Maximum depth of the tree; None for no limit.
    max_branches : int, default=3
        Maximum number of branches of a node. A node uses fewer where more would gain nothing.
    max_parts : int or None, default=6
        Maximum number of parts of a node: segments of its feature's axis, or regions of its pair's
        plane. At most 12 categories are listed then; all others are one group. The search finds the
        best shape function within the limit. None for no limit.
    objective : {"log_loss", "error"}, default="log_loss"
        What the tree is to have least of, with the price of its size: log loss of its predicted
        probabilities, or wrong predictions. Refinement, the choice of `strength`, and growth, by
        its `criterion`, all serve the same objective.
    criterion : {"auto", "gini", "entropy", "log_loss"}, default="auto"
        Impurity that growth lowers. "auto" is entropy for `objective="log_loss"` and Gini for
        "error". "log_loss" is another name for "entropy".
    strength : float, "cv" or array-like, default=1.0
        Multiplies all penalties below that are "auto" (for leaves, segments, regions, pairs and
        refinement). Use it to set the size of the tree: 2 makes trees smaller and their shape
        functions plainer, 0 removes all penalties, as in the paper. "cv" chooses it from 0.3, 1 and
        3 by cross-validation on the training rows: it takes the one with the best mean score of the
        objective on held-out rows. Give a list to choose from other values. With `max_leaf_nodes`,
        the number of branches is chosen, too.
    cv : int, splitter, iterable or None, default=None
        Folds of the cross-validation that chooses `strength` or `shrinkage`: a number, any
        scikit-learn splitter, or pairs of the numbers of rows to fit and to hold out. None is 5
        folds up to 1,000 rows, and 3 beyond. With a number or None, each fold has its share of
        every class, and equal rows stay in one fold, as do rows of a group if `fit` is given
        `groups`.
    resamples : int or "auto", default="auto"
        Number of resamples that decide whether there is anything to learn: small trees are grown on
        halves of the rows, and if what they say of the rows they have not seen is not clearly
        better than no tree, the tree is a single leaf. "auto" is 50 up to 5,000 rows and 0, none,
        beyond.
    teacher : "auto", "forest", estimator or None, default="auto"
        What the tree learns from besides the targets. "forest": the small trees of the resamples.
        The tree is fitted to a mixture of what these predict on the mean and the rows' own targets;
        the less of the targets they can predict, the more of these is noise, and the more counts
        what they say. From few rows, this gives better probabilities, and fewer leaves. "auto" does
        so where there are resamples and no pairs, and `shrinkage` and `objective` are the default
        ones. An estimator, which may be fitted already, teaches the tree to predict as it does;
        `evaluate` then tells how well that works. Counts, shares and pictures are always those of
        the rows themselves.
    pairs : 0, int, "auto", "all" or list, default=0
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
    pair_screen : {"grid", "delta"}, default="grid"
        How pairs are screened: "grid" uses grids of 32 x 32 cells, which also reveal pure
        interactions; "delta" is the paper's filter, which crosses the branches of both features'
        own shape functions.
    pair_penalty : float or "auto", default="auto"
        Penalty for using a pair instead of a single feature, as mean impurity of the node. "auto"
        is the penalty of one segment. In nodes of up to 5,000 rows, and for categories with few
        rows each, the pair must then also gain a tenth more than the single feature on rows that
        neither was fitted on, and keep a tenth of its own gain there. "auto" is 0 for plain
        thresholds (`inner_max_leaf_nodes=2, max_branches=2`), as in BiCART.
    n_orientations : int, default=8
        Number of directions for a pair's cuts, evenly spaced in the plane of the standardised pair
        and including both axes; at most 256. With 2, cuts are parallel to the axes.
    min_samples_split : int or float, default=2
        Minimum number of rows a node needs to be split, or their fraction of all rows.
    min_samples_leaf : int, float or "auto", default="auto"
        Minimum number of rows in each branch, or their fraction of all rows. If a shape function
        breaks this, the next best is taken. "auto" is 3 rows; leaves that refinement makes
        smaller join their siblings.
    min_weight_fraction_leaf : float, default=0.0
        Minimum weight of each branch, as a fraction of the weight of all rows.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of impurity by a split, weighted by the node's share of all rows, as in
        scikit-learn.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves; the tree then grows where it gains most.
    lookahead : int or "auto", default="auto"
        How many of a node's best features to compare one level deeper, by the gains of the best
        splits of their branches, if their own gains are close. 1 compares only their own gains.
        "auto" is 3 if `max_leaf_nodes` limits the tree and there are no pairs, and 1 otherwise:
        where leaves are scarce, 3 makes trees more accurate and their probabilities better, and
        takes about twice as long. No more than 10 are compared.
    inner_tree : {"cart", "optimal"}, default="cart"
        How a feature's axis is cut into pieces: by CART, best cut first, or by dynamic programming,
        which finds the best partition but takes longer.
    inner_max_leaf_nodes : int or None, default=None
        Maximum number of pieces, and so of segments of a shape function; None for no limit other
        than the penalty (and 120 regions for a pair). With 2, two branches and `refine=None` the
        tree is CART's, and with `pairs="all"` it is BiCART's.
    inner_min_samples_leaf : int or float, default=1
        Minimum number of rows in a piece, or their fraction of all rows. Rarer categories are put
        into one piece. Regions of a pair also have at least `min_samples_leaf` rows.
    inner_max_depth : int or None, default=None
        Maximum depth of the inner tree.
    segment_penalty : float or "auto", default="auto"
        Penalty for every segment beyond two, in rows of Gini mass (5 by default) or bits of entropy
        (6 by default). Each category that has to be listed costs half as much; each region of a
        pair beyond two costs a tenth (a fifth, for entropy) of it times log2 of the rows it is cut
        from. 0 gives the paper's unpenalised shape functions.
    leaf_penalty : float or "auto", default="auto"
        Penalty for every leaf beyond the first, in bits of entropy (4 by default) or rows of Gini
        mass (3 by default). "auto" is no more than 1 % of all impurity, and 0 if shape functions
        are plain thresholds (`inner_max_leaf_nodes=2, max_branches=2`), as in CART.
    branch_penalty : float, default=0.0
        Penalty for every branch beyond two, as mean impurity of the node.
    assignment : {"auto", "coordinate_descent", "kmeans", "random"}, default="auto"
        How branches are assigned to pieces. "auto" is exact for two classes and for squared error,
        and coordinate descent from several starts otherwise. The others are the paper's own
        (coordinate descent from the better of weighted k-means and the inner tree's root) and its
        ablations (k-means alone; descent from a random start).
    refine : {"tao"} or None, default="tao"
        How to refine the grown tree. "tao" is tree alternating optimisation: one node after
        another, from the leaves to the root, gets the shape function that sends its rows where the
        tree below loses least on them, or is removed if a single branch does as well. None keeps
        the tree as grown.
    refine_iter : int, default=4
        Maximum number of sweeps over the tree; refinement stops early when nothing changes.
    refine_penalty : float or "auto", default="auto"
        Penalty for every leaf beyond the first and every segment beyond two in refinement, in bits
        of log loss or in wrongly classified rows, depending on the objective; regions of a pair
        count as segments, and the pair itself as one more. "auto" takes `leaf_penalty` and
        `segment_penalty` for log loss, and 3 rows (no more than 1 % of all rows for a leaf) for
        wrong predictions. With several outputs, losses are added up.
    ccp_alpha : float, default=0.0
        Minimal cost-complexity pruning, as in scikit-learn: a node becomes a leaf if its subtree
        removes less impurity than this for each further leaf.
    shrinkage : float, "auto" or "cv", default="auto"
        How much the predictions of nodes with few rows lean on those of the nodes above. A
        prediction is the root's value plus one step for each node on the way. With "auto", a step
        counts half if the split that it is made by gains no more than 4 bits, or if it leads to a
        node of 3 rows, and fully where both are large. A number is the λ of hierarchical shrinkage,
        by which a step below a node of λ rows counts half. "cv" chooses λ from 0 to 500 by
        cross-validation. 0 is off.
    max_bins : int or None, default=255
        Maximum number of bins of an ordered feature, at most 65535. Features with fewer distinct
        values keep them all; up to 255 bins take one byte per value. Beyond 200,000 rows, quantiles
        are taken from a sample. None is exact: a threshold may lie between any two distinct values,
        as in CART. Thresholds are short numbers near the middle of the gap between two training
        values.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Which features are categorical: those with category, string or boolean columns, none, or
        those listed by name, by index or by a boolean mask.
    class_weight : dict, list of dicts, "balanced" or None, default=None
        How much the rows of each class matter; multiplies their weights. Only ratios count: {"no":
        1, "yes": 10} is the same as {"no": 0.1, "yes": 1}. "balanced" gives all classes the same
        total weight.
    n_threads : int or None, default=None
        Number of threads; None for all cores. The tree is the same for any number. A forked process
        uses one.
    random_state : int, RandomState instance or None, default=None
        Seeds the random orders and starts of `assignment="coordinate_descent"` and `"random"`.
        Nothing else is random.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (n_classes,), or list of such arrays
        Class labels, for each output if there are several.
    n_classes_ : int or list of int
    tree_ : TreeArrays
        The nodes as flat arrays.
    criterion_ : str
        The criterion in use.
    refinement_history_ : array of shape (n_sweeps + 1,)
        Penalised loss before refinement and after each sweep, if the tree was refined; it never
        rises.
    strength_ : float
        The strength in use.
    cv_results_ : dict
        How strength and shrinkage were chosen, in the form of scikit-learn's `GridSearchCV`: scores
        on held-out rows are the objective's, log losses (negated) or accuracies. Only if they were
        chosen, and not in model files.
    shrinkage_ : float
        The shrinkage in use.
    taught_ : float
        How much of what the tree was fitted to was its teacher's; 0 without a teacher.
    teacher_ : estimator
        The teacher, fitted, if an estimator was given as `teacher`.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if the columns' names are all strings.
    feature_importances_ : array of shape (n_features_in_,)
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseShapeTree._parameter_constraints,
        "objective": [StrOptions({"log_loss", "error"})],
        "criterion": [StrOptions({"auto", "gini", "entropy", "log_loss"})],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        max_depth: int | None = 4,
        max_branches: int = 3,
        max_parts: int | None = 6,
        objective: str = "log_loss",
        criterion: str = "auto",
        strength: Any = 1.0,
        cv: Any = None,
        resamples: int | str = "auto",
        teacher: Any = "auto",
        pairs: Any = 0,
        pair_screen: str = "grid",
        pair_penalty: float | str = "auto",
        n_orientations: int = 8,
        min_samples_split: float = 2,
        min_samples_leaf: float | str = "auto",
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        lookahead: int | str = "auto",
        inner_tree: str = "cart",
        inner_max_leaf_nodes: int | None = None,
        inner_min_samples_leaf: float = 1,
        inner_max_depth: int | None = None,
        segment_penalty: float | str = "auto",
        leaf_penalty: float | str = "auto",
        branch_penalty: float = 0.0,
        assignment: str = "auto",
        refine: str | None = "tao",
        refine_iter: int = 4,
        refine_penalty: float | str = "auto",
        ccp_alpha: float = 0.0,
        shrinkage: float | str = "auto",
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        class_weight: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            max_depth=max_depth,
            max_branches=max_branches,
            max_parts=max_parts,
            criterion=criterion,
            strength=strength,
            cv=cv,
            resamples=resamples,
            teacher=teacher,
            pairs=pairs,
            pair_screen=pair_screen,
            pair_penalty=pair_penalty,
            n_orientations=n_orientations,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            min_impurity_decrease=min_impurity_decrease,
            max_leaf_nodes=max_leaf_nodes,
            lookahead=lookahead,
            inner_tree=inner_tree,
            inner_max_leaf_nodes=inner_max_leaf_nodes,
            inner_min_samples_leaf=inner_min_samples_leaf,
            inner_max_depth=inner_max_depth,
            segment_penalty=segment_penalty,
            leaf_penalty=leaf_penalty,
            branch_penalty=branch_penalty,
            assignment=assignment,
            refine=refine,
            refine_iter=refine_iter,
            refine_penalty=refine_penalty,
            ccp_alpha=ccp_alpha,
            shrinkage=shrinkage,
            max_bins=max_bins,
            categorical_features=categorical_features,
            n_threads=n_threads,
            random_state=random_state,
            verbose=verbose,
        )
        self.objective = objective
        self.class_weight = class_weight

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
        classes = self.__fitted_tree__().classes
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


class ShapeTreeRegressor(RegressorMixin, BaseShapeTree):
    """A shape tree for regression.

    A decision tree whose every node sends rows to one of up to `max_branches` branches through a
    shape function: a piecewise-constant map from one feature, or from a pair of features, to
    branches, which can be drawn [1]_.

    Parameters
    ----------
    max_depth : int or None, default=4
        Maximum depth of the tree; None for no limit.
    max_branches : int, default=3
        Maximum number of branches of a node. A node uses fewer where more would gain nothing.
    max_parts : int or None, default=6
        Maximum number of parts of a node: segments of its feature's axis, or regions of its pair's
        plane. At most 12 categories are listed then; all others are one group. The search finds the
        best shape function within the limit. None for no limit.
    criterion : {"squared_error", "absolute_error"}, default="squared_error"
        Impurity of a node. Absolute error is computed exactly if y has at most 512 distinct values,
        and from 64 quantile groups of them otherwise; leaves predict exact medians.
    strength : float, "cv" or array-like, default=1.0
        Multiplies all penalties below that are "auto" (for leaves, segments, regions, pairs and
        refinement). Use it to set the size of the tree: 2 makes trees smaller and their shape
        functions plainer, 0 removes all penalties, as in the paper. "cv" chooses it from 0.3, 1 and
        3 by cross-validation on the training rows: it takes the one with the best mean score of the
        objective on held-out rows. Give a list to choose from other values. With `max_leaf_nodes`,
        the number of branches is chosen, too.
    cv : int, splitter, iterable or None, default=None
        Folds of the cross-validation that chooses `strength` or `shrinkage`: a number, any
        scikit-learn splitter, or pairs of the numbers of rows to fit and to hold out. None is 5
        folds up to 1,000 rows, and 3 beyond. With a number or None, each fold has its share of
        every class, and equal rows stay in one fold, as do rows of a group if `fit` is given
        `groups`.
    resamples : int or "auto", default="auto"
        Number of resamples that decide whether there is anything to learn: small trees are grown on
        halves of the rows, and if what they say of the rows they have not seen is not clearly
        better than no tree, the tree is a single leaf. "auto" is 50 up to 5,000 rows and 0, none,
        beyond.
    teacher : "auto", "forest", estimator or None, default="auto"
        What the tree learns from besides the targets. "forest": the small trees of the resamples.
        The tree is fitted to a mixture of what these predict on the mean and the rows' own targets;
        the less of the targets they can predict, the more of these is noise, and the more counts
        what they say. From few rows, this gives better probabilities, and fewer leaves. "auto" does
        so where there are resamples and no pairs, and `shrinkage` and `criterion` are the default
        ones. An estimator, which may be fitted already, teaches the tree to predict as it does;
        `evaluate` then tells how well that works. Counts, shares and pictures are always those of
        the rows themselves.
    pairs : 0, int, "auto", "all" or list, default=0
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
    pair_screen : {"grid", "delta"}, default="grid"
        How pairs are screened: "grid" uses grids of 32 x 32 cells, which also reveal pure
        interactions; "delta" is the paper's filter, which crosses the branches of both features'
        own shape functions.
    pair_penalty : float or "auto", default="auto"
        Penalty for using a pair instead of a single feature, as mean impurity of the node. "auto"
        is the penalty of one segment. In nodes of up to 5,000 rows, and for categories with few
        rows each, the pair must then also gain a tenth more than the single feature on rows that
        neither was fitted on, and keep a tenth of its own gain there; refinement fits no pairs in
        nodes of fewer than 1,000 rows. "auto" is 0 for plain thresholds (`inner_max_leaf_nodes=2,
        max_branches=2`), as in BiCART.
    n_orientations : int, default=8
        Number of directions for a pair's cuts, evenly spaced in the plane of the standardised pair
        and including both axes; at most 256. With 2, cuts are parallel to the axes.
    min_samples_split : int or float, default=2
        Minimum number of rows a node needs to be split, or their fraction of all rows.
    min_samples_leaf : int, float or "auto", default="auto"
        Minimum number of rows in each branch, or their fraction of all rows. If a shape function
        breaks this, the next best is taken. "auto" is 5 rows; leaves that refinement makes
        smaller join their siblings.
    min_weight_fraction_leaf : float, default=0.0
        Minimum weight of each branch, as a fraction of the weight of all rows.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of impurity by a split, weighted by the node's share of all rows, as in
        scikit-learn.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves; the tree then grows where it gains most.
    lookahead : int or "auto", default="auto"
        How many of a node's best features to compare one level deeper, by the gains of the best
        splits of their branches, if their own gains are close. 1 compares only their own gains.
        "auto" is 3 if `max_leaf_nodes` limits the tree and there are no pairs, and 1 otherwise:
        where leaves are scarce, 3 makes trees more accurate and their probabilities better, and
        takes about twice as long. No more than 10 are compared.
    inner_tree : {"cart", "optimal"}, default="cart"
        How a feature's axis is cut into pieces: by CART, best cut first, or by dynamic programming,
        which finds the best partition but takes longer.
    inner_max_leaf_nodes : int or None, default=None
        Maximum number of pieces, and so of segments of a shape function; None for no limit other
        than the penalty (and 120 regions for a pair). With 2, two branches and `refine=None` the
        tree is CART's, and with `pairs="all"` it is BiCART's.
    inner_min_samples_leaf : int or float, default=1
        Minimum number of rows in a piece, or their fraction of all rows. Rarer categories are put
        into one piece. Regions of a pair also have at least `min_samples_leaf` rows.
    inner_max_depth : int or None, default=None
        Maximum depth of the inner tree.
    segment_penalty : float or "auto", default="auto"
        Penalty for every segment beyond two: the impurity of that many average rows of the node (12
        by default). Each category that has to be listed costs half as much; each region of a pair
        beyond two costs a tenth of it times log2 of the rows it is cut from. 0 gives the paper's
        unpenalised shape functions.
    leaf_penalty : float or "auto", default="auto"
        Penalty for every leaf beyond the first, as a number of the node's rows: it must take away
        as much error as these have on average. "auto" is 6, but no more than 1 % of all rows, and 0
        if shape functions are plain thresholds (`inner_max_leaf_nodes=2, max_branches=2`), as in
        CART.
    branch_penalty : float, default=0.0
        Penalty for every branch beyond two, as mean impurity of the node.
    assignment : {"auto", "coordinate_descent", "kmeans", "random"}, default="auto"
        How branches are assigned to pieces. "auto" is exact for two classes and for squared error,
        and coordinate descent from several starts otherwise. The others are the paper's own
        (coordinate descent from the better of weighted k-means and the inner tree's root) and its
        ablations (k-means alone; descent from a random start).
    refine : {"tao"} or None, default="tao"
        How to refine the grown tree. "tao" is tree alternating optimisation: one node after
        another, from the leaves to the root, gets the shape function that sends its rows where the
        tree below loses least on them, or is removed if a single branch does as well. None keeps
        the tree as grown.
    refine_iter : int, default=4
        Maximum number of sweeps over the tree; refinement stops early when nothing changes.
    refine_penalty : float or "auto", default="auto"
        Penalty for every segment beyond two and every branch beyond the first in refinement, as the
        loss of that many average rows of the tree; regions of a pair count as segments, and the
        pair itself as one more. "auto" takes `leaf_penalty` and
        `segment_penalty`.
    ccp_alpha : float, default=0.0
        Minimal cost-complexity pruning, as in scikit-learn: a node becomes a leaf if its subtree
        removes less impurity than this for each further leaf.
    shrinkage : float, "auto" or "cv", default="auto"
        How much the predictions of nodes with few rows lean on those of the nodes above. A
        prediction is the root's value plus one step for each node on the way. With "auto", a step
        counts half if the split that it is made by takes away no more error than 6 rows of it have
        on average, or if it leads to a node of 1 row, and fully where both are large. A number is
        the λ of hierarchical shrinkage, by which a step below a node of λ rows counts half. "cv"
        chooses λ from 0 to 500 by cross-validation. 0 is off.
    max_bins : int or None, default=255
        Maximum number of bins of an ordered feature, at most 65535. Features with fewer distinct
        values keep them all; up to 255 bins take one byte per value. Beyond 200,000 rows, quantiles
        are taken from a sample. None is exact: a threshold may lie between any two distinct values,
        as in CART. Thresholds are short numbers near the middle of the gap between two training
        values.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Which features are categorical: those with category, string or boolean columns, none, or
        those listed by name, by index or by a boolean mask.
    n_threads : int or None, default=None
        Number of threads; None for all cores. The tree is the same for any number. A forked process
        uses one.
    random_state : int, RandomState instance or None, default=None
        Seeds the random orders and starts of `assignment="coordinate_descent"` and `"random"`.
        Nothing else is random.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    tree_ : TreeArrays
        The nodes as flat arrays.
    criterion_ : str
        The criterion in use.
    refinement_history_ : array of shape (n_sweeps + 1,)
        Penalised loss before refinement and after each sweep, if the tree was refined; it never
        rises. The loss counts as n log(loss / loss of the root alone) for n rows.
    strength_ : float
        The strength in use.
    cv_results_ : dict
        How strength and shrinkage were chosen, in the form of scikit-learn's `GridSearchCV`: scores
        on held-out rows are the share of the error that the tree removes. Only if they were chosen,
        and not in model files.
    shrinkage_ : float
        The shrinkage in use.
    taught_ : float
        How much of what the tree was fitted to was its teacher's; 0 without a teacher.
    teacher_ : estimator
        The teacher, fitted, if an estimator was given as `teacher`.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if the columns' names are all strings.
    feature_importances_ : array of shape (n_features_in_,)
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

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from shapetree import ShapeTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> scores = cross_val_score(ShapeTreeRegressor(max_depth=3), X, y, cv=10)
    >>> print(f"{scores.mean():.2f}")
    0.33
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseShapeTree._parameter_constraints,
        "criterion": [StrOptions({"squared_error", "absolute_error"})],
        "shrinkage": [StrOptions({"auto", "cv"}), Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        max_depth: int | None = 4,
        max_branches: int = 3,
        max_parts: int | None = 6,
        criterion: str = "squared_error",
        strength: Any = 1.0,
        cv: Any = None,
        resamples: int | str = "auto",
        teacher: Any = "auto",
        pairs: Any = 0,
        pair_screen: str = "grid",
        pair_penalty: float | str = "auto",
        n_orientations: int = 8,
        min_samples_split: float = 2,
        min_samples_leaf: float | str = "auto",
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        lookahead: int | str = "auto",
        inner_tree: str = "cart",
        inner_max_leaf_nodes: int | None = None,
        inner_min_samples_leaf: float = 1,
        inner_max_depth: int | None = None,
        segment_penalty: float | str = "auto",
        leaf_penalty: float | str = "auto",
        branch_penalty: float = 0.0,
        assignment: str = "auto",
        refine: str | None = "tao",
        refine_iter: int = 4,
        refine_penalty: float | str = "auto",
        ccp_alpha: float = 0.0,
        shrinkage: float | str = "auto",
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            max_depth=max_depth,
            max_branches=max_branches,
            max_parts=max_parts,
            criterion=criterion,
            strength=strength,
            cv=cv,
            resamples=resamples,
            teacher=teacher,
            pairs=pairs,
            pair_screen=pair_screen,
            pair_penalty=pair_penalty,
            n_orientations=n_orientations,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            min_impurity_decrease=min_impurity_decrease,
            max_leaf_nodes=max_leaf_nodes,
            lookahead=lookahead,
            inner_tree=inner_tree,
            inner_max_leaf_nodes=inner_max_leaf_nodes,
            inner_min_samples_leaf=inner_min_samples_leaf,
            inner_max_depth=inner_max_depth,
            segment_penalty=segment_penalty,
            leaf_penalty=leaf_penalty,
            branch_penalty=branch_penalty,
            assignment=assignment,
            refine=refine,
            refine_iter=refine_iter,
            refine_penalty=refine_penalty,
            ccp_alpha=ccp_alpha,
            shrinkage=shrinkage,
            max_bins=max_bins,
            categorical_features=categorical_features,
            n_threads=n_threads,
            random_state=random_state,
            verbose=verbose,
        )

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
        Maximum number of sweeps over the tree; by default the estimator's own parameter.
    refine_penalty : float or "auto", optional
        Penalty for every part of the tree; by default the estimator's own parameter.

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
    if refine_iter is not None:
        refined.refine_iter = refine_iter
    if refine_penalty is not None:
        refined.refine_penalty = refine_penalty
    refined._validate_params()
    refined._fitted = refine_fitted(
        fitted, X, y, sample_weight, refined._parameters(), type(refined).__name__
    )
    return refined
