"""What a node says of its rows is what NumPy says of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joined_rows import in_parts
from naive import describe_rows, entropy_mass, gini_mass, weighted_median
from numpy.testing import assert_allclose, assert_array_equal

from shapetree import ShapeTreeClassifier
from shapetree.data._labels import read_targets
from shapetree.data._targets import MAX_EXACT_LEVELS, MAX_LEVELS, ClassGoal, MeanGoal, MedianGoal

seeds = st.integers(0, 2**32 - 1)
n_outputs = st.integers(1, 3)


def class_goal(labels, n_classes, weights=None, criterion="gini"):
    return ClassGoal(labels, n_classes, weights, criterion=criterion)


def random_rows(rng, n):
    return rng.permutation(n)[: rng.integers(1, n + 1)].astype(np.int32)


def random_weights(rng, n, weighted):
    return rng.choice([0.5, 1.0, 2.0, 3.25], n) if weighted else None


def ones_if_none(weights, n):
    return np.ones(n) if weights is None else weights


# Classes


@given(seeds, n_outputs, st.booleans(), st.sampled_from(["gini", "entropy"]))
def test_class_node_predicts_shares_and_their_impurity(seed, n_outputs, weighted, criterion):
    rng = np.random.default_rng(seed)
    n_classes = rng.integers(1, 5, n_outputs).tolist()
    labels = np.stack([rng.integers(0, k, 20) for k in n_classes], axis=1).astype(np.int32)
    weights, rows = random_weights(rng, 20, weighted), random_rows(rng, 20)
    node = describe_rows(class_goal(labels, n_classes, weights, criterion), rows)
    w = ones_if_none(weights, 20)[rows]
    counts = [np.bincount(labels[rows, o], w, minlength=max(n_classes)) for o in range(n_outputs)]
    mass = gini_mass if criterion == "gini" else entropy_mass
    assert node.n_rows == len(rows)
    assert_allclose(node.weight, w.sum())
    assert_allclose(node.value, np.array(counts) / w.sum())
    assert_allclose(node.impurity, np.mean([mass(c) for c in counts]) / w.sum(), atol=1e-9)


def test_class_node_of_one_class_is_pure():
    goal = class_goal(np.ones((3, 1), dtype=np.int32), [2])
    assert describe_rows(goal, np.arange(3, dtype=np.int32)).impurity == 0.0


# Means


@given(seeds, n_outputs, st.booleans())
def test_mean_node_predicts_means_and_their_variance(seed, n_outputs, weighted):
    rng = np.random.default_rng(seed)
    y = rng.normal(50, 3, (20, n_outputs))
    weights, rows = random_weights(rng, 20, weighted), random_rows(rng, 20)
    goal = MeanGoal(y, weights)
    node = describe_rows(goal, rows)
    w = ones_if_none(weights, 20)[rows]
    mean = np.average(y[rows], axis=0, weights=w)
    variance = np.average((y[rows] - mean) ** 2, axis=0, weights=w).mean()
    assert_allclose(node.value, mean[:, None])
    assert_allclose(node.impurity * goal.impurity_scale, variance, atol=1e-9)
    assert_allclose(node.weight, w.sum())


@given(seeds, n_outputs, st.booleans())
def test_statistics_of_means_lose_only_what_no_split_can_change(seed, n_outputs, weighted):
    rng = np.random.default_rng(seed)
    y = rng.normal(0, 2, (20, n_outputs))
    weights = random_weights(rng, 20, weighted)
    goal = MeanGoal(y, weights)
    w = ones_if_none(weights, 20)

    def gain(parts, mass):
        return mass(np.arange(20, dtype=np.int32)) - sum(map(mass, parts))

    def by_statistics(rows):
        stats = goal.targets.totals(rows)[: goal.criterion.n_stats]
        return goal.criterion.impurity(stats) * goal.impurity_scale

    def by_definition(rows):
        mean = np.average(y[rows], axis=0, weights=w[rows])
        return (w[rows] @ (y[rows] - mean) ** 2).mean()

    parts = np.split(rng.permutation(20).astype(np.int32), [5, 11])
    assert_allclose(gain(parts, by_statistics), gain(parts, by_definition), atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_mean_node_is_exact_far_from_zero(offset):
    y = offset + np.arange(8.0)[:, None]
    goal = MeanGoal(y, None)
    node = describe_rows(goal, np.arange(8, dtype=np.int32))
    assert_allclose(node.value[0, 0] - offset, 3.5, rtol=1e-3)
    assert_allclose(node.impurity * goal.impurity_scale, np.var(np.arange(8)), rtol=1e-3)


@pytest.mark.parametrize("goal", [MeanGoal, MedianGoal])
def test_constant_targets_are_pure(goal):
    node = describe_rows(goal(np.full((4, 1), 7.25), None), np.arange(4, dtype=np.int32))
    assert node.impurity == 0.0
    assert node.value.item() == 7.25


# Medians


@given(seeds, n_outputs, st.booleans())
def test_median_node_predicts_medians_and_their_mean_distance(seed, n_outputs, weighted):
    rng = np.random.default_rng(seed)
    y = rng.integers(-5, 6, (20, n_outputs)) / 2
    weights, rows = random_weights(rng, 20, weighted), random_rows(rng, 20)
    goal = MedianGoal(y, weights)
    node = describe_rows(goal, rows)
    w = ones_if_none(weights, 20)[rows]
    for output, value in enumerate(node.value[:, 0]):
        order = np.argsort(y[rows, output], kind="stable")
        if weighted:
            assert_allclose(value, weighted_median(y[rows[order], output], w[order]))
        else:
            assert value == np.median(y[rows, output])
    distance = np.average(np.abs(y[rows] - node.value[:, 0]), axis=0, weights=w).mean()
    assert_allclose(node.impurity * goal.impurity_scale, distance, atol=1e-9)


@given(seeds, st.booleans())
def test_impurity_by_levels_is_exact_where_values_are_few(seed, weighted):
    rng = np.random.default_rng(seed)
    y = rng.integers(-5, 6, (20, 2)) / 2
    weights, rows = random_weights(rng, 20, weighted), random_rows(rng, 20)
    goal = MedianGoal(y, weights)
    stats = goal.targets.totals(rows)[: goal.criterion.n_stats]
    node = describe_rows(goal, rows)
    assert_allclose(goal.criterion.impurity(stats) / node.weight, node.impurity, atol=1e-9)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9))
def test_weighted_median_is_that_of_repeated_rows(repeats):
    y = np.arange(len(repeats), dtype=float)[::-1, None] ** 1.5
    weighted = MedianGoal(y, np.array(repeats, dtype=float))
    repeated = MedianGoal(np.repeat(y, repeats, axis=0), None)
    one = describe_rows(weighted, np.arange(len(repeats), dtype=np.int32))
    other = describe_rows(repeated, np.arange(sum(repeats), dtype=np.int32))
    assert_allclose(one.value, other.value)
    assert_allclose(one.impurity, other.impurity, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_values_share_levels_in_their_order(weighted):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(2 * MAX_EXACT_LEVELS, 1))
    goal = MedianGoal(y, random_weights(rng, len(y), weighted))
    assert goal.criterion.n_stats <= MAX_LEVELS
    rows = np.argsort(y[:, 0]).astype(np.int32)
    level = [np.argmax(goal.targets.totals(rows[i : i + 1])[:MAX_LEVELS]) for i in range(len(y))]
    assert_array_equal(np.unique(level), np.arange(goal.criterion.n_stats))
    assert np.all(np.diff(level) >= 0)


def test_the_median_itself_stays_exact_with_many_values():
    y = np.random.default_rng(1).normal(size=(3 * MAX_EXACT_LEVELS, 1))
    rows = np.arange(0, len(y), 2, dtype=np.int32)
    assert describe_rows(MedianGoal(y, None), rows).value.item() == np.median(y[rows])


@given(seeds)
def test_penalties_of_regression_are_in_units_of_the_nodes_own_impurity(seed):
    y = np.random.default_rng(seed).normal(size=(9, 1))
    for goal in (MeanGoal(y, None), MedianGoal(y, None)):
        node = describe_rows(goal, np.arange(5, dtype=np.int32))
        assert goal.penalty_unit(node) == node.impurity


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, "<U3"])
def test_targets_are_read_into_aligned_memory(dtype):
    y = np.arange(9).astype(dtype)
    unaligned = np.frombuffer(b"\0" + y.tobytes(), y.dtype, offset=1)
    assert not unaligned.flags.aligned
    read = read_targets(unaligned, has_classes=y.dtype.kind != "f")
    assert read.flags.aligned
    assert_array_equal(read[:, 0], y)


# Rows that are elsewhere


@given(seeds, n_outputs, st.booleans(), st.sampled_from([1e-9, 1.0, 1e9]))
def test_a_goal_of_far_numbers_is_that_of_the_same_rows_at_hand(seed, n_outputs, weighted, scale):
    rng = np.random.default_rng(seed)
    y = rng.normal(3, 2, (30, n_outputs)) * scale
    weights, rows = random_weights(rng, 30, weighted), random_rows(rng, 30)
    near, nothing = MeanGoal(y, weights), None if weights is None else np.empty(0)
    far = MeanGoal(np.empty((0, n_outputs)), nothing, in_parts(rng, y, weights))
    assert far.total_weight == near.total_weight
    part = y[rows], None if weights is None else weights[rows]
    one, other = near.without_rows().of(*part, None), far.without_rows().of(*part, None)
    assert one.unit == other.unit
    assert one.spread_unit == other.spread_unit
    assert one.impurity_scale == other.impurity_scale
    assert_array_equal(one.greatest, other.greatest)
    assert_array_equal(one.standardised, other.standardised)


@given(seeds, n_outputs, st.booleans())
def test_a_goal_of_far_classes_is_that_of_the_same_rows_at_hand(seed, n_outputs, weighted):
    rng = np.random.default_rng(seed)
    n_classes = rng.integers(1, 9, n_outputs).tolist()
    labels = np.stack([rng.integers(0, k, 30) ** 2 // k for k in n_classes], axis=1)
    weights = random_weights(rng, 30, weighted)
    near = class_goal(labels, n_classes, weights, "auto")
    nothing = np.empty((0, n_outputs), dtype=np.int32), None if weights is None else np.empty(0)
    rows = in_parts(rng, labels, weights)
    far = ClassGoal(nothing[0], n_classes, nothing[1], remote=rows)
    assert far.criterion_name == near.criterion_name
    assert far.total_weight == near.total_weight
    assert_array_equal(far.totals, near.totals)
    assert (far.prices, far.refine_prices) == (near.prices, near.refine_prices)


# Prices


@given(seeds, n_outputs, st.booleans())
def test_a_leaf_costs_no_more_than_a_share_of_all_there_is_to_explain(seed, n_outputs, weighted):
    rng = np.random.default_rng(seed)
    n_classes, n = rng.integers(1, 5, n_outputs).tolist(), int(rng.choice([20, 2000]))
    labels = np.stack([rng.integers(0, k, n) for k in n_classes], axis=1).astype(np.int32)
    weights = random_weights(rng, n, weighted)
    w = ones_if_none(weights, n)
    counts = [np.bincount(labels[:, o], w) for o in range(n_outputs)]
    most = {
        "entropy": (4.0, np.mean([entropy_mass(c) for c in counts])),
        "error": (3.0, w.sum()),
    }
    for objective, grown, refined in [("log_loss", "entropy", None), ("error", "entropy", "error")]:
        goal = ClassGoal(labels, n_classes, weights, objective)
        assert goal.criterion_name == grown
        for name, prices in [(grown, goal.prices), (refined, goal.refine_prices)]:
            if name is None:
                assert prices is None
            else:
                price, total = most[name]
                assert_allclose(prices.leaf, min(price, 0.01 * total), atol=1e-9)


# One form of classes


def boxes(labels):
    """Classes in all that may hold them."""
    series = pd.Series(labels, name="y")
    yield from (series, series.to_frame(), series.astype("category"), series.convert_dtypes())
    yield pd.Series(labels, dtype=pd.ArrowDtype(pa.array(labels).type), name="y")
    yield from (pl.Series("y", labels), pl.DataFrame({"y": labels}), pa.table({"y": labels}))
    if isinstance(labels[0], str):
        yield pl.Series("y", labels).cast(pl.Categorical)
    if type(labels[0]) is int:
        yield pl.Series("y", labels, dtype=pl.Int16)


def boxes_without_names(labels):
    yield from (labels, np.array(labels), np.array(labels, dtype=object))
    yield from (pa.array(labels), pa.chunked_array([labels]))
    if type(labels[0]) is int:
        yield from (np.array(labels, dtype=np.int32), np.array(labels, dtype=np.uint8))


@pytest.mark.parametrize("boxed", [boxes, boxes_without_names])
@pytest.mark.parametrize("pair", [("no", "perhaps"), (0, 1), (False, True)])
def test_model_files_do_not_depend_on_what_holds_y(boxed, pair):
    X, labels = np.arange(40.0)[:, None], [pair[i >= 20] for i in range(40)]
    models = [ShapeTreeClassifier(max_depth=1).fit(X, y) for y in boxed(labels)]
    assert len({model.to_json() for model in models}) == 1
    for model in models:
        predicted = model.predict(X)
        assert predicted.tolist() == labels
        assert predicted.dtype == models[0].predict(X).dtype
