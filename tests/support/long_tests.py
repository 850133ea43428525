"""Select the tests of a short run: it omits tests marked ``long``, and all but four evenly spread cases of a test with many.

A plain ``pytest`` is a short run. ``pytest --long`` runs all tests, and ``pytest -m long`` runs those that a short run omits. If
files or tests are named, all of them run. This module has hooks for a ``conftest.py``.
"""

from typing import Any

import pytest

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
]

_CASES = 4
_LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked long too, which a run without arguments leaves out")


def pytest_configure(config: pytest.Config) -> None:
    """Decide whether the run is short. Every worker has the same arguments and decides the same."""
    config.stash[_LEFT_OUT] = 0
    config.option.long |= config.args_source is pytest.Config.ArgsSource.ARGS or bool(config.option.markexpr)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Also mark the surplus cases of tests with many cases as long, except for tests marked ``whole``."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for alike in cases.values():
        kept = {place * len(alike) // _CASES for place in range(_CASES)}
        for place, item in enumerate(alike):
            if place not in kept and len(alike) > _CASES and not item.get_closest_marker("whole"):
                item.add_marker("long")
    if not config.option.long:
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.stash[_LEFT_OUT] = len(left_out)
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[_LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the number of omitted tests from a worker. All workers collect the same tests."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[_LEFT_OUT]:
        said = f"{config.stash[_LEFT_OUT]} long tests were left out: pytest --long runs them too, in about 17 minutes on two cores"
        terminalreporter.write_line(said)
