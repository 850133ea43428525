"""Variants of Scan and recurrent operators that onnxruntime refuses run as specified, or are refused with a clear message."""

import pytest

from tests.support.refused_variants import TABLE, outcomes, table

pytestmark = pytest.mark.long


def test_every_variant_matches_the_table_in_the_docs():
    found = outcomes()
    assert [each for each in found if each.status not in ("runs", "refused")] == []
    assert TABLE.read_text(encoding="utf-8") == table(found), "run python -m tests.support.refused_variants"
