"""What happens to workers and clients of a Dask cluster does not happen to models."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

from dask_rows import (  # noqa: E402
    FEATURES,
    at_question,
    before_fit,
    fitted_twice,
    is_free,
    made_rows,
    same_file,
)

from shapetree.dask import DaskShapeTreeClassifier, _cluster  # noqa: E402

ROWS = made_rows(np.random.default_rng(1), 400)
SIZES = [90, 150, 0, 160]
# Seconds that no wait takes, however busy the machine.
LONG = 300
CONFIG = {
    # Who asks the dead waits that long.
    "distributed.comm.timeouts.connect": "2s",
    # Dask closes the nanny of a worker that has not come back by then, and starts no other. On a
    # busy machine 15 seconds are too few, and a worker that dies again may just be away.
    "distributed.deploy.lost-worker-timeout": "1h",
}
if sys.platform != "win32":
    # Workers start with most of their imports done.
    CONFIG["distributed.worker.multiprocessing-method"] = "forkserver"


@pytest.fixture(scope="module")
def client():
    """Two processes of two threads that can be killed; nannies start others in their place."""
    with (
        dask.config.set(CONFIG),
        distributed.LocalCluster(2, threads_per_worker=2, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def wait_until(is_so, what):
    """Wait for something that must come to be."""
    end = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.05)


def workers_of(client):
    """Names of the workers, by address."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return {address: worker["name"] for address, worker in workers.items()}


def scale(client, n_workers):
    """Have so many workers, none of them on its way to come or to go."""
    cluster = client.cluster
    cluster.scale(n_workers)
    wait_until(
        lambda: (
            set(workers_of(client).values()) == set(cluster.workers) == set(cluster.worker_spec)
        ),
        f"there are {n_workers} workers",
    )


def kill_one(client):
    """Kill a worker's process."""
    pids = client.run(os.getpid)
    os.kill(min(pids.values()), signal.SIGKILL)


def test_killed_workers_do_not_change_the_model(client, monkeypatch):
    before = workers_of(client)
    # One in the middle of growth, one in the middle of refinement.
    at_question(monkeypatch, "histograms", 2, lambda: kill_one(client))
    at_question(monkeypatch, "losses", 2, lambda: kill_one(client))
    near, far = fitted_twice(client, "classes", ROWS, SIZES)
    assert near.tree_.node_count > 5
    assert same_file(near, far)
    assert workers_of(client) != before


class InAnyOrder:
    """Makes a part whose rows come in another order each time."""

    def __call__(self, part):
        return part.sample(frac=1, random_state=time.time_ns() % 2**32).reset_index(drop=True)


def test_parts_that_come_back_in_another_order_are_refused(client, monkeypatch):
    frame = dd.from_map(InAnyOrder(), [ROWS[:200], ROWS[200:]], meta=ROWS.iloc[:0])
    at_question(monkeypatch, "histograms", 2, lambda: kill_one(client))
    model = DaskShapeTreeClassifier(client=client, max_depth=3, resamples=0)
    with pytest.raises(ValueError, match=r"part [01]: the rows have changed.*sort rows"):
        model.fit(frame[FEATURES], frame["class0"])
    assert not model.__sklearn_is_fitted__()


def test_the_only_worker_may_die_and_come_back(client, monkeypatch):
    scale(client, 1)
    at_question(monkeypatch, "losses", 1, lambda: kill_one(client))
    assert same_file(*fitted_twice(client, "means", ROWS, SIZES))


def test_a_fit_without_workers_says_so_and_goes_on_with_new_ones(client, monkeypatch):
    def lose():
        with dask.config.set({"distributed.deploy.lost-worker-timeout": "1ms"}):
            kill_one(client)
            wait_until(lambda: not client.cluster.workers, "Dask has given up the worker")
        threading.Timer(3, client.cluster.scale, [1]).start()

    scale(client, 1)
    monkeypatch.setattr(_cluster, "PATIENCE", 0.5)
    at_question(monkeypatch, "histograms", 2, lose)
    with pytest.warns(RuntimeWarning, match="the Dask cluster has no workers"):
        assert same_file(*fitted_twice(client, "greedy", ROWS, SIZES))


def test_workers_may_come_and_go(client, monkeypatch):
    at_question(monkeypatch, "histograms", 2, lambda: client.cluster.scale(2))
    at_question(monkeypatch, "losses", 3, lambda: scale(client, 1))
    assert same_file(*fitted_twice(client, "classes", ROWS, SIZES))


def test_a_restarted_scheduler_is_said(client, monkeypatch):
    _, model, given = before_fit(client, "classes", ROWS, SIZES)
    before = model.fit(*given).to_json()
    at_question(monkeypatch, "losses", 1, client.restart)
    with pytest.raises(RuntimeError, match=r"the Dask scheduler was restarted.*call it again"):
        model.fit(*given)
    assert model.to_json() == before
    assert model.fit(*given).to_json() == before


def test_clusters_may_adapt(client):
    adaptive = client.cluster.adapt(minimum=1, maximum=3, interval="200ms")
    try:
        assert same_file(*fitted_twice(client, "classes", ROWS, SIZES))
    finally:
        adaptive.stop()
    scale(client, 2)


def test_several_fits_share_a_cluster(client):
    cases = ["greedy", "means", "classes"]
    rows = [made_rows(np.random.default_rng(seed), 120) for seed in (5, 6, 7)]
    models = [
        before_fit(client, case, each, [50, 70]) for case, each in zip(cases, rows, strict=True)
    ]
    threads = [threading.Thread(target=far.fit, args=given) for _, far, given in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same_file(near, far) for near, far, _ in models)


def is_asked(client):
    """Whether a worker answers a question."""
    questions = "totals", "histograms", "losses", "all_nodes"
    keys = [str(key) for keys in client.processing().values() for key in keys]
    return any(f"shapetree-{question}" in key for question in questions for key in keys)


INTERRUPTED = """
import sys
from dask_rows import fitted_twice, made_rows, np
from distributed import Client

with Client(sys.argv[1]) as client:
    rows = made_rows(np.random.default_rng(0), 2_000)
    print("begins", flush=True)
    try:
        while True:
            fitted_twice(client, "classes", rows, [500] * 4)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.stdin.readline()
        print(client.submit(int, "7").result(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_a_client_may_be_interrupted(client):
    assert is_free(client)
    fit = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, client.cluster.scheduler_address],
        cwd=os.path.dirname(__file__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert fit.stdout.readline() == "begins\n"
    wait_until(lambda: is_asked(client), "the parts are asked")
    fit.send_signal(signal.SIGINT)
    assert fit.stdout.readline() == "interrupted\n"
    # The client lives on, but not what it had the workers hold.
    assert is_free(client)
    assert fit.communicate("\n", timeout=60)[0] == "7\n"
    assert same_file(*fitted_twice(client, "greedy", ROWS, SIZES))
