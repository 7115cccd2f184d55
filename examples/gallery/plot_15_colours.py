"""
Your own colours
================

Colours of branches and classes are safe for the colour-blind, and you can choose others.
"""

from sklearn.datasets import load_breast_cancer

from shapetree import ShapeTreeClassifier, plot_tree

data = load_breast_cancer(as_frame=True)
tree = ShapeTreeClassifier(max_depth=2).fit(data.data, data.target_names[data.target])
plot_tree(
    tree,
    branch_colors=["#1b9e77", "#d95f02", "#7570b3"],
    class_colors={"benign": "#a6cee3", "malignant": "#e31a1c"},
)
