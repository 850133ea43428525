from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.names import Names
from rewrites.ops import versions as spelling
from rewrites.ops.versions import DYNAMIC, SliceSpec, SoftmaxSpec, SplitSpec

OPSETS = (8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 21, 23, 26)
X = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
END = 2**63 - 1


def _model(opset: int) -> tuple[ir.Model, Builder]:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[A, B, C] x) => () {{}}'
    model = ir.from_proto(onnx.parser.parse_model(text))
    names = Names(model)
    return model, Builder(names, ConstantPool(model.graph, names), model.opset_imports, 8)


def _run(opset: int, write: Callable[[Builder, ir.Value], ir.Value | tuple[ir.Value, ...]]) -> list[np.ndarray]:
    model, b = _model(opset)
    written = write(b, model.graph.inputs[0])
    for value in written if isinstance(written, tuple) else (written,):
        model.graph.outputs.append(b.op("Identity", value))
    model.graph.extend(b.nodes)
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, {"x": X})
    return found


def _node(text: str, opset: int, **constants: list[int]) -> ir.Node:
    """Parse one node on ``x``; its other operands are int64 inputs, or constants where they are given."""
    node = onnx.parser.parse_node(text)
    names = [name for name in node.input if name and name != "x"]
    kind = onnx.TensorProto.INT64
    inputs = [onnx.helper.make_tensor_value_info(name, kind, [None]) for name in names if name not in constants]
    inputs.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 4, 3]))
    held = [onnx.numpy_helper.from_array(np.array(array, dtype=np.int64), name) for name, array in constants.items()]
    graph = onnx.helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in node.output], held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    return next(iter(ir.from_proto(model).graph))


@pytest.mark.parametrize("opset", OPSETS)
def test_movement_is_written_alike_in_all_opsets(opset: int) -> None:
    found = _run(
        opset,
        lambda b, x: (
            spelling.unsqueeze(b, x, [0, 2]),
            spelling.squeeze(b, spelling.unsqueeze(b, x, [1]), [1]),
            spelling.slice_axis(b, x, 1, 1, -1),
            spelling.slice_axis(b, x, 2, -2, END),
            spelling.transpose(b, x, [2, 0, 1]),
            spelling.reshape(b, x, [0, -1]),
            spelling.concat(b, [x, x], axis=1),
            spelling.gather(b, x, b.const([2, 0]), axis=1),
            *spelling.split(b, x, 1, [1, 3], 2),
            *spelling.split(b, x, 1, None, 2),
            spelling.shape_of(b, x, 1),
            spelling.shape_of(b, x, -1),
            spelling.shape_of(b, x, -2),
        ),
    )
    wanted = [
        *(X[None, :, None], X, X[:, 1:-1], X[..., -2:], X.transpose(2, 0, 1), X.reshape(2, 12), np.concatenate([X, X], axis=1)),
        *(X[:, [2, 0]], X[:, :1], X[:, 1:], X[:, :2], X[:, 2:], [4], [3], [4]),
    ]
    for got, value in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, value)


@pytest.mark.parametrize("opset", OPSETS)
def test_reductions_are_written_alike_in_all_opsets(opset: int) -> None:
    numpy_of = {"ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMean": np.mean, "ReduceProd": np.prod}
    found = _run(opset, lambda b, x: tuple(spelling.reduce(b, op, x, [0, 2], keep) for op in numpy_of for keep in (True, False)))
    wanted = [function(X, axis=(0, 2), keepdims=keep) for function in numpy_of.values() for keep in (True, False)]
    for got, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-6)


@pytest.mark.parametrize("opset", [10, 13, 26])
def test_slices_take_steps_from_opset_10(opset: int) -> None:
    (found,) = _run(opset, lambda b, x: spelling.slice_axis(b, x, 1, -1, -END, -2))
    np.testing.assert_array_equal(found, X[:, ::-2])


def test_what_an_opset_cannot_spell_is_an_error() -> None:
    model, b = _model(9)
    with pytest.raises(ValueError, match="Slice has no steps in opset 9"):
        spelling.slice_axis(b, model.graph.inputs[0], 0, -1, -9, -1)
    with pytest.raises(ValueError, match="ReduceSum over no axes"):
        spelling.reduce(b, "ReduceSum", model.graph.inputs[0], [], keepdims=True)


def test_nothing_is_written_where_nothing_changes() -> None:
    model, b = _model(18)
    x = model.graph.inputs[0]
    same = [
        spelling.unsqueeze(b, x, []),
        spelling.squeeze(b, x, []),
        spelling.transpose(b, x, [0, 1, 2]),
        spelling.concat(b, [x], 0),
    ]
    assert all(value is x for value in same)
    assert not b.nodes


def test_a_known_dimension_is_a_constant() -> None:
    model, b = _model(18)
    x = model.graph.inputs[0]
    x.shape = ir.Shape(["A", 4, 3])
    assert spelling.shape_of(b, x, -1).is_initializer()
    assert not spelling.shape_of(b, x, 0).is_initializer()


def test_axes_are_read_from_attributes_and_inputs() -> None:
    assert spelling.axes_of(_node("y = ReduceMax <axes=[0, -1]> (x)", 13), 13, 3) == (0, 2)
    assert spelling.axes_of(_node("y = ReduceMax (x, a)", 18, a=[0, -1]), 18, None) == (0, -1)
    assert spelling.axes_of(_node("y = ReduceSum (x, a)", 13, a=[-3]), 13, 3) == (0,)
    assert spelling.axes_of(_node("y = ReduceSum (x, a)", 13), 13, 3) is DYNAMIC
    assert spelling.axes_of(_node("y = Unsqueeze (x, a)", 13, a=[-1, 0]), 13, 3) == (4, 0)
    assert spelling.axes_of(_node("y = Squeeze (x)", 13), 13, 3) is None


def test_reductions_without_axes_take_all_or_none() -> None:
    assert spelling.axes_of(_node("y = ReduceSum (x)", 13), 13, 3) == (0, 1, 2)
    assert spelling.axes_of(_node("y = ReduceSum (x)", 13), 13, None) is None
    assert spelling.axes_of(_node("y = ReduceSum <noop_with_empty_axes=1> (x)", 13), 13, 3) == ()
    assert spelling.axes_of(_node("y = ReduceSum <noop_with_empty_axes=1> (x, a)", 13, a=[]), 13, 3) == ()
    assert spelling.axes_of(_node("y = ReduceSum (x, a)", 13, a=[]), 13, 2) == (0, 1)


def test_slices_are_read_in_both_spellings() -> None:
    wanted = SliceSpec((1, 0), (3, -1), (2, 0), (1, 1))
    assert spelling.slice_spec(_node("y = Slice <starts=[1, 0], ends=[3, -1], axes=[2, 0]> (x)", 9), 9, 3) == wanted
    assert spelling.slice_spec(_node("y = Slice (x, b, e, a)", 13, b=[1, 0], e=[3, -1], a=[-1, 0]), 13, 3) == wanted
    stepped = SliceSpec((3,), (-9,), (0,), (-2,))
    assert spelling.slice_spec(_node("y = Slice (x, b, e, , s)", 13, b=[3], e=[-9], s=[-2]), 13) == stepped
    assert spelling.slice_spec(_node("y = Slice (x, b, e)", 13, b=[1]), 13) is DYNAMIC


def test_splits_are_read_in_all_spellings() -> None:
    assert spelling.split_spec(_node("p, q = Split <axis=-1, split=[1, 2]> (x)", 11), 11, 3) == SplitSpec(2, (1, 2), 2)
    assert spelling.split_spec(_node("p, q = Split (x, s)", 13, s=[1, 1]), 13) == SplitSpec(0, (1, 1), 2)
    assert spelling.split_spec(_node("p, q = Split <num_outputs=2> (x)", 18), 18) == SplitSpec(0, None, 2)
    assert spelling.split_spec(_node("p, q = Split (x, s)", 13), 13) == SplitSpec(0, DYNAMIC, 2)


def test_softmax_is_read_with_the_meaning_of_its_opset() -> None:
    assert spelling.softmax_spec(_node("y = Softmax (x)", 12), 12) == SoftmaxSpec(1, flattens=True)
    assert spelling.softmax_spec(_node("y = Softmax (x)", 13), 13, 3) == SoftmaxSpec(2, flattens=False)
    assert spelling.softmax_spec(_node("y = LogSoftmax <axis=0> (x)", 13), 13) == SoftmaxSpec(0, flattens=False)


def test_bounds_and_dropout() -> None:
    assert spelling.clip_bounds(_node("y = Clip <min=-1.0> (x)", 6), 6) == (-1.0, None)
    node = _node("y = Clip (x, , h)", 13)
    assert spelling.clip_bounds(node, 13) == (None, node.inputs[2])
    assert spelling.dropout_is_identity(_node("y = Dropout <ratio=0.5> (x)", 10), 10)
    assert spelling.dropout_is_identity(_node("y = Dropout (x, r)", 13), 13)
    assert not spelling.dropout_is_identity(_node("y = Dropout (x, r, t)", 13), 13)


def test_small_readers() -> None:
    node = _node("y = ArgMax <keepdims=0, axis=-1> (x)", 13)
    assert not spelling.keepdims(node)
    assert (spelling.axis_of(node, 0), spelling.axis_of(node, 0, 3)) == (-1, 2)
    assert spelling.perm_of(_node("y = Transpose (x)", 13), 3) == (2, 1, 0)
    assert spelling.int_operand(_node("y = CumSum (x, a)", 13, a=[1]), 1) == 1
    assert spelling.int_operand(_node("y = CumSum (x, a)", 13), 1) is DYNAMIC
    assert spelling.ints_operand(_node("y = Relu (x)", 13), 1) is None


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("start", "end"), [(-1, END), (0, -1), (1, END), (0, 2)])
def test_a_slice_is_not_inferred_to_be_as_long_as_what_it_is_cut_from(opset: int, start: int, end: int) -> None:
    model, b = _model(opset)
    model.graph.outputs.append(spelling.slice_axis(b, model.graph.inputs[0], 1, start, end))
    model.graph.extend(b.nodes)
    for value in (value for node in b.nodes for value in node.outputs):
        value.shape = None
    inferred = onnx.shape_inference.infer_shapes(ir.to_proto(model), data_prop=True)
    dims = inferred.graph.output[0].type.tensor_type.shape.dim
    assert len(dims) == 3
    assert dims[1].dim_param != "B"
