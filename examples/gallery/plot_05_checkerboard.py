"""
A checkerboard that stands on its corner
========================================

Neither coordinate tells much by itself. One node of the pair tells all, if it may have more than
six regions.
"""

import numpy as np
import pandas as pd
from toys import make_checkerboard

from shapetree import ShapeTreeClassifier, plot_node

X, y = make_checkerboard()
table = pd.DataFrame(X, columns=["x", "y"])
tree = ShapeTreeClassifier(pairs="auto", max_parts=None, max_branches=2, max_depth=1)
plot_node(tree.fit(table, np.where(y == 1, "white", "black")))
