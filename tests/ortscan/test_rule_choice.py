"""An invalid argument raises an error of one sentence that names the option, never an internal TypeError."""

import logging
import zipfile

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.base import messages
from ortscan.errors import ModelFileError, OptionError
from ortscan.rule_choice import rules_for
from tests.support.text import model_from_text

MAP = model_from_text(
    """<ir_version: 8, opset_import: ["": 18]>
    g (float[T, 4] x) => (float[T, 4] y) {
      y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { t = Tanh(xi) yi = Mul(t, t) }> (x)
    }"""
)
CONSTANT = model_from_text("g () => (float[2] y) { y = Constant <value_floats = [1.0, 2.0]> () }", 18)


@pytest.mark.parametrize(
    "option",
    [
        {"shapes": {"x": 6}},
        {"shapes": {"x": "64"}},
        {"shapes": {"x": [2.5, 4]}},
        {"shapes": {"x": [-2, 4]}},
        {"shapes": "x"},
        {"fix_shapes": {"x": 6}},
        {"fix_shapes": {"x": [-2, 4]}},
        {"fix_shapes": [6, 4]},
        {"max_unroll": "16"},
        {"max_unroll": -1},
        {"max_unroll": True},
        {"memory_budget": "256M"},
        {"memory_budget": None},
        {"memory_budget": -1},
        {"skip": None},
        {"skip": "dead-code"},
        {"passes": 3},
        {"passes": [3]},
        {"target": 5},
        {"opset": 2.5},
        {"fast_math": "no"},
    ],
)
@pytest.mark.parametrize("call", [ortscan.optimize, ortscan.explain])
def test_an_option_of_the_wrong_kind_is_named(call, option):
    with pytest.raises(OptionError, match=next(iter(option))):
        call(MAP, **option)


@pytest.mark.parametrize("option", [{"output": 3}, {"verify": 1}])
def test_so_is_one_that_only_optimize_has(option):
    with pytest.raises(OptionError, match=next(iter(option))):
        ortscan.optimize(MAP, **option)


def test_an_output_that_is_no_path_is_named_by_migrate():
    with pytest.raises(OptionError, match="output"):
        ortscan.migrate(MAP, 19, output=3)


@pytest.mark.parametrize(
    "option",
    [
        {"shapes": 5},
        {"shapes": {"x": 6}},
        {"inputs": 3},
        {"inputs": b"x"},
        {"inputs": [3]},
        {"inputs": {"x": [[1.0], [1.0, 2.0]]}},
        {"rtol": "a"},
        {"rtol": -1},
        {"atol": float("nan")},
        {"atol": True},
        {"seed": -1},
        {"seed": 1.5},
    ],
)
def test_an_option_of_verify_of_the_wrong_kind_is_named(option):
    with pytest.raises(OptionError, match=next(iter(option))):
        ortscan.verify(MAP, MAP, **option)


@pytest.mark.parametrize("inputs", [{}, [{}]])
def test_inputs_without_arrays_are_not_ignored(inputs):
    with pytest.raises(OptionError, match="no array, but the model's inputs are 'x'"):
        ortscan.verify(MAP, MAP, inputs=inputs)
    assert ortscan.verify(CONSTANT, CONSTANT, inputs=inputs).ok


def test_neither_is_an_npz_without_arrays(tmp_path):
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(OptionError, match=r"empty\.npz has no array"):
        ortscan.verify(MAP, MAP, inputs=tmp_path / "empty.npz")


def test_a_damaged_npz_is_one_clear_error(tmp_path):
    path = tmp_path / "bad.npz"
    np.savez(path, x=np.arange(8, dtype=np.float32).reshape(2, 4))
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("x.npy").header_offset
    data = bytearray(path.read_bytes())
    data[start + 60] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"bad\.npz cannot be read as \.npz"):
        ortscan.verify(MAP, MAP, inputs=path)


def test_numbers_of_numpy_are_numbers():
    shapes = {"x": np.array([3, 4])}
    optimised = ortscan.optimize(MAP, shapes=shapes, memory_budget=np.int64(1 << 20), verify=np.True_)
    assert ortscan.verify(MAP, optimised, shapes=shapes, seed=np.int32(1), rtol=np.float32(0.1)).ok


def test_a_path_with_a_null_character_is_said_to_have_one():
    with pytest.raises(ModelFileError, match="null character"):
        ortscan.optimize(MAP, output="a\0b.onnx")


def test_a_path_that_is_empty_is_said_to_be():
    with pytest.raises(ModelFileError, match="empty"):
        ortscan.optimize(MAP, output="")


def test_a_model_without_standard_operator_set_is_read_as_onnxruntime_reads_it():
    text = (
        '<ir_version: 9, opset_import: ["com.microsoft": 1]> g (float[3] x) => (float[3] y) <int64 a = {0}> { y = CumProd(x, a) }'
    )
    x = np.array([1, 2, 3], np.float32)
    result = ortscan.optimize(model_from_text(text, check=False))
    assert {entry.domain: entry.version for entry in result.opset_import}[""] >= 26
    np.testing.assert_array_equal(ort.InferenceSession(result.SerializeToString()).run(None, {"x": x})[0], [1, 2, 6])


def test_loops_go_from_a_model_without_standard_operator_set(caplog):
    proto = onnx.ModelProto()
    proto.CopyFrom(MAP)
    proto.opset_import[0].domain, proto.opset_import[0].version = "com.microsoft", 1
    proto.ir_version = 9
    with caplog.at_level(logging.WARNING):
        result = ortscan.optimize(proto, verify=True)
    assert "Scan" not in {node.op_type for node in result.graph.node}
    assert caplog.text == ""


def test_messages_of_onnx_ir_are_dropped_only_while_ortscan_works(caplog):
    log = logging.getLogger("onnx_ir.serde")
    filters = list(log.filters)

    @messages.quietly
    def work(fail):
        log.warning("inside")
        logging.getLogger("mine").warning("mine")
        if fail:
            raise KeyError
        return 7

    assert work(False) == 7
    with pytest.raises(KeyError):
        work(True)
    log.warning("outside")
    assert [record.message for record in caplog.records] == ["mine", "mine", "outside"]
    assert log.filters == filters


def test_what_onnx_ir_says_of_a_model_on_its_way_stays_inside(caplog):
    text = """<ir_version: 8, opset_import: ["": 18, "my": 1]>
    g (float[T, 4] x) => (float[T, 4] y, float[T] z) {
      y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { yi = Tanh(xi) }> (x)
      z = my.Thing(y)
    }"""
    proto = model_from_text(text, check=False)
    proto.graph.output[1].type.tensor_type.ClearField("elem_type")
    for call in (lambda model: ortscan.optimize(model, verify=False), ortscan.explain, lambda model: ortscan.verify(model, model)):
        call(proto)
    assert caplog.text == ""


@pytest.mark.filterwarnings("error")
def test_what_weights_without_numbers_come_to_is_no_warning_of_numpy_s() -> None:
    model = model_from_text(
        """g (float[2] s, float[T,2] xs) => (float[2] last) <float[2,2] w = {1, 2, 3, 4}> {
            last = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] k) {
                m = MatMul (h, w) a = Add (m, x) k = Tanh (a) }> (s, xs) }""",
        18,
    )
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([[1, np.inf], [2, 3]], np.float32), "w"))
    ortscan.optimize(model)


def test_default_stands_for_what_is_used_unasked():
    unasked = [rule.name for rule in rules_for(None, [])]
    more = [rule.name for rule in rules_for(["default", "guard-scan"], [])]
    assert "guard-scan" in set(more) - set(unasked)
    assert [name for name in more if name != "guard-scan"] == unasked


def test_names_of_the_release_before_are_still_taken() -> None:
    assert rules_for(["split-loop"], []) == rules_for(["loop-fission"], [])
    assert rules_for(None, ["split-states"]) == rules_for(None, ["state-fission"])
