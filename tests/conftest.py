"""Hypothesis profiles: `default` draws the same examples in every run; `--hypothesis-profile=explore` draws new ones.

The many processes that tests start find modules compiled, whatever the environment says of that.
"""

import os
import sys

from hypothesis import HealthCheck, settings

from tests.support.long_tests import (  # noqa: F401  (pytest finds its hooks here)
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# random models are big draws: some overrun hypothesis's entropy, which costs examples and nothing else
_big = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.register_profile("default", _big, derandomize=True, max_examples=60, database=None)
settings.register_profile("explore", _big, derandomize=False, max_examples=1000)
settings.load_profile("default")
