"""The table of translators, and what the document says of it."""

from pathlib import Path

from rewrites.native.nested import NESTED
from rewrites.native.translators import TRANSLATORS
from rewrites.ops.traits import TRAITS

DOCUMENT = Path(__file__).parents[3] / "ortscan" / "docs" / "maintainers" / "loop-plans.md"


def test_the_document_lists_the_operators_that_plans_have() -> None:
    listed = DOCUMENT.read_text(encoding="utf-8").partition("## What has a plan")[2].partition("\n\n")[2].partition("\n\nAxes")[0]
    listed = listed.partition("operators:\n\n")[2]
    assert listed.replace("\n", " ").split(", ") == sorted({*TRANSLATORS, *NESTED})


def test_translators_are_of_operators_that_are_the_same_in_each_run() -> None:
    assert TRANSLATORS.keys() <= TRAITS.keys()
    assert not any("random" in TRAITS[name] for name in TRANSLATORS)
