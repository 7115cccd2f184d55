"""
Ten classes
===========

Handwritten digits from 64 grey values. Colours stand for the classes; the first two levels of the
tree are drawn.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from shapetree import ShapeTreeClassifier, plot_tree

data = load_digits()
names = [f"row {row}, column {column}" for row in range(8) for column in range(8)]
digit = pd.Series(np.char.mod("%d", data.target), name="digit")
tree = ShapeTreeClassifier(max_depth=5, resamples=0).fit(
    pd.DataFrame(data.data, columns=names), digit
)
plot_tree(tree, max_depth=2, title="The first levels of a tree for digits")
