"""The tables in documents say what the code does, and what was measured still holds."""

import pytest

import ortscan
from ortscan.rule_choice import rule_names
from rewrites.registry import ON_MODELS
from tests.support.corpus import corpus_models
from tests.support.exporter_tables import found
from tests.support.tables import FOLDER, PARTS, ROOT, TABLES, with_parts


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_as_the_code_is(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == TABLES[name](), "run python -m tests.support.tables"


@pytest.mark.parametrize("document", PARTS)
def test_the_parts_of_a_document_are_as_the_code_and_what_was_measured_are(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    assert [name for name in PARTS[document] if f"<!-- {name}: made by `python -m tests.support.tables` -->" not in text] == []
    assert text == with_parts(text, PARTS[document]), "run python -m tests.support.tables"


def test_a_part_that_was_changed_by_hand_is_found():
    text = "<!-- some: made by x -->\nold\n<!-- end -->\nrest\n"
    assert with_parts(text, {"some": lambda: "new\n"}) == "<!-- some: made by x -->\nnew\n<!-- end -->\nrest\n"


def test_every_rule_has_a_row():
    names = {*rule_names(), *(rule.name for rule in ON_MODELS)}
    assert [name for name in names if f"| `{name}` |" not in TABLES["reference/rules.md"]()] == []


@pytest.mark.parametrize("model", corpus_models(shipped_only=True))
def test_what_is_said_of_the_loops_of_exporters_is_so(model):
    (said,) = [[(loop.fate, loop.code) for loop in gain.loops] for gain in found().gains if gain.model == model.name]
    loops = ortscan.explain(model.path).loops
    is_so = [(loop.fate, loop.reasons[0].code if loop.reasons else "") for loop in loops]
    assert said == is_so, "run python -m tests.campaigns benchmarks.exporters --write"
