"""
Other rows in the same tree
===========================

A tree that was fitted to three quarters of the cases, with the other quarter drawn into it.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from shapetree import ShapeTreeClassifier, plot_tree

data = load_breast_cancer(as_frame=True)
y = data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(data.data, y, random_state=0)
tree = ShapeTreeClassifier(max_depth=2).fit(X_train, y_train)
plot_tree(tree, X_test, y_test, title="Cases that the tree has not seen")
