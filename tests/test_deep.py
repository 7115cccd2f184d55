"""Trees of a thousand levels, and pairs with as many cuts in a row: everything speaks of them."""

import numpy as np
import onnxruntime
import pytest
from exports import chain, staircase
from test_html import data_of

from shapetree import plot_node
from shapetree.export import export_html, export_js, export_onnx, export_python, export_text

DEEP = {"levels": (chain, 1200), "cuts": (staircase, 1500)}


@pytest.fixture(scope="module", params=DEEP)
def this(request):
    make, size = DEEP[request.param]
    return make(size)


def test_rules(this):
    rules, leaves = this.model.rules(), this.model.apply(this.table)
    for row, leaf in list(zip(this.rows, leaves, strict=True))[:: len(leaves) // 20]:
        assert [rule.leaf for rule in rules if rule.holds(row)] == [leaf]
    assert len(str(rules).splitlines()) == this.model.get_n_leaves()


def test_explanations(this):
    explained = this.model.explain(this.table[:20])
    for row, why in zip(this.rows, explained, strict=False):
        assert all(condition.holds(row) for condition in why.conditions)
        assert "because" in str(why)


def test_onnx(this):
    session = onnxruntime.InferenceSession(export_onnx(this.model).SerializeToString())
    (found,) = session.run(None, {"X": this.table.to_numpy()})
    np.testing.assert_array_equal(found[:, 0], this.predictions)


def test_sources_and_words(this):
    assert "def predict" in export_python(this.model)
    assert "predict" in export_js(this.model)
    assert len(export_text(this.model).splitlines()) == this.model.tree_.node_count


def test_pictures(this, tmp_path):
    rows = this.table, this.predictions
    path, picture = tmp_path / "page.html", tmp_path / "node.svg"
    page = export_html(this.model, path, *rows)
    assert path.read_text() == page
    assert len(data_of(page)["nodes"]) == this.model.tree_.node_count
    plot_node(this.model, 0, *rows).save(picture)
    assert picture.read_text().rstrip().endswith("</svg>")
