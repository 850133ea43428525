"""Partly known sizes: dimensions by name, and shapes with unknown sizes."""

import onnx
import pytest

import ortscan
from rewrites.base.errors import OptionError
from tests.support.text import parsed

CELL = """<ir_version: 9, opset_import: ["" : 18]>
g (float[B, 4] h0, float[T, B, 3] x, float[7] w) => (float[T, B, 4] ys)
<float[3, 4] W = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2},
 float[4, 4] R = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6}>
{
  last, ys = Scan <num_scan_inputs = 1, body = b (float[B, 4] h, float[B, 3] xt) => (float[B, 4] next, float[B, 4] y) {
    a = MatMul(xt, W) b = MatMul(h, R) s = Add(a, b) next = Tanh(s) y = Identity(next)
  }> (h0, x)
}"""


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return parsed(CELL)


def natives(result: onnx.ModelProto) -> bool:
    return 'op_type: "RNN"' in str(result)


@pytest.mark.parametrize(
    "sizes", [{"dims": {"B": 1}}, {"shapes": {"x": [None, 1, None]}}, {"shapes": {"x": [6, None, 3], "h0": [1, None]}}]
)
def test_a_typical_size_of_one_dimension_decides(model: onnx.ModelProto, sizes: dict) -> None:
    result = ortscan.optimize(model, verify=False, **sizes)
    assert natives(result)
    assert not natives(ortscan.optimize(model, verify=False))
    assert result.graph.input == model.graph.input


def test_a_size_built_in_by_name_is_built_in_wherever_it_is_named(model: onnx.ModelProto) -> None:
    result = ortscan.optimize(model, fix_dims={"B": 1})
    dims = {
        value.name: [dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in result.graph.input
    }
    assert dims == {"h0": [1, 4], "x": ["T", 1, 3], "w": [7]}
    assert natives(result)
    assert [dim.dim_value for dim in result.graph.output[0].type.tensor_type.shape.dim][1:] == [1, 4]


@pytest.mark.parametrize("option", ["dims", "fix_dims"])
def test_a_name_that_no_dimension_has_is_refused(model: onnx.ModelProto, option: str) -> None:
    with pytest.raises(OptionError, match=rf"^{option}: no input has a free dimension 'b'; the free dimensions are 'B', 'T'"):
        ortscan.optimize(model, verify=False, **{option: {"b": 1}})
    with pytest.raises(OptionError, match="must be a number from 0"):
        ortscan.optimize(model, verify=False, **{option: {"B": -1}})
    with pytest.raises(OptionError, match="must be a dict"):
        ortscan.optimize(model, verify=False, **{option: ["B"]})


def test_a_name_and_a_shape_that_contradict_each_other_are_refused(model: onnx.ModelProto) -> None:
    with pytest.raises(OptionError, match="dimension 'B' is 1, but the shape of 'x' has 2 there"):
        ortscan.optimize(model, verify=False, dims={"B": 1}, shapes={"x": [6, 2, 3]})


def test_models_are_compared_at_sizes_by_name(model: onnx.ModelProto) -> None:
    summary = ortscan.verify(model, model, dims={"B": 2}, level="quick").summary()
    assert "B in 2" in summary, summary


def test_the_command_line_takes_both(tmp_path, capsys) -> None:
    from ortscan.__main__ import main

    onnx.save(parsed(CELL), tmp_path / "m.onnx")
    for options in (["--dim", "B=1"], ["--shape", "x:?,1,?"], ["--fix-dim", "B=1"]):
        assert main(["optimize", str(tmp_path / "m.onnx"), str(tmp_path / "o.onnx"), "--verify", "quick", *options]) == 0
        assert natives(onnx.load(tmp_path / "o.onnx")), options
    assert main(["explain", str(tmp_path / "m.onnx"), "--dim", "B"]) == 2
    assert "'B' is not the size of a dimension such as T=64" in capsys.readouterr().err


def test_a_session_takes_both(model: onnx.ModelProto) -> None:
    import onnxruntime as ort

    for entry, text in (("dims", "B=1"), ("shapes", "x:?,1,?"), ("fix_dims", "B=1")):
        options = ort.SessionOptions()
        for name, value in ((entry, text), ("cache", "0"), ("native", "0"), ("verify", "0")):
            options.add_session_config_entry(f"ortscan.{name}", value)
        session = ortscan.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        assert [loop.fate for loop in session.ortscan.report.loops] == ["removed"], entry
    with ortscan.patched(shapes={"x": [None, 1, None]}, dims={"B": 1}, cache=False):
        pass
