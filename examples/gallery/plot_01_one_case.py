"""
Why one case is malignant
=========================

Tumours of the breast, and the way that one of them takes through the tree.
"""

from sklearn.datasets import load_breast_cancer

from shapetree import ShapeTreeClassifier, plot_tree

data = load_breast_cancer(as_frame=True)
tree = ShapeTreeClassifier(max_depth=3, max_branches=2)
tree.fit(data.data, data.target_names[data.target])
plot_tree(tree, row=data.data.iloc[3], title="Breast cancer: why one case is malignant")
