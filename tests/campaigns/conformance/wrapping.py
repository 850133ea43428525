"""Wraps a node test in a Scan of three steps.

    y = Op(x, w)    ->    ys = Scan(xs) body(x) => (y = Op(x, w))        x: a step of xs, scanned along some axis; w: from outside

Forms: ``alone``; ``beside`` a state that has nothing to do with it; ``between`` work before it (x times 2) and after it (minus y).
"""

import zlib
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.campaigns.conformance.node_tests import NodeTest

__all__ = ["FORMS", "STEPS", "WRAPPER", "Form", "Wrapped", "wrap"]

Form = Literal["alone", "beside", "between"]
FORMS: tuple[Form, ...] = get_args(Form)
STEPS = 3
WRAPPER = "wrapping"
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_NEGATED = _FLOATS


@dataclass(frozen=True)
class Wrapped:
    """A model around one Scan, and what to feed it.

    ``scanned``: the inputs of the test that differ between steps. ``constants``: whether the others are initializers.
    """

    test: NodeTest
    form: Form
    constants: bool
    scanned: tuple[str, ...]
    model: onnx.ModelProto
    feeds: dict[str, Any]

    @property
    def name(self) -> str:
        """What it is called in the table and in messages."""
        return f"{self.test.name} {self.form} {'constants' if self.constants else 'inputs'} {','.join(self.scanned)}"


def wrap(test: NodeTest, form: Form, *, constants: bool, first_only: bool) -> Wrapped | None:
    """Wrap ``test``; None where its results cannot be stacked, since they are no tensors.

    All float inputs are scanned, or the first of them; without one, the first tensor that is not a float. The axis is drawn.
    """
    source = test.model.graph
    if not all(value.type.HasField("tensor_type") for value in source.output):
        return None
    seed = zlib.crc32(f"{test.name}{form}".encode())
    rng = np.random.default_rng(seed)
    scanned = _scanned(test, first_only)
    body = onnx.GraphProto(name="body")
    outer = onnx.GraphProto(name="wrapped")
    feeds: dict[str, Any] = {}
    scan = helper.make_node("Scan", [], [], name=WRAPPER)
    axes: list[int] = []
    if form == "beside":
        _add_counter(body, outer, scan)
    renamed: dict[str, str] = {}
    for value in source.input:
        if value.name not in scanned:
            _capture(value, test.inputs.get(value.name), constants, outer, feeds)
            continue
        array = test.inputs[value.name]
        axis = int(rng.integers(0, array.ndim + 1))
        stack = np.stack([_variant(array, step) for step in range(STEPS)], axis=axis)
        inner, steps = f"{value.name}_in" if form == "between" and _is_float(value) else value.name, f"{value.name}_steps"
        elem_type = value.type.tensor_type.elem_type
        body.input.append(helper.make_tensor_value_info(inner, elem_type, array.shape))
        if inner != value.name:
            renamed[value.name] = inner
        dims: list[int | str] = list(stack.shape)
        dims[axis] = STEPS if form == "alone" else "T"
        outer.input.append(helper.make_tensor_value_info(steps, elem_type, dims))
        scan.input.append(steps)
        feeds[steps] = stack
        axes.append(axis)
    if not scanned:
        body.input.append(helper.make_tensor_value_info("tick", TensorProto.FLOAT, []))
        outer.input.append(helper.make_tensor_value_info("ticks", TensorProto.FLOAT, [STEPS]))
        scan.input.append("ticks")
        feeds["ticks"] = np.zeros(STEPS, np.float32)
        axes.append(0)
    for name, inner in renamed.items():
        elem_type = next(value for value in source.input if value.name == name).type.tensor_type.elem_type
        _add_constant(outer, f"{name}_two", elem_type, 2)
        body.node.append(helper.make_node("Mul", [inner, f"{name}_two"], [name]))
    body.node.extend(source.node)
    for value in source.output:
        result = value.name
        if form == "between" and value.type.tensor_type.elem_type in _NEGATED:
            result = f"{value.name}_neg"
            body.node.append(helper.make_node("Neg", [value.name], [result]))
        inner_info = onnx.ValueInfoProto()
        inner_info.CopyFrom(value)
        inner_info.name = result
        body.output.append(inner_info)
        scan.output.append(f"{value.name}_all")
        outer.output.append(_stacked_info(value, f"{value.name}_all"))
    scan.attribute.append(helper.make_attribute("num_scan_inputs", len(axes)))
    if any(axes):
        scan.attribute.append(helper.make_attribute("scan_input_axes", axes))
    scan.attribute.append(helper.make_attribute("body", body))
    outer.node.append(scan)
    model = helper.make_model(outer, ir_version=test.model.ir_version, opset_imports=test.model.opset_import)
    return Wrapped(test, form, constants, tuple(scanned), model, feeds)


def _scanned(test: NodeTest, first_only: bool) -> list[str]:
    tensors = [value for value in test.model.graph.input if isinstance(test.inputs.get(value.name), np.ndarray)]
    floats = [value.name for value in tensors if _is_float(value)]
    others = [value.name for value in tensors]
    return floats[:1] if first_only and floats else floats or others[:1]


def _is_float(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type in _FLOATS


def _variant(array: np.ndarray, step: int) -> np.ndarray:
    """Give what ``array`` is in ``step``: numbers of the same range, and so valid where the original was."""
    moved = np.roll(array.reshape(-1), step).reshape(array.shape)
    is_float = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    return (moved * (1 - 0.25 * step)).astype(array.dtype) if is_float else moved


def _capture(value: onnx.ValueInfoProto, given: Any, constant: bool, outer: onnx.GraphProto, feeds: dict[str, Any]) -> None:
    if constant and isinstance(given, np.ndarray):
        outer.initializer.append(numpy_helper.from_array(given, value.name))
        return
    outer.input.append(value)
    feeds[value.name] = given


def _add_counter(body: onnx.GraphProto, outer: onnx.GraphProto, scan: onnx.NodeProto) -> None:
    outer.initializer.append(numpy_helper.from_array(np.array(0, np.int64), "counter_start"))
    outer.initializer.append(numpy_helper.from_array(np.array(1, np.int64), "counter_step"))
    scan.input.append("counter_start")
    body.input.append(helper.make_tensor_value_info("counter", TensorProto.INT64, []))
    body.node.append(helper.make_node("Add", ["counter", "counter_step"], ["counter_next"]))
    body.output.append(helper.make_tensor_value_info("counter_next", TensorProto.INT64, []))
    scan.output.append("counter_end")
    outer.output.append(helper.make_tensor_value_info("counter_end", TensorProto.INT64, []))


def _add_constant(graph: onnx.GraphProto, name: str, elem_type: int, number: float) -> None:
    graph.initializer.append(numpy_helper.from_array(np.array(number).astype(helper.tensor_dtype_to_np_dtype(elem_type)), name))


def _stacked_info(value: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    tensor = value.type.tensor_type
    dims = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim]
    return helper.make_tensor_value_info(name, tensor.elem_type, [None, *dims] if tensor.HasField("shape") else None)
