"""A fitted tree in words and tables; they are made from its `TreeView` only."""

from shapetree.explain._conditions import Condition
from shapetree.explain._flips import Flip
from shapetree.explain._rows import Explanation, Step, explain_rows
from shapetree.explain._rules import Clause, Rule, Rules, rules_of
from shapetree.explain._tables import shape_table

__all__ = [
    "Clause",
    "Condition",
    "Explanation",
    "Flip",
    "Rule",
    "Rules",
    "Step",
    "explain_rows",
    "rules_of",
    "shape_table",
]
