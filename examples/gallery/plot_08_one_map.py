"""
One node, drawn large
=====================

The map of the example before, on a page of its own.
"""

from tables import make_houses

from shapetree import ShapeTreeRegressor, plot_node

X, y = make_houses()
places = X[["longitude", "latitude"]]
price = (y / X["area in m²"] * 1_000).round().rename("€ per m²")
tree = ShapeTreeRegressor(max_depth=1, pairs="all").fit(places, price)
plot_node(tree, title="Where houses are dear")
