"""How many random examples a property is tried on."""

import os

from hypothesis import settings

# `make attack` tries so many times as many, and others in every run; else they are always the same.
TIMES = int(os.environ.get("EXAMPLES", "0"))


def examples(number, **how):
    """Settings with a number of examples, or many times as many."""
    return settings(max_examples=number * max(TIMES, 1), **how)
