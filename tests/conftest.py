"""Settings that all tests share."""

import signal

import pytest
from hypothesis import settings

from shapetree import _threads

settings.register_profile("shapetree", deadline=None, max_examples=60)
settings.load_profile("shapetree")

# Some tests press Ctrl-C; whoever starts them in the background may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def threads_at_once(monkeypatch):
    """Let loops use as many threads as they may, however little there is to do."""
    monkeypatch.setattr(_threads, "VISITS_PER_THREAD", 1)
