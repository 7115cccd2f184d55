"""Settings that all tests share, and what a run says of tests that were skipped."""

import gc
import os
import re
import signal

import pytest
from chance import TIMES, examples
from hypothesis import settings
from needs import EVERYWHERE, absent

from shapetree import _threads

is_attack = TIMES > 0
settings.register_profile(
    "shapetree",
    examples(60),
    deadline=None,
    derandomize=not is_attack,
    print_blob=is_attack,
)
settings.load_profile("shapetree")

# Some tests press Ctrl-C; whoever starts them in the background may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """Let garbage collections pass over all that the tests have imported, which stays."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def threads_at_once(monkeypatch):
    """Let loops use as many threads as they may, however little there is to do."""
    monkeypatch.setattr(_threads, "VISITS_PER_THREAD", 1)


def modules_missing(reporter):
    """Names of modules that skipped tests asked for in vain."""
    reasons = (str(report.longrepr) for report in reporter.stats.get("skipped", []))
    found = (re.search(r"could not import '([\w.]+)'", reason) for reason in reasons)
    return {match[1].partition(".")[0] for match in found if match}


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session):
    """Let a run that must test all (EVERYTHING=1) fail if something was not installed."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("EVERYTHING") and reporter is not None:
        lacking = (EVERYWHERE & set(absent())) | (modules_missing(reporter) - {"pyspark"})
        if lacking:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Say in one line, after all others, what was not tested, and what would bring it."""
    result = yield
    programs = [f"{name} (package {package})" for name, package in sorted(absent().items())]
    modules = [f"{name} (pip)" for name in sorted(modules_missing(terminalreporter))]
    if programs or modules:
        lacking = ", ".join(programs + modules)
        terminalreporter.write_line(f"not tested, as it is not installed: {lacking}", yellow=True)
    else:
        terminalreporter.write_line("all that tests need is installed")
    return result
