"""Every module can be imported, and the examples in its docstrings give what they show."""

import doctest
import importlib
import pkgutil

import pytest

import vitrail

# kernels need their compilers; their own tests import them where those are present
MODULES = [
    module.name
    for module in pkgutil.walk_packages(vitrail.__path__, "vitrail.")
    if not module.name.startswith("vitrail.kernels.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name):
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0
