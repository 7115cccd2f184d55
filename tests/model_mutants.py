"""Spoils model files and reads them; `test_model_mutations` runs this in processes of its own.

    python model_mutants.py SEED COUNT [MODEL ...]

Prints what goes wrong: anything but a refusal or a model that works.
"""

import faulthandler
import json
import random
import sys
import time
import traceback
import warnings

import numpy as np
import pandas as pd
from models_to_write import (
    forest_of_mixed,
    of_classes,
    of_mixed,
    of_numbers,
    of_several_outputs,
)

from shapetree import export_html, export_text, from_json

MAX_SECONDS = 2.0
MAX_BYTES = 200 * 2**20

SMALL = {"max_depth": 2, "inner_max_leaf_nodes": 3, "max_leaf_nodes": 5}
SMALL_FOREST = {"n_estimators": 3, "max_leaf_nodes": 5}
SEEDS = {
    "classes": lambda: of_mixed(["p", "q", "r"], **SMALL),
    "numbers": lambda: of_mixed(**SMALL),
    "pairs of classes": lambda: of_mixed(["p", "q"], pairs="all", **SMALL),
    "pairs of numbers": lambda: of_numbers(pairs="all", **SMALL),
    "no names": lambda: of_classes(shrinkage=5.0, **SMALL),
    "several outputs": lambda: of_several_outputs("texts", **SMALL),
    "forest of classes": lambda: forest_of_mixed(["p", "q", "r"], **SMALL_FOREST),
    "forest of numbers": lambda: forest_of_mixed(pairs=[(0, 2)], oob_score=True, **SMALL_FOREST),
}
NUMBERS = [0, 1, -1, 2, 3, 253, 254, 255, 2**31 - 2, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63]
NUMBERS += [10**9, 10**30, 10**400, 0.5, -0.0, 1e-320, 1e308, -1e308, 1.0, 2.0, 1e16]
OTHERS = [None, True, False, "", "NaN", "Infinity", "-Infinity", "a", "\ud800", [], {}, [0], [[]]]
OTHERS += [{"number": "Infinity"}, {"number": 1}, {"tuple": [1]}, {"pairs": [[1, 2]]}, [0] * 300]
OTHERS += ["<U9999", "<f8", "|O", "number", "category", "whole", "classes", "numbers", "gini"]


def paths_of(content):
    """Paths to every part of a file, by what kind of part it is."""
    kinds = {}

    def visit(part, path):
        if path:
            kind = tuple("#" if isinstance(key, int) else key for key in path)
            kinds.setdefault(kind, []).append(path)
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in items:
            if isinstance(value, dict | list):
                visit(value, (*path, key))
            else:
                kind = tuple("#" if isinstance(key, int) else key for key in (*path, key))
                kinds.setdefault(kind, []).append((*path, key))

    visit(content, ())
    return list(kinds.values())


def holder_of(content, path):
    """The part that holds what a path leads to; None where a change before has cut it off."""
    holder = None
    for key in path:
        holder = content
        try:
            content = holder[key] if isinstance(holder, dict | list) else None
        except (KeyError, IndexError, TypeError):
            return None
    return holder if isinstance(holder, dict | list) else None


def nudged(value, rng):
    """A number that is a little or very different; other values stay."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    step = rng.choice([1, -1, 2, -3, 1000])
    if abs(value) > 1e308:
        return -value
    return rng.choice([value + step, -value, value * step, float(value), value + 1e-9])


def spoil(content, kinds, rng):
    """Change one part of a file."""
    path = rng.choice(rng.choice(kinds))
    holder = holder_of(content, path)
    if holder is None:
        return
    key, action = path[-1], rng.randrange(9)
    other_path = rng.choice(rng.choice(kinds))
    other = holder_of(content, other_path)
    if action == 0:
        del holder[key]
    elif action == 1:
        holder[key] = rng.choice(NUMBERS)
    elif action == 2:
        holder[key] = rng.choice(OTHERS)
    elif action in (3, 4):
        holder[key] = nudged(holder[key], rng)
    elif action == 5 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), holder[key])
    elif action == 6 and isinstance(holder, list):
        place = rng.randrange(len(holder))
        holder[key], holder[place] = holder[place], holder[key]
    elif action == 7 and other is not None:
        holder[key] = json.loads(json.dumps(other[other_path[-1]]))
    elif isinstance(holder, dict):
        holder[rng.choice(["new", "weight", "split", "sketch", "edges", "missing"])] = holder[key]


def spoil_bytes(text, rng):
    """Change some bytes."""
    content = bytearray(text.encode())
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at, to = sorted(rng.randrange(len(content)) for _ in range(2))
        action = rng.randrange(6)
        if action == 0:
            content[at] ^= 1 << rng.randrange(8)
        elif action == 1:
            content[at] = rng.choice(b'0123456789.-e,:"[]{}tfn\\ ')
        elif action == 2:
            content[at:at] = bytes(rng.choice([b"0", b"9", b"-", b"e9", b",", b"[", b"\x00", b"1"]))
        elif action == 3:
            del content[at : at + rng.randrange(1, 9)]
        elif action == 4:
            content[at:at] = content[at : min(to, at + 40)]
        elif rng.random() < 0.2:
            del content[to:]
        content = content or bytearray(b"{")
    return content.decode("utf-8", "surrogateescape")


def mutant(text, kinds, rng):
    if rng.random() < 0.25:
        return spoil_bytes(text, rng)
    content = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        spoil(content, kinds, rng)
    return json.dumps(content)


def rows_for(tree):
    """Rows with all kinds of values that a tree may be asked about."""
    numbers = [0.0, -1e9, 0.3, np.nan, np.inf, -np.inf, 150.0, 1e308]
    columns = {}
    for j, feature in enumerate(tree._fitted.features):
        values = [*(feature.categories or ())[:5], "unseen", None, *numbers]
        chosen = numbers if feature.categories is None else values[:8]
        columns[j] = pd.Series(chosen[j % 8 :] + chosen[: j % 8], dtype=object)
    frame = pd.DataFrame(columns)
    if hasattr(tree, "feature_names_in_"):
        return frame.set_axis(pd.Index(tree.feature_names_in_, dtype=object), axis=1)
    return frame.to_numpy(dtype=object)


def use(tree, is_thorough):
    """Do with a model what people do."""
    X = rows_for(tree)
    tree.predict(X)
    if hasattr(tree, "classes_"):
        tree.predict_proba(X)
    if hasattr(tree, "estimators_"):
        assert tree.apply(X).shape == (len(X), len(tree.estimators_))
        assert tree.feature_importances_.shape == (tree.n_features_in_,)
        if is_thorough:
            text = tree.to_json()
            assert from_json(text).to_json() == text
        return
    export_text(tree)
    [str(why) + str(why.flip) for why in tree.explain(X[:2])]
    if is_thorough:
        str(tree.rules())
        text = tree.to_json()
        assert from_json(text).to_json() == text
        if tree.n_outputs_ == 1:
            export_html(tree)


def rss():
    """Most bytes that this process has held; 0 where nobody tells."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def main(seed, count, names):
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    rng = random.Random(seed)
    seeds = []
    for name in names or SEEDS:
        text = SEEDS[name]()[0].to_json()
        seeds.append((text, paths_of(json.loads(text))))
        use(from_json(text), True)
    n_read, before = 0, rss()
    for number in range(count):
        text = mutant(*rng.choice(seeds), rng)
        if number % 100 == 0:  # setting it takes as long as reading a file
            faulthandler.dump_traceback_later(50 * MAX_SECONDS, exit=True)
        start = time.process_time()
        try:
            tree = from_json(text)
        except (ValueError, OSError) as refusal:
            if "\n" in str(refusal):
                print("two lines", repr(str(refusal)))
        except BaseException:
            print("reading", number, traceback.format_exc(limit=-4), text[:20_000])
        else:
            n_read += 1
            try:
                use(tree, n_read % 16 == 0)
            except BaseException:
                print("using", number, traceback.format_exc(limit=-6), text[:20_000])
        if time.process_time() - start > MAX_SECONDS:
            print("slow", number, time.process_time() - start, text[:20_000])
    faulthandler.cancel_dump_traceback_later()
    if rss() - before > MAX_BYTES:
        print("memory", rss() - before)
    print("done", count, n_read)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
