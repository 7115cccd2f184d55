"""
A clinical table
================

Who returns to hospital within 90 days? Patients with several stays are kept together by ``groups``,
and missing laboratory values have cells of their own. The table is made up.
"""

import pandas as pd
from clinic import make_clinic

from shapetree import ShapeTreeClassifier, plot_tree

raw = make_clinic()
X = raw[["age", "systolic", "sodium", "creatinine", "BNP"]].replace("<50", "25")
X = X.apply(pd.to_numeric, errors="coerce").assign(drug=raw["drug"].replace("", None))
tree = ShapeTreeClassifier(max_depth=2).fit(X, raw["returned"], groups=raw["patient"])
plot_tree(tree, title="Who returns within 90 days?")
