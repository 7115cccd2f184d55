"""
A table of counts
=================

The Titanic in eight cells: whole-number weights count rows, so shares and supports are those of the
2,201 people.
"""

import pandas as pd

from shapetree import ShapeTreeClassifier, plot_tree

cells = pd.DataFrame(
    [
        ("first", "man", 118, 62), ("first", "woman", 4, 141),
        ("second", "man", 154, 25), ("second", "woman", 13, 93),
        ("third", "man", 422, 88), ("third", "woman", 106, 90),
        ("crew", "man", 670, 192), ("crew", "woman", 3, 20),
    ],
    columns=["class", "sex", "no", "yes"],
).melt(["class", "sex"], var_name="survived", value_name="people")  # fmt: skip
tree = ShapeTreeClassifier(max_depth=2, resamples=0)
tree.fit(cells[["class", "sex"]], cells["survived"], sample_weight=cells["people"])
plot_tree(tree, title="The Titanic")
