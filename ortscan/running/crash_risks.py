"""Find nodes that crash onnxruntime, or may crash it.

A model with a node that certainly crashes onnxruntime is never run. A model with a node that may crash it runs in a subprocess
(``own_process``).

Works around ORT-SCAN-MOVED-AXES, ORT-SCAN-8-NOTHING, ORT-SCAN-STATE-RANK, ORT-LOOP-UNNAMED-RESULT, ORT-LOOP-EMPTY-COUNT,
ORT-LOOP-EMPTY-CONDITION, ORT-GRU-NO-STEPS, ORT-LSTM-NO-STEPS, ORT-RECURRENT-NO-ROWS, ORT-CAST-AFTER-TRANSPOSE,
ORT-HALVES-AFTER-TRANSPOSE, ORT-EINSUM-OF-NOTHING, ORT-UNIQUE-OF-NOTHING, ORT-CONV-EMPTY-FILTER, ORT-LAYERNORM-EMPTY-NAME,
ORT-ATTENTION-OF-NOTHING, ORT-QUANTIZED-LSTM-NO-STEPS, ORT-QUANTIZED-LSTM-NO-ROWS, ORT-DEQUANTIZED-CAPTURED and
ONNX-SPLIT-OUTPUTS.
"""

from collections.abc import Container, Sequence, Set

import onnx
import onnx_ir as ir

from ortscan.base.proto_graphs import all_graphs, bodies_of
from ortscan.ort.integer_divisions import may_trap
from ortscan.ort.oldest import is_old
from ortscan.running.analysis import Analysis
from ortscan.running.graph_index import all_nodes, names_read
from ortscan.running.growth import may_exhaust_memory, may_run_long
from ortscan.running.guarded_nodes import guarded_nodes
from ortscan.running.joined_vectors import oversized_concats
from rewrites.graph.values import rank_of
from rewrites.ops.traits import operators
from rewrites.tidy.moved_operands import has_cast_transpose

__all__ = ["crash_risks", "crashes_on_empty_input", "may_crash", "may_crash_loading", "rank_conflicts"]

_RECURRENT = frozenset(["RNN", "LSTM", "GRU", "DynamicQuantizeLSTM"])
_FRAGILE = _RECURRENT | {"Einsum", "Attention"}
_CONVOLUTIONS = frozenset(["Conv", "ConvInteger", "ConvTranspose", "QLinearConv"])
_HARMLESS = operators("survives-empty") | _CONVOLUTIONS | {"Scan", "Unique"}
_HARMLESS_ELSEWHERE = frozenset([("ai.onnx.ml", "ArrayFeatureExtractor")])
_MOVING = frozenset(["Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "MaxPool"])
_PERHAPS_DROPPED = frozenset(["Identity", "Expand", "Cast", "Dropout"])


def crash_risks(proto: onnx.ModelProto) -> list[str]:
    """Return descriptions of the nodes that crash onnxruntime whatever the inputs are.

    The crash occurs when onnxruntime creates a session of the model, or when it runs the model.
    """
    risks = []
    for node, _ in all_nodes(proto):
        kind = node.op_type
        if kind == "Loop" and _has_unnamed_output(node):
            risks.append(f"Loop '{node.name}' has an output without a name")
        elif kind == "LayerNormalization" and node.input and not node.input[-1]:
            risks.append(f"LayerNormalization '{node.name}' ends in an empty input name")
        elif kind == "Split" and any(
            attribute.name == "num_outputs" and attribute.i < len(node.output) for attribute in node.attribute
        ):
            risks.append(f"Split '{node.name}' has more outputs than its num_outputs")
    return risks + oversized_concats(proto) + _captured_dequantized(proto)


def crashes_on_empty_input(proto: onnx.ModelProto) -> str | None:
    """Return the name of an operator that may fail badly on empty inputs, or None.

    Such an operator crashes, hangs or returns uninitialised memory if an operand is empty.

    Nodes that an If protects from empty operands are ignored. The condition of the If may be wrong, but this does no harm: either
    ``Guards`` checks the condition before each run, or ``may_crash`` counts the node, so that the model runs in a subprocess.
    """
    constants, guarded = _constants(proto), guarded_nodes(proto)
    nodes = ((node, version) for node, version in all_nodes(proto) if tuple(node.output) not in guarded)
    return next((label for node, version in nodes if (label := _crashing_operator(node, version, constants)) is not None), None)


def may_crash(proto: onnx.ModelProto, analysis: Analysis | None, watched: Set[tuple[str, ...]] = frozenset()) -> bool:
    """Return True if a run could crash, exhaust the memory or be unstoppable, even if no input is empty.

    Possible reasons are:

    * Creating the session may crash.
    * A node may run too long, or the values of a loop may grow without limit.
    * It is not known whether an operator crashes on empty operands.
    * An operator is known to crash on empty operands, and its operands may be empty.

    ``watched`` has the names of the outputs of nodes that are checked before each run. The last reason is ignored for these nodes.
    If ``analysis`` is None, the shapes are unknown, and every operand may be empty.
    """
    if may_crash_loading(proto) or may_exhaust_memory(proto, analysis) or (analysis is not None and may_run_long(analysis)):
        return True
    own = {(function.domain, function.name) for function in proto.functions}
    nodes = [(node, version) for node, version in all_nodes(proto) if (node.domain, node.op_type) not in own]
    constants = _constants(proto)
    fragile: set[str] = set()
    for node, version in nodes:
        if _crashing_operator(node, version, constants) is not None or node.op_type == "Loop":
            fragile.update(() if tuple(node.output) in watched else (node.op_type,))
        elif not _is_harmless(node):
            return True
    if not fragile:
        return False
    return analysis is None or any(
        _may_be_empty(value, analysis)
        for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph)
        if node.op_type in fragile
        for value in _crashing_if_empty(node)
    )


def _is_harmless(node: onnx.NodeProto) -> bool:
    if node.domain in ("", "ai.onnx"):
        return node.op_type in _HARMLESS
    return (node.domain, node.op_type) in _HARMLESS_ELSEWHERE


def may_crash_loading(proto: onnx.ModelProto) -> bool:
    """Return True if onnxruntime could crash when it loads the model or runs it for the first time.

    If the installed onnxruntime is an old release, it could crash on any model, so the result is always True.
    """
    if is_old():
        return True
    return _casts_a_transpose(proto) or may_trap(proto)


def _casts_a_transpose(proto: onnx.ModelProto) -> bool:
    kinds = {node.op_type for node, _ in all_nodes(proto)}
    return "Transpose" in kinds and not kinds.isdisjoint(("MatMul", "FusedMatMul")) and has_cast_transpose(ir.from_proto(proto))


def rank_conflicts(model: ir.Model) -> list[str]:
    """Return descriptions of the Scans that read a value of another rank than the body declares.

    The shapes of ``model`` must have been inferred.
    """
    conflicts = []
    version = model.opset_imports.get("", 1)
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        body = node.attributes.get("body")
        if node.op_type != "Scan" or body is None:
            continue
        operands = node.inputs[1:] if version < 9 else node.inputs
        formals = body.as_graph().inputs
        states = len(formals) - int(node.attributes["num_scan_inputs"].as_int())
        for position, (outer, formal) in enumerate(zip(operands, formals, strict=False)):
            lost = (version < 9) + (position >= states)
            ranks = None if outer is None else (rank_of(outer), rank_of(formal))
            if ranks is not None and None not in ranks and ranks[0] != (ranks[1] or 0) + lost:
                conflicts.append(f"Scan '{node.name}' gets rank {ranks[0]}, but its body input '{formal.name}' has rank {ranks[1]}")
    return conflicts


def _constants(proto: onnx.ModelProto) -> set[str]:
    names = {tensor.name for graph in all_graphs(proto) for tensor in graph.initializer}
    return names | {node.output[0] for node, _ in all_nodes(proto) if node.op_type == "Constant"}


def _crashing_operator(node: onnx.NodeProto, version: int, constants: Container[str]) -> str | None:
    """Return a text on the operator if ``node`` may crash on empty operands, else None.

    Examples of this text are "Einsum" and "Unique along an axis".

    Args:
        node: the node.
        version: the version of the default operator set that applies to ``node``.
        constants: the names of all constants.
    """
    axes = any(axis for attribute in node.attribute if attribute.name.endswith("put_axes") for axis in attribute.ints)
    if node.op_type in _FRAGILE:
        return node.op_type
    if node.op_type == "Scan" and (version < 9 or axes):
        return "Scan of opset 8" if version < 9 else "Scan over an axis other than 0"
    if node.op_type == "Unique" and any(attribute.name == "axis" for attribute in node.attribute):
        return "Unique along an axis"
    if node.op_type in _CONVOLUTIONS and node.input[_filter_position(node)] not in constants:
        return f"{node.op_type} with a computed filter"
    return None


def _filter_position(node: onnx.NodeProto) -> int:
    return 3 if node.op_type == "QLinearConv" else 1


def _crashing_if_empty(node: ir.Node) -> Sequence[ir.Value | None]:
    """Return the inputs and outputs of ``node`` that may crash onnxruntime if they are empty.

    * For a Loop, these are the trip count and the condition that its body returns. onnxruntime reads both without a check.
    * For a recurrent node, this is only the sequence X. If X is not empty, the states are not empty either, because onnxruntime
      rejects states whose batch size differs from the batch size of X.
    * For a Scan, these are all inputs and outputs, and for other nodes all inputs.
    """
    if node.op_type in _RECURRENT:
        return node.inputs[:1]
    if node.op_type == "Loop":
        return (*node.inputs[:1], *node.attributes["body"].as_graph().outputs[:1])
    return (*node.inputs, *(node.outputs if node.op_type == "Scan" else ()))


def _may_be_empty(value: ir.Value | None, analysis: Analysis) -> bool:
    if value is None or isinstance(value.type, ir.SequenceType):
        return False
    dims = analysis.dims(value)
    return dims is None or any(dim is None or dim == 0 for dim in dims)


def _has_unnamed_output(node: onnx.NodeProto) -> bool:
    return "" in node.output or any(not value.name for body in bodies_of(node) for value in body.output)


def _captured_dequantized(proto: onnx.ModelProto) -> list[str]:
    """Return descriptions of nodes that move a dequantized value and whose output a nested graph reads.

    For example, a Reshape reads the output of a DequantizeLinear, and the body of a loop reads the output of this Reshape.
    onnxruntime crashes when it loads a model with such a node.
    """
    risks = []
    for graph in (*all_graphs(proto), *proto.functions):
        if not any(node.op_type == "DequantizeLinear" for node in graph.node):
            continue
        constants = {tensor.name for tensor in getattr(graph, "initializer", ())}
        dequantized: set[str] = set()
        moved: dict[str, str] = {}
        for node in graph.node:
            first = next(iter(node.input), "")
            if node.op_type == "Constant":
                constants.update(node.output)
            elif node.op_type == "DequantizeLinear" and first not in constants:
                dequantized.update(node.output[:1])
            elif node.op_type in _MOVING | _PERHAPS_DROPPED and first in dequantized:
                dequantized.update(node.output[:1])
                if node.op_type in _MOVING or first in moved:
                    moved.update(dict.fromkeys(node.output[:1], node.op_type))
        bodies = [body for node in graph.node for body in bodies_of(node)] if moved else []
        captured = {name for body in bodies for node in body.node for name in names_read(node)}
        risks += [f"{op} '{name}' moves a dequantized value for a nested graph" for name, op in moved.items() if name in captured]
    return risks
