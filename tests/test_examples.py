import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_something(script, capsys):
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_loop_is_gone_in_the_first_example(capsys):
    runpy.run_path(str(EXAMPLES[0].with_name("optimize_a_model.py")), run_name="__main__")
    out = capsys.readouterr().out
    assert "Loop" not in out
    assert "Scan" not in out
    assert "equal" in out


def test_no_loop_is_left_in_the_example_for_a_provider_without_loops(capsys):
    runpy.run_path(str(EXAMPLES[0].with_name("without_loops.py")), run_name="__main__")
    before, after = capsys.readouterr().out.split("after:")
    assert "Scan" in before
    assert "Scan" not in after
    assert after.count("= Tanh") == 3
    assert "equal" in after
