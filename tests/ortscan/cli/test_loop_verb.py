"""``ortscan loop STEP OUT`` writes the whole loop, and says in one line what it gains."""

import json
import re
from pathlib import Path

import onnx
import pytest

from ortscan.__main__ import main
from ortscan.benchmark.step_times import time_steps
from ortscan.looping import whole_loop
from ortscan.report.answer import Answer
from rewrites.stepping.step_roles import RoleNames
from tests.support.text import parsed

STEP = """g (float[2] h, float[2] x) => (float[2] h1, float[2] y, bool[2] done) {
    h1 = Add (h, x) y = Neg (h1) done = Less (h1, y) }"""
ROLES = ["--state", "h=h1", "--scan", "x=1", "--initial", "h=0.5"]


@pytest.fixture
def step(tmp_path: Path) -> str:
    onnx.save(parsed(STEP), tmp_path / "step.onnx")
    return str(tmp_path / "step.onnx")


def test_the_loop_is_written_and_the_first_line_is_the_answer(step: str, tmp_path: Path, capsys) -> None:
    out = tmp_path / "whole.onnx"
    words = ["--stop", "done", "--max-steps", "9", "--return", "y", "--return", "h1", "--stack", "y=1", "--verify", "quick"]
    assert main(["loop", step, str(out), *ROLES, *words]) == 0
    whole = onnx.load(out)
    assert [value.name for value in whole.graph.input] == ["x"]
    assert [value.name for value in whole.graph.output] == ["y", "h1"]
    first, *others = capsys.readouterr().out.splitlines()
    assert re.search(r" · a Loop instead of one call for each step · equal on [0-9]+ cases? of [0-9]( to [0-9])? steps?$", first)
    assert any(line.startswith("verified on onnxruntime: equal on ") and "executed steps in " in line for line in others)
    assert others[-1].startswith(f"wrote {out}")


def test_json_has_the_answer_and_the_verification(step: str, capsys) -> None:
    assert main(["loop", step, "--dry-run", *ROLES, "--json", "--verify", "quick"]) == 0
    document = json.loads(capsys.readouterr().out)
    answer = document["answer"]
    assert "a Scan instead of one call" in answer["text"]
    assert (answer["outcome"], answer["kind"], answer["cases"] > 0) == ("equal", "Scan", True)
    assert set(answer) > set(vars(Answer(True, 1, 0, 0)))
    assert document["verification"]["ok"]
    assert document["output"] is None


def test_nothing_is_compared_or_timed_if_not_asked(step: str, capsys) -> None:
    assert main(["loop", step, "--dry-run", *ROLES, "--no-verify"]) == 0
    assert capsys.readouterr().out.startswith("a Scan instead of one call for each step · not compared\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--state", "h"], "--state: 'h' is not of the form NAME=VALUE."),
        (["--state", "h=h1", "--state", "h=y"], "--state names 'h' twice."),
        (["--scan", "x=a"], "--scan: 'a' is not the number of an axis."),
        (["--initial", "h=a"], "--initial: 'a' is not a number."),
        (["--state", "h=h1", "--max-steps", "0"], "must be a whole number above 0, or the name of a new input, not 0."),
        (["--state", "h=h1"], "The number of steps is unknown: scan an input, or set --max-steps."),
        (["--state", "h=h2"], "--state: the step has no output 'h2'"),
        ([*ROLES, "--stop", "y"], "--stop: the output 'y' must be bool, not float32"),
        ([*ROLES, "--return", "y", "--return", "y"], "--return names 'y' twice."),
        ([*ROLES, "--return", "y", "--stack", "done"], "--stack: 'done' is not among the returned outputs."),
    ],
)
def test_wrong_usage_is_one_line(words: list[str], message: str, step: str, capsys) -> None:
    assert main(["loop", step, "--dry-run", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


def test_a_folder_of_steps_is_refused(tmp_path: Path, capsys) -> None:
    assert main(["loop", str(tmp_path), "out.onnx", *ROLES]) == 2
    assert capsys.readouterr().err == f"ortscan: error: {tmp_path} is a folder, but this command reads one model.\n"


def test_a_step_that_no_inputs_fit_has_no_time() -> None:
    never = "g (float[2] h, float[N] x) => (float[2] h1) <int64[1] nine = {999}> { y = Reshape (x, nine) z = Gather (y, y0) h1 = Add (h, z) }"
    text = never.replace("z = Gather (y, y0) h1 = Add (h, z)", "m = ReduceMax (y) h1 = Add (h, m)")
    whole = whole_loop(parsed(text), RoleNames({"h": "h1"}, max_steps=2))
    assert time_steps(whole.step, whole.loaded, whole.roles, shapes={"x": [3]}) is None


def test_the_time_of_a_loop_that_stops_names_the_steps_that_ran() -> None:
    text = "g (float[2] h, float[2] x) => (float[2] h1, bool done) <bool yes = {1}> { h1 = Add (h, x) done = Identity (yes) }"
    whole = whole_loop(parsed(text), RoleNames({"h": "h1"}, scan={"x": 0}, stop="done"))
    speedup = time_steps(whole.step, whole.loaded, whole.roles)
    assert speedup is not None
    assert speedup.sizes["executed steps"] == 1
    assert speedup.label.endswith("executed steps=1")
