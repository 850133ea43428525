"""The loops of a model as separate models with a chosen number of steps."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

import ortscan
from rewrites.loops import ScanView, captured_values, view
from tests.support.runtime import ort_run

__all__ = ["StandaloneLoop", "loops_of_length"]

_KEEPS_LOOPS = ("recurrent-cell", "loop-fission", "unroll", "pairwise-distance", "state-fission", "end-steps", "sums-over-time")


@dataclass(frozen=True)
class StandaloneLoop:
    """A loop as a model. ``body`` is the number of nodes of its body, including nested loops and branches."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    body: int


def loops_of_length(model: onnx.ModelProto, feeds: dict[str, np.ndarray], steps: int) -> Iterator[StandaloneLoop]:
    """Return the Scans of `model`, and its Loops that are Scans, if their number of steps is known.

    The inputs of a loop are the values that it reads in `model`. Scanned inputs are repeated up to `steps` rows.
    """
    plain = ortscan.optimize(model, target="onnx", skip=[name for name in _KEEPS_LOOPS if name in rule_names()])
    assert isinstance(plain, onnx.ModelProto)
    graph = ir.from_proto(plain).graph
    opset = max(o.version for o in plain.opset_import if o.domain == "")
    for node in graph:
        if node.op_type != "Scan":
            continue
        loop = view(node, opset)
        assert isinstance(loop, ScanView)
        if isinstance(loop.steps, int) and loop.steps > 1:
            yield _alone(plain, feeds, loop, steps)


def rule_names() -> list[str]:
    from ortscan.rule_choice import rule_names

    return rule_names()


def _alone(model: onnx.ModelProto, feeds: dict[str, np.ndarray], loop: ScanView, steps: int) -> StandaloneLoop:
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    read = [value for value in (*loop.node.inputs, *captured_values(loop.body)) if value is not None]
    names = list(dict.fromkeys(value.name or "" for value in read))
    wanted = [name for name in names if name not in constants and name not in feeds]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(helper.make_value_info(name, onnx.TypeProto()) for name in wanted)
    found = dict(zip(wanted, ort_run(probe, feeds), strict=True)) if wanted else {}
    arrays = {name: constants.get(name, feeds.get(name, found.get(name))) for name in names}
    for scan in loop.scan_inputs:
        name = scan.outer.name or ""
        rows = np.arange(steps) % arrays[name].shape[scan.axis]
        arrays[name] = np.take(arrays[name], rows, scan.axis)
    proto = next(node for node in model.graph.node if node.output[0] == loop.node.outputs[0].name)
    scanned = {scan.outer.name for scan in loop.scan_inputs}
    fed = {name: array for name, array in arrays.items() if name in scanned or name not in constants}
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for name, a in fed.items()]
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in proto.output]
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items() if name not in fed]
    graph = helper.make_graph([proto], "loop", inputs, outputs, weights)
    alone = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    alone = onnx.shape_inference.infer_shapes(alone, data_prop=True)
    return StandaloneLoop(loop.node.name or proto.output[0], alone, fed, sum(1 for _ in loop.body.all_nodes()))
