"""What every process that judges needs, read before it is forked: a process that died is replaced in no time."""

import contextlib
import importlib
import pkgutil

import ortscan
import rewrites
from tests.campaigns.fuzz import workers
from tests.support.kernels import has_kernel

__all__: list[str] = []

for package in (ortscan, rewrites):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(("__main__", "libortscan")):
            with contextlib.suppress(ImportError):  # a host that is not installed
                importlib.import_module(module.name)
importlib.import_module("sympy")
assert workers
has_kernel("Add", 14, "float32")
