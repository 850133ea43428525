"""One or more nodes of an old opset as a whole model: in the main graph, in a Scan's body, in an If in a Loop's body."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from ortscan.ort.installed import newest_opset
from rewrites.analysis.shapes.inference import infer_model
from rewrites.graph.names import Names
from rewrites.migration.migrate import raise_ir_version
from rewrites.migration.operators import convert_operators

__all__ = ["Case", "convert", "in_if_in_loop", "in_main", "in_scan", "passes_checker"]


@dataclass(frozen=True)
class Case:
    """`nodes`: one node a line. `feeds`: what runs in. `constants`: initializers. `outputs`: name -> element type.

    `newest`: the last opset in which onnxruntime has a kernel. `scannable`: whether a Scan can hold it (those need known shapes).
    """

    nodes: str
    opset: int
    feeds: Mapping[str, np.ndarray]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=lambda: {"y": TensorProto.FLOAT})
    newest: int = newest_opset()
    scannable: bool = True

    def __str__(self) -> str:
        return f"{self.opset}: {self.nodes}"

    def parsed(self, suffix: str = "") -> list[onnx.NodeProto]:
        """The nodes; results get `suffix`."""
        nodes = [onnx.parser.parse_node(line) for line in self.nodes.strip().splitlines()]
        made = {name for node in nodes for name in node.output if name}
        for node in nodes:
            node.input[:] = [name + suffix if name in made else name for name in node.input]
            node.output[:] = [name + suffix if name else "" for name in node.output]
            node.name = f"n_{node.output[0]}"
        return nodes

    @property
    def ops(self) -> set[str]:
        return {node.op_type for node in self.parsed()}


def in_main(case: Case, *, shapes: bool = True) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in case.outputs.items()]
    return _model(case, case.parsed(), outputs, case.feeds, shapes), dict(case.feeds)


def in_scan(case: Case) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The first feed is scanned (each step gets it, the second step its reverse), the others are captured."""
    first, *_ = case.feeds
    element = helper.np_dtype_to_tensor_dtype(case.feeds[first].dtype)
    formal = helper.make_tensor_value_info(f"{first}_t", element, case.feeds[first].shape)
    nodes = case.parsed("_t")
    for node in nodes:
        node.input[:] = [f"{first}_t" if name == first else name for name in node.input]
    results = [helper.make_tensor_value_info(f"{name}_t", kind, None) for name, kind in case.outputs.items()]
    body = helper.make_graph(nodes, "body", [formal], results)
    scan = helper.make_node("Scan", [f"{first}_all"], list(case.outputs), name="scan", body=body, num_scan_inputs=1)
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in case.outputs.items()]
    feeds = {name: value for name, value in case.feeds.items() if name != first}
    x = case.feeds[first]
    feeds[f"{first}_all"] = np.stack([x, np.ascontiguousarray(np.flip(x))])
    return _model(case, [scan], outputs, feeds, True), feeds


def in_if_in_loop(case: Case) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Two iterations, one in each branch; all feeds are captured and have no declared shape."""
    branches = {}
    for name in ("then", "else"):
        results = [helper.make_tensor_value_info(f"{y}_{name}", kind, None) for y, kind in case.outputs.items()]
        branches[f"{name}_branch"] = helper.make_graph(case.parsed(f"_{name}"), name, [], results)
    state = helper.make_tensor_value_info("first", TensorProto.BOOL, [])
    after = helper.make_tensor_value_info("later", TensorProto.BOOL, [])
    inputs = [
        helper.make_tensor_value_info("iteration", TensorProto.INT64, []),
        helper.make_tensor_value_info("going", TensorProto.BOOL, []),
        state,
    ]
    nodes = [
        helper.make_node("If", ["first"], [f"{y}_i" for y in case.outputs], name="if", **branches),
        helper.make_node("Not", ["first"], ["later"], name="not"),
        helper.make_node("Identity", ["going"], ["go_on"], name="keep"),
    ]
    results = [helper.make_tensor_value_info(f"{y}_i", kind, None) for y, kind in case.outputs.items()]
    body = helper.make_graph(nodes, "body", inputs, [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), after, *results])
    loop = helper.make_node("Loop", ["trips", "go", "go"], ["end", *case.outputs], name="loop", body=body)
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in case.outputs.items()]
    constants = {"trips": np.array(2), "go": np.array(True)}
    return _model(case, [loop], outputs, case.feeds, False, constants), dict(case.feeds)


def _model(
    case: Case,
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[onnx.ValueInfoProto],
    feeds: Mapping[str, np.ndarray],
    shapes: bool,
    more: Mapping[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape if shapes else None)
        for name, value in feeds.items()
    ]
    weights = [onnx.numpy_helper.from_array(value, name) for name, value in {**case.constants, **(more or {})}.items()]
    graph = helper.make_graph(nodes, "main", inputs, outputs, weights)
    least = helper.find_min_ir_version_for([helper.make_opsetid("", case.opset)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=max(4, least))


def passes_checker(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def convert(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """`model` in opset `target`, checked in full; names and interface are as they were."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    inner = ir.from_proto(copy)
    infer_model(inner)
    convert_operators(inner, target, Names(inner))
    raise_ir_version(inner)
    infer_model(inner)
    result = ir.to_proto(inner)
    if passes_checker(model):
        onnx.checker.check_model(result, full_check=True)
    for before, after in ((model.graph.input, result.graph.input), (model.graph.output, result.graph.output)):
        assert [one.name for one in before] == [one.name for one in after]
        assert [one.type.tensor_type.elem_type for one in before] == [one.type.tensor_type.elem_type for one in after]
    return result
