"""Inputs that the caller passes are used, and errors name what does not fit."""

import numpy as np
import onnx
import pytest

from ortscan.verification import verify
from rewrites.base.errors import ModelFileError, OptionError
from tests.ortscan.verification.inputs.equal_cases import TABLE, model, ok, ran


def test_inputs_given_are_used_and_nothing_else():
    proto = model("g (float[N] x) => (float[N] y) { y = Log(x) }")
    one = {"x": np.array([1, 2], np.float32)}
    outcome = verify(proto, proto, inputs=one)
    assert [case.dims for case in outcome.cases] == [{"N": 2}]
    several = verify(proto, proto, inputs=[one, {"x": np.ones(9, np.float32)}])
    assert [case.dims["N"] for case in several.cases] == [2, 9]
    assert [case.varied["input set"] for case in several.cases] == [0, 1]


def test_inputs_left_out_are_made_up_to_fit():
    proto = model("g (float[N] x, float[N, M] y) => (float[N, M] z) { t = Transpose(y) s = Add(t, x) z = Transpose(s) }")
    outcome = verify(proto, proto, inputs={"x": np.ones(4, np.float32)})
    assert outcome.ok
    assert {case.dims["N"] for case in outcome.cases} == {4}
    assert {case.dims["M"] for case in ran(outcome)} >= {1, 2, 3, 7}


@pytest.mark.parametrize("prefix", ["", "in:"])
def test_inputs_come_from_an_npz(tmp_path, prefix):
    np.savez(tmp_path / "data.npz", **{f"{prefix}x": np.ones(4, np.float32)}, **({"out:0": np.ones(1)} if prefix else {}))
    proto = model("g (float[N] x) => (float[N] y) { y = Log(x) }")
    assert [case.dims for case in verify(proto, proto, inputs=tmp_path / "data.npz").cases] == [{"N": 4}]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "empty list"),
        ({"z": np.ones(2, np.float32)}, "inputs has 'z'"),
        ({"x": np.ones(2)}, "float64, but the model takes float32"),
        ({"x": np.ones((2, 2), np.float32)}, "rank 2"),
        ({"c": np.ones(2, np.float32)}, "size 2 in axis 0, but the model takes 3"),
        ({"x": np.array(["a"])}, "takes float32"),
    ],
)
def test_inputs_that_do_not_fit_are_an_error(inputs, message):
    proto = model("g (float[N] x, float[3] c) => (float[N] y) { y = Relu(x) }")
    with pytest.raises(OptionError, match=message):
        verify(proto, proto, inputs=inputs)


def test_an_unreadable_npz_is_an_error(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"no")
    for name in ("bad.npz", "missing.npz"):
        with pytest.raises(ModelFileError, match=name):
            verify(model(TABLE), model(TABLE), inputs=tmp_path / name)


def test_a_sequence_can_be_given():
    text = "g (seq(float[N]) x) => (seq(float[N]) y) { y = Identity(x) }"
    given = {"x": [np.ones(2, np.float32), np.ones(5, np.float32)]}
    assert len(ok(text, inputs=given)) == 1
    two = model(text)
    two.graph.node[0].CopyFrom(onnx.helper.make_node("SequenceErase", ["x"], ["y"]))
    outcome = verify(model(text), two, inputs=given)
    assert "has 2 items before and 1 after" in outcome.first_difference.reason


def unranked():
    proto = model("g (float[N, 3] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    return proto


def test_an_input_without_a_rank_has_to_be_given():
    outcome = verify(unranked(), unranked())
    assert not outcome.ok
    assert "nothing was compared: input 'x' has no declared rank: pass it with inputs={...}" in outcome.summary()
    assert verify(unranked(), unranked(), inputs={"x": np.ones((2, 2, 2), np.float32)}).ok
    assert verify(unranked(), unranked(), shapes={"x": [2, None]}).ok
