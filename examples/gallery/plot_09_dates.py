"""
Dates as a feature
==================

Parcels that come late: thresholds of the day of the order read as dates. A strike in May and the
weeks before Christmas stand out. The parcels are made up.
"""

from tables import make_deliveries

from shapetree import ShapeTreeClassifier, plot_tree

X, y = make_deliveries()
tree = ShapeTreeClassifier(max_depth=2).fit(X, y)
plot_tree(tree, title="Which parcels come late")
