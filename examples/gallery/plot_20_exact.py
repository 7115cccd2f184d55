"""
Fifty bars along one axis
=========================

With ``max_parts=None`` a node may have any number of parts: here a single node tells fifty bars
apart, with exact thresholds.
"""

import pandas as pd
from toys import make_bars

from shapetree import ShapeTreeClassifier, plot_node

X, y = make_bars(50, 5_000)
tree = ShapeTreeClassifier(max_parts=None, max_bins=None, max_depth=1)
table = pd.DataFrame(X, columns=["place"])
tree.fit(table, pd.Series(y, name="bar"))
print(f"{tree.tree_.n_parts} parts, {tree.score(table, y):.1%} right")
plot_node(tree)
