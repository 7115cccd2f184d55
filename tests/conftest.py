"""Settings that all tests share."""

import os
import signal

import pytest
from hypothesis import settings

from shapetree import _threads

# The same examples in every run; `make attack` draws others, and says how to repeat what fails.
is_attack = "ATTACK" in os.environ
settings.register_profile(
    "shapetree", deadline=None, max_examples=60, derandomize=not is_attack, print_blob=is_attack
)
settings.load_profile("shapetree")

# Files that take longest, mostly by waiting for other processes. They come first: one that began
# last would keep a single core busy, or none, while the others have nothing left to do.
LONGEST = ("test_dask_faults.py", "test_page.py", "test_plot.py", "test_cli.py", "test_dask.py")

# Some tests press Ctrl-C; whoever starts them in the background may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def threads_at_once(monkeypatch):
    """Let loops use as many threads as they may, however little there is to do."""
    monkeypatch.setattr(_threads, "VISITS_PER_THREAD", 1)


def pytest_collection_modifyitems(items):
    """Let the files that take longest come first, and leave all others in their order."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))
