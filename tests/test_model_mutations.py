"""Spoilt model files are refused in a sentence, or they are models that work; nothing else.

Every batch has a process of its own, so that a crash, a hang or a great need of memory is seen.
`make attack` tries many more; `python model_mutants.py SEED COUNT` in this folder tries others.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("model_mutants.py")
N_MUTANTS = int(os.environ.get("MUTANTS", "2500"))
SEEDS = range(2)


@pytest.fixture(scope="module")
def batches():
    """Processes that run side by side, by their seeds."""
    started = {
        seed: subprocess.Popen(
            [sys.executable, "-X", "utf8", SCRIPT, str(seed), str(N_MUTANTS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for seed in SEEDS
    }
    yield started
    for process in started.values():
        process.kill()


@pytest.mark.parametrize("seed", SEEDS)
def test_spoilt_files_are_refused_or_work(seed, batches):
    output, errors = batches[seed].communicate(timeout=600)
    assert batches[seed].returncode == 0, errors[-4000:] + output[-4000:]
    *wrong, last = output.splitlines()
    assert not wrong, "\n".join(wrong)[:8000]
    word, n_mutants, n_read = last.split()
    assert (word, int(n_mutants)) == ("done", N_MUTANTS)
    assert N_MUTANTS * 0.1 < int(n_read) < N_MUTANTS * 0.5
