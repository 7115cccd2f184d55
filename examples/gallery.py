"""Draw a gallery of trees: six pictures, written into a folder.

    python examples/gallery.py docs

Needs matplotlib and pandas.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from toys import make_checkerboard, make_plus_sign

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.plot import Picture, plot_node, plot_tree


def draw_toy() -> Picture:
    """A plus sign, which two nodes describe."""
    X, y = make_plus_sign()
    table = pd.DataFrame(X, columns=["x", "y"])
    tree = ShapeTreeClassifier(max_branches=2, max_bins=None)
    return plot_tree(tree.fit(table, np.where(y == 1, "plus", "rest")))


def draw_classification() -> Picture:
    """Tumours, and the way that one of them takes."""
    data = load_breast_cancer(as_frame=True)
    tree = ShapeTreeClassifier(max_depth=3, max_branches=2)
    tree.fit(data.data, data.target_names[data.target])
    return plot_tree(tree, row=data.data.iloc[3], title="Breast cancer: why one case is malignant")


def draw_regression() -> Picture:
    """How far diabetes has progressed after a year."""
    data = load_diabetes(as_frame=True, scaled=False)
    table = data.data.rename(columns={"s5": "log triglycerides", "s3": "HDL", "bp": "pressure"})
    tree = ShapeTreeRegressor(max_depth=3, max_branches=2, max_leaf_nodes=7)
    return plot_tree(tree.fit(table, data.target), title="Progression of diabetes")


def draw_three_ways() -> Picture:
    """Wines of three growers; nodes have up to three branches."""
    data = load_wine(as_frame=True)
    growers = np.array(["Barolo", "Grignolino", "Barbera"])[data.target]
    tree = ShapeTreeClassifier(max_depth=3, max_branches=3)
    return plot_tree(tree.fit(data.data, growers), title="Wines")


def draw_pair() -> Picture:
    """A checkerboard that stands on its corner: one node of two features."""
    X, y = make_checkerboard()
    table = pd.DataFrame(X, columns=["x", "y"])
    tree = ShapeTreeClassifier(pairs="auto", max_branches=2, max_depth=1)
    return plot_node(tree.fit(table, np.where(y == 1, "white", "black")))


def draw_categories() -> Picture:
    """Whether people cycle to work: categories, skewed incomes and missing values."""
    tree = ShapeTreeClassifier(max_depth=3, max_branches=3, min_samples_leaf=25)
    return plot_tree(tree.fit(*make_commuters()), title="How people get to work")


def make_commuters(n_rows: int = 3_000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """People of twelve towns; some do not tell their age."""
    rng = np.random.default_rng(seed)
    flat = ["Münster", "Bremen", "Freiburg", "Oldenburg", "Greifswald"]
    towns = [*flat, "Stuttgart", "Wuppertal", "Kassel", "Essen", "Siegen", "Jena", "Aachen"]
    town = rng.choice(towns, n_rows)
    age = rng.integers(16, 80, n_rows).astype(float)
    distance = np.exp(rng.normal(1.6, 1.0, n_rows))
    wish = 1.4 * np.isin(town, flat) - 0.5 * distance - 0.04 * np.abs(age - 28)
    wish += rng.normal(scale=0.5, size=n_rows)
    way = np.where(wish > -1.9, "bicycle", np.where(distance > 9, "train", "car"))
    age[rng.random(n_rows) < 0.1] = np.nan
    return pd.DataFrame({"town": town, "age": age, "distance in km": distance}), way


GALLERY: dict[str, Callable[[], Picture]] = {
    "toy": draw_toy,
    "classification": draw_classification,
    "regression": draw_regression,
    "three_ways": draw_three_ways,
    "pair": draw_pair,
    "categories": draw_categories,
}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, draw in GALLERY.items():
        picture = draw()
        picture.save(folder / f"{name}.png", dpi=140)
        plt.close(picture.figure)
