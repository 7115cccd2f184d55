"""A tree that you can show, then shape trees beside CART on toy problems and real ones.

    python examples/demo.py [folder]

The picture and the page are written into the folder, `demo` by default.
"""

import sys
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import cross_validate, train_test_split
from sklearn.tree import DecisionTreeClassifier
from toys import make_bars, make_checkerboard, make_plus_sign

from shapetree import ShapeTreeClassifier, export_html, export_text, plot_tree

ROW = "  {:<28} {:>9} {:>8} {:>7} {:>10}"


def heading(text: str) -> None:
    print(f"\n{text}\n{'─' * len(text)}")


def report(rows: list[tuple[str, float, float, float, float]]) -> None:
    print(ROW.format("", "accuracy", "splits", "leaves", "fit"))
    for name, accuracy, splits, leaves, seconds in rows:
        print(ROW.format(name, f"{accuracy:.1%}", f"{splits:.3g}", f"{leaves:.3g}",
                         f"{1000 * seconds:.1f} ms"))  # fmt: skip


def n_splits(tree: BaseEstimator) -> int:
    return tree.tree_.node_count - tree.get_n_leaves()


def on_training(name: str, tree: BaseEstimator, X: np.ndarray, y: np.ndarray) -> tuple:
    start = perf_counter()
    tree.fit(X, y)
    seconds = perf_counter() - start
    return name, tree.score(X, y), n_splits(tree), tree.get_n_leaves(), seconds


def on_new_rows(
    name: str, tree: BaseEstimator, X: np.ndarray, y: np.ndarray, cv: int = 10
) -> tuple:
    result = cross_validate(tree, X, y, cv=cv, return_estimator=True)
    trees = result["estimator"]
    return (
        name,
        result["test_score"].mean(),
        np.mean([n_splits(tree) for tree in trees]),
        np.mean([tree.get_n_leaves() for tree in trees]),
        result["fit_time"].mean(),
    )


def show(folder: Path) -> None:
    heading("Breast cancer (Wisconsin): a tree that you can show")
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    tree = ShapeTreeClassifier(max_depth=3).fit(X_train, y_train)
    folder.mkdir(exist_ok=True)
    plot_tree(tree, title="Breast cancer").save(folder / "tree.png")
    export_html(tree, folder / "page.html", X_test, y_test, title="Breast cancer")
    plt.close("all")
    print(export_text(tree))
    case = X_test.iloc[[2]]
    (why,) = tree.explain(case)
    print(
        f"\nOne of the {len(X_test)} cases that it has not seen, {tree.score(X_test, y_test):.1%}"
    )
    print(f"of which it gets right:\n\n  {why}.\n  {why.flip}.")


def plus_sign() -> None:
    heading("A plus sign: two crossing bars in the unit square, 2,000 rows")
    X, y = make_plus_sign()
    tree = ShapeTreeClassifier(max_branches=2, max_bins=None)
    report([
        on_training("CART, any depth", DecisionTreeClassifier(random_state=0), X, y),
        on_training("shape tree", tree, X, y),
    ])  # fmt: skip
    print("\n" + export_text(tree, digits=3))


def bars() -> None:
    heading("Fifty bars along one axis, 5,000 rows: any number of segments")
    X, y = make_bars(50, 5_000)
    tree = ShapeTreeClassifier(max_parts=None, max_bins=None)
    report([
        on_training("CART, any depth", DecisionTreeClassifier(random_state=0), X, y),
        on_training("shape tree", tree, X, y),
    ])  # fmt: skip


def checkerboard() -> None:
    heading(
        "A checkerboard that stands on its corner, 2,000 rows: a pair, and any number of regions"
    )
    X, y = make_checkerboard()
    tree = ShapeTreeClassifier(pairs="auto", max_parts=None, max_branches=2, max_depth=1)
    report([
        on_training("CART, any depth", DecisionTreeClassifier(random_state=0), X, y),
        on_training("shape tree, one feature", ShapeTreeClassifier(max_depth=1), X, y),
        on_training("shape tree, a pair", tree, X, y),
    ])  # fmt: skip
    X, y = make_checkerboard(seed=1)
    print(f"\n  The pair's node parts the plane into {len(tree.tree_.piece_branch)} regions and is")
    print(f"  right on {tree.score(X, y):.1%} of new rows.")


def digits() -> None:
    heading("Handwritten digits: 1,797 rows, 64 features, 5-fold cross-validation")
    X, y = load_digits(return_X_y=True)
    trees = {
        "CART, depth 4": DecisionTreeClassifier(max_depth=4, random_state=0),
        "shape tree, as it has grown": ShapeTreeClassifier(max_depth=4, refine=None),
        "shape tree, refined": ShapeTreeClassifier(max_depth=4),
    }
    report([on_new_rows(name, tree, X, y, cv=5) for name, tree in trees.items()])


def breast_cancer() -> None:
    heading("Breast cancer (Wisconsin): 569 rows, 30 features, 10-fold cross-validation")
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    report(
        [
            on_new_rows(f"{name}, depth {depth}", make(max_depth=depth, random_state=0), X, y)
            for depth in (2, 3)
            for name, make in (
                ("CART", DecisionTreeClassifier),
                ("shape tree", ShapeTreeClassifier),
            )
        ]
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
    show(folder)
    plus_sign()
    bars()
    checkerboard()
    digits()
    breast_cancer()
    heading("Open in a browser")
    print(f"  {folder / 'page.html'}   the first tree, to explore; needs no network")
    print(f"  {folder / 'tree.png'}    the same tree as a picture")
