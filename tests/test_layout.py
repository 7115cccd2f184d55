"""Where things go in a picture."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shapetree.drawing._ticks import round_numbers, share_of
from shapetree.plot._layout import (
    Box,
    Gaps,
    curve,
    hatching,
    place_tree,
    spread,
)

GAPS = Gaps(siblings=4.0, cousins=7.0, levels=20.0)


def random_tree(rng, n_nodes):
    """Children of nodes 0 .. n_nodes - 1, each below an earlier one, and their sizes."""
    children = {}
    for node in range(1, n_nodes):
        children.setdefault(int(rng.integers(max(0, node - 8), node)), []).append(node)
    sizes = {node: tuple(rng.uniform(5, 80, 2).tolist()) for node in range(n_nodes)}
    return children, sizes


def overlap(a, b):
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 1e-9 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1e-9


@pytest.mark.parametrize("downwards", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_boxes_keep_apart_and_inside(seed, downwards):
    rng = np.random.default_rng(seed)
    children, sizes = random_tree(rng, 1 + 12 * seed)
    placed = place_tree(0, children, sizes, downwards, GAPS)
    assert placed.boxes.keys() == sizes.keys()
    boxes = list(placed.boxes.values())
    assert not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i])
    for node, box in placed.boxes.items():
        assert (box.width, box.height) == pytest.approx(sizes[node])
        assert min(box.x0, box.y0) >= -1e-9
        assert box.x1 <= placed.width + 1e-9
        assert box.y1 <= placed.height + 1e-9


@pytest.mark.parametrize("downwards", [True, False])
def test_children_are_in_order_on_the_next_level(downwards):
    children, sizes = random_tree(np.random.default_rng(3), 60)
    placed = place_tree(0, children, sizes, downwards, GAPS)
    for node, below in children.items():
        parent, boxes = placed.boxes[node], [placed.boxes[child] for child in below]
        ends = parent.y1 if downwards else parent.x1
        starts = [box.y0 if downwards else box.x0 for box in boxes]
        assert len(set(starts)) == 1
        assert starts[0] >= ends + GAPS.levels - 1e-9
        places = [box.x0 if downwards else box.y0 for box in boxes]
        assert places == sorted(places)


@pytest.mark.parametrize("downwards", [True, False])
def test_edges_lead_from_parent_to_child_and_cross_no_box(downwards):
    children, sizes = random_tree(np.random.default_rng(4), 60)
    placed = place_tree(0, children, sizes, downwards, GAPS)
    for node, below in children.items():
        for child in below:
            points = curve(placed.edges[child], downwards)
            (x0, y0), (x1, y1) = points[0], points[-1]
            parent, box = placed.boxes[node], placed.boxes[child]
            assert parent.x0 <= x0 <= parent.x1
            assert parent.y0 <= y0 <= parent.y1
            middle = ((box.x0 + box.x1) / 2, box.y0), (box.x0, (box.y0 + box.y1) / 2)
            assert (x1, y1) == pytest.approx(middle[0 if downwards else 1])
            for x, y in points:
                for other in placed.boxes.values():
                    inside = other.x0 < x < other.x1 and other.y0 < y < other.y1
                    assert not inside or min(y - other.y0, x - other.x0) < 1e-6


def test_a_chain_may_be_as_long_as_it_likes():
    n_nodes = 1200
    children = {node: [node + 1] for node in range(n_nodes - 1)}
    placed = place_tree(0, children, dict.fromkeys(range(n_nodes), (10.0, 10.0)), True, GAPS)
    assert placed.width == 10
    assert placed.height == n_nodes * 10 + (n_nodes - 1) * GAPS.levels


def test_leaves_of_different_parents_share_room():
    children = {0: [1, 2], 1: [3, 4], 2: []}
    sizes = dict.fromkeys(range(5), (10.0, 10.0)) | {2: (100.0, 10.0)}
    placed = place_tree(0, children, sizes, True, GAPS)
    # The wide box stands beside its sibling, not beside what is below that.
    assert placed.boxes[2].x0 - placed.boxes[1].x1 == pytest.approx(GAPS.siblings)


LABELS = st.lists(st.tuples(st.floats(0, 100), st.floats(1, 20)), min_size=1, max_size=8).map(
    lambda labels: sorted(labels)
)


@given(LABELS)
def test_labels_keep_apart_near_their_places(labels):
    wanted, widths = map(list, zip(*labels, strict=True))
    centres = spread(wanted, widths, 0.0, 100.0, 2.0)
    if centres is None:
        assert sum(widths) + 2.0 * (len(widths) - 1) > 100
        return
    lows = [c - w / 2 for c, w in zip(centres, widths, strict=True)]
    highs = [c + w / 2 for c, w in zip(centres, widths, strict=True)]
    assert lows[0] >= -1e-9
    assert highs[-1] <= 100 + 1e-9
    assert all(b - a >= 2 - 1e-9 for a, b in zip(highs[:-1], lows[1:], strict=True))


def test_labels_with_room_stay_where_they_belong():
    assert spread([10.0, 50.0, 90.0], [8.0] * 3, 0.0, 100.0, 2.0) == [10.0, 50.0, 90.0]
    assert spread([50.0, 50.0], [10.0, 10.0], 0.0, 100.0, 2.0) == [44.0, 56.0]


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12), st.integers(1, 8))
@example(5e-324, 2.0, 1)
def test_round_numbers_are_few_and_inside(low, span, at_most):
    high = low + span
    found = round_numbers(low, high, at_most)
    assert len(found) <= at_most
    assert found == sorted(found)
    assert all(low - abs(low) * 1e-9 <= number <= high + abs(high) * 1e-9 for number in found)


def test_round_numbers_of_any_range():
    assert round_numbers(0, 1, 5) == [0.0, 0.5, 1.0]
    assert round_numbers(18, 90, 5) == [20.0, 40.0, 60.0, 80.0]
    assert round_numbers(3, 3, 5) == []
    assert round_numbers(-2.0, -5e-324, 1) == [-2.0]
    greatest = np.finfo(float).max
    assert all(math.isfinite(number) for number in round_numbers(-greatest, greatest, 5))
    assert all(math.isfinite(number) for number in round_numbers(0.0, 5e-324, 5))


def test_shares_of_any_range():
    greatest = float(np.finfo(float).max)
    assert share_of(0.0, -greatest, greatest) == 0.5
    assert share_of(5.0, 0.0, 10.0) == 0.5
    assert share_of(-5.0, 0.0, 10.0) == 0.0
    assert share_of(1.0, 1.0, 1.0) == 0.5


def test_hatching_stays_inside():
    box = Box(3.0, 4.0, 15.0, 11.0)
    for line in hatching(box):
        for x, y in line:
            assert box.x0 <= x <= box.x1
            assert box.y0 <= y <= box.y1
