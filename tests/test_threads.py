"""Threads that cannot be started, in processes with real limits."""

import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

from shapetree import ShapeTreeClassifier, _threads

resource = pytest.importorskip("resource")

FIT = """
    import resource, sys
    import numpy as np
    from shapetree import ShapeTreeClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)

    def fit(n_threads, **options):
        model = ShapeTreeClassifier(max_depth=3, n_threads=n_threads, **options)
        print(model.fit(X, y).to_json().replace(f'"n_threads":{n_threads}', ""))
        print(model.predict(many).sum())

    many = np.repeat(X, 20, axis=0)
    fit(1)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) * 2**20,) * 2)
    fit(48)
"""


def run(program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.parametrize("megabytes", [150, 300, 2000])
def test_a_fit_goes_on_with_one_thread_where_others_cannot_be_started(megabytes):
    done = run(FIT, megabytes)
    assert done.returncode == 0, done.stderr
    before, *_ = lines = done.stdout.splitlines()
    assert lines == [before, lines[1]] * 2
    has_room = megabytes == 2000
    assert ("threads could not be started" in done.stderr) == (not has_room)


def test_one_warning_says_that_threads_cannot_be_started(monkeypatch):
    monkeypatch.setattr(_threads, "can_start", lambda n_threads: False)
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = ShapeTreeClassifier(max_depth=2, n_threads=37)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0] > 0)
    (warning,) = caught
    assert issubclass(warning.category, RuntimeWarning)
    assert "37 threads could not be started" in str(warning.message)
    assert "n_threads=1" in str(warning.message)


def test_small_predictions_start_no_threads(monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = ShapeTreeClassifier(max_depth=2, n_threads=3).fit(X, X[:, 0] > 0)
    monkeypatch.setattr(_threads, "start_team", None)
    found = []
    thread = threading.Thread(target=lambda: found.append(model.predict(X)))
    thread.start()
    thread.join()
    assert len(found[0]) == 500
