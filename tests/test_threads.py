"""Threads that cannot be started, in processes with real limits."""

import os
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from functools import partial

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


def run(program, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        capture_output=True, text=True, timeout=120, env=os.environ | environment,
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.parametrize(
    ("name", "size", "has_room"),
    [
        ("OMP_STACKSIZE", "64M", False),
        ("OMP_STACKSIZE", " 65536 ", False),
        ("OMP_STACKSIZE", "67108864 b", False),
        ("GOMP_STACKSIZE", "65536k", False),
        ("OMP_STACKSIZE", "1G", False),
        ("OMP_STACKSIZE", "512k", True),
        ("OMP_STACKSIZE", "much", True),
    ],
)
def test_threads_are_tried_with_the_stacks_that_openmp_gives_them(name, size, has_room):
    program = (
        FIT.replace("fit(48)", "fit(4)").replace("100_000", "40_000").replace("20, axis", "5, axis")
    )
    done = run(program, 150, **{name: size})
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == lines[2:]
    assert ("4 threads could not be started" in done.stderr) == (not has_room)


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root, to become another user"
)
@pytest.mark.parametrize("stack", ["64M", "512k"])
def test_a_fit_goes_on_with_one_thread_where_no_process_may_be_added(stack):
    limit = """
    import os
    os.setuid(65534)  # root may start any number
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    """
    program = textwrap.dedent(FIT).partition("with open")[0] + textwrap.dedent(limit) + "fit(48)"
    done = run(program, OMP_STACKSIZE=stack)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == lines[2:]
    assert "48 threads could not be started" in done.stderr


def slow_square(i):
    time.sleep(0.002)
    return i * i


def test_jobs_whose_threads_cannot_be_started_are_done_by_others(monkeypatch):
    start, n_started = threading.Thread.start, []

    def start_two(thread):
        n_started.append(thread)
        if len(n_started) > 2:
            raise RuntimeError("can't start new thread")
        start(thread)

    for limit in (0, 1, 2):
        n_started[:] = [None] * (2 - limit)
        monkeypatch.setattr(threading.Thread, "start", start_two)
        stop = threading.Event()
        with pytest.warns(RuntimeWarning, match="runs on fewer"):
            found = _threads.run_together([partial(slow_square, i) for i in range(50)], 4, stop)
        assert found == [i * i for i in range(50)]
        assert not stop.is_set()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_error_of_a_job_is_raised_and_the_rest_is_left(n_threads):
    done, stop = [], threading.Event()

    def job(number):
        if number == 5:
            raise ValueError("the fifth")
        time.sleep(0.001)
        done.append(number)

    with pytest.raises(ValueError, match="the fifth"):
        _threads.run_together([partial(job, i) for i in range(1000)], n_threads, stop)
    assert len(done) < 20


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
