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
pytest.importorskip("dask.dataframe")

from dask_rows import at_question, fitted_twice, is_free, made_rows, same_file  # noqa: E402

ROWS = made_rows(np.random.default_rng(1), 400)
SIZES = [90, 150, 0, 160]


@pytest.fixture(scope="module")
def client():
    """Two processes of two threads that can be killed; nannies start others in their place."""
    # Who asks the dead waits that long.
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
        distributed.LocalCluster(2, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def workers_of(client):
    """Addresses of the workers."""
    return set(client.scheduler_info(n_workers=-1)["workers"])


def scale(client, n_workers):
    """Have so many workers."""
    client.cluster.scale(n_workers)
    while len(workers_of(client)) != n_workers:
        time.sleep(0.1)


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


def test_the_only_worker_may_die_and_come_back(client, monkeypatch):
    scale(client, 1)
    at_question(monkeypatch, "losses", 1, lambda: kill_one(client))
    assert same_file(*fitted_twice(client, "means", ROWS, SIZES))


def test_workers_may_come_and_go(client, monkeypatch):
    at_question(monkeypatch, "histograms", 2, lambda: client.cluster.scale(2))
    at_question(monkeypatch, "losses", 3, lambda: scale(client, 1))
    assert same_file(*fitted_twice(client, "classes", ROWS, SIZES))


def test_clusters_may_adapt(client):
    adaptive = client.cluster.adapt(minimum=1, maximum=3, interval="200ms")
    try:
        assert same_file(*fitted_twice(client, "classes", ROWS, SIZES))
    finally:
        adaptive.stop()
    scale(client, 2)


def test_several_fits_share_a_cluster(client):
    rows = [made_rows(np.random.default_rng(seed), 120) for seed in (5, 6, 7)]
    found = {}

    def fit(number):
        case = ["greedy", "means", "classes"][number]
        found[number] = fitted_twice(client, case, rows[number], [50, 70])

    threads = [threading.Thread(target=fit, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same_file(*found[number]) for number in range(3))


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
    while not any("ask_part" in str(key) for keys in client.processing().values() for key in keys):
        time.sleep(0.01)
    fit.send_signal(signal.SIGINT)
    assert fit.stdout.readline() == "interrupted\n"
    # The client lives on, but not what it had the workers hold.
    assert is_free(client)
    assert fit.communicate("\n", timeout=60)[0] == "7\n"
    assert same_file(*fitted_twice(client, "greedy", ROWS, SIZES))
