"""Errors on the command line name flags, and reports in Python name keywords."""

import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.explaining import explained
from ortscan.option_words import in_flags, in_keywords, keywords_text
from ortscan.report.codes import CODES, Code
from tests.support.small_models import RECURRENCE, SCHEDULE
from tests.support.text import parsed


@pytest.mark.parametrize(
    ("keywords", "flags"),
    [
        ("fix_dims: no input has a free dimension 'X'.", "--fix-dim: no input has a free dimension 'X'."),
        ("opset must be 'auto', not 'x'.", "--opset must be 'auto', not 'x'."),
        ("inputs['x'] is int64", "--inputs: 'x' is int64"),
        ("pass it with inputs={...}, or its shape with shapes={...}.", "pass it with --inputs, or its shape with --shape."),
        ("fix the input that chooses it (fix_inputs).", "fix the input that chooses it (--fix-input)."),
        ("the input 'fix_inputs' has 3 shapes and inputs.", "the input 'fix_inputs' has 3 shapes and inputs."),
        ("shapes of a loop", "shapes of a loop"),
    ],
)
def test_a_message_for_the_command_line_has_flags(keywords: str, flags: str) -> None:
    assert in_flags(keywords) == flags


@pytest.mark.parametrize(
    ("flags", "keywords"),
    [
        ("Compile the loop with --native.", "Compile the loop with native=True."),
        ("With --max-unroll N, the limit is 262144.", "With max_unroll=N, the limit is 262144."),
        ("You passed --max-unroll 0 or 1.", "You passed max_unroll=0 or 1."),
        ("Set it with --fix-shape. Then run again.", "Set it with fix_shapes. Then run again."),
        ("--shapes and --bench are no options", "--shapes and --bench are no options"),
    ],
)
def test_a_report_in_python_has_keywords(flags: str, keywords: str) -> None:
    assert in_keywords(flags) == keywords


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
def test_the_text_of_a_reason_code_has_no_flag_without_a_keyword(code: Code) -> None:
    assert "--" not in in_keywords(code.text)


def test_options_are_written_as_in_a_call() -> None:
    assert keywords_text({"fix_dims": {"T": 16}, "native": True}) == "fix_dims={'T': 16}, native=True"


def test_the_command_line_and_python_name_the_same_option_in_their_own_words(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    path = tmp_path / "in.onnx"
    path.write_bytes(parsed(RECURRENCE).SerializeToString())
    assert main(["explain", str(path), "--fix-dim", "Q=3"]) == 2
    assert capsys.readouterr().err.startswith("ortscan: error: --fix-dim: no input has a free dimension 'Q'")
    with pytest.raises(ortscan.OptionError, match=r"^fix_dims: no input has a free dimension 'Q'"):
        ortscan.explain(path, fix_dims={"Q": 3})


def test_the_page_and_the_reasons_of_a_loop_name_flags_only_on_the_command_line() -> None:
    model = parsed(SCHEDULE)
    assert "(--fix-dim)" in explained(model).loops[0].reasons[0].detail
    assert "(--fix-shape)" in explained(parsed(SCHEDULE.replace("[T", "[?"))).loops[0].reasons[0].detail
    report = ortscan.explain(model)
    assert "(fix_dims)" in report.loops[0].reasons[0].detail
    assert "fix_dims" in report.to_html()
    assert "--fix-" not in report.to_html()
