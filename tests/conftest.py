"""What every test runs under: one torch thread per worker, repeatable Hypothesis examples."""

import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from forks import Forks
from hypothesis import settings

# Workers share the cores; more threads than cores makes small tensors many times slower.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes that tests start

# A shell starts jobs in the background with Ctrl-C ignored; tests interrupt themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("fresh", deadline=None, print_blob=True)  # of make test-all
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window, driven by Playwright; skipped where either is missing."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed; apt install chromium")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # it cannot be used by root
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=sandbox)
        yield started
        started.close()


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """A process that runs scripts in forks of itself."""
    made = Forks()
    yield made
    made.end()
