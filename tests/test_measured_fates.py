"""What the documents say of the loops of exporters, measured once, is still so."""

import pytest

import ortscan
from tests.support.corpus import corpus_models
from tests.support.exporter_tables import found


@pytest.mark.parametrize("model", corpus_models(shipped_only=True))
def test_what_is_said_of_the_loops_of_exporters_is_so(model):
    (said,) = [[(loop.fate, loop.code) for loop in gain.loops] for gain in found().gains if gain.model == model.name]
    loops = ortscan.explain(model.path).loops
    is_so = [(loop.fate, loop.reasons[0].code if loop.reasons else "") for loop in loops]
    assert said == is_so, "run python -m tests.campaigns benchmarks.exporters --write"
