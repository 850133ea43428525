"""A text nested too deeply for its parser raises an error of one sentence and does not crash the process."""

import pytest

import ortscan
from ortscan.modelio.reading import nests_too_deep

HEAD = '<ir_version: 10, opset_import: ["": 18]> g (float[4] x) => (float[4] y) {'
DEEP = {
    "graphs": HEAD + " y = If (c) <a = t () => (float[4] a) {" * 20_000,
    "types": HEAD + " z = Optional <type = seq(" + "seq(" * 20_000,
    "lists": HEAD + " y = Neg <a = " + "[" * 20_000,
    "behind a comment": HEAD + ' # )"\n y = Neg <a = ")" , b = ' + "[" * 20_000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_brackets_nested_twenty_thousand_deep_are_refused(text, tmp_path):
    path = tmp_path / "deep.onnxtxt"
    path.write_text(text)
    for work in (ortscan.optimize, ortscan.explain, lambda model: ortscan.verify(model, model)):
        with pytest.raises(ortscan.OrtscanError, match="brackets nested more than 256 deep"):
            work(path)


def test_brackets_side_by_side_and_in_strings_do_not_nest():
    assert not nests_too_deep("[]" * 10_000 + '"' + "(" * 10_000 + '"')
