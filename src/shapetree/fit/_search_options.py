"""Options of the search for splits that few users need."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from shapetree._with_parameters import KnownParameters, with_parameters

PENALTY = [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")]


@with_parameters
class SearchOptions(KnownParameters):
    """How a shape tree searches for its splits, in detail.

    The defaults serve nearly all data. Pass others as `search` to `ShapeTreeClassifier` or
    `ShapeTreeRegressor`, which check them when they are fitted. Single options can be set, and
    tuned by scikit-learn's searches, under names such as `search__n_orientations`.

    Parameters
    ----------
    criterion : {"auto", "gini", "entropy", "log_loss"}
        Impurity that growth of a classifier lowers, whatever its `objective`. "auto" is entropy,
        for which "log_loss" is another name. A regressor grows by its `objective` and takes only
        "auto".
    lookahead : int or "auto"
        How many of a node's best features to compare one level deeper, by the gains of the best
        splits of their branches, if their own gains are close. 1 compares only their own gains.
        "auto" is 3 if `max_leaf_nodes` limits the tree and there are no pairs, and 1 otherwise:
        where leaves are scarce, 3 makes trees more accurate and their probabilities better, and
        takes about twice as long. No more than 10 are compared.
    min_impurity_decrease : float
        Minimum decrease of impurity by a split, weighted by the node's share of all rows, as in
        scikit-learn.
    min_weight_fraction_leaf : float
        Minimum weight of each branch, as a fraction of the weight of all rows.
    leaf_penalty : float or "auto"
        Penalty for every leaf beyond the first: for a classifier in bits of entropy (4 by default)
        or rows of Gini mass (3 by default); for a regressor as a number of the node's rows (6 by
        default), as much error as these have on average. "auto" is no more than 1 % of all impurity
        or rows, and 0 if shape functions are plain thresholds (`inner_max_leaf_nodes=2` and
        `max_branches=2`), as in CART.
    segment_penalty : float or "auto"
        Penalty for every segment beyond two, in bits of entropy (6 by default), rows of Gini mass
        (5 by default) or rows of average error of the node (12 by default). Each category that has
        to be listed costs half as much; each region of a pair beyond two costs a tenth (a fifth,
        for entropy) of it times log2 of the rows it is cut from. 0 gives the paper's unpenalised
        shape functions.
    branch_penalty : float
        Penalty for every branch beyond two, as mean impurity of the node.
    pair_penalty : float or "auto"
        Penalty for using a pair instead of a single feature, as mean impurity of the node. "auto"
        is the penalty of one segment. In nodes of up to 5,000 rows, and for categories with few
        rows each, the pair must then also gain a tenth more than the single feature on rows that
        neither was fitted on, and keep a tenth of its own gain there; refinement of a regressor
        fits no pairs in nodes of fewer than 1,000 rows. "auto" is 0 for plain thresholds
        (`inner_max_leaf_nodes=2` and `max_branches=2`), as in BiCART.
    pair_screen : {"grid", "delta"}
        How pairs are screened: "grid" uses grids of 32 x 32 cells, which also reveal pure
        interactions; "delta" is the paper's filter, which crosses the branches of both features'
        own shape functions.
    n_orientations : int
        Number of directions for a pair's cuts, evenly spaced in the plane of the standardised pair
        and including both axes; at most 256. With 2, cuts are parallel to the axes.
    inner_tree : {"cart", "optimal"}
        How a feature's axis is cut into pieces: by CART, best cut first, or by dynamic programming,
        which finds the best partition but takes longer.
    inner_max_leaf_nodes : int or None
        Maximum number of pieces, and so of segments of a shape function; None for no limit other
        than the penalty (and 120 regions for a pair). With 2, two branches and `refine=None` the
        tree is CART's, and with `pairs="all"` it is BiCART's.
    inner_min_samples_leaf : int or float
        Minimum number of rows in a piece, or their fraction of all rows. Rarer categories are put
        into one piece. Regions of a pair also have at least `min_samples_leaf` rows.
    inner_max_depth : int or None
        Maximum depth of the inner tree.
    assignment : {"auto", "coordinate_descent", "kmeans", "random"}
        How branches are assigned to pieces. "auto" is exact for two classes and for squared error,
        and coordinate descent from several starts otherwise. The others are the paper's own
        (coordinate descent from the better of weighted k-means and the inner tree's root) and its
        ablations (k-means alone; descent from a random start).
    refine_iter : int
        Maximum number of sweeps over the tree; refinement stops early when nothing changes.
    refine_step : {"exact", "inner_tree"}
        How refinement finds a node's shape functions: exactly, where its rows lose least after all
        penalties, or by an inner tree for each feature as in the paper, with the limits of growth
        and by its criterion, on copies of the rows: one for each branch in which a row loses least.
        The second needs `max_parts=None`; pairs are then those considered when the tree grew.
    refine_penalty : float or "auto"
        Penalty for every leaf beyond the first and every segment beyond two in refinement: in bits
        of log loss, in wrongly classified rows, or as the loss of that many average rows of the
        tree, depending on the objective; regions of a pair count as segments, and the pair itself
        as one more. With `refine_step="inner_tree"` it is for leaves alone. "auto" is 3 rows (no
        more than 1 % of all rows for a leaf) for wrong predictions; otherwise it takes
        `leaf_penalty` and `segment_penalty`. With several outputs, losses are added up.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from shapetree import SearchOptions, ShapeTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = ShapeTreeClassifier(search=SearchOptions(lookahead=3))
    >>> tuned = GridSearchCV(tree, {"search__criterion": ["gini", "entropy"]}).fit(X, y)
    >>> tuned.best_estimator_.search.lookahead
    3
    """

    criterion: str = "auto"
    lookahead: int | str = "auto"
    min_impurity_decrease: float = 0.0
    min_weight_fraction_leaf: float = 0.0
    leaf_penalty: float | str = "auto"
    segment_penalty: float | str = "auto"
    branch_penalty: float = 0.0
    pair_penalty: float | str = "auto"
    pair_screen: str = "grid"
    n_orientations: int = 8
    inner_tree: str = "cart"
    inner_max_leaf_nodes: int | None = None
    inner_min_samples_leaf: float = 1
    inner_max_depth: int | None = None
    assignment: str = "auto"
    refine_iter: int = 4
    refine_step: str = "exact"
    refine_penalty: float | str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({"auto", "gini", "entropy", "log_loss"})],
        "lookahead": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "min_impurity_decrease": [Interval(Real, 0, None, closed="left")],
        "min_weight_fraction_leaf": [Interval(Real, 0, 0.5, closed="both")],
        "leaf_penalty": PENALTY,
        "segment_penalty": PENALTY,
        "branch_penalty": [Interval(Real, 0, None, closed="left")],
        "pair_penalty": PENALTY,
        "pair_screen": [StrOptions({"grid", "delta"})],
        "n_orientations": [Interval(Integral, 2, 256, closed="both")],
        "inner_tree": [StrOptions({"cart", "optimal"})],
        "inner_max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "inner_min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "inner_max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "assignment": [StrOptions({"auto", "coordinate_descent", "kmeans", "random"})],
        "refine_iter": [Interval(Integral, 1, None, closed="left")],
        "refine_step": [StrOptions({"exact", "inner_tree"})],
        "refine_penalty": PENALTY,
    }
