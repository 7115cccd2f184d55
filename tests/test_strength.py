"""One knob for all penalties: what strength multiplies, and what it leaves alone."""

import numpy as np
import pytest
from data import assert_same_tree, data_for, tree_for

CRITERIA = ["gini", "entropy", "squared_error", "absolute_error"]
# Prices of a segment, a split and a part of a refined tree that are in use by default.
PRICES = {"gini": (5.0, 6.0, 3.0), "entropy": (6.0, 6.0, 3.0)}
PENALTIES = ("segment_penalty", "split_penalty", "refine_penalty")


@pytest.mark.parametrize("criterion", PRICES)
@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("pairs", [0, "auto"])
def test_strength_multiplies_every_automatic_penalty(criterion, strength, pairs):
    X, y = data_for(criterion, np.random.default_rng(0))
    params = {"refine": "tao", "pairs": pairs, "max_depth": 3}
    given = {
        name: strength * price for name, price in zip(PENALTIES, PRICES[criterion], strict=True)
    }
    one_knob = tree_for(criterion, strength=strength, **params).fit(X, y)
    assert_same_tree(one_knob, tree_for(criterion, **given, **params).fit(X, y))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_strength_leaves_penalties_alone_that_are_given(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    given = dict(zip(PENALTIES, (1.0, 2.0, 0.5), strict=True)) | {"pair_penalty": 0.01}
    params = {"refine": "tao", "pairs": "auto", "max_depth": 3, **given}
    one, other = (tree_for(criterion, strength=m, **params).fit(X, y) for m in (1.0, 50.0))
    assert_same_tree(one, other)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_stronger_the_smaller(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    sizes = [
        tree_for(criterion, refine="tao", max_depth=5, strength=strength).fit(X, y).get_n_leaves()
        for strength in (0, 1, 5, 1e300)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] == 1


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("pairs", [0, "auto"])
def test_without_strength_nothing_has_to_be_earned(criterion, pairs):
    X, y = data_for(criterion, np.random.default_rng(0))
    params = {"refine": "tao", "pairs": pairs, "max_depth": 3}
    free = dict.fromkeys(PENALTIES, 0.0)
    none = tree_for(criterion, strength=0.0, **params).fit(X, y)
    assert_same_tree(none, tree_for(criterion, **free, **params).fit(X, y))


@pytest.mark.parametrize("strength", [-0.1, np.inf, np.nan, "strong", None])
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_strengths_that_make_no_sense_are_refused(strength, criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    with pytest.raises(ValueError, match="'strength' parameter"):
        tree_for(criterion, strength=strength).fit(X, y)
