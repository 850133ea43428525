"""Wrong words on the command line are one line on stderr, with the nearest valid word."""

import pytest

from ortscan.__main__ import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["optimise"], "VERB: 'optimise' is not one of optimize, migrate, loop, explain,"),
        (["optimise"], "perhaps 'optimize' was meant."),
        (["explain", "m.onnx", "--targt", "cpu"], "unrecognized arguments: --targt cpu, perhaps '--target' was meant."),
        (["verify", "a", "b", "--targt", "cpu"], "unrecognized arguments: --targt cpu; ortscan verify --help shows what is valid."),
        (["optimize", "a", "b", "--verify", "fulll"], "--verify: 'fulll' is not one of full, quick, perhaps 'full' was meant."),
        (["optimize", "a", "b", "--shape", "x"], "--shape: 'x' is not a shape such as x:64,1,128 or x:64,?,128."),
        (["optimize"], "the following arguments are required: IN; ortscan optimize --help shows what is valid."),
        (["-x"], "the following arguments are required: VERB; ortscan --help shows what is valid."),
    ],
)
def test_wrong_words_are_one_line_with_the_nearest(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ortscan: error: ")
    assert message in line
