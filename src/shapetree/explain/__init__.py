"""A fitted tree in words and tables; they are made from its `TreeView` only."""

from shapetree.explain._conditions import Condition
from shapetree.explain._flips import Change, Flip
from shapetree.explain._rows import Explainer, Explanation, Step
from shapetree.explain._rules import Clause, Rule, Rules, rules_of
from shapetree.explain._tables import shape_table
from shapetree.explain._wishes import Wish, read_wish

__all__ = [
    "Change",
    "Clause",
    "Condition",
    "Explainer",
    "Explanation",
    "Flip",
    "Rule",
    "Rules",
    "Step",
    "Wish",
    "read_wish",
    "rules_of",
    "shape_table",
]
