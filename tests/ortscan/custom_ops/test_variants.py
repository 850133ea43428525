"""Everything onnxruntime refuses of Scan and the recurrent operators runs with the text's numbers, or is refused by one sentence."""

import pytest

from tests.support.refused_variants import TABLE, outcomes, table

pytestmark = pytest.mark.long


def test_every_variant_matches_the_table_in_the_docs():
    found = outcomes()
    assert [one for one in found if one.status not in ("runs", "refused")] == []
    assert TABLE.read_text(encoding="utf-8") == table(found), "run python -m tests.support.refused_variants"
