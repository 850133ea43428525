"""``ortscan completion``: the script for bash completes in bash, and those for other shells have the same words."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ortscan.__main__ import main
from ortscan.report.codes import CODES
from ortscan.targets import TARGETS

BASH = shutil.which("bash") or ""
COMPLETE = """
source {script}
COMP_WORDS=({words} "{last}") COMP_CWORD={position}
_ortscan
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def script_for(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "proposals"),
    [
        (["ortscan", "op"], ["optimize"]),
        (["ortscan", "--v"], ["--version"]),
        (["ortscan", "explain", "--fail"], ["--fail-on-loops", "--fail-on"]),
        (["ortscan", "explain", "m.onnx", "--target", "cu"], ["cuda"]),
        (["ortscan", "explain", "m.onnx", "--target", "="], list(TARGETS)),
        (["ortscan", "explain", "m.onnx", "--target", "=", "cu"], ["cuda"]),
        (["ortscan", "optimize", "--skip", "loop-fi"], ["loop-fission"]),
        (["ortscan", "optimize", "--skip", "unroll,loop-fi"], ["unroll,loop-fission"]),
        (["ortscan", "explain", "RECURR"], [code for code in CODES if code.startswith("RECURR")]),
        (["ortscan", "explain", "m.onnx", "--fail-on", "MEMORY-B"], ["MEMORY-BUDGET"]),
        (["ortscan", "migrate", "m.onnx", "--opset", ""], ["auto", "latest"]),
        (["ortscan", "cache", "i"], ["info"]),
        (["ortscan", "cache", "info", "i"], [""]),
        (["ortscan", "optimize", "mod"], [""]),
        (["ortscan", "completion", "z"], ["zsh"]),
    ],
)
def test_bash_completes(words: list[str], proposals: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert BASH, "this test needs bash"
    script = tmp_path / "ortscan.bash"
    script.write_text(script_for("bash", capsys))
    quoted = " ".join(f'"{word}"' for word in words[:-1])
    code = COMPLETE.format(script=script, words=quoted, last=words[-1], position=len(words) - 1)
    done = subprocess.run([BASH, "--norc", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines(), done.stderr) == (proposals, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_have_every_verb_target_and_code(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = script_for(shell, capsys)
    for word in ("optimize", "completion", "fail-on-loops", *TARGETS, *CODES):
        assert word in script


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "SHELL: 'csh' is not one of bash, zsh, fish" in capsys.readouterr().err
