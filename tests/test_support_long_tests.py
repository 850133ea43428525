"""A short run leaves out what is marked long, says so, and says how to run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOOKS = "from tests.support.long_tests import *\n"
TESTS = """
import pytest

@pytest.mark.long
def test_long(): pass

@pytest.mark.parametrize("n", range(9))
def test_many(n): pass

@pytest.mark.whole
@pytest.mark.parametrize("n", range(5))
def test_all(n): pass

def test_short(): pass
"""
INI = "[pytest]\nmarkers =\n  long: l\n  whole: w\n"


@pytest.mark.parametrize(
    ("arguments", "passed", "said"),
    [
        ([], "10 passed, 6 deselected", True),
        (["-n", "2"], "10 passed", True),
        (["--long"], "16 passed", False),
        (["-n", "2", "--long"], "16 passed", False),
        (["-m", "long"], "6 passed, 10 deselected", False),
        (["test_some.py"], "16 passed", False),
        (["-n", "2", "test_some.py::test_long"], "1 passed", False),
    ],
)
def test_a_run_has_the_tests_that_were_asked_for(tmp_path, arguments, passed, said):
    for name, text in (("conftest.py", HOOKS), ("test_some.py", TESTS), ("pytest.ini", INI)):
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert f"{passed} in" in done.stdout, done.stdout + done.stderr
    assert ("6 long tests were left out: pytest --long" in done.stdout) == said
