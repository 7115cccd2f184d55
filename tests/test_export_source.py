"""Trees as Python, JavaScript and graphs: they do what the tree does, whatever the names."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import PLAIN, UNRESTRAINED, make_tree, view_of
from exports import SPECS, case, chain, random_cases, reasons_of
from hypothesis import given
from needs import is_here, needs
from sklearn.exceptions import NotFittedError

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.export import export_dot, export_js, export_python, export_sql, export_text
from shapetree.export._js import ROUTER
from shapetree.export._routes import plan_for

EXPORTERS = [export_python, export_js, export_dot, export_sql]
PAGE = Path(__file__).parents[1] / "page"

needs_node, needs_dot = needs("Node.js"), needs("Graphviz")

RUN_PYTHON = """
import json, sys
module = {}
exec(compile(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1], "exec"), module)
rows = json.load(open(sys.argv[2], encoding="utf-8"))
names = [name for name in sys.argv[3].split() if name in module]
json.dump([[module[name](row) for row in rows] for name in names], sys.stdout)
"""

RUN_JS = """
import * as module from "./tree.mjs";
import rows from "./rows.mjs";
const names = process.argv[2].split(" ");
const functions = names.map((name) => module[name]).filter(Boolean);
console.log(JSON.stringify(functions.map((each) => rows.map(each))));
"""


def run_python(source, rows, folder, functions="predict predict_proba"):
    """What a source's functions give for rows, in an interpreter that has no packages."""
    (folder / "tree.py").write_text(source, encoding="utf-8")
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-c", RUN_PYTHON, "tree.py", "rows.json", functions]
    return json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout)


def run_js(source, rows, folder, functions="predict predictProba"):
    """What a module's functions give for rows."""
    (folder / "tree.mjs").write_text(source, encoding="utf-8")
    # NaN and Infinity are no JSON, but they are JavaScript.
    entries = json.dumps([list(row.items()) for row in rows])
    rows_source = f"export default {entries}.map((row) => Object.fromEntries(row))"
    (folder / "rows.mjs").write_text(rows_source, encoding="utf-8")
    (folder / "run.mjs").write_text(RUN_JS, encoding="utf-8")
    command = ["node", "run.mjs", functions]
    return json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout)


def expected(this):
    wanted = [this.predictions]
    return wanted if isinstance(this.model, ShapeTreeRegressor) else [*wanted, this.shares]


def loaded(source):
    module = {}
    exec(source, module)
    return module


# What is predicted


@pytest.mark.parametrize("name", SPECS)
def test_python_predicts_what_the_tree_predicts(name, tmp_path):
    this = case(name)
    assert run_python(export_python(this.model), this.rows, tmp_path) == expected(this)


@needs_node
@pytest.mark.parametrize("name", SPECS)
def test_javascript_predicts_what_the_tree_predicts(name, tmp_path):
    this = case(name)
    assert run_js(export_js(this.model), this.rows, tmp_path) == expected(this)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("export", [export_python, pytest.param(export_js, marks=needs_node)])
def test_source_tells_leaves_and_reasons(name, export, tmp_path):
    this, run = case(name), run_python if export is export_python else run_js
    leaves, reasons = run(export(this.model), this.rows, tmp_path, "leaf reasons")
    assert leaves == this.model.apply(this.table).tolist()
    assert reasons == reasons_of(this.model, leaves)


@given(this=random_cases())
def test_python_follows_any_tree(this):
    predict = loaded(export_python(this.model))["predict"]
    assert [predict(row) for row in this.rows] == this.predictions


@needs_node
@examples(15)
@given(this=random_cases())
def test_javascript_follows_any_tree(tmp_path_factory, this):
    folder = tmp_path_factory.mktemp("any")
    assert run_js(export_js(this.model), this.rows, folder) == [this.predictions]


def test_the_cases_have_what_they_are_for():
    trees = {name: case(name).model.tree_ for name in SPECS}
    assert {int(tree.n_branches.max()) for tree in trees.values()} >= {2, 3, 4, 5}
    for name, tree in trees.items():
        if "pairs" in name:
            assert (tree.second_feature >= 0).any(), name
    oblique = trees["pairs of numbers"]
    assert ((oblique.cut_a != 0) & (oblique.cut_b != 0)).any()
    assert trees["unlimited depth"].max_depth > 9
    for name, tree in trees.items():
        this = case(name)
        assert len(np.unique(this.model.apply(this.table))) > 0.9 * tree.n_leaves, name


def test_numbers_of_other_types_are_read_as_doubles():
    model = make_tree(ShapeTreeRegressor, **UNRESTRAINED).fit([[0.1], [0.2]], [1.0, 2.0])
    predict = loaded(export_python(model))["predict"]
    threshold = model.tree_.piece_upper[0]
    assert predict({"x0": np.float64(threshold)}) == 1.0
    assert predict({"x0": np.float32(threshold)}) == 2.0  # it is a little greater
    assert predict({"x0": True}) == predict({"x0": 10**30}) == 2.0


def test_absent_and_extra_entries_of_a_row_are_fine(tmp_path):
    this = case("three branches, pairs, refined")
    lacking = [{}, {"what": 1}]
    wanted = this.model.predict(pd.DataFrame([[None] * len(this.kinds)], columns=[*this.kinds]))
    assert run_python(export_python(this.model), lacking, tmp_path)[0] == 2 * wanted.tolist()
    if is_here("Node.js"):
        assert run_js(export_js(this.model), lacking, tmp_path)[0] == 2 * wanted.tolist()


def test_very_deep_trees_are_written_flat(tmp_path):
    this = chain(400)
    source = export_python(this.model)
    assert max(len(line) - len(line.lstrip()) for line in source.splitlines()) == 8
    assert run_python(source, this.rows, tmp_path) == [this.predictions]
    if is_here("Node.js"):
        assert run_js(export_js(this.model), this.rows, tmp_path) == [this.predictions]


def test_very_deep_trees_are_drawn_and_told():
    this = chain(1500)
    assert export_dot(this.model).count("->") == 3000
    assert len(export_text(this.model).splitlines()) == 3001


def test_what_leads_to_the_same_is_not_checked():
    view = view_of(case("unlimited depth").model)
    plan = plan_for(view, lambda leaf: "same")
    assert plan.steps == ()


# How it is written


def test_python_reads_well():
    X = pd.DataFrame({"age": [1.0, 2, 3, 4] * 9, "job": ["a", "b", "c", None] * 9})
    tree = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1, n_threads=1).fit(
        X[["job"]], X["age"] > 2
    )
    assert export_python(tree).splitlines()[4:] == [
        "# It predicts age.",
        "",
        "# What each leaf predicts, and the features on the path to it.",
        "LEAVES = {",
        "    1: ((1.0, 0.0), ('job',)),",
        "    2: ((0.0, 1.0), ('job',)),",
        "}",
        "",
        "CLASSES = (False, True)",
        "",
        "",
        "def predict(row):",
        '    """Most probable class of a row."""',
        "    shares = predict_proba(row)",
        "    return CLASSES[shares.index(max(shares))]",
        "",
        "",
        "def predict_proba(row):",
        '    """Probabilities of CLASSES."""',
        "    return LEAVES[leaf(row)][0]",
        "",
        "",
        "def reasons(row):",
        '    """Features on the path of a row, from the root on."""',
        "    return LEAVES[leaf(row)][1]",
        "",
        "",
        "def leaf(row):",
        '    """Number of a row\'s leaf."""',
        "    x = row.get('job')",
        "    if x in {'a', 'b'}:",
        "        return 1  # False",
        "    return 2  # True",
    ]


NASTY = [
    '"""',
    "*/ alert(1) /*",
    "</script>",
    "a\\",
    "\\N \\l",
    "&lt;b&gt;",
    "new\nline",
    "\u2028",
    "\u202e evil",
    "nul\0",
    "\ud800",
    "${x}",
    "__proto__",
    "constructor",
    "class",
    "",
]


@pytest.mark.parametrize("name", NASTY)
def test_any_name_is_only_a_name(name, tmp_path):
    values = np.array([["a"], [name + "!"]] * 20, dtype=object)
    X = pd.DataFrame(values, columns=pd.Index([name], dtype=object), dtype=object)
    y = np.where(np.arange(40) % 2, name + "?", "other")
    tree = make_tree(ShapeTreeClassifier, **PLAIN, n_threads=1).fit(X, y)
    rows = [{name: name + "!"}, {name: "a"}]
    assert run_python(export_python(tree), rows, tmp_path)[0] == [name + "?", "other"]
    if is_here("Node.js"):
        assert run_js(export_js(tree), rows, tmp_path)[0] == [name + "?", "other"]
    if is_here("Graphviz"):
        drawn = draw(export_dot(tree))
        plain = name.replace("\0", "\u2400").replace("\ud800", "?")
        for part in (plain + "?").split("\n"):
            assert part.strip() in drawn


def test_scripts_in_pages_are_not_ended_by_names():
    X = pd.DataFrame({"</script>": ["</SCRIPT>", "<!--"] * 20})
    tree = ShapeTreeClassifier(n_threads=1).fit(X, ["<script", "b"] * 20)
    assert not re.search(r"</script|<!--|<script", export_js(tree), re.IGNORECASE)


def test_python_has_no_signs_that_hide_what_it_does():
    X = pd.DataFrame({"\u202e": ["a", "\u2066"] * 20})
    source = export_python(ShapeTreeClassifier(n_threads=1).fit(X, ["x", "\u2069"] * 20))
    assert not set(source) & set("\u202e\u2066\u2069")


# Graphs


def draw(graph):
    """The text in a picture of a graph."""
    from xml.etree import ElementTree

    command = ["dot", "-Tsvg"]
    done = subprocess.run(command, input=graph.encode(), capture_output=True, check=True)
    assert not done.stderr, done.stderr
    return "\n".join(ElementTree.fromstring(done.stdout).itertext()).replace("\xa0", " ")


@needs_dot
@pytest.mark.parametrize("name", SPECS)
def test_graphviz_draws_every_node_and_edge(name):
    this = case(name)
    graph = export_dot(this.model)
    tree = this.model.tree_
    assert graph.count("->") == tree.node_count - 1
    draw(graph)


def test_graphs_show_features_conditions_colours_and_missing_values():
    X = pd.DataFrame({"legs": [2.0, 4, 4, np.nan] * 25, "colour": ["red", "a", "b", "c"] * 25})
    tree = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1, n_threads=1).fit(
        X, ["duck", "cow", "cow", "duck"] * 25
    )
    graph = export_dot(tree)
    assert '0 [label="legs\\n100 rows"];' in graph
    assert '0 -> 1 [label="≤ 3 or missing", color="#0072B2"];' in graph
    assert '[label="cow (100 %)\\n50 rows", color="#DDCC77", penwidth=2]' in graph
    assert export_dot(tree, max_depth=0).splitlines()[3] == '  0 [label="cow (50 %)\\n100 rows …"];'


def test_graphs_round_and_refuse_as_text_does():
    tree = make_tree(ShapeTreeRegressor, **UNRESTRAINED).fit([[0.12], [0.13]], [0.0, 1 / 3])
    assert '"≤ 0.125"' in export_dot(tree)
    assert '"≤ 0.13"' in export_dot(tree, digits=2)
    assert '"0.3333 (1 row)\\n1 row"' in export_dot(tree)
    for options in ({"digits": 0}, {"max_depth": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            export_dot(tree, **options)


# What is refused, and files


@pytest.mark.parametrize("export", EXPORTERS)
def test_a_tree_must_be_fitted(export):
    with pytest.raises(NotFittedError):
        export(ShapeTreeClassifier())


@pytest.mark.parametrize("export", EXPORTERS)
def test_what_is_returned_is_written(export, tmp_path):
    tree = case("two branches, text").model
    text = export(tree, tmp_path / "tree.txt")
    assert (tmp_path / "tree.txt").read_bytes() == text.encode()
    with pytest.raises(FileNotFoundError, match="create it first"):
        export(tree, tmp_path / "nowhere" / "tree.txt")


def test_javascript_refuses_whole_numbers_that_it_cannot_hold():
    large = 2**53 + 2
    tree = make_tree(ShapeTreeClassifier, **UNRESTRAINED).fit([[0.0], [1.0]], [0, large])
    with pytest.raises(ValueError, match=str(large)):
        export_js(tree)
    assert loaded(export_python(tree))["predict"]({"x0": 1}) == large


def test_infinite_categories_are_categories(tmp_path):
    X = pd.DataFrame({"x": [math.inf, 0.5] * 20})
    tree = make_tree(ShapeTreeRegressor, **PLAIN, categorical_features=["x"], n_threads=1).fit(
        X, [1.0, 2.0] * 20
    )
    rows = [{"x": math.inf}, {"x": 0.5}]
    assert run_python(export_python(tree), rows, tmp_path) == [[1.0, 2.0]]
    if is_here("Node.js"):
        assert run_js(export_js(tree), rows, tmp_path) == [[1.0, 2.0]]


# The router


@needs_node
@pytest.mark.skipif(not (PAGE / "node_modules").is_dir(), reason="the page's packages are absent")
def test_the_router_is_built_from_the_page(tmp_path):
    built = tmp_path / "module.js"
    subprocess.run(["node", "build-module.mjs", built], cwd=PAGE, check=True, capture_output=True)
    assert built.read_bytes() == ROUTER.read_bytes()
