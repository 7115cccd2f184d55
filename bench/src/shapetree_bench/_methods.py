"""Everything that is compared: shape trees of all kinds, the paper's version of them, and peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.stats import randint
from sklearn.base import is_classifier, is_regressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, recipes
from shapetree_bench import _sizes as sizes
from shapetree_bench._datasets import MISSING, Rows

Space = dict[str, Any]
Make = Callable[..., Any]

BOTH = ("classification", "regression")
# What the paper gives all its trees to choose from.
_SMALL = [0.0, 1e-4, 5e-4, 1e-3, 5e-3, 0.01]
_CART_SPACE: Space = {
    "criterion": ["gini", "entropy"],
    "min_samples_split": [2, 4, 8, 16, 32],
    "min_samples_leaf": randint(1, 33),
    "min_impurity_decrease": _SMALL,
    "ccp_alpha": _SMALL,
}


@dataclass(frozen=True)
class Method:
    """A way to fit a model.

    Attributes
    ----------
    name : str
    kind : {"ours", "paper", "ablation", "peer"}
    make : function of task, depth, and further parameters
        Returns an unfitted estimator.
    form : {"table", "one-hot", "groups"}
        What it is fitted on: the table with its categories and missing values, numbers only, or
        one-hot columns together with a dictionary that says which belong to one feature.
    sizes : function of the fitted estimator, rows and the features that columns stem from
    space : function of task and number of training rows, or None
        What is tuned by the protocol "paper".
    needs : str
        The module that it takes, if that does not come with the benchmark.
    counterpart : str
        The row of the paper's tables that it is to be compared with.
    greedy, bivariate : bool
        The block of the paper's tables.
    has_depth : bool
        Whether the depth changes anything; if not, there is one fit for all depths.
    limits_leaves : bool
        Whether it takes a number of leaves, as `max_leaf_nodes`, instead of a depth.
    tasks : tuple of str
    """

    name: str
    kind: str
    make: Make
    form: str = "table"
    sizes: Callable[[Any, Any, np.ndarray], sizes.Sizes] = sizes.sklearn_sizes
    space: Callable[[str, int], Space] | None = None
    needs: str = ""
    counterpart: str = ""
    greedy: bool = True
    bivariate: bool = False
    has_depth: bool = True
    limits_leaves: bool = False
    tasks: tuple[str, ...] = BOTH

    @property
    def is_installed(self) -> bool:
        return not self.needs or find_spec(self.needs.split(".")[0]) is not None

    def rows(self, rows: Rows) -> tuple[Any, dict[str, Any], np.ndarray]:
        """What it is fitted on, what else `fit` wants, and the features that columns stem from."""
        if self.form == "table":
            return rows.X, {}, np.arange(rows.X.shape[1])
        _, groups = rows.grouped
        owners = owners_of(rows.X, groups)
        if self.form == "groups":
            return rows.grouped[0], {"feature_dict": groups or None}, owners
        return rows.one_hot, {}, owners


def owners_of(X: Any, groups: dict[str, list[int]]) -> np.ndarray:
    """The feature that each one-hot column stems from."""
    widths = [len(groups.get(str(name), [0])) for name in X]
    return np.repeat(np.arange(len(widths)), widths)


# Shape trees


def _recipe(name: str, paper: bool = False, **more: Any) -> Make:
    def make(task: str, depth: int, **params: Any) -> Any:
        given: dict[str, Any] = {"max_depth": depth, "n_threads": 1, "random_state": 0}
        return recipes.estimator(name, task=task, paper=paper, **given | more | params)

    return make


def _paper_space(name: str, task: str, n_rows: int) -> Space:
    space = recipes.search_space(name, n_rows, task=task)
    del space["max_depth"]  # which every study keeps fixed
    return space


def _our_space(task: str, n_rows: int) -> Space:
    """All penalties of ours are multiples of one."""
    space: Space = {
        "strength": [0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 1.7, 3.0, 6.0, 10.0],
        "min_samples_leaf": randint(1, 33),
        "shrinkage": [0.0, 1.0, 10.0, 50.0],
    }
    if task == "classification":
        space["search__criterion"] = ["gini", "entropy"]
    return space


def _shape_methods() -> Iterable[Method]:
    for name in recipes.NAMES:
        is_shape = name.startswith("S")
        common: dict[str, Any] = {
            "sizes": sizes.shape_tree_sizes,
            "greedy": not name.endswith(("-T", "TAO")),
            "bivariate": name.startswith(("Bi", "S2")),
            "counterpart": name,
            "limits_leaves": True,
        }
        paper_space = partial(_paper_space, name)
        if is_shape:
            yield Method(name, "ours", _recipe(name), space=_our_space, **common)
            make = _recipe(name, objective="error")
            yield Method(f"{name} (error)", "ours", make, **common | {"tasks": ("classification",)})
            make = _recipe(name, paper=True)
            yield Method(f"{name} (paper)", "paper", make, space=paper_space, **common)
        elif name not in ("CART", "HSTree"):  # of which the peers' are the paper's own
            yield Method(name, "paper", _recipe(name), space=paper_space, **common)
        else:
            recipe = f"{name} (recipe)"
            yield Method(recipe, "paper", _recipe(name), space=paper_space, **common)


def _all_defaults(task: str, depth: int, **params: Any) -> Any:
    kind = ShapeTreeClassifier if task == "classification" else ShapeTreeRegressor
    return kind(**{"random_state": 0, "n_threads": 1} | params)


_DEFAULTS = Method(
    *("defaults", "ours", _all_defaults),
    sizes=sizes.shape_tree_sizes,
    has_depth=False,
)

# The paper's ablations: what is left out, as parameters.
_NO_DESCENT = {
    "No CD": {"search__assignment": "kmeans"},
    "No WKM": {"search__assignment": "random"},
}
_ALL_PAIRS = {"all pairs": {"pairs": "all"}}


def _ablations() -> Iterable[Method]:
    for name in ("SGT-C", "SGT3-C", "S2GT-C", "S2GT3-C"):
        is_bivariate = name.startswith("S2")
        for variant, params in (_NO_DESCENT | (_ALL_PAIRS if is_bivariate else {})).items():
            yield Method(
                f"{name} (paper, {variant})",
                "ablation",
                _recipe(name, paper=True, **params),
                sizes=sizes.shape_tree_sizes,
                space=partial(_paper_space, name),
                bivariate=is_bivariate,
            )


# Peers


def _imported(path: str, **fixed: Any) -> Make:
    """A maker of `package.module:Name`, with Classifier or Regressor in place of {}."""

    def make(task: str, depth: int, **params: Any) -> Any:
        module, _, name = path.partition(":")
        found = getattr(import_module(module), name.format(_suffix(task)))
        return found(**fixed | params)

    return make


def _suffix(task: str) -> str:
    return "Classifier" if task == "classification" else "Regressor"


def _with_depth(path: str, **fixed: Any) -> Make:
    make = _imported(path, **fixed)
    return lambda task, depth, **params: make(task, depth, max_depth=depth, **params)


def _cart(task: str, depth: int, **params: Any) -> Any:
    kind = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    return kind(**{"max_depth": depth, "random_state": 0} | params)


# What a CART is chosen from by cross-validation on its training rows.
_CART_GRID = {
    "criterion": ["gini", "entropy"],
    "min_samples_leaf": [1, 5, 20],
    "ccp_alpha": [0.0, 1e-3],
}


def _chosen_cart(task: str, depth: int, *, scoring: str, **params: Any) -> Any:
    grid = _CART_GRID if task == "classification" else dict(list(_CART_GRID.items())[1:])
    return GridSearchCV(_cart(task, depth, **params), grid, scoring=scoring, cv=3)


def _cart_of_few_rows(task: str, depth: int, **params: Any) -> Any:
    rows = 10 if task == "classification" else 5
    return _cart(task, depth, **{"max_depth": 3, "min_samples_leaf": rows} | params)


def _linear(task: str, depth: int, **params: Any) -> Any:
    """Logistic or ridge regression, whatever is missing taken for the median."""
    model = (
        LogisticRegression(max_iter=1000)
        if task == "classification"
        else RidgeCV(np.logspace(-2, 3, 20))
    )
    filled = SimpleImputer(missing_values=MISSING, strategy="median", keep_empty_features=True)
    return make_pipeline(filled, StandardScaler(), model)


def _cart_space(task: str, n_rows: int) -> Space:
    return {k: v for k, v in _CART_SPACE.items() if task != "regression" or k != "criterion"}


def _hs_tree(task: str, depth: int, reg_param: float = 1.0, **params: Any) -> Any:
    make = _imported("imodels:HSTree{}", reg_param=reg_param)
    return make(task, depth, estimator_=_cart(task, depth, **params))


def _hs_space(task: str, n_rows: int) -> Space:
    return {**_cart_space(task, n_rows), "reg_param": [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50]}


def _tao(task: str, depth: int, reg_param: float = 1e-3, **params: Any) -> Any:
    make = _imported("imodels:TaoTree{}", reg_param=reg_param)
    return make(task, depth, model_args={"max_depth": depth, "random_state": 0} | params)


def _tao_space(task: str, n_rows: int) -> Space:
    space = {**_cart_space(task, n_rows), "reg_param": _SMALL}
    del space["ccp_alpha"]
    return space


def _figs(task: str, depth: int, **params: Any) -> Any:
    """As many rules as a binary tree of that depth has nodes, in trees that are no deeper."""
    rules = 2**depth - 1
    make = _imported("imodels:FIGS{}", max_rules=rules, max_depth=depth, random_state=0)
    return make(task, depth, **params)


def _lightgbm_tree(task: str, depth: int, **params: Any) -> Any:
    make = _with_depth("lightgbm:LGBM{}", n_estimators=1, learning_rate=1.0, n_jobs=1, verbose=-1)
    return make(task, depth, num_leaves=2**depth, **params)


def _split(task: str, depth: int, **params: Any) -> Any:
    from shapetree_bench._peers import Split

    return Split(task, depth)


_LIGHTGBM: dict[str, Any] = {"needs": "lightgbm", "sizes": sizes.lightgbm_sizes}
_SGT: dict[str, Any] = {"form": "groups", "needs": "sgtlearn", "sizes": sizes.sgtlearn_sizes}
_IMODELS: dict[str, Any] = {"form": "one-hot", "needs": "imodels"}


def _peers() -> Iterable[Method]:
    cart = Method(
        *("CART", "peer", _cart),
        form="one-hot",
        space=_cart_space,
        counterpart="CART",
        limits_leaves=True,
    )
    yield cart
    plain = replace(cart, space=None, counterpart="")
    classes = replace(plain, tasks=("classification",))
    entropy = partial(_cart, criterion="entropy")
    yield replace(classes, name="CART (entropy)", make=entropy)
    for name, scoring in (("accuracy", "accuracy"), ("log loss", "neg_log_loss")):
        chosen = partial(_chosen_cart, scoring=scoring)
        yield replace(classes, name=f"CART (CV, {name})", make=chosen)
    alone = replace(plain, has_depth=False, limits_leaves=False)
    yield replace(alone, name="CART, 10 rows a leaf", make=_cart_of_few_rows)
    yield replace(alone, name="linear", make=_linear, sizes=sizes.linear_sizes)
    yield Method("LightGBM, one tree", "peer", _lightgbm_tree, **_LIGHTGBM)
    make = _imported("lightgbm:LGBM{}", n_estimators=200, n_jobs=1, verbose=-1)
    yield Method("LightGBM, 200 trees", "peer", make, has_depth=False, **_LIGHTGBM)
    # By default leaves with next to no curvature get values without bound: it can diverge.
    make = partial(make, reg_lambda=1.0)
    name = "LightGBM, 200 trees, reg_lambda=1"
    yield Method(name, "peer", make, has_depth=False, **_LIGHTGBM)
    make = _with_depth("sgtlearn:SGT{}")
    yield Method("sgtlearn", "peer", make, greedy=False, **_SGT)
    make = _with_depth("sgtlearn:SGT{}", num_partitions=3)
    yield Method("sgtlearn, K=3", "peer", make, greedy=False, **_SGT)
    make = _with_depth("sgtlearn:SGT{}", tao_n_runs=0)
    yield Method("sgtlearn, greedy", "peer", make, **_SGT)
    yield Method("HSTree", "peer", _hs_tree, space=_hs_space, counterpart="HSTree", **_IMODELS)
    yield Method("TAO (imodels)", "peer", _tao, space=_tao_space, greedy=False, **_IMODELS)
    yield Method("FIGS", "peer", _figs, **_IMODELS | {"sizes": sizes.figs_sizes})
    make = _with_depth("pystreed:STreeD{}", time_limit=120)
    yield Method(
        *("STreeD", "peer", make),
        form="one-hot",
        needs="pystreed",
        sizes=sizes.streed_sizes,
        greedy=False,
    )
    yield Method(
        *("LicketySPLIT", "peer", _split),
        form="one-hot",
        needs="licketysplit",
        sizes=sizes.split_sizes,
        counterpart="SPLIT",
        greedy=False,
    )
    make = _imported("interpret.glassbox:ExplainableBoosting{}", n_jobs=1)
    yield Method("EBM", "peer", make, needs="interpret", sizes=sizes.ebm_sizes, has_depth=False)


METHODS = {each.name: each for each in (*_peers(), _DEFAULTS, *_shape_methods(), *_ablations())}
CART = METHODS["CART"]
# What the methods of a kind are called together.
GROUPS = {
    "all": tuple(METHODS),
    "ours": tuple(each.name for each in METHODS.values() if each.kind == "ours"),
    "paper": tuple(each.name for each in METHODS.values() if each.kind == "paper"),
    "ablations": tuple(each.name for each in METHODS.values() if each.kind == "ablation"),
    "peers": tuple(each.name for each in METHODS.values() if each.kind == "peer"),
}


def methods_named(text: str, peers: Iterable[str] = ()) -> list[Method]:
    """Methods of a list of names and groups; peers by import path come last.

    Names that hold commas are known by their beginning: `LightGBM, 200 trees` can be asked for as
    it is.
    """
    found: dict[str, Method] = {}
    rest = text.strip()
    while rest:
        names = [
            name for name in (*METHODS, *GROUPS) if rest == name or rest.startswith(f"{name},")
        ]
        if not names:
            known = "; ".join([*GROUPS, *METHODS])
            raise ValueError(f"--methods: {rest.split(',')[0]!r} is none of {known}")
        name = max(names, key=len)
        for each in GROUPS.get(name, (name,)):
            found[each] = METHODS[each]
        rest = rest[len(name) :].lstrip(", ")
    for path in peers:
        found[path] = peer_at(path)
    return list(found.values())


def peer_at(path: str) -> Method:
    """An estimator by import path, `package.module:Class`, with scikit-learn's manners.

    It gets one-hot columns, and the depth as `max_depth`, if it has that parameter; it is then
    fitted to either task that its kind can do.
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise ValueError(f"--peer: {path!r} is not of the form package.module:Class")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--peer: {path} cannot be imported: {error}") from error
    try:
        model = found()
    except TypeError as error:
        raise ValueError(f"--peer: {path} cannot be made without arguments: {error}") from error
    has_depth = "max_depth" in model.get_params() if hasattr(model, "get_params") else False
    tasks = tuple(
        task
        for task, holds in zip(BOTH, (is_classifier(model), is_regressor(model)), strict=True)
        if holds
    )
    make = _with_depth(path) if has_depth else _imported(path)
    return Method(path, "peer", make, form="one-hot", has_depth=has_depth, tasks=tasks or BOTH)
