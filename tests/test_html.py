"""The page as text: what data it holds, how that is kept from running, and what is refused."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from data import make_tree, noisy_classes, noisy_numbers
from sklearn.exceptions import NotFittedError

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.export import export_html
from shapetree.export._html import TEMPLATE

NASTY = [
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "<!-- $& {{data}} {{title}} \u2028\u2029 &amp;",
    "emoji 🌳, עברית and " + "x" * 200,
]


def data_of(page):
    """The JSON that a page holds."""
    (text,) = re.findall(r'<script type="application/json" id="tree-data">(.*?)</script>', page)
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def fitted(kind="classes", **params):
    rng = np.random.default_rng(0)
    if kind == "classes":
        X, y = noisy_classes(rng)
        return make_tree(ShapeTreeClassifier, max_depth=3, **params).fit(X, y), X, y
    X, y = noisy_numbers(rng)
    return make_tree(ShapeTreeRegressor, max_depth=3, **params).fit(X, y), X, y


def nasty_data(n_rows=240):
    """Columns, categories and classes with names that try to run or to break out."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            NASTY[0]: rng.normal(size=n_rows),
            NASTY[1]: rng.choice(NASTY, n_rows),
            NASTY[3]: rng.normal(size=n_rows),
        }
    )
    score = (X[NASTY[0]] > 0) * 1 + X[NASTY[1]].isin(NASTY[:2]) * 2
    return X, np.array(NASTY)[score]


def test_the_page_holds_the_tree():
    tree, X, _ = fitted()
    data = data_of(export_html(tree, title="Mine"))
    assert data["title"] == "Mine"
    assert len(data["nodes"]) == tree.tree_.node_count
    assert data["nodes"][0]["rows"] == len(X)
    assert data["classes"] == ["0", "1", "2"]
    assert data["isTraining"]
    for node, value in zip(data["nodes"], tree.tree_.value[:, 0], strict=True):
        assert node["value"] == value.tolist()  # to the bit


def test_thresholds_and_numbers_are_exact_and_bounds_may_be_infinite():
    tree, _, _ = fitted("numbers")
    data = data_of(export_html(tree))
    root = data["nodes"][0]
    pieces = tree.tree_.pieces(0)
    assert [segment["high"] for segment in root["segments"][:-1]] == (
        tree.tree_.piece_upper[pieces].tolist()[:-1]
    )
    assert "low" not in root["segments"][0]
    assert "high" not in root["segments"][-1]
    assert root["value"][0] == tree.tree_.value[0, 0, 0]


def test_other_rows_can_be_shown():
    tree, X, y = fitted("numbers")
    data = data_of(export_html(tree, X=X[:50], y=y[:50]))
    assert data["nodes"][0]["rows"] == 50
    assert not data["isTraining"]
    assert data["scores"] == [f"R² {tree.score(X[:50], y[:50]):.3f} on the rows given"]
    training = data_of(export_html(tree))
    assert training["scores"] == [f"training R² {tree.score(X, y):.3f}"]
    for words, said in (("trained", "trained"), ("flipped", "outcome")):
        assert [node[words] for node in data["nodes"]] == [node[said] for node in training["nodes"]]


def test_nodes_without_rows_are_valid_json():
    tree, X, y = fitted("numbers")
    data = data_of(export_html(tree, X=X[:1], y=y[:1]))
    empty = [node for node in data["nodes"] if node["rows"] == 0]
    assert empty
    assert all(node["outcome"].endswith(" (no rows)") for node in empty)


def test_pairs_and_categories_are_given_by_number():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("pqrs"), 400), "b": rng.normal(size=400)})
    y = (X.a.isin(["p", "q"]) ^ (X.b > 0)).astype(int)
    data = data_of(export_html(ShapeTreeClassifier(max_depth=1, pairs="auto").fit(X, y)))
    assert data["features"][0]["categories"] == list("pqrs")
    root = data["nodes"][0]
    assert sorted(root["features"]) == [0, 1]
    codes = [
        bound["codes"]
        for region in root["regions"]
        for bound in region["bounds"]
        if "codes" in bound
    ]
    assert {code for group in codes for code in group} <= set(range(4))


def test_names_neither_end_nor_open_an_element():
    X, y = nasty_data()
    page = export_html(ShapeTreeClassifier(max_depth=2).fit(X, y), title=NASTY[0])
    template = TEMPLATE.read_text(encoding="utf-8")
    for sign in ("<script", "</script", "<img", "<!--", "\u2028", "\u2029"):
        assert page.count(sign) == template.count(sign)
    data = data_of(page)
    assert data["title"] == NASTY[0]
    assert [feature["name"] for feature in data["features"]] == list(X.columns)
    assert data["classes"] == sorted(NASTY)


def test_a_lone_surrogate_can_be_written(tmp_path):
    tree, _, _ = fitted()
    page = export_html(tree, tmp_path / "page.html", title="odd \ud800 title")
    assert data_of(page)["title"] == "odd \ud800 title"


@pytest.mark.parametrize("as_text", [True, False])
def test_the_page_is_written_and_replaces_what_was_there(tmp_path, as_text):
    tree, _, _ = fitted()
    path = tmp_path / "tree.html"
    path.write_text("old")
    page = export_html(tree, str(path) if as_text else path)
    assert path.read_text(encoding="utf-8") == page
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_no_file(tmp_path):
    tree, _, _ = fitted()
    with pytest.raises(IsADirectoryError, match=r"it is a folder; name a file") as caught:
        export_html(tree, tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_the_folder_must_exist(tmp_path):
    tree, _, _ = fitted()
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*; create it first"):
        export_html(tree, tmp_path / "absent" / "tree.html")


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    tree, _, _ = fitted()
    path = tmp_path / "tree.html"
    path.write_text("old")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(PermissionError, match=r"tree\.html: Permission denied; choose a path"):
        export_html(tree, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_unfitted_tree_is_refused():
    with pytest.raises(NotFittedError):
        export_html(ShapeTreeClassifier())


def test_rows_need_targets():
    tree, X, _ = fitted()
    with pytest.raises(ValueError, match="X was given without y"):
        export_html(tree, X=X)


def test_several_targets_are_refused():
    rng = np.random.default_rng(0)
    X, y = noisy_numbers(rng, n_outputs=2)
    with pytest.raises(
        ValueError, match="a page shows one target, but this tree has 2; use export_text"
    ):
        export_html(ShapeTreeRegressor().fit(X, y))


def test_a_single_leaf_has_a_page():
    data = data_of(export_html(ShapeTreeClassifier().fit([[0.0], [0.0]], ["a", "b"])))
    assert len(data["nodes"]) == 1


def test_huge_numbers_are_valid_json():
    X = np.array([[-1e308], [1e308], [math.inf], [-math.inf]] * 20)
    y = np.array([0.0, 1.0, 2.0, 3.0] * 20)
    tree = ShapeTreeRegressor(max_depth=2, min_samples_leaf=1, refine=None).fit(X, y)
    assert data_of(export_html(tree))["nodes"]


def test_the_page_without_a_tree_is_small_and_asks_for_nothing():
    template = TEMPLATE.read_text(encoding="utf-8")
    assert len(template.encode()) < 200_000
    assert template.count("{{title}}") == template.count("{{data}}") == 1
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', template)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.findall(r"(?:src|href)=[\"']?(?!data:)[\w/.]+", template.split("<script>")[0])
