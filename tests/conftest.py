"""What every test runs under: one torch thread per worker, repeatable Hypothesis examples."""

import pytest
import torch
from hypothesis import settings

# Workers share the cores; more threads than cores makes small tensors many times slower.
torch.set_num_threads(1)

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
