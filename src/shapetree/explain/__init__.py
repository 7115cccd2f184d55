"""A fitted tree in words and tables; they are made from its `TreeView` only."""

from shapetree.explain._conditions import Condition
from shapetree.explain._explanations import Explainer, Explanation, Step
from shapetree.explain._flip_constraints import FlipConstraints, read_flip_constraints
from shapetree.explain._flips import Change, Flip
from shapetree.explain._rules import Clause, Rule, Rules, rules_of
from shapetree.explain._tables import shape_table

__all__ = [
    "Change",
    "Clause",
    "Condition",
    "Explainer",
    "Explanation",
    "Flip",
    "FlipConstraints",
    "Rule",
    "Rules",
    "Step",
    "read_flip_constraints",
    "rules_of",
    "shape_table",
]
