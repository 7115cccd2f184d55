"""How many random examples a property is tried on."""

import os

import pytest
from hypothesis import settings

# `make attack` tries so many times as many, and others in every run; else they are always the same.
TIMES = int(os.environ.get("EXAMPLES", "0"))


by_chance = pytest.mark.by_chance


def seeds(number):
    """Seeds of tests that are marked as `by_chance`: `make attack` tries many times as many."""
    return range(number * max(TIMES, 1))


def examples(number, **how):
    """Settings with a number of examples, or many times as many."""
    return settings(max_examples=number * max(TIMES, 1), **how)
