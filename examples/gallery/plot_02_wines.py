"""
Three branches to a node
========================

Wines of three growers. A node with three branches names a grower for each part of its axis.
"""

import numpy as np
from sklearn.datasets import load_wine

from shapetree import ShapeTreeClassifier, plot_tree

data = load_wine(as_frame=True)
growers = np.array(["Barolo", "Grignolino", "Barbera"])[data.target]
tree = ShapeTreeClassifier(max_depth=3, max_branches=3).fit(data.data, growers)
plot_tree(tree, title="Wines")
