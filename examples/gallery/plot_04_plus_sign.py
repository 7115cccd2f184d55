"""
A plus sign in two nodes
========================

Two crossing bars in the unit square. Each node sends the middle of one axis to one branch, and both
sides of it to the other.
"""

import numpy as np
import pandas as pd
from toys import make_plus_sign

from shapetree import ShapeTreeClassifier, plot_tree

X, y = make_plus_sign()
table = pd.DataFrame(X, columns=["x", "y"])
tree = ShapeTreeClassifier(max_branches=2, max_bins=None)
plot_tree(tree.fit(table, np.where(y == 1, "plus", "rest")))
