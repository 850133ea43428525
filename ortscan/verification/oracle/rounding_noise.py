"""Copy a model and add noise to the last digits of its weights and of every float that it computes.

If the noise changes a result much, the result is sensitive to rounding.

    y = MatMul (x, w)     ->     y' = y + amount * (y - y rounded to few digits)        (Monte Carlo arithmetic)

The lower digits of a number are almost random, so they serve as the noise. A number with few digits, such as 0.5, a count or an
infinity, is probably exact and stays unchanged. Therefore a model that computes without rounding errors returns the same results.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir

from ortscan.base.proto_graphs import default_opset
from ortscan.modelio import inline_functions
from ortscan.modelio.protos import hide_map_types
from ortscan.modelio.refusals import count_called_nodes
from ortscan.modelio.slots import ir_with_own_tensors
from ortscan.modelio.source import ModelSource, changed_source
from ortscan.ort.element_types import numpy_type
from ortscan.running.analysis import if_readable
from ortscan.running.graph_index import all_nodes
from rewrites.analysis.shapes.inference import infer_model
from rewrites.graph.names import Names
from rewrites.graph.walk import inner_graphs, node_graphs

__all__ = ["noise_feeds", "noisy_source", "with_rounding_noise"]

_FIRST_OPSET = 9
"""The first opset with Where."""
_MOST_NODES = 2_000
_MOST_INLINED = 2_000
_LARGEST = 1 << 22
"""The most elements of a weight that gets noise."""
_DIGITS = {ir.DataType.DOUBLE: 16, ir.DataType.FLOAT: 16, ir.DataType.FLOAT16: 7, ir.DataType.BFLOAT16: 5}
"""The most bits of a number with few digits."""
_OF_DOUBLE = 53
_FINITE = 1e290
_ROUNDINGS = 2.0
_RUNS = ((0, 1.0), (0, -1.0), (1, -1.0), (1, 1.0), (2, 1.0), (2, -1.0))
"""For each run: by how many bits the limit for few digits is lowered, and the sign of the noise."""
_PASSING = (
    "Identity Reshape Transpose Squeeze Unsqueeze Flatten Slice Gather GatherElements GatherND Concat Split Expand Tile Pad Where "
    "Max Min Relu Neg Abs Clip Floor Ceil Round Sign MaxPool Compress ScatterElements ScatterND Scatter ReverseSequence Trilu TopK "
    "ReduceMax ReduceMin DepthToSpace SpaceToDepth OneHot EyeLike If Loop Scan"
)
_NOT_ROUNDING = frozenset(_PASSING.split())
"""The operators that do not round: they return numbers that they read, or whole numbers."""


def with_rounding_noise(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return a copy that adds noise, or None if the model is too old, too large or unreadable.

    Additional inputs of the copy control the noise. `noise_feeds` generates these inputs.
    """
    large = sum(1 for _ in all_nodes(proto)) > _MOST_NODES
    return None if large or (default_opset(proto.opset_import) or 1) < _FIRST_OPSET else if_readable(lambda: _with_noise(proto))


def noisy_source(source: ModelSource, stack: ExitStack) -> ModelSource | None:
    """Return the model of `with_rounding_noise` as a ModelSource, or None if there is no such model.

    The new source shares the external data of ``source``.
    """
    proto = with_rounding_noise(source.proto)
    return None if proto is None else changed_source(source, proto, stack)


def _with_noise(proto: onnx.ModelProto) -> onnx.ModelProto:
    model = ir_with_own_tensors(hide_map_types(proto, "the model"))
    if count_called_nodes(proto) <= _MOST_INLINED:
        inline_functions(model, lambda _: True)
    infer_model(model)
    noise = _Noise(model)
    for graph in [model.graph, *inner_graphs(model.graph)]:
        noise.add_to(graph)
    noisy = ir.to_proto(model)
    for output, original in zip(noisy.graph.output, proto.graph.output, strict=True):
        output.type.CopyFrom(original.type)
    return noisy


def noise_feeds(roundings: float, feed: Mapping[str, Any] = MappingProxyType({})) -> Iterator[dict[str, Any]]:
    """Yield the inputs of several runs of a model with rounding noise.

    Each item contains the inputs that control the noise, and the inputs ``feed`` with noise of their own. The noise of ``feed`` has
    the opposite sign of the noise in the model, so that an input that is close to a threshold in the model can cross this
    threshold.

    Args:
        roundings: the size of the noise as a multiple of the largest rounding error. A negative number reverses the sign.
        feed: the inputs of the model.
    """
    for fewer, direction in _RUNS:
        inputs = {}
        for kind, digits in _DIGITS.items():
            kept = digits - fewer
            rounding = float(ml_dtypes.finfo(numpy_type(int(kind))).eps)  # type: ignore[no-untyped-call]
            split, amount = _inputs(kind)
            inputs[split] = np.array(2.0 ** (_OF_DOUBLE - kept) + 1)
            inputs[amount] = np.array(direction * _ROUNDINGS * roundings * rounding * 2.0**kept)
        yield {name: _moved(value, inputs) for name, value in feed.items()} | inputs


def _moved(value: Any, inputs: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_moved(item, inputs) for item in value]
    kind = next((kind for kind in _DIGITS if isinstance(value, np.ndarray) and value.dtype == numpy_type(int(kind))), None)
    if kind is None:
        return value
    split, amount = (inputs[name] for name in _inputs(kind))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = value.astype(np.float64) * split
        rest = value - (spread - (spread - value))
        return np.asarray(np.where(np.isfinite(rest) & (rest != 0), value - amount * rest, value)).astype(value.dtype)


def _inputs(kind: ir.DataType) -> tuple[str, str]:
    return f"rounding_noise_split_{kind.name.lower()}", f"rounding_noise_amount_{kind.name.lower()}"


class _Noise:
    def __init__(self, model: ir.Model):
        self._names = Names(model)
        self._added = {kind: tuple(map(_scalar, _inputs(kind))) for kind in _DIGITS}
        model.graph.inputs.extend(value for pair in self._added.values() for value in pair)
        self._bounds = []
        for bound in (_FINITE, -_FINITE):
            name = self._names.fresh("rounding_noise_bound")
            value = ir.Value(name=name, type=ir.TensorType(ir.DataType.DOUBLE), shape=ir.Shape([]))
            value.const_value = ir.tensor(np.array(bound), name=name)
            model.graph.register_initializer(value)
            self._bounds.append(value)
        self._ours = set(self._bounds)

    def add_to(self, graph: ir.Graph) -> None:
        """Add noise to the weights of ``graph`` and to the results of its nodes.

        Graphs nested in ``graph`` stay unchanged.
        """
        nodes = list(graph)
        inputs = set(graph.inputs)
        for value in list(graph.initializers.values()):
            if value not in self._ours and value not in inputs and not value.is_graph_output() and _is_small(value) and nodes:
                self._move(value, nodes[0], graph, before=True)
        for node in nodes:
            if node.op_type in _NOT_ROUNDING or node_graphs(node):
                continue
            for value in node.outputs:
                self._move(value, node, graph, before=False)

    def _move(self, value: ir.Value, beside: ir.Node, graph: ir.Graph, before: bool) -> None:
        kind = value.dtype
        if kind not in self._added or not isinstance(value.type, ir.TensorType) or not value.name:
            return
        split, amount = self._added[kind]
        nodes: list[ir.Node] = []

        def node(op_type: str, *inputs: ir.Value, to: ir.DataType | None = None) -> ir.Value:
            attributes = {} if to is None else {"to": int(to)}
            nodes.append(ir.node(op_type, inputs, attributes))
            result = nodes[-1].outputs[0]
            result.name = self._names.fresh(f"{value.name}_noise")
            return result

        users = tuple(value.uses())
        wide = value if kind == ir.DataType.DOUBLE else node("Cast", value, to=ir.DataType.DOUBLE)
        finite = node("Max", node("Min", wide, self._bounds[0]), self._bounds[1])
        spread = node("Mul", finite, split)
        few = node("Sub", spread, node("Sub", spread, finite))
        rest = node("Sub", finite, few)
        moved = node("Where", node("Cast", rest, to=ir.DataType.BOOL), node("Add", wide, node("Mul", rest, amount)), wide)
        if kind != ir.DataType.DOUBLE:
            moved = node("Cast", moved, to=kind)
        moved.type, moved.shape = value.type, value.shape
        for user, position in users:
            user.replace_input_with(position, moved)
        for position, output in enumerate(graph.outputs):
            if output is value:
                graph.outputs[position] = moved
                moved.name, value.name = value.name, moved.name
        (graph.insert_before if before else graph.insert_after)(beside, nodes)


def _scalar(name: str) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(ir.DataType.DOUBLE), shape=ir.Shape([]))


def _is_small(value: ir.Value) -> bool:
    return value.const_value is not None and value.const_value.size <= _LARGEST
