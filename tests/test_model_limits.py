"""Reading a model file takes time linear in it, and not much more memory, whatever it holds."""

import json
import tracemalloc
from dataclasses import replace
from itertools import chain, pairwise
from time import process_time

import numpy as np
import pandas as pd
import pytest
from data import make_tree, noisy_classes, noisy_numbers
from jsonschema import Draft202012Validator

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, export_html, from_json, model_schema
from shapetree.model_file import NotAModel
from shapetree.model_file._check import Part
from shapetree.model_file._kinds import ListOf, Number
from shapetree.tree._sketch import PackedCounts

MOST = 30  # bytes of memory for each byte of a file
BASE = 2**21  # and for whatever a reader takes in any case


def numbers():
    X, y = noisy_numbers(np.random.default_rng(0))
    return json.loads(ShapeTreeRegressor(max_depth=1, refine=None).fit(X, y).to_json())


def classes():
    X, y = noisy_classes(np.random.default_rng(0))
    return json.loads(ShapeTreeClassifier(max_depth=1, refine=None).fit(X, y).to_json())


def memory_of(text):
    """The most memory that reading takes, whether it succeeds or not."""
    tracemalloc.start()
    try:
        from_json(text)
    except NotAModel:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


def long_history():
    return numbers() | {"history": [0] * 300_000}


def strange_history():
    return numbers() | {"history": ["NaN", 2.0, 1] * 50_000}


def long_parameter():
    content = numbers()
    content["parameters"]["pairs"] = [[0, 1]] * 50_000
    return content


def many_texts():
    content = classes()
    content["features"][0] = {"name": "a", "kind": "category", "categories": list("ab") * 50_000}
    return content


def many_labels():
    content = classes()
    content["target"]["outputs"][0] = {"type": "<U6", "labels": [f"{i:06}" for i in range(50_000)]}
    return content


def many_features():
    content = numbers()
    content["has_names"] = False
    content["features"] *= 3_000
    return content


def many_leaves():
    content = numbers()
    leaf = {"rows": 0, "impurity": 0, "value": [[0]]}
    leaf["sketch"] = {"counts": [0] * 24, "mean": 0, "deviation": 0}
    content["nodes"] += [leaf] * 5_000
    return content


def long_tree():
    X = np.arange(3_000.0)[:, None]
    free = {"leaf_penalty": 0, "segment_penalty": 0, "inner_max_leaf_nodes": 2}
    tree = make_tree(ShapeTreeRegressor, max_depth=None, max_branches=2, refine=None, **free)
    return json.loads(tree.fit(X, X[:, 0]).to_json())


FILES = [long_history, strange_history, long_parameter, many_texts, many_labels, many_features]
FILES += [many_leaves, long_tree]


@pytest.mark.parametrize("make", FILES)
def test_memory_is_a_small_multiple_of_the_file(make):
    text = json.dumps(make(), separators=(",", ":"))
    assert memory_of(text) <= MOST * len(text) + BASE


PIECES = ["[],", "[[]],", "{},", '{"a":1},', "0,", "300,", "0.5,", '"ab",', "[0],", "[[[[0]]]],"]


@pytest.mark.parametrize("piece", PIECES)
def test_no_json_takes_much_more_memory_than_its_bytes(piece):
    text = '{"format":"shapetree-model","version":1,"a":[' + piece * 10**5 + "0]}"
    assert memory_of(text) <= MOST * len(text) + BASE


def test_limits_hold_for_all_outputs_together():
    content = classes()
    output = {"type": "<U9999", "labels": ["a"]}
    content["target"]["outputs"] = [output] * 500
    text = json.dumps(content)
    with pytest.raises(NotAModel, match="labels would take too much memory"):
        from_json(text)
    assert memory_of(text) <= MOST * len(text) + BASE


def test_labels_of_too_wide_a_type_are_not_written():
    X, y = noisy_classes(np.random.default_rng(0), n_classes=3)
    wide = ShapeTreeClassifier(max_depth=1).fit(X, y.astype("<U9"))
    wide._fitted = replace(wide._fitted, classes=(wide.classes_.astype("<U9"),))
    assert from_json(wide.to_json()).classes_.dtype == "<U9"
    wide._fitted = replace(wide._fitted, classes=(wide.classes_.astype("<U200000"),))
    with pytest.raises(ValueError, match="labels of type object"):
        wide.to_json()


def test_an_object_with_a_repeated_member_is_refused_in_linear_time():
    members = ",".join(f'"{i}":0' for i in range(400_000))
    with pytest.raises(NotAModel, match='the member "7" more than once'):
        from_json(f'{{{members},"7":0}}')


def test_names_may_be_made_of_brackets():
    names = ["[" * 2000 + str(i) for i in range(4)]
    X, y = noisy_classes(np.random.default_rng(0))
    tree = ShapeTreeClassifier(max_depth=1).fit(pd.DataFrame(X, columns=names), y)
    assert from_json(tree.to_json()).feature_names_in_.tolist() == names


# Features of many levels


def many_levels(n_levels=300, n_classes=20):
    rng = np.random.default_rng(0)
    level = rng.integers(n_levels, size=3_000)
    X = pd.DataFrame({"a": pd.Categorical(level), "b": rng.normal(size=3_000)})
    tree = ShapeTreeClassifier(max_depth=2, max_parts=None, refine=None, teacher=None, n_threads=1)
    return tree.fit(X, (level * 7 + rng.integers(2, size=3_000)) % n_classes)


def without_packing(tree):
    """A model file with every count of its own."""
    content = json.loads(tree.to_json())
    for node, sketch in zip(content["nodes"], tree.tree_.sketches, strict=True):
        if sketch.density is not None:
            node["sketch"]["density"]["counts"] = sketch.density.counts.T.tolist()
    return json.dumps(content)


@pytest.mark.parametrize("seed", range(30))
def test_counts_come_out_as_they_were_packed(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, size=rng.integers(1, 12, size=2)).astype(np.int32)
    counts[rng.random(counts.shape) < rng.random()] = 0
    one = PackedCounts.of(counts)
    np.testing.assert_array_equal(one.dense(), counts, strict=True)
    for number, its in enumerate(np.split(one.runs, one.start[1:-1])):
        cells = chain.from_iterable([0] * -run if run < 0 else [run] for run in its.tolist())
        assert list(cells) == counts[:, number].tolist()
        assert not any(a < 0 and b < 0 for a, b in pairwise(its.tolist()))


def test_a_feature_of_many_levels_makes_a_small_file():
    tree = many_levels()
    text = tree.to_json()
    assert len(text) < len(without_packing(tree)) / 4
    read = from_json(text)
    assert read.to_json() == text
    assert export_html(read) == export_html(tree)
    np.testing.assert_array_equal(read.shape_table()["n_rows"], tree.shape_table()["n_rows"])
    Draft202012Validator(model_schema()).validate(json.loads(text))
    assert memory_of(text) <= MOST * len(text) + BASE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda runs: [*runs[:-1], runs[-1] - 1], "must (stand for|add up)"),
        (lambda runs: [-1, -1, *runs[1:]], "one negative number for all cells side by side"),
        (lambda runs: [0, *runs[1:]], "one negative number for all cells side by side"),
        (lambda runs: [-(10**9)], "must be a whole number between -300 and"),
        (lambda runs: [1] * 300, "must add up, with the missing"),
        (lambda runs: ["1", *runs[1:]], "must be a whole number"),
        (lambda runs: [], "must stand for 300 cells, got 0"),
        (lambda runs: 0, "must be a list"),
    ],
)
def test_packed_counts_are_checked(change, words):
    content = json.loads(many_levels().to_json())
    runs = content["nodes"][0]["sketch"]["density"]["counts"]
    runs[0] = change(runs[0])
    with pytest.raises(NotAModel, match=words):
        from_json(json.dumps(content))


@pytest.mark.parametrize("lists", [[[], [1, 2]], [[]], [[], []], [[3], [], [1, 2], []], [[], [9]]])
def test_lists_ascend_each_on_its_own(lists):
    kind = ListOf(ListOf(Number(), ascends=True, is_strict=True))
    assert kind.read(Part(lists)).values.tolist() == list(chain.from_iterable(lists))
    for wrong in ([[], [2, 1]], [[1], [], [2, 3], [5, 4]], [[7, 7], []]):
        with pytest.raises(NotAModel, match="must ascend"):
            kind.read(Part(wrong))


# Texts that never end, and refusals


@pytest.mark.parametrize(
    "text",
    [
        lambda n: "{" + "[" * (n + 1000) + '"' + '\\"' * n,
        lambda n: "{" + "[" * (n + 1000) + '"' + '\\"' * n + "\\",
        lambda n: "{" + '"\\' * n + "[[" * (n + 1000),
        lambda n: "{" + "[" * (n + 1000) + '"' * n,
    ],
)
def test_texts_without_an_end_take_linear_time(text):
    def seconds(n):
        given, start = text(n), process_time()
        with pytest.raises(NotAModel):
            from_json(given)
        return process_time() - start

    # In quadratic time, the last would take minutes.
    assert seconds(400_000) < 2.0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda model: model["parameters"].update({"x" * 5000: 1}),
        lambda model: model["parameters"].update(criterion="x" * 5000),
        lambda model: model["parameters"].update(max_depth=-(10**3000)),
        lambda model: model.update({"x" * 5000: 1}),
        lambda model: model["nodes"][0].update({"x" * 5000: 1}),
        lambda model: model.update(held_out={"rows": 1, "scores": {"x" * 5000: "x" * 5000}}),
        lambda model: model.update(names={"units": {"x" * 5000: 4}}),
        lambda model: model["target"]["outputs"][0].update(type="x" * 5000),
        lambda model: model["features"][0].update(name=["x" * 5000]),
    ],
)
def test_refusals_quote_at_most_200_characters_of_the_file(spoil):
    model = json.loads(ShapeTreeClassifier(max_depth=1).fit([[0], [1]] * 9, [0, 1] * 9).to_json())
    spoil(model)
    with pytest.raises(NotAModel) as refused:
        from_json(json.dumps(model))
    message = str(refused.value)
    assert max(message.count("x"), message.count("0")) <= 200
    assert len(message) < 400
