"""The page in a browser: it predicts and explains as Python does, and can be used by everyone."""

import math
import re
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from data import PLAIN, make_tree, view_of
from needs import path_of_browser
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_iris
from test_html import nasty_data

from shapetree import (
    SearchOptions,
    ShapeForestClassifier,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
)
from shapetree.drawing._palette import branch_colour, class_colour
from shapetree.drawing._scales import scale_of
from shapetree.export import export_dot, export_html
from shapetree.tree._digits import percent
from shapetree.tree._words import readable

playwright = pytest.importorskip("playwright.sync_api")

N_ROWS = 200
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    path = path_of_browser()
    if path is None:
        pytest.skip("needs a browser")
    with playwright.sync_playwright() as api:
        browser = api.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens the page of a tree; in the end there must have been neither complaint nor request."""
    opened, complaints, requests = [], [], []

    def open_(
        tree, X=None, y=None, *, width=1280, height=800, title="A tree", scale="auto", swap=False,
        **options,
    ):  # fmt: skip
        path = tmp_path / f"{len(opened)}.html"
        export_html(tree, path, X, y, title=title, scale=scale, swap=swap)
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        opened.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_
    for page in opened:
        page.close()
    assert complaints == []
    assert all(url.startswith("file:") or url == "data:," for url in requests)


# --- trees and rows ---


def iris_tree(**params):
    iris = load_iris(as_frame=True)
    return make_tree(ShapeTreeClassifier, **{"max_depth": 3} | params).fit(
        iris.data, iris.target_names[iris.target]
    )


def mixed_data(n_rows=900):
    """Numbers, whole numbers, categories of several types, and missing values."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue", "grey"], n_rows),
            "age": rng.integers(0, 90, n_rows),
            "dose": rng.lognormal(size=n_rows),
            "member": rng.random(n_rows) < 0.5,
            "height": rng.normal(170, 10, n_rows),
            "town": pd.Categorical(rng.choice([f"town {i}" for i in range(14)], n_rows)),
            "size": pd.Categorical(rng.choice([1.5, 2.0, 3.25], n_rows)),
        }
    )
    score = X.colour.isin(["red", "grey"]) * 1.5 + (abs(X.age - 40) < 15) + X.dose * 0.4
    score += (
        (X.dose * 20 + X.height > 200)
        + X.town.cat.codes % 3
        + X["size"].cat.codes * 0.6
        + rng.normal(0, 0.4, n_rows)
    )
    X.loc[rng.random(n_rows) < 0.12, "colour"] = None
    X["dose"] = X.dose.mask(rng.random(n_rows) < 0.1)
    return X, score


@cache
def mixed_tree(kind, **params):
    X, score = mixed_data()
    if kind == "numbers":
        return make_tree(ShapeTreeRegressor, max_depth=4, **params).fit(X, score), X
    labels = np.array(["low", "middle", "high"])[pd.qcut(score, 3, labels=False)]
    return make_tree(ShapeTreeClassifier, max_depth=4, **params).fit(X, labels), X


def diabetes_tree(**params):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return make_tree(ShapeTreeRegressor, max_depth=4, **params).fit(X, y), X


def thresholds_of(tree):
    """Bounds of each feature, by name."""
    bounds = {}
    for node in view_of(tree).nodes:
        for segment in node.segments:
            bounds.setdefault(node.features[0].name, []).append(segment.high)
        for bound in (bound for region in node.regions for bound in region.bounds):
            if bound.categories is None and 0 in bound.weights:
                name = node.features[bound.weights.index(1)].name
                bounds.setdefault(name, []).extend([bound.low, bound.high])
    return {name: [x for x in xs if math.isfinite(x)] for name, xs in bounds.items()}


def rows_to_try(tree, X, rng):
    """Rows with values of training, missing, new and huge ones, and some that lie on thresholds."""
    rows = X.iloc[rng.integers(0, len(X), N_ROWS)].reset_index(drop=True).copy()
    thresholds = thresholds_of(tree)
    for name in rows.columns:
        is_number = pd.api.types.is_numeric_dtype(rows[name]) and rows[name].dtype != bool
        column = rows[name].astype(float if is_number else object)
        if is_number and thresholds.get(name):
            on_edge = rng.random(N_ROWS) < 0.3
            column[on_edge] = rng.choice(thresholds[name], on_edge.sum())
            beyond = rng.random(N_ROWS) < 0.05
            column[beyond] = rng.choice([-math.inf, -1e308, 1e308, math.inf], beyond.sum())
        elif not is_number:
            column[rng.random(N_ROWS) < 0.1] = "never seen"
        rows[name] = column.mask(rng.random(N_ROWS) < 0.15)
    return rows


def as_json(rows):
    """Rows as the page's script takes them."""
    plain = rows.astype(object).where(rows.notna(), None)
    return plain.to_dict("records")


GRID = {
    "classes": lambda: mixed_tree("classes"),
    "three branches": lambda: mixed_tree("classes", max_branches=3),
    "pairs": lambda: mixed_tree("classes", pairs="auto", max_branches=3),
    "numbers": lambda: mixed_tree("numbers", max_branches=3),
    "pairs and numbers": lambda: mixed_tree("numbers", pairs="auto"),
    "diabetes": lambda: diabetes_tree(pairs="auto", refine=None),
}


@pytest.mark.parametrize("name", GRID)
def test_the_page_predicts_and_explains_as_python_does(open_page, name):
    tree, X = GRID[name]()
    page = open_page(tree)
    rows = rows_to_try(tree, X, np.random.default_rng(2))
    script = "rows => rows.map(row => [shapetree.predict(row), shapetree.explain(row)])"
    answers = page.evaluate(script, as_json(rows))
    if is_classifier(tree):
        said = [predicted["probabilities"] for predicted, _ in answers]
        np.testing.assert_array_equal(said, tree.predict_proba(rows), strict=True)
    said = [predicted["prediction"] for predicted, _ in answers]
    assert said == tree.predict(rows).tolist()
    for (_, said), explanation in zip(answers, tree.explain(rows), strict=True):
        assert said["sentence"] == explanation.sentence
        assert tuple(said["notes"]) == explanation.notes
        assert said["flip"] == (None if explanation.flip is None else str(explanation.flip))


def test_numbers_are_written_as_in_python(open_page):
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.integers(-30, 30, 300)
    X = np.sort(rng.normal(size=300) * scales)[:, None]
    y = np.arange(300) // 10 % 2
    tree = ShapeTreeClassifier(
        max_depth=2,
        max_bins=None,
        refine=None,
        search=SearchOptions(inner_max_leaf_nodes=None, segment_penalty=0.0),
    ).fit(X, y)
    rows = [(one + other) / 2 for one, other in pairwise(X[:, 0].tolist())]
    answers = open_page(tree).evaluate("rows => rows.map(x => shapetree.explain({x0: x}))", rows)
    for said, explanation in zip(answers, tree.explain(np.array(rows)[:, None]), strict=True):
        assert said["sentence"] == explanation.sentence
        assert tuple(said["notes"]) == explanation.notes
        assert said["flip"] == (None if explanation.flip is None else str(explanation.flip))


def dated_tree(kind):
    """A tree that splits on days, moments, or moments in UTC."""
    rng = np.random.default_rng(4)
    when = pd.Series(pd.Timestamp("1965-05-01") + pd.to_timedelta(rng.random(800) * 9e8, unit="s"))
    when = when.dt.floor("ms")
    if kind == "day":
        when = when.dt.normalize()
    elif kind == "utc":
        when = when.dt.tz_localize("UTC")
    when[::30] = pd.NaT
    X = pd.DataFrame({"when": when, "x": rng.normal(size=800)})
    y = when.dt.year.isin([1968, 1973, 1990]).to_numpy() | (X.x.to_numpy() > 1)
    tree = ShapeTreeClassifier(
        max_depth=3, max_branches=3, random_state=0, search=SearchOptions(segment_penalty=0.0)
    )
    return tree.fit(X, y), X


@pytest.mark.parametrize("kind", ["day", "time", "utc"])
def test_dates_are_written_as_in_python(open_page, kind):
    tree, X = dated_tree(kind)
    rows = X[:N_ROWS]
    since = rows["when"].dt.tz_localize(None) - pd.Timestamp(0)
    seconds = since // pd.Timedelta(microseconds=1) / 1e6
    script = "rows => rows.map(row => [shapetree.predict(row), shapetree.explain(row)])"
    answers = open_page(tree).evaluate(script, as_json(rows.assign(when=seconds)))
    assert [predicted["prediction"] for predicted, _ in answers] == [
        str(label) for label in tree.predict(rows)
    ]
    for (_, said), explanation in zip(answers, tree.explain(rows), strict=True):
        assert said["sentence"] == explanation.sentence
        assert said["flip"] == (None if explanation.flip is None else str(explanation.flip))


@pytest.mark.parametrize(("kind", "tried"), [("day", "1968-06-01"), ("utc", "1968-06-01T10:30")])
def test_dates_can_be_tried_out(open_page, kind, tried):
    tree, _ = dated_tree(kind)
    page = open_page(tree)
    name = "when (UTC)" if kind == "utc" else "when"
    box = page.get_by_label(name, exact=True)
    box.fill(tried)
    text = tried.replace("T", " ") + (" UTC" if kind == "utc" else "")
    flip = page.locator("#flip").inner_text()
    assert f"instead of {text}" in flip or "x " in flip
    box.fill("2050-01-01" if kind == "day" else "2050-01-01T00:00")
    assert "2050-01-01" in page.locator(".field .beyond").last.inner_text()
    box.fill("")
    assert "when is missing" in page.locator("#sentence").inner_text()
    page.get_by_label("when, slider").fill("100")
    assert re.match(r"19[78]\d-", box.input_value())


# --- what one sees and does ---


def test_a_click_opens_a_node(open_page):
    page = open_page(iris_tree())
    assert page.locator("#node").is_hidden()
    page.locator("[data-node='0'] .card-title").click()
    assert page.locator("#node-title").inner_text() == "petal width (cm)"
    assert "150 rows" in page.locator("#node-facts").inner_text()
    assert page.locator("#node table tbody tr").count() == 3
    page.locator("#node .branch").first.click()
    assert page.locator("#node-title").inner_text().startswith("Leaf: setosa")
    page.keyboard.press("Escape")
    assert page.locator("#node").is_hidden()


@pytest.mark.parametrize("name", ["classes", "numbers", "pairs"])
def test_every_tab_stop_has_a_name(open_page, name):
    tree = iris_tree(pairs="all") if name == "pairs" else mixed_tree(name, max_branches=3)[0]
    page = open_page(tree)
    session = page.context.new_cdp_session(page)
    n_nodes = tree.tree_.node_count
    for number in (0, n_nodes - 1):
        page.evaluate("document.getElementById('unfold').click()")
        page.locator(f"[data-node='{number}']").dispatch_event("click")
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        seen = 0
        for _ in range(150):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement === document.body"):
                break
            found = session.send("Runtime.evaluate", {"expression": "document.activeElement"})
            ((node, *_),) = session.send(
                "Accessibility.getPartialAXTree",
                {"objectId": found["result"]["objectId"], "fetchRelatives": False},
            ).values()
            said = node.get("name", {}).get("value", "")
            assert said.strip(), page.evaluate("document.activeElement.outerHTML")[:200]
            assert node["role"]["value"] not in ("generic", "none")
            seen += 1
        assert seen > 8


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_numbers_in_tables_are_those_of_the_rows_beside_them(open_page, kind):
    x = np.repeat([1.0, 2.0, 3.0, np.nan], [40, 50, 25, 10])
    y = np.concatenate([np.arange(40) < 36, np.zeros(50), np.arange(25) < 17, np.ones(10)])
    X = pd.DataFrame({"x": x})
    tree = (
        make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1, max_branches=2)
        if kind == "classes"
        else ShapeTreeRegressor(max_depth=1, max_branches=2)
    )
    labels = np.where(y, "alive", "dead") if kind == "classes" else y * 10
    page = open_page(tree.fit(X, labels))
    page.locator("[role=treeitem]").first.click()
    table = page.locator("#node table")
    assert table.locator("th").all_inner_texts() == [
        "Values", "Rows with these values", "Branch: all its rows",
    ]  # fmt: skip
    rows = [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()]
    own = [cells[1] for cells in rows]
    branches = {" ".join(cells[2].split()) for cells in rows}
    if kind == "classes":
        said = ["40 (90 % are alive)", "50 (100 % are dead)", "25 (68 % are alive)"]
        assert own == [*said, "10 (100 % are alive)"]
        assert branches == {"1: alive (84 %), 75 rows", "2: dead (100 %), 50 rows"}
    else:
        assert own == ["40 (mean 9)", "50 (mean 0)", "25 (mean 6.8)", "10 (mean 10)"]
        assert all(words.endswith(("50 rows", "75 rows")) for words in branches)


def test_values_can_be_tried_out(open_page):
    tree = iris_tree(max_depth=1)
    page = open_page(tree)
    box = page.get_by_label("petal width (cm)", exact=True)
    for value, species in [("0.2", "setosa"), ("2.4", "virginica"), ("1.2", "versicolor")]:
        box.fill(value)
        assert page.locator("#outcome").inner_text() == species
        assert f"Predicted {species}" in page.locator("#sentence").inner_text()
        assert page.locator("#flip").inner_text().startswith("It would be")
        assert page.locator("[role=treeitem].lit").count() == 2
    box.fill("")
    assert "is missing" in page.locator("#sentence").inner_text()
    page.get_by_label("petal width (cm), slider").fill("0")
    assert page.locator("#outcome").inner_text() == "setosa"
    page.get_by_role("button", name="Reset to typical values").click()
    assert box.input_value() == "1.3"


def test_values_beyond_training_are_marked(open_page):
    page = open_page(iris_tree(max_depth=1))
    box, note = page.get_by_label("petal width (cm)", exact=True), page.locator(".field .beyond")
    assert note.is_hidden()
    box.fill("9")
    assert note.inner_text() == "9 is outside the range 0.1 to 2.5 seen in training"
    assert (
        "Note: petal width (cm) = 9 is outside the range" in page.locator("#sentence").inner_text()
    )
    box.fill("2.5")
    assert note.is_hidden()


def test_values_can_be_kept(open_page):
    page = open_page(iris_tree(max_depth=1))
    page.get_by_label("Keep petal width (cm) as it is").check()
    assert page.locator("#flip").inner_text().startswith("No change of one or two of the other")
    page.get_by_label("Keep petal width (cm) as it is").uncheck()
    assert page.locator("#flip").inner_text().startswith("It would be")


def test_the_head_tells_the_target_and_unseen_scores(open_page):
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = ShapeTreeClassifier(max_depth=1).fit(X[::2], y.rename("species")[::2])
    tree.evaluate(X[1::2], y[1::2])
    facts = open_page(tree).locator("#facts li").all_inner_texts()
    assert facts[0] == "Predicts species"
    assert re.fullmatch(r"Accuracy \d\d\.\d % on 75 unseen rows", facts[1])
    assert re.fullmatch(r"Training accuracy \d\d\.\d %", facts[2])


def test_categories_can_be_tried_out(open_page):
    tree, _ = mixed_tree("classes")
    page = open_page(tree)
    choice = page.get_by_label("town", exact=True)
    said = []
    for name in ["town 0", "town 1", "town 2", "missing or new"]:
        choice.select_option(name)
        said.append(page.locator("#sentence").inner_text())
    assert len(set(said)) > 1


def test_subtrees_fold(open_page):
    page = open_page(iris_tree(max_depth=2))
    n_nodes = page.locator("[role=treeitem]").count()
    page.locator("[data-node='0'] .fold").click()
    assert page.locator("[role=treeitem]").count() == 1
    assert page.locator("[data-node='0']").get_attribute("aria-expanded") == "false"
    page.get_by_role("button", name="Expand all").click()
    assert page.locator("[role=treeitem]").count() == n_nodes
    page.get_by_role("button", name="Collapse").click()
    assert page.locator("[role=treeitem]").count() == 4


def test_features_can_be_searched(open_page):
    page = open_page(iris_tree())
    page.keyboard.press("/")
    page.keyboard.type("length")
    n_found = page.locator("[role=treeitem].found").count()
    assert n_found >= 1
    assert page.locator("#search-result").inner_text() == f"{n_found} node" + "s" * (n_found > 1)
    page.keyboard.press("Enter")
    assert "petal length" in page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.locator("#search").fill("nothing like it")
    assert page.locator("#search-result").inner_text() == "no nodes"


def test_everything_can_be_done_by_keyboard(open_page):
    page = open_page(iris_tree())

    def focused():
        return page.evaluate("Number(document.activeElement.dataset.node)")

    page.locator("#theme").focus()
    page.keyboard.press("Tab")
    assert focused() == 0
    page.keyboard.press("ArrowRight")
    first = focused()
    assert page.locator(f"[data-node='{first}']").get_attribute("aria-level") == "2"
    page.keyboard.press("ArrowDown")
    assert focused() not in (0, first)
    page.keyboard.press("Enter")
    assert page.locator("#node").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#node").is_hidden()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert page.locator("[role=treeitem]").count() == 1
    page.keyboard.press("ArrowRight")
    assert page.locator("[role=treeitem]").count() > 1
    page.keyboard.press(" ")
    page.locator("#node .part").first.focus()
    assert "branch 1: setosa" in page.locator("#tooltip").inner_text()
    before = page.locator("#stage > g").get_attribute("transform")
    page.keyboard.press("+")
    zoomed = page.locator("#stage > g").get_attribute("transform")
    page.keyboard.press("-")
    page.keyboard.press("0")
    assert before != zoomed


def test_segments_tell_their_rows_on_hover(open_page):
    page = open_page(iris_tree())
    page.locator("[data-node='0'] .part").first.hover()
    lines = page.locator("#tooltip").inner_text().splitlines()
    assert lines[:2] == ["≤ 0.8", "50 rows"]


def test_the_page_has_the_colours_of_pictures_and_graphs(open_page):
    tree, _ = mixed_tree("classes", max_branches=3)
    page = open_page(tree)
    swatches = page.evaluate(
        "[...document.querySelectorAll('#legend .swatch')].map(one => one.style.background)"
    )
    colours = [branch_colour(branch) for branch in range(3)]
    colours += [class_colour(number) for number in range(3)]
    assert swatches == [f"rgb({', '.join(map(str, channels(colour)))})" for colour in colours]
    used = set(re.findall(r'color="(#\w{6})"', export_dot(tree)))
    assert used <= set(colours)
    drawn = page.evaluate(
        "[...document.querySelectorAll('#stage [fill^=\"#\"]')]"
        ".map(one => one.getAttribute('fill'))"
    )
    assert set(drawn) == set(colours)


def channels(colour):
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


@pytest.mark.parametrize("scale", ["auto", "linear", "quantile"])
def test_cards_write_every_threshold_and_the_ends_of_the_axis(open_page, scale):
    rng = np.random.default_rng(0)
    x = rng.gamma(4.0, 1.0, 3000).round(3)
    y = np.where((x % 0.5 < 0.05) & (x > 3) & (x < 6), 20, x)
    tree = ShapeTreeRegressor(max_depth=1, max_branches=3, refine=None).fit(x[:, None], y)
    page = open_page(tree, scale=scale)
    texts = page.locator("[data-node='0'] text").all_text_contents()
    root = view_of(tree).nodes[0]
    assert len(root.segments) > 3
    assert {readable(segment.high) for segment in root.segments[:-1]} <= set(texts)
    assert {label for _, label in scale_of(root, scale).end_labels} <= set(texts)


def test_strips_are_true_to_scale(open_page):
    x = np.linspace(0, 10, 2000)
    tree = ShapeTreeClassifier(max_depth=1, max_branches=2).fit(x[:, None], (x > 4) & (x < 4.5))
    page = open_page(tree)
    boxes = page.evaluate(
        "[...document.querySelectorAll(\"[data-node='0'] .part rect[rx]\")].map(one =>"
        " [one.x.baseVal.value, one.width.baseVal.value])"
    )
    width = sum(boxes[-1])
    starts = [start / width for start, _ in boxes]
    np.testing.assert_allclose(starts, [0, 0.4, 0.45], atol=0.01)


def test_a_branch_of_a_pair_is_one_shape_and_north_is_up(open_page):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (2000, 2)), columns=["lat", "lon"])
    y = (X["lat"] ** 2 + X["lon"] ** 2 > 0.5).astype(int)
    tree = ShapeTreeClassifier(max_depth=1, max_branches=2, pairs=1, refine=None).fit(X, y)
    for swap, title in [
        (False, "lon \N{MULTIPLICATION SIGN} lat"),
        (True, "lat \N{MULTIPLICATION SIGN} lon"),
    ]:
        page = open_page(tree, swap=swap)
        assert page.locator("[data-node='0'] .region").count() == 2
        assert page.locator("[data-node='0'] .card-title").text_content() == title


@pytest.mark.parametrize("width", [390, 1280])
def test_percentages_stand_on_one_line_and_the_legend_is_whole(open_page, width):
    rng = np.random.default_rng(0)
    x, y = np.arange(3000.0), np.zeros(3000, dtype=int)
    y[2900:] = rng.integers(1, 9, 100)
    names = np.array([f"the kind number {i}" for i in range(9)])
    tree = ShapeTreeClassifier(max_depth=1, resamples=0).fit(x[:, None], names[y])
    page = open_page(tree, width=width)
    heights = page.locator(".chance .number").evaluate_all("them => them.map(n => n.offsetHeight)")
    names = page.locator(".chance .name").evaluate_all("them => them.map(n => n.offsetHeight)")
    assert any(len(words) > 6 for words in page.locator(".chance .number").all_inner_texts())
    assert max(heights) == max(names)
    legend = page.locator(".legend").evaluate("it => [it.scrollHeight, it.clientHeight]")
    assert width > 860 or legend[0] == legend[1]


def test_planes_with_breaks_show_rows_and_start_from_a_middle_value(open_page):
    z = np.random.default_rng(1).normal(size=(1500, 2))
    X = pd.DataFrame({"a": np.exp(1.5 * z[:, 0]), "b": z[:, 1]})
    y = (z[:, 0] * z[:, 1] > 0).astype(int)
    tree = ShapeTreeClassifier(max_depth=1, pairs=1, resamples=0).fit(X, y)
    page = open_page(tree)
    (line,) = page.locator("[data-node='0'] .plane-break").all()
    box = page.get_by_label("a", exact=True)
    assert 0.4 < float(box.input_value()) < 2.5
    edges = page.locator("[data-node='0'] .plane-frame").bounding_box()
    at_break = line.bounding_box()["x"]
    assert abs((at_break - edges["x"]) / edges["width"] - 0.8) < 0.02
    box.fill(str(float(X["a"].quantile(0.97))))
    mark = page.locator("[data-node='0'] .marker").first.bounding_box()
    assert at_break < mark["x"] + mark["width"] / 2 < edges["x"] + edges["width"]


@pytest.mark.parametrize("kind", ["one feature", "pairs"])
def test_names_are_text_and_never_run(open_page, kind):
    X, y = nasty_data()
    pairs = "auto" if kind == "pairs" else 0
    tree = ShapeTreeClassifier(max_depth=3, pairs=pairs, refine=None).fit(X, y)
    title = "<script>window.hacked=1</script>"
    page = open_page(tree, title=title)
    page.get_by_role("button", name="Expand all").click()
    for node in range(tree.tree_.node_count):
        page.locator(f"[data-node='{node}']").dispatch_event("click")
    page.locator("#search").fill("<")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.title() == page.locator("h1").inner_text() == title
    assert '"><img src=x' in page.locator("#legend").inner_text()


@pytest.mark.parametrize(
    ("kind", "scheme"), [("classes", "light"), ("classes", "dark"), ("numbers", "dark")]
)
def test_axe_finds_no_serious_fault(open_page, kind, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    tree, _ = mixed_tree(kind, pairs="auto", max_branches=3)
    page = open_page(tree, color_scheme=scheme, bypass_csp=True)
    page.locator("[data-node='0'] .card-title").click()
    faults = axe.Axe().run(page).response["violations"]
    grave = [fault for fault in faults if fault["impact"] in ("serious", "critical")]
    assert [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in grave] == []


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_has_to_be_scrolled_sideways(open_page, width):
    X, y = nasty_data()
    tree = ShapeTreeClassifier(max_depth=3).fit(X, y)
    page = open_page(tree, width=width, height=844, title="w" * 300)
    page.locator("[data-node='0']").dispatch_event("click")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#theme").bounding_box()["x"] < width
    assert page.locator("#what-if").is_visible()


def test_the_theme_can_be_switched(open_page):
    page = open_page(iris_tree(), color_scheme="light")
    colour = "getComputedStyle(document.body.parentNode).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Use dark colours").click()
    assert page.evaluate(colour) != light


def test_cards_do_not_overlap(open_page):
    tree, _ = mixed_tree("classes", max_branches=3)
    page = open_page(tree)
    page.get_by_role("button", name="Expand all").click()
    boxes = page.evaluate(
        "[...document.querySelectorAll('.card-box')].map(box => {"
        " const {x, y, width, height} = box.getBoundingClientRect();"
        " return [x, y, x + width, y + height]; })"
    )
    assert len(boxes) == tree.tree_.node_count
    left, top, right, bottom = np.array(boxes).T
    across = (left[:, None] < right) & (left < right[:, None])
    down = (top[:, None] < bottom) & (top < bottom[:, None])
    assert (across & down).sum() == len(boxes)


def test_on_paper_every_leaf_is_shown_and_afterwards_the_tree_is_as_before(open_page):
    X, y = mixed_data(300)
    tree = ShapeTreeRegressor(max_depth=6, max_branches=2, strength=0.1).fit(X, y)
    assert tree.get_n_leaves() > 20
    page = open_page(tree, width=900, height=500)
    shown = page.locator("[role=treeitem]").count()
    assert shown < tree.tree_.node_count
    page.emulate_media(media="print")
    page.wait_for_selector(".band")
    assert page.locator("#search").is_hidden()
    bands = page.evaluate(
        "[...document.querySelectorAll('.band')].map(b => b.viewBox.baseVal)"
        ".map(({ x, y, width, height }) => [x, y, width, height])"
    )
    cards = page.evaluate(
        "[...document.querySelectorAll('[role=treeitem]')].map(item => {"
        "  const { e, f } = item.transform.baseVal.consolidate().matrix;"
        "  const box = item.querySelector('.card-box');"
        "  return [e, f, Number(box.getAttribute('width')), Number(box.getAttribute('height'))];"
        "})"
    )
    assert len(cards) == tree.tree_.node_count
    for x, y_, width, height in cards:
        assert any(
            left <= x and x + width <= left + wide and top <= y_ and y_ + height <= top + high
            for left, top, wide, high in bands
        )
    # Lower than a sheet on its side, with room for the header on the first.
    assert all(high <= 0.56 * wide for _, _, wide, high in bands)
    page.emulate_media(media="screen")
    page.wait_for_selector(".band", state="detached")
    assert page.locator("[role=treeitem]").count() == shown


@pytest.mark.parametrize("is_landscape", [False, True])
def test_no_printed_sheet_is_empty(open_page, is_landscape):
    X, y = mixed_data(300)
    tree = ShapeTreeRegressor(max_depth=6, max_branches=2, strength=0.1).fit(X, y)
    page = open_page(tree, width=900, height=500)
    page.emulate_media(media="print")
    page.wait_for_selector(".band")
    # A sheet of A4 without margins, at 96 dots per inch.
    width, height = (1122, 793) if is_landscape else (793, 1122)
    page.set_viewport_size({"width": width, "height": height})
    first = page.locator(".band").first.bounding_box()
    assert first["y"] + first["height"] <= height


@pytest.mark.parametrize("n_classes", [30, 100])
def test_any_number_of_classes_has_colours(open_page, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.arange(1, n_classes) / n_classes))
    page = open_page(make_tree(ShapeTreeClassifier, **PLAIN, max_depth=4, max_branches=4).fit(X, y))
    colours = page.evaluate(
        "[...document.querySelectorAll('#legend .swatch')].map(one => one.style.background)"
    )
    assert len(set(colours)) >= n_classes
    assert page.locator("#chances .chance").count() <= 8


def test_a_single_leaf_is_a_page(open_page):
    tree = ShapeTreeClassifier().fit([[0.0], [0.0]], ["a", "b"])
    page = open_page(tree)
    assert page.locator("[role=treeitem]").count() == 1
    said = "Predicted a (50 %, 9 to 91 %) for every row"
    reason = f"A single leaf: {tree.why_single_leaf_}"
    assert page.locator("#sentence").inner_text() == f"{said}. {reason}."
    assert page.locator("#values").is_hidden()


def test_the_rows_given_may_be_few(open_page):
    tree, X = diabetes_tree(pairs="auto")
    page = open_page(tree, X.head(1), [150.0])
    assert "1 row given" in page.locator("#facts").inner_text()
    page.get_by_role("button", name="Expand all").click()
    for node in range(tree.tree_.node_count):
        page.locator(f"[data-node='{node}']").dispatch_event("click")
    # What sentences say is about the training rows all the same.
    said = page.evaluate("row => shapetree.explain(row).sentence", as_json(X.head(1))[0])
    assert said == str(tree.explain(X.head(1))[0])


def test_huge_numbers_can_be_drawn_and_tried_out(open_page):
    X = np.array([[-1e308], [1e308], [math.inf], [-math.inf]] * 20)
    y = np.array([0.0, 1.0, 2.0, 3.0] * 20)
    tree = make_tree(ShapeTreeRegressor, **PLAIN, max_depth=2, refine=None).fit(X, y)
    page = open_page(tree)
    page.locator("[data-node='0']").dispatch_event("click")
    slider = page.get_by_label("x0, slider")
    for place, number in [("0", -1.5e308), ("200", 1.5e308)]:
        slider.fill(place)
        assert page.locator("#outcome").inner_text() == f"{tree.predict([[number]])[0]:g}"


def test_a_leaf_shows_what_weights_make_of_the_shares_of_its_rows(open_page):
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = make_tree(
        ShapeTreeClassifier, **PLAIN, max_depth=1, class_weight={0: 1, 1: 1, 2: 9}
    ).fit(X, y)
    page = open_page(tree)
    leaf = view_of(tree).nodes[int(tree.apply(X)[120])]
    words = page.locator(f"[data-node='{leaf.number}']").text_content()
    assert percent(leaf.row_shares[0, 2]) in words.replace("\N{NO-BREAK SPACE}", " ")
    assert f"weighted {percent(leaf.value[0, 2])}" in words


def test_many_categories_of_a_map_are_counted_in_a_card_and_named_in_the_panel(open_page):
    rng = np.random.default_rng(0)
    kind, x = rng.integers(0, 40, 4000), rng.uniform(size=4000)
    X = pd.DataFrame({"x": x, "kind": [f"kind {i}" for i in kind]})
    y = x > np.linspace(0.1, 0.9, 40)[rng.permutation(40)][kind]
    tree = ShapeTreeClassifier(
        max_depth=1, pairs=[("x", "kind")], search=SearchOptions(pair_penalty=0.0)
    ).fit(X, y)
    page = open_page(tree)
    card = page.locator("[data-node='0']")
    assert "40 values" in card.text_content()
    card.dispatch_event("click")
    named = page.locator("#node svg").first.text_content()
    assert all(f"kind {i}" in named for i in range(40))


@pytest.mark.parametrize(("length", "has_own_line"), [(5, False), (40, True)])
def test_long_names_of_categories_have_a_line_of_their_own(open_page, length, has_own_line):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice([letter * length for letter in "abc"], 300)})
    page = open_page(ShapeTreeClassifier(max_depth=1).fit(X, X["c"].str[0] == "a"))
    label, select = (page.locator(f".field {part}").first for part in ("label", "select"))
    assert (select.bounding_box()["y"] > label.bounding_box()["y"] + 15) == has_own_line


def test_the_page_of_a_forest_shows_the_tree_that_is_chosen(browser, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = ShapeForestClassifier(n_estimators=5, random_state=0, n_threads=1).fit(X, y)
    taught = ShapeTreeClassifier(teacher=forest, max_depth=1).fit(X, y)
    export_html(forest, tmp_path / "forest.html", X, y, tree=3, taught=taught)
    page, complaints = browser.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "forest.html").as_uri())
    assert page.inner_text("#forest-title") == "Forest of 5 trees"
    assert page.inner_text("#forest-trees [aria-current]") == "Taught tree"
    assert "depth 1" in page.inner_text("#facts")
    shares = page.locator("#importances li").all_inner_texts()
    ranked = forest.feature_importances_.argsort()[::-1]
    assert [each.splitlines()[0] for each in shares] == X.columns[ranked].tolist()
    page.click("text=Tree 3")
    page.wait_for_function("document.querySelector('[aria-current]')?.textContent === 'Tree 3'")
    assert f"depth {forest.estimators_[3].get_depth()}" in page.inner_text("#facts")
    assert not complaints
    page.close()
