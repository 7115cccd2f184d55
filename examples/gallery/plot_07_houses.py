"""
Prices and a map
================

What a house costs depends on where it is. The pair of longitude and latitude makes a map of the
node. The houses are made up.
"""

from tables import make_houses

from shapetree import ShapeTreeRegressor, plot_tree

X, y = make_houses()
tree = ShapeTreeRegressor(max_depth=2, pairs=[("longitude", "latitude")])
plot_tree(tree.fit(X, y), title="What houses cost")
