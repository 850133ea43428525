"""The commands of the page on git repositories stop a model with a loop."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.corpus import shipped_corpus
from tests.support.page_code import code_in

PAGE = "how-to/repositories.md"
REMOVABLE, LEFT = "jax2onnx__scan_map.onnx", "torch__script_rnn_if.onnx"


def hooks() -> list[str]:
    return re.findall(r"^ +entry: (.*)$", code_in(PAGE, "yaml", "Before each commit, with pre-commit")[0], re.MULTILINE)


def steps() -> list[str]:
    """Return the commands of the action that call ortscan."""
    return re.findall(r"^ +- run: (ortscan .*)$", code_in(PAGE, "yaml", "In CI, with a GitHub action")[0], re.MULTILINE)


def test_the_hooks_and_the_action_run_the_commands_of_the_page() -> None:
    (shown,) = code_in(PAGE, "sh")
    commands = [line.partition("#")[0].strip() for line in shown.splitlines()]
    assert hooks() == commands
    assert [step.partition(" && ")[0].replace('"$MODELS"', "models") for step in steps()] == commands


@pytest.mark.long
def test_the_action_fails_on_a_model_with_a_loop(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "MODELS": "models"}

    def run(command: str) -> int:
        done = subprocess.run(["bash", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode

    optimised, none_left = steps()
    (tmp_path / "models").mkdir()
    shutil.copy(shipped_corpus() / REMOVABLE, tmp_path / "models")
    assert run("git init -q . && git add models") == 0
    assert run(optimised) == 1
    assert run("git add models") == 0
    assert run(optimised) == 0
    assert run(none_left) == 0
    shutil.copy(shipped_corpus() / LEFT, tmp_path / "models")
    assert run(none_left) == 6
