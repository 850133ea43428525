"""Weights of an LSTM, moved into the branch that contains it."""

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnxruntime.quantization import quantize_dynamic

import ortscan
from rewrites.driver.model_changes import change_model
from rewrites.tidy import weights_into_branches
from tests.rewrites.apply import prepared
from tests.support.corpus import shipped_corpus
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal

WEIGHTS = "<float[1,4,1] w = {1, 2, -1, 0.5}, float[1,4,1] r = {1, 1, 2, 3}>"
LSTM = "p = LSTM <hidden_size = 1> (x, w, r)"


def branch(then: str = LSTM, own: str = "", main: str = WEIGHTS, inputs: str = "", before: str = "") -> str:
    return f"""g (float[T,B,1] x, float[T,1,B,1] z, bool c{inputs}) => (float[T,1,B,1] y) {main} {{ {before}
      y = If <then_branch = t () => (float[T,1,B,1] p) {own} {{ {then} }}, else_branch = f () => (float[T,1,B,1] q) {{ q = Identity (z) }}> (c)
    }}"""


def moved(text: str, ir_version: int = 10) -> onnx.ModelProto:
    ctx = prepared(text)
    ctx.model.ir_version = ir_version
    change_model(weights_into_branches.RULE, ctx)
    return ir.to_proto(ctx.model)


def test_weights_go_into_the_branch_of_their_lstm() -> None:
    assert_text_equal(moved(branch()), branch(own=WEIGHTS, main=""))


@pytest.mark.parametrize(
    "text",
    [
        branch(then="s = Add (w, w) p = LSTM <hidden_size = 1> (x, s, s)"),
        branch(inputs=", float[1,4,1] w, float[1,4,1] r"),
        branch(then="p = GRU <hidden_size = 1> (x, w, r)").replace("1,4,1", "1,3,1").replace(", 0.5", "").replace(", 3}", "}"),
        branch(before="t0 = Identity (w) t1 = Identity (r)"),
    ],
    ids=["computed", "inputs", "no LSTM", "read otherwise too"],
)
def test_others_stay(text: str) -> None:
    assert_text_equal(moved(text), text)


def test_models_whose_initializers_are_inputs_stay() -> None:
    assert len(moved(branch(), ir_version=4).graph.initializer) == 2


def test_quantize_dynamic_finds_the_lstm_of_an_optimised_model_with_a_free_batch(tmp_path: Path) -> None:
    model = shipped_corpus() / "torch__scan_lstm_linear_h0c0_dyn.onnx"
    ortscan.optimize(model, output=tmp_path / "out.onnx")
    quantize_dynamic(tmp_path / "out.onnx", tmp_path / "int8.onnx", extra_options={"EnableSubgraph": True})
    with np.load(model.with_suffix(".npz")) as arrays:
        feeds = {name.removeprefix("in:"): arrays[name] for name in arrays if name.startswith("in:")}
    quantised = onnx.load(tmp_path / "int8.onnx")
    (conditional,) = (node for node in quantised.graph.node if node.op_type == "If")
    assert "DynamicQuantizeLSTM" in [node.op_type for each in conditional.attribute for node in each.g.node]
    for ours, theirs in zip(ort_run(quantised, feeds), ort_run(onnx.load(model), feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.05)
