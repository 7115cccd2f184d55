"""The models of the paper by name, each as parameters of a shape tree.

========  ======================================================================================
CART      Thresholds of one feature to two branches: scikit-learn's CART, split by split.
BiCART    CART whose thresholds may also be oblique, on any pair of features.
AxTAO     CART, then refined by tree alternating optimisation (TAO).
BiTAO     BiCART, then refined.
HSTree    CART, then shrunk: leaves of few rows lean on the nodes above them.
SGT-C     ShapeCART: shape functions of one feature, two branches.
SGT-T     ShapeTAO: SGT-C, then refined.
SGT3-C    ShapeCART_3: SGT-C with up to three branches.
SGT3-T    ShapeTAO_3: SGT3-C, then refined.
S2GT-C    Shape²CART: SGT-C whose nodes may split on a pair of features.
S2GT-T    Shape²TAO: S2GT-C, then refined.
S2GT3-C   Shape²CART_3: S2GT-C with up to three branches.
S2GT3-T   Shape²TAO_3: S2GT3-C, then refined.
SGT-C(D)  SGT-C whose inner trees come from dynamic programming (DPDT in the paper) instead of CART.
========  ======================================================================================

The trees of thresholds (CART, BiCART, AxTAO, BiTAO, HSTree) split on Gini or squared error, exactly
and without penalties. The shape trees (SGT and S2GT) come in two versions. By default they keep
this package's defaults: its bins, its penalties for segments and splits, its way to find pairs, and
its choice of criterion. With `paper=True` they have the paper's objective and its methods: Gini or
squared error, every threshold between two values, coordinate descent from the better of weighted
k-means and the inner tree's root, its filter for pairs, and only its own penalties, which are
`branch_penalty` (its λ), `pair_penalty` (its γ) and `refine_penalty` (the λ of TAO, times the
number of rows) of `SearchOptions`. These are 0 until they are tuned; inner trees have at most 32
leaves (its L). Refinement lowers the number of wrong predictions and nothing else, by the paper's
steps: a row is copied to all branches of a node that predict it right, and an inner tree for each
feature, or for each of the pairs that were considered when the node grew, tells the copies apart.

In the paper, the trees of thresholds get one-hot columns. Here they take categories directly and
split them into two groups; give them one-hot columns to do as the paper does.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from scipy.stats import randint
from sklearn.utils import check_scalar

from shapetree._estimators import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.fit import SearchOptions

__all__ = ["NAMES", "estimator", "search_space"]

# What names of search options start with.
_OPTION = "search__"

# What trees split on where that is not left to the estimator, by task.
_CRITERIA = {
    "classification": {"objective": "error", "search__criterion": "gini"},
    "regression": {"objective": "squared_error"},
}

# Neither paper nor CART limit parts, smooth leaves, ask for rows in them, resample or teach.
_PLAIN = {
    "max_parts": None,
    "shrinkage": 0.0,
    "min_samples_leaf": 1,
    "resamples": 0,
    "teacher": None,
}
_NO_PENALTIES = {
    "search__segment_penalty": 0.0,
    "search__leaf_penalty": 0.0,
    "search__branch_penalty": 0.0,
}
_THRESHOLDS = {
    "max_branches": 2,
    "search__inner_max_leaf_nodes": 2,
    "pairs": 0,
    "refine": None,
    "max_bins": None,
    **_NO_PENALTIES,
    **_PLAIN,
}
_OBLIQUE_THRESHOLDS = _THRESHOLDS | {"pairs": "all", "search__pair_penalty": 0.0}
_REFINED = {"refine": "tao", "search__refine_penalty": 0.0}
# What makes a shape tree the paper's own; how many pairs pass its filter is up to the user.
_PAPER = {
    "search__inner_max_leaf_nodes": 32,
    "search__refine_penalty": 0.0,
    "search__refine_step": "inner_tree",
    "search__assignment": "coordinate_descent",
    "max_bins": None,
    **_NO_PENALTIES,
    **_PLAIN,
}
_PAPER_PAIRS = {"pairs": 5, "search__pair_screen": "delta", "search__pair_penalty": 0.0}

# What the paper tunes in every model, and its values for all kinds of small penalties.
_ALWAYS_TUNED = (
    "max_depth",
    "search__criterion",
    "min_samples_split",
    "min_samples_leaf",
    "search__min_impurity_decrease",
)
_SMALL = (0.0, 1e-4, 5e-4, 1e-3, 5e-3, 0.01)


@dataclass(frozen=True)
class _Recipe:
    """Parameters that make the model, and which others the paper tunes in it."""

    params: dict[str, Any]
    tuned: tuple[str, ...]
    # Whether splits are thresholds, by a criterion that is always the same.
    is_threshold: bool = False

    def all_params(self, task: str, paper: bool) -> dict[str, Any]:
        """Parameters that make the model, or the paper's version of it."""
        params = self.params
        if paper and not self.is_threshold:
            params = params | _PAPER | (_PAPER_PAIRS if params["pairs"] else {})
        if paper or self.is_threshold:
            params = params | _CRITERIA[task]
        return params


def _threshold_recipe(params: dict[str, Any], *tuned: str) -> _Recipe:
    return _Recipe(params, tuned, is_threshold=True)


def _shape_recipe(
    max_branches: int, *, pairs: bool = False, refined: bool = False, inner_tree: str = "cart"
) -> _Recipe:
    params = {
        "max_branches": max_branches,
        "pairs": "auto" if pairs else 0,
        "refine": "tao" if refined else None,
        "search__inner_tree": inner_tree,
    }
    tuned = ["search__inner_max_leaf_nodes", "search__inner_min_samples_leaf"]
    # With two branches, a penalty for branches beyond two has no effect.
    tuned += ["search__branch_penalty"] if max_branches > 2 else []
    tuned += ["search__pair_penalty", "search__n_orientations"] if pairs else []
    tuned += ["search__refine_penalty"] if refined else []
    return _Recipe(params, tuple(tuned))


_RECIPES = {
    "CART": _threshold_recipe(_THRESHOLDS, "ccp_alpha"),
    "BiCART": _threshold_recipe(_OBLIQUE_THRESHOLDS, "ccp_alpha", "search__n_orientations"),
    "AxTAO": _threshold_recipe(_THRESHOLDS | _REFINED, "search__refine_penalty"),
    "BiTAO": _threshold_recipe(
        _OBLIQUE_THRESHOLDS | _REFINED, "search__refine_penalty", "search__n_orientations"
    ),
    "HSTree": _threshold_recipe(_THRESHOLDS | {"shrinkage": 1.0}, "ccp_alpha", "shrinkage"),
    "SGT-C": _shape_recipe(2),
    "SGT-T": _shape_recipe(2, refined=True),
    "SGT3-C": _shape_recipe(3),
    "SGT3-T": _shape_recipe(3, refined=True),
    "S2GT-C": _shape_recipe(2, pairs=True),
    "S2GT-T": _shape_recipe(2, pairs=True, refined=True),
    "S2GT3-C": _shape_recipe(3, pairs=True),
    "S2GT3-T": _shape_recipe(3, pairs=True, refined=True),
    "SGT-C(D)": _shape_recipe(2, inner_tree="optimal"),
}

NAMES = tuple(_RECIPES)


def estimator(
    name: str, *, task: str = "classification", paper: bool = False, **params: Any
) -> ShapeTreeClassifier | ShapeTreeRegressor:
    """Make an unfitted estimator that is a model of the paper.

    Parameters
    ----------
    name : str
        One of `NAMES`; the module says what each is.
    task : {"classification", "regression"}, default="classification"
    paper : bool, default=False
        Whether a shape tree has the paper's objective and no penalties but its own, rather than
        this package's defaults. Trees of thresholds are the same either way.
    **params
        Further parameters of the estimator, which override those of the recipe. For example,
        `pairs="all"` fits every pair instead of the five that the paper's filter ranks first, and
        `search__n_orientations=4` changes one of its search options.

    Returns
    -------
    ShapeTreeClassifier or ShapeTreeRegressor

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree.recipes import estimator
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = estimator("SGT-T", max_depth=2).fit(X, y)
    >>> print(f"{tree.score(X, y):.2f}")
    0.96
    >>> tree = estimator("SGT-T", paper=True, max_depth=2).fit(X, y)
    >>> print(f"{tree.score(X, y):.2f}")
    0.96
    """
    made = _find(name, task).all_params(task, paper)
    if "search" in params:
        raise TypeError(
            "search belongs to the recipe; set single options, such as search__lookahead=3"
        )
    kind = ShapeTreeClassifier if task == "classification" else ShapeTreeRegressor
    given = made | params
    options = {name for name in given if name.startswith(_OPTION)}
    search = SearchOptions(**{name.removeprefix(_OPTION): given.pop(name) for name in options})
    return kind(search=search, **given)


def search_space(name: str, n_rows: int, *, task: str = "classification") -> dict[str, Any]:
    """What the paper tunes in a model, for scikit-learn's `RandomizedSearchCV`.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    n_rows : int
        Number of training rows. `search__refine_penalty` is counted in rows, the paper's λ is a
        share of them.
    task : {"classification", "regression"}, default="classification"
        Regression has no criteria to choose from.

    Returns
    -------
    dict
        From names of parameters to lists of values or distributions of `scipy.stats`.

    Notes
    -----
    The space is meant for the paper's own models, `estimator(name, paper=True)`. In the others, the
    package's penalties for segments and splits stay in force besides what is tuned.

    The paper's penalties for a third branch and for a pair are tuned in the models for which it
    reports their importance. It does not give the values it tried for pairs; these are the values
    of its other penalties. A fraction in `search__inner_min_samples_leaf` is of all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import RandomizedSearchCV
    >>> from shapetree.recipes import estimator, search_space
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = RandomizedSearchCV(
    ...     estimator("CART"), search_space("CART", len(y)), n_iter=5, cv=3, random_state=0
    ... )
    >>> sorted(search.fit(X, y).best_params_)  # doctest: +NORMALIZE_WHITESPACE
    ['ccp_alpha', 'max_depth', 'min_samples_leaf', 'min_samples_split', 'search__criterion',
     'search__min_impurity_decrease']
    """
    recipe = _find(name, task)
    check_scalar(n_rows, "n_rows", Integral, min_val=1)
    values = _tried_values(n_rows)
    if task == "regression":
        del values["search__criterion"]
    return {key: values[key] for key in (*_ALWAYS_TUNED, *recipe.tuned) if key in values}


def _tried_values(n_rows: int) -> dict[str, Any]:
    """The values that the paper tries of each parameter."""
    return {
        "max_depth": [2, 3, 4, 5, 6],
        "search__criterion": ["gini", "entropy"],
        "min_samples_split": [2, 4, 8, 16, 32],
        "min_samples_leaf": randint(1, 33),
        "search__min_impurity_decrease": list(_SMALL),
        "ccp_alpha": list(_SMALL),
        "shrinkage": [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0],
        "search__refine_penalty": [share * n_rows for share in _SMALL],
        "search__inner_max_leaf_nodes": list(range(4, 65, 4)),
        "search__inner_min_samples_leaf": [1, *_SMALL[1:]],
        "search__branch_penalty": list(_SMALL),
        "search__pair_penalty": list(_SMALL),
        "search__n_orientations": [5, 6, 7, 8],
    }


def _find(name: str, task: str) -> _Recipe:
    if name not in _RECIPES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    if task not in _CRITERIA:
        raise ValueError(f"task must be one of {', '.join(_CRITERIA)}; got {task!r}")
    return _RECIPES[name]
