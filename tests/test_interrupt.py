"""Ctrl-C ends a long fit soon, and the estimator is as it was."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from shapetree import SearchOptions, ShapeTreeClassifier

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

LONG_FIT = """
import sys

import numpy as np

from shapetree import SearchOptions, ShapeTree{kind}

X = np.random.default_rng(0).random((4_000_000, 4), dtype=np.float32)
y = np.random.default_rng(1).integers(0, 5, len(X))
search = SearchOptions(segment_penalty=0, leaf_penalty=0)
model = ShapeTree{kind}(max_depth=None, max_bins={max_bins}, search=search)
if {fitted}:
    model.fit(X[:100], y[:100])
before = dict(vars(model))
print("fitting", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    after = vars(model)
    same = after.keys() == before.keys() and all(after[name] is before[name] for name in after)
    print("interrupted,", "unchanged" if same else "changed", flush=True)
else:
    print("finished", flush=True)
"""


@pytest.mark.parametrize(
    ("kind", "max_bins", "fitted", "delay"),
    [
        ("Classifier", 255, False, 0.1),
        ("Classifier", 255, True, 1.5),
        ("Regressor", 255, False, 1.5),
        ("Classifier", None, False, 0.5),
        ("Regressor", None, True, 2.5),
    ],
)
def test_ctrl_c_stops_a_long_fit_and_changes_nothing(kind, max_bins, fitted, delay):
    script = LONG_FIT.format(kind=kind, max_bins=max_bins, fitted=fitted)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "fitting\n"
            time.sleep(delay)
            child.send_signal(signal.SIGINT)
            began = time.perf_counter()
            answer = child.stdout.readline()
            waited = time.perf_counter() - began
        finally:
            child.kill()
    assert answer == "interrupted, unchanged\n"
    assert waited < 3  # about one second on an idle machine


@pytest.mark.parametrize("assignment", ["auto", "coordinate_descent", "kmeans", "random"])
def test_a_signal_is_heard_while_many_levels_are_assigned(assignment):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3000, (30_000, 1)), rng.integers(0, 400, 30_000)
    search = SearchOptions(segment_penalty=0, leaf_penalty=0, assignment=assignment)
    limits = {"max_branches": 100, "max_depth": 1, "refine": None, "n_threads": 1}
    model = ShapeTreeClassifier(categorical_features=[0], search=search, **limits)
    rang = []

    def ring(*_):
        rang.append(time.perf_counter())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            [model.fit(X, y) for _ in range(100)]
        ended = time.perf_counter()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended - rang[0] < 1
