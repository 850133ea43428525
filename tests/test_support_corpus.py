"""The corpus of exported models: found, complete, and computed alike by onnxruntime, the oracle and the framework."""

import numpy as np
import pytest

from tests.support.corpus import CorpusModel, big_corpus, corpus_models, shipped_corpus
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run, ort_session


@pytest.mark.parametrize("model", corpus_models())
def test_onnxruntime_and_the_oracle_agree_on(model: CorpusModel) -> None:
    expected = run_model(model.load(), model.feeds())
    assert_same_numbers(ort_run(model.path, model.feeds()), expected, rtol=model.tolerance, atol=model.tolerance)


@pytest.mark.parametrize("model", corpus_models())
def test_the_framework_computed_the_same_as(model: CorpusModel) -> None:
    results = ort_run(model.path, model.feeds())
    recorded = model.framework_outputs()
    assert recorded
    for position, array in recorded.items():
        same = np.allclose(results[position], array, rtol=1e-3, atol=2e-3)
        assert same == model.faithful


def test_the_shipped_corpus_is_small_and_holds_every_kind_of_loop() -> None:
    shipped = [param.values[0] for param in corpus_models(shipped_only=True)]
    assert sum(file.stat().st_size for file in shipped_corpus().iterdir()) < 300_000
    loops = {(node.op_type, model.load().opset_import[0].version < 9) for model in shipped for node in model.load().graph.node}
    assert {("Scan", True), ("Scan", False), ("Loop", False)} <= loops


def test_the_larger_corpus_adds_to_the_shipped_one() -> None:
    if big_corpus() is None:
        pytest.skip("no larger corpus: set ORTSCAN_CORPUS to its folder to test with it")
    assert len(corpus_models()) > len(corpus_models(shipped_only=True))
    for model in [param.values[0] for param in corpus_models(loadable=False) if not param.values[0].loads]:
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            ort_session(model.path)
