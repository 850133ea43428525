"""The first line of a report."""

import json
import re

import onnx
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.report.answer import Answer
from ortscan.report.ratio import Speedup, ratio_of
from tests.support.small_models import MAP, RECURRENCE
from tests.support.text import parsed

FASTER = Speedup(1.2e-4, 4e-5, ratio_of([3.0] * 9), {"T": 64}, "T=64")
ALIKE = Speedup(1.2e-4, 1.2e-4, ratio_of([0.99, 1.0, 1.01] * 3), {}, "fixed sizes")
UNCLEAR = Speedup(1.2e-4, 1.2e-4, ratio_of([0.8, 1.0, 1.4] * 3), {}, "fixed sizes")


@pytest.mark.parametrize(
    ("answer", "line", "look"),
    [
        (
            Answer(True, 1, 1, 0, 0, "equal", 12, FASTER),
            "3.0 x faster (40.0 µs instead of 120 µs, T=64) · 1 of 1 loop gone · equal on 12 cases",
            "good",
        ),
        (
            Answer(True, 2, 1, 0, 0, "equal", 1, ALIKE),
            "as fast as before (120 µs, fixed sizes) · 1 of 2 loops gone · equal on 1 case",
            "some",
        ),
        (
            Answer(True, 1, 1, 0, 0, "equal", 2, UNCLEAR),
            "no measurable difference (0.80 to 1.40 x, fixed sizes) · 1 of 1 loop gone · equal on 2 cases",
            "some",
        ),
        (Answer(True, 1, 1, 0, 0, "different", 2), "1 of 1 loop gone · NOT equal", "bad"),
        (Answer(True, 1, 1, 0, 0, "not compared"), "1 of 1 loop gone · not compared", "some"),
        (
            Answer(False, 0, 0, 0, 0, "inconclusive"),
            "nothing changed · the model has no Scan or Loop · nothing could be compared",
            "some",
        ),
        (
            Answer(True, 3, 1, 2, 0, None, 0, FASTER, ALIKE),
            "3.0 x faster if ortscan's library is registered (40.0 µs instead of 120 µs, T=64), 1.00 x if not · 1 of 3 loops gone, 2 compiled",
            "good",
        ),
        (Answer(True, 1, 1, 0, 0, "inconclusive", 3), "1 of 1 loop gone · not proven equal", "some"),
        (Answer(False, 3, 0, 1, 0, "not compared"), "nothing changed · 2 loops left, 1 compiled · not compared", "some"),
        (Answer(True, 2, 0, 2), "2 of 2 loops compiled", "good"),
        (Answer(True, 2, 1, 0, 1), "1 of 2 loops gone, 1 only as a fallback", "some"),
    ],
)
def test_an_answer_is_one_line_with_a_colour(answer: Answer, line: str, look: str) -> None:
    assert (str(answer), answer.look) == (line, look)


def test_optimize_and_its_report_start_with_the_same_answer(tmp_path, capsys) -> None:
    onnx.save(parsed(MAP), tmp_path / "m.onnx")
    assert main(["optimize", str(tmp_path / "m.onnx"), "--dry-run", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["answer"]
    assert answer["speedup"]["before"] > 0
    assert (answer["loops"], answer["gone"], answer["outcome"], answer["speedup"]["sizes"]) == (1, 1, "equal", {"T": 64})
    _, report = ortscan.optimize(parsed(MAP), report=True)
    for text in (answer["text"], str(report)):
        assert re.match(r".* \(.*T=64\) · 1 of 1 loop gone · equal on \d+ cases", text)


def test_nothing_is_timed_without_a_comparison(tmp_path, capsys) -> None:
    onnx.save(parsed(MAP), tmp_path / "m.onnx")
    assert main(["optimize", str(tmp_path / "m.onnx"), "--dry-run", "--no-verify"]) == 0
    assert capsys.readouterr().out.startswith("1 of 1 loop gone · not compared\n")
    assert str(ortscan.optimize(parsed(MAP), verify=False, report=True)[1]).startswith("1 of 1 loop gone · not compared\n")


def test_a_model_for_another_processor_is_not_timed() -> None:
    _, report = ortscan.optimize(parsed(MAP), target="cuda", report=True)
    assert str(report).startswith("1 of 1 loop gone · equal on ")
    assert str(report).splitlines()[0].endswith(" · not timed: the target is cuda, and only the CPU is timed")


def test_an_explanation_does_not_speak_of_a_comparison() -> None:
    assert str(ortscan.explain(parsed(RECURRENCE))).startswith("nothing changed · 1 loop left\n")
