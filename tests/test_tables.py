"""The tables made from the code say what the code has."""

import pytest

from ortscan.options import rule_names
from rewrites.rules.registry import ON_MODELS
from tests.support.tables import FOLDER, TABLES


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_as_the_code_is(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == TABLES[name](), "run python -m tests.support.tables"


def test_every_rule_has_a_row():
    names = {*rule_names(), *(rule.name for rule in ON_MODELS)}
    assert [name for name in names if f"| `{name}` |" not in TABLES["RULES.md"]()] == []
