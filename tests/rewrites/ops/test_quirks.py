"""The register of defects and the modules that work round them name each other, and every defect has a test that shows it."""

import ast
import re
from pathlib import Path

import pytest

from rewrites.ops.quirks import QUIRKS, Quirk

ROOT = Path(__file__).parents[3]
ID = re.compile(r"\b(?:ORT|ONNX)-[A-Z0-9]+(?:-[A-Z0-9]+)*\b")
FILES = [file for package in ("rewrites", "ortscan", "tests") for file in sorted((ROOT / package).rglob("*.py"))]
IS_OF = {"ORT": "onnxruntime", "ONNX": "onnx"}


def _named() -> dict[str, set[str]]:
    """The ids that the docstring of each module names."""
    named = {}
    for file in FILES:
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        named[".".join(file.relative_to(ROOT).with_suffix("").parts)] = set(ID.findall(text))
    return named


def test_who_works_round_a_defect_names_it_and_the_other_way_round() -> None:
    registered: dict[str, set[str]] = {module: set() for module in _named()}
    for quirk in QUIRKS.values():
        for module in quirk.worked_round:
            assert module in registered, f"{quirk.id}: there is no module {module}"
            registered[module].add(quirk.id)
    assert {module: ids for module, ids in _named().items() if ids} == {module: ids for module, ids in registered.items() if ids}


@pytest.mark.parametrize("quirk", QUIRKS.values(), ids=list(QUIRKS))
def test_an_entry_says_in_one_sentence_what_is_wrong(quirk: Quirk) -> None:
    assert ID.fullmatch(quirk.id)
    assert IS_OF[quirk.id.partition("-")[0]] == quirk.of
    assert re.fullmatch(r"\d+\.\d+(-\d+\.\d+)?", quirk.seen)
    assert re.fullmatch(r"[A-Z][^\n]*\.", quirk.symptom)
    assert len(set(quirk.worked_round)) == len(quirk.worked_round) > 0
