"""Modules import only what stands before them, and nothing optional on the way in."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shapetree

PACKAGE = Path(shapetree.__file__).parent

# From the input table to the estimators: each module may import those before it.
LAYERS = [
    "_core",
    "_threads",
    "data",
    "tree",
    "grow",
    "_files",
    "model_file",
    "refine",
    "explain",
    "plot",
    "export",
    "_fitting",
    "_estimators",
    "recipes",
    "__init__",
    "cli",
]
# These read the view of a fitted tree, and neither how it grew nor each other.
READERS = ["explain", "plot", "export"]
UNREAD = ["_core", "grow", *READERS]

OPTIONAL = ["matplotlib", "pandas", "polars", "pyarrow", "onnx", "dask", "optuna", "rich", "typer"]

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parts[-2] != "_core")


def layer_of(path):
    """The first part of a module's name inside the package."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_layers(path):
    """Layers of this package that a module imports, and which are its own part of it."""
    inside = ["shapetree", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) + 1 - node.level] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            names = [f"{start}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "shapetree":
                yield rest[0] if rest and rest[0] in LAYERS else "__init__"


def imported_at_once(path):
    """Other packages that a module imports when it is itself imported."""
    pending = ast.parse(path.read_text(encoding="utf-8")).body
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


@pytest.mark.parametrize("path", MODULES, ids=layer_of)
def test_every_module_has_its_place(path):
    assert layer_of(path) in LAYERS


@pytest.mark.parametrize("path", MODULES, ids=layer_of)
def test_modules_import_only_what_stands_before_them(path):
    own = layer_of(path)
    later = LAYERS[LAYERS.index(own) + 1 :]
    assert not set(imported_layers(path)) & set(later)


@pytest.mark.parametrize("path", MODULES, ids=layer_of)
def test_readers_of_the_tree_know_neither_the_core_nor_the_grower_nor_each_other(path):
    own = layer_of(path)
    if own in READERS:
        assert not set(imported_layers(path)) & (set(UNREAD) - {own})


@pytest.mark.parametrize("path", sorted((PACKAGE / "_core").glob("*.p[xy]*")), ids=lambda p: p.name)
def test_the_core_knows_nothing_of_the_layers_above(path):
    imports = re.findall(r"^\s*(?:from|c?import)\s+(shapetree[\w.]*)", path.read_text(), re.M)
    assert all(name.startswith("shapetree._core") for name in imports)


@pytest.mark.parametrize("path", MODULES, ids=layer_of)
def test_optional_dependencies_are_imported_inside_functions(path):
    assert not set(imported_at_once(path)) & set(OPTIONAL)


def run(script):
    """What a script prints in a fresh interpreter."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


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
    absent = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL}))"
    assert run(f"{absent}; import shapetree; {USE}; print('done')") == "done\n"


def test_the_package_offers_its_estimators_and_nothing_private():
    assert {"ShapeTreeClassifier", "ShapeTreeRegressor"} <= set(shapetree.__all__)
    assert not [name for name in shapetree.__all__ if name.startswith("_")]
    assert shapetree.__version__
