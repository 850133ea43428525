"""The pages on other tools show code that runs as it stands."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.corpus import shipped_corpus
from tests.support.page_code import code_in
from tests.support.runtime import ort_run

ROOT = Path(__file__).parents[1]
LSTM = shipped_corpus() / "torch__scan_lstm_linear_h0c0_dyn.onnx"
PRODUCTS = ROOT / "examples" / "mlp_per_step.onnx"


def run_page(page: str, model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, section: str = "") -> None:
    """Run the Python of a page, or of one section, in ``folder``, where ``model.onnx`` is ``model``."""
    monkeypatch.chdir(folder)
    (folder / "model.onnx").write_bytes(model.read_bytes())
    for code in code_in(page, "python", section):
        exec(code, {})


def operators(path: Path) -> Counter[str]:
    def of(graph: onnx.GraphProto) -> Counter[str]:
        nested = (of(attribute.g) for node in graph.node for attribute in node.attribute)
        return sum(nested, Counter(node.op_type for node in graph.node))

    return of(onnx.load(path).graph)


@pytest.mark.long
def test_an_lstm_with_a_free_batch_is_quantised_and_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds = {"x": np.ones((4, 2, 5), np.float32), "h0": np.ones((2, 7), np.float32), "c0": np.ones((2, 7), np.float32)}
    np.savez(tmp_path / "recorded.npz", **feeds)
    run_page("how-to/low-precision.md", LSTM, tmp_path, monkeypatch)
    assert operators(tmp_path / "int8.onnx")["DynamicQuantizeLSTM"] == 1
    before = ort_run(onnx.load(LSTM), feeds)
    for name in ("half.onnx", "int8.onnx", "static.onnx"):
        for result, expected in zip(ort_run(onnx.load(tmp_path / name), feeds), before, strict=True):
            np.testing.assert_allclose(result, expected, atol=0.05)
    empty = {"x": np.ones((4, 0, 5), np.float32), "h0": np.ones((0, 7), np.float32), "c0": np.ones((0, 7), np.float32)}
    assert ort_run(onnx.load(tmp_path / "int8.onnx"), empty)[0].shape == (4, 0, 7)


def test_products_of_a_loop_are_quantised_only_after_optimize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = onnx.load(PRODUCTS).graph
    shape = [size.dim_value or 2 for size in graph.input[0].type.tensor_type.shape.dim]
    np.savez(tmp_path / "recorded.npz", **{graph.input[0].name: np.ones(shape, np.float32)})
    run_page("how-to/low-precision.md", PRODUCTS, tmp_path, monkeypatch)
    assert operators(tmp_path / "int8.onnx")["MatMulInteger"] == 2
    assert operators(tmp_path / "static.onnx")["QuantizeLinear"] > 0


def test_a_sequential_of_onnx_ir_removes_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("how-to/pipelines.md", PRODUCTS, tmp_path, monkeypatch, "onnx_ir and onnxscript")
    assert not {"Scan", "Loop"} & operators(tmp_path / "out.onnx").keys()
