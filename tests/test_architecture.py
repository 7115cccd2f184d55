"""Modules import only what stands before them, nobody calls up, and nothing optional is loaded."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import shapetree

PACKAGE = Path(shapetree.__file__).parent

# From the input table to the command: each part may import those before it. Where the modules of a
# part are named, they stand in order, too.
LAYERS = {
    "_start": None,
    "_core": None,
    "_threads": None,
    "_files": None,
    "_with_parameters": None,
    "data": [
        *(
            "_missing",
            "_names",
            "_dates",
            "_moments",
            "_columns",
            "_fingerprint",
            "_open",
            "_map_join",
            "_store",
            "_table",
        ),
        "_labels",
        *("_sampling", "_binning", "_sums", "_shares", "_statistics", "_values"),
        *("_targets", "_parts"),
        *("_sources", "_batches", "_stored"),
    ],
    "tree": [
        *(
            "_shape",
            "_axes",
            "_sketch",
            "_intervals",
            "_arrays",
            "_packed_trees",
            "_predictor",
            "_sketcher",
            "_rebinning",
        ),
        *(
            "_naming",
            "_evaluation",
            "_digits",
            "_stability",
            "_fitted",
            "_from_estimator",
            "_regions",
            "_view",
            "_words",
        ),
    ],
    "model_file": [
        "_check",
        "_kinds",
        "_format",
        "_write",
        "_read_nodes",
        "_read",
    ],
    "grow": [
        *(
            "_splits",
            "_rows_of_node",
            "_row_holder",
            "_local",
            "_joined_rows",
            "_feature_order",
            "_feature_draw",
            "_candidates",
        ),
        *("_pair_options", "_pairs", "_progress", "_nodes", "_histograms", "_grower"),
    ],
    "refine": None,
    "explain": [
        *(
            "_conditions",
            "_flip_constraints",
            "_cells",
            "_flips",
            "_explanations",
            "_rules",
            "_tables",
        ),
    ],
    "drawing": [
        "_palette",
        "_ticks",
        "_scales",
        "_outlines",
        "_plane",
        "_plane_map",
    ],
    "plot": [
        *("_text_width", "_layout", "_colours", "_picture", "_canvas", "_path", "_scene"),
        *("_card", "_strip_card", "_ordered_card", "_category_card", "_pair_card", "_leaves"),
        *("_legend", "_tree"),
    ],
    "export": [
        *("_routes", "_python", "_dialects", "_forks", "_sql_writer", "_lists", "_sql", "_onnx"),
        *("_js", "_html", "_text", "_dot"),
    ],
    "fit": [
        *(
            "_scores",
            "_search_options",
            "_parameters",
            "_row_hashes",
            "_training_rows",
            "_local_backend",
            "_folds",
            "_growth",
            "_resamples",
            "_teaching",
            "_learning",
        ),
        *("_single_leaf", "_identifiers", "_cross_validation", "_fit", "_measure_stability"),
    ],
    "_teachers": None,
    "_model_files": None,
    "_base": None,
    "_estimators": None,
    "ensemble": ["_draws", "_forest", "_out_of_bag", "_estimators"],
    "_json": None,
    "_predictions": None,
    "recipes": None,
    "__init__": None,
    "dask": ["_task_values", "_cluster", "_tasks", "_lazy", "_data", "_backend", "_estimators"],
    "cli": [
        *("_console", "_arguments", "_reading", "_column_types", "_training_data", "_models"),
        *("_show", "_fit", "_predict", "_app"),
    ],
}
ORDER = list(LAYERS)
# These read a fitted tree or its view, and neither how it grew nor each other.
READERS = ["model_file", "explain", "plot", "export"]
UNREAD = ["_core", "grow", "refine", *READERS]
# Nothing here knows the estimators, under whatever name.
BELOW = ORDER[: ORDER.index("_teachers")]
ESTIMATORS = {"ShapeTreeClassifier", "ShapeTreeRegressor", "BaseShapeTree"}
# Functions that may ask an estimator something, and what they ask.
MAY_ASK = {"fitted_tree", "fitted_model", "fitted_of", "tree_holder", "rows_for_tree"}
MAY_ASK |= {"scene_of"}
QUESTIONS = {"check_is_fitted", "is_classifier", "is_regressor", "validate_data", "get_params"}
# What only an estimator has.
MANNERS = {"tree_", "classes_", "n_classes_", "criterion_", "shrinkage_", "refinement_history_"}
MANNERS |= {"n_outputs_", "n_features_in_", "feature_names_in_", "predict", "predict_proba"}
MANNERS |= {"apply", "decision_path", "_fitted", "set_params", "get_n_leaves", "get_depth"}
# Names under which an estimator could be handed down.
ALIASES = {"estimator", "model", "est", "tree", "clf", "reg", "fitted"}

OPTIONAL = ["matplotlib", "pandas", "polars", "pyarrow", "onnx", "dask", "optuna", "rich", "typer"]

COMMAND_NEEDS = ["typer", "rich", "pandas", "pyarrow"]

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parts[-2] != "_core")


def parts_of(path):
    """The parts of a module's name inside the package."""
    return path.relative_to(PACKAGE).with_suffix("").parts


def layer_of(path):
    """The first part of a module's name inside the package."""
    return parts_of(path)[0]


def name_of(path):
    """A module's name inside the package."""
    return ".".join(parts_of(path))


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(path):
    """Modules of this package that a module imports anywhere, also in functions or for types.

    Each is a tuple of the parts of its name inside the package.
    """
    inside = ["shapetree", *parts_of(path)[:-1]]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) + 1 - node.level] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            names = [f"{start}.{alias.name}" for alias in node.names]
        elif is_import_by_name(node):
            names = [node.args[0].value] if isinstance(node.args[0], ast.Constant) else ["?"]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "?":
                yield ("?",)
            if first == "shapetree":
                yield tuple(rest) if rest and rest[0] in LAYERS else ("__init__",)


def is_import_by_name(node):
    """Whether a node is a call that imports what a text names."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    called = ast.unparse(node.func).split(".")[-1]
    return called in ("import_module", "__import__")


def imported_layers(path):
    return {parts[0] for parts in imported_modules(path)}


def imported_at_once(path):
    """Other packages that a module imports when it is itself imported."""
    pending = [*tree_of(path).body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]
        pending.extend(ast.iter_child_nodes(node))


every_module = pytest.mark.parametrize("path", MODULES, ids=name_of)
every_module_below = pytest.mark.parametrize(
    "path", [path for path in MODULES if layer_of(path) in BELOW], ids=name_of
)


def stands_in_order(path):
    """Whether the modules of its part have an order, and it is one of these."""
    layer, *inner = parts_of(path)
    return LAYERS.get(layer) is not None and inner[0] not in ("__init__", "__main__")


@every_module
def test_every_module_has_its_place(path):
    layer, *inner = parts_of(path)
    assert layer in LAYERS
    if stands_in_order(path):
        assert inner[0] in LAYERS[layer]


@every_module
def test_modules_import_only_what_stands_before_them(path):
    own = ORDER.index(layer_of(path))
    assert not imported_layers(path) & {"?", *ORDER[own + 1 :]}


@pytest.mark.parametrize("path", list(filter(stands_in_order, MODULES)), ids=name_of)
def test_modules_of_one_part_stand_in_order_too(path):
    layer, *inner = parts_of(path)
    order = LAYERS[layer]
    later = order[order.index(inner[0]) :]
    siblings = [parts[1] for parts in imported_modules(path) if parts[0] == layer]
    assert not set(siblings) & set(later)
    assert set(siblings) <= set(order)


@pytest.mark.parametrize(
    "path", [path for path in MODULES if layer_of(path) in READERS], ids=name_of
)
def test_readers_of_the_tree_know_neither_the_core_nor_the_grower_nor_each_other(path):
    assert not imported_layers(path) & (set(UNREAD) - {layer_of(path)})


def test_what_is_imported_is_all_that_is_loaded():
    """Layer after layer, none brings in what stands after it, however it comes by it."""
    names = [
        [".".join(["shapetree", *parts_of(path)]) for path in of_layer(layer)] for layer in BELOW
    ]
    # The package's own __init__ would load everything.
    script = f"""
import importlib, sys, types
package = sys.modules["shapetree"] = types.ModuleType("shapetree")
package.__path__ = [{str(PACKAGE)!r}]
for names in {names}:
    for name in names:
        importlib.import_module(name.removesuffix(".__init__"))
    print(*(name for name in sys.modules if name.startswith("shapetree.")))
"""
    for number, line in enumerate(run(script).splitlines()):
        loaded = {name.split(".")[1] for name in line.split()}
        assert not loaded & set(ORDER[number + 1 :])


def of_layer(layer):
    return [path for path in MODULES if layer_of(path) == layer]


# Nobody calls up


def annotated(function):
    """The parameters of a function and their types, as text."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {each.arg: ast.unparse(each.annotation) if each.annotation else "" for each in every}


@every_module_below
def test_nothing_below_the_estimators_names_them(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Name):
            assert node.id not in ESTIMATORS | QUESTIONS
        elif isinstance(node, ast.Attribute):
            assert node.attr not in ESTIMATORS | QUESTIONS


@every_module_below
def test_nothing_below_the_estimators_asks_them(path):
    """Not even behind `Any`: what only an estimator has is read nowhere."""
    used = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
    texts = {
        node.args[1].value
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("getattr", "hasattr")
        and isinstance(node.args[1], ast.Constant)
    }
    assert not (used | texts) & MANNERS


@every_module_below
def test_nothing_below_the_estimators_takes_them_as_anything(path):
    functions = [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for function in functions:
        types = annotated(function)
        assert not [name for name in ALIASES & types.keys() if types[name] in ("", "Any", "object")]
        if "estimator" in types and function.name not in MAY_ASK:
            # Only what users call takes one, and hands down no more than its fitted tree and rows
            # as this sees them.
            assert types["estimator"] in ("HoldsTree", "HoldsModel")
            assert not function.name.startswith("_")
            uses = {re.match(r"\w+\(estimator\b", use)[0] for use in uses_of("estimator", function)}
            assert uses <= {f"{name}(estimator" for name in MAY_ASK}


def uses_of(name, function):
    """The calls, or whatever else, in which a function uses one of its parameters."""
    above = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    return [
        ast.unparse(above[node])
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name
    ]


@pytest.mark.parametrize("path", sorted((PACKAGE / "_core").glob("*.p[xy]*")), ids=lambda p: p.name)
def test_the_core_knows_nothing_of_the_layers_above(path):
    imports = re.findall(r"^\s*(?:from|c?import)\s+(shapetree[\w.]*)", path.read_text(), re.M)
    assert all(name.startswith("shapetree._core") for name in imports)


# Assertions


def is_plain(node):
    """Whether something is looked up, and nothing is called."""
    return not any(
        isinstance(each, ast.Call | ast.NamedExpr | ast.Await) for each in ast.walk(node)
    )


def only_tells(claim):
    """Whether an assertion says what is known of a value, and what it says is no work."""
    if isinstance(claim, ast.Call):
        return ast.unparse(claim.func) == "isinstance" and all(map(is_plain, claim.args))
    is_none = isinstance(claim, ast.Compare) and isinstance(claim.ops[0], ast.Is | ast.IsNot)
    return is_none and is_plain(claim)


@every_module
def test_assertions_do_no_work(path):
    tree = ast.parse(path.read_text())
    claims = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert [ast.unparse(claim) for claim in claims if not only_tells(claim)] == []


# Nothing optional


@every_module
def test_optional_dependencies_are_imported_inside_functions(path):
    # The command looks for what it needs before it imports its modules.
    needed = set() if layer_of(path) != "cli" or path.stem == "__init__" else {*COMMAND_NEEDS}
    assert not set(imported_at_once(path)) & (set(OPTIONAL) - needed)


def run(script):
    """What a script prints in a fresh interpreter."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


WITHOUT_OPTIONAL = f"""
import sys

class Absent:
    def find_spec(name, *_):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent)
"""
USE = "model = shapetree.ShapeTreeClassifier().fit([[0.0], [1.0]], [0, 1]); model.predict([[2.0]])"


def test_nothing_optional_is_loaded_beyond_what_scikit_learn_loads():
    script = (
        "import sys, sklearn.base, sklearn.model_selection; before = set(sys.modules); "
        f"import shapetree; {USE}; print(*set(sys.modules) - before)"
    )
    loaded = {name.split(".")[0] for name in run(script).split()}
    assert "shapetree" in loaded
    assert not loaded & set(OPTIONAL)


def test_arrays_need_nothing_optional():
    assert run(f"{WITHOUT_OPTIONAL}\nimport shapetree; {USE}; print('done')") == "done\n"


def test_the_package_offers_its_estimators_and_nothing_private():
    assert {"ShapeTreeClassifier", "ShapeTreeRegressor"} <= set(shapetree.__all__)
    assert not [name for name in shapetree.__all__ if name.startswith("_")]
    assert shapetree.__version__
