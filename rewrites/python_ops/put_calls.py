"""Replaces nodes without a kernel by calls to Python.

    y = Erf (x) of float64    ->    y = ortscan.python.Call <Erf> (x)

This is the last rewrite, because calls are slow. If neither the type of a node nor a wider type has a kernel, the node becomes a
call to onnx's reference implementation. If a Scan of elementwise operators holds such nodes, one call runs the whole Scan, instead
of one call per node and step.

These nodes never change:

* nodes with a kernel, and operators outside the standard set
* random operators, which return other numbers in every run
* recurrent operators, because their reference is incomplete
* other nodes with nested graphs
"""

import math
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import KernelGap, LoopReport
from rewrites.graph.context import Context
from rewrites.graph.marks import REPORT
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import static_dims
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanView, is_loop, view
from rewrites.loops.parts import label
from rewrites.loops.view import captured_values
from rewrites.python_ops.call import NEEDED_OPSET, ports_of, write_call
from rewrites.python_ops.missing_kernels import body_model, missing_kernel, node_model, run_wider
from rewrites.python_ops.names import DOMAIN, ELEMENTWISE
from rewrites.python_ops.reference import reference_runs
from rewrites.python_ops.wire import TEXT, pack

__all__ = ["place_python_ops"]

# Measured with onnxruntime 1.31 and onnxruntime-extensions 0.15.
_CALL_US = 60
_ELEMENT_NS = 3

_NEVER = frozenset({"RNN", "LSTM", "GRU", "Constant", "Identity"})


def place_python_ops(ctx: Context, *, wider: bool = True) -> list[KernelGap]:
    """Replace each node without a kernel by the same node in a wider type, or by a call to Python.

    Return an entry for each replaced node, and for each node that could not be replaced. ``wider``: False to replace nodes only by
    calls, not by nodes in a wider type.
    """
    widened = []
    for node, where in list(_nodes_without_kernel(ctx.model.graph, "main", ctx, yield_scans=False)) if wider else ():
        operator, change = node.op_type, run_wider(node, ctx)
        if change is not None:
            widened.append(KernelGap(where, operator, "wider", change))
    placed = [
        _replace_by_call(node, where, ctx)
        for node, where in list(_nodes_without_kernel(ctx.model.graph, "main", ctx, yield_scans=True))
    ]
    if any(entry.fate == "python" for entry in placed):
        ctx.model.opset_imports.setdefault(DOMAIN, 1)
    return [*widened, *placed]


def _nodes_without_kernel(graph: ir.Graph, path: str, ctx: Context, yield_scans: bool) -> Iterator[tuple[ir.Node, str]]:
    for node in graph:
        here = f"{path}/{node.op_type} {label(node)}"
        inner = node_graphs(node)
        if inner:
            inner_pairs = [pair for nested in inner for pair in _nodes_without_kernel(nested, here, ctx, yield_scans)]
            if yield_scans and node.op_type == "Scan" and is_loop(node) and inner_pairs and _is_elementwise(node, ctx):
                yield node, here
            else:
                yield from inner_pairs
        elif node.domain in ("", "ai.onnx") and node.op_type not in _NEVER and missing_kernel(node, ctx):
            yield node, here


def _is_elementwise(node: ir.Node, ctx: Context) -> bool:
    """Return True if one call can run the whole Scan ``node``.

    This requires that all operators of its body are elementwise and exist in numpy.
    """
    loop = view(node, ctx.opset)
    return isinstance(loop, ScanView) and not loop.batched and all(inner.op_type in ELEMENTWISE for inner in loop.body)


def _replace_by_call(node: ir.Node, where: str, ctx: Context) -> KernelGap:
    operator = node.op_type
    outcome = _scan_call(node, ctx) if is_loop(node) else _node_call(node, ctx)
    if isinstance(outcome, NotApplicable):
        return KernelGap(where, operator, "kept", outcome.detail, outcome.code)
    return KernelGap(where, operator, "python", outcome)


def _node_call(node: ir.Node, ctx: Context) -> str | NotApplicable:
    inputs = list(dict.fromkeys(value for value in node.inputs if value is not None))
    outputs = [value for value in node.outputs if value.name]
    if not is_deterministic(node):
        return NotApplicable("PYTHON-OP-RANDOM", f"{node.op_type} returns other numbers in every run")
    model = node_model(node, ctx)
    if isinstance(model, NotApplicable):
        return model
    reason = reference_runs(model)
    return reason or _write_python_call(node, "graph", {"model": pack(model)}, inputs, outputs, ctx)


def _scan_call(node: ir.Node, ctx: Context) -> str | NotApplicable:
    loop = view(node, ctx.opset)
    assert isinstance(loop, ScanView)
    captures = captured_values(loop.body)
    inputs = [*(state.initial for state in loop.states), *(scan.outer for scan in loop.scan_inputs), *captures]
    axes = [output.axis for output in loop.scan_outputs]
    elements = []
    for output in loop.scan_outputs:
        port = ports_of([output.inner])
        if isinstance(port, NotApplicable):
            return port
        dims = output.inner.shape.dims if output.inner.shape is not None else ()
        elements.append([port[0].kind, [dim if isinstance(dim, int) else 0 for dim in dims]])
    payload = {
        "model": pack(body_model(loop.body, captures, ctx)),
        "states": len(loop.states),
        "axes": [scan.axis for scan in loop.scan_inputs],
        "reverse": [int(scan.reverse) for scan in loop.scan_inputs],
        "out_axes": axes,
        "out_reverse": [int(output.reverse) for output in loop.scan_outputs],
        "elements": elements,
    }
    outcome = _write_python_call(node, "scan", payload, inputs, node.outputs, ctx)
    entry = REPORT.of(node)
    if isinstance(outcome, str) and isinstance(entry, LoopReport):
        entry.fate, entry.nodes_after, entry.reasons = "removed", 0, []
        entry.notes.append("a call of Python runs it as a whole")
    return outcome


def _write_python_call(
    node: ir.Node,
    payload_format: str,
    payload: dict[str, object],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    ctx: Context,
) -> str | NotApplicable:
    if ctx.opset < NEEDED_OPSET:
        return NotApplicable("PYTHON-OP-OPSET", f"the model is of opset {ctx.opset}")
    input_ports, output_ports = ports_of(inputs), ports_of(outputs)
    if isinstance(input_ports, NotApplicable):
        return input_ports
    if isinstance(output_ports, NotApplicable):
        return output_ports
    if text := next((value for value, port in zip(inputs, input_ports, strict=True) if port.slot == TEXT), None):
        return NotApplicable("PYTHON-OP-TYPE", f"'{text.name}' holds strings, which do not all reach Python unchanged")
    build = ctx.builder()
    results = write_call(build, payload_format, payload, inputs, outputs, (input_ports, output_ports))
    build.insert_before(node)
    for old, new in zip(outputs, results, strict=True):
        replace_value(old, new, ctx.names)
    remove_nodes([node])
    return _cost_of([static_dims(value) for value in outputs], ctx.options.assumed_dim)


def _cost_of(shapes: Sequence[Sequence[int] | None], assumed_elements: int) -> str:
    """Return a sentence that estimates the minimum time of a call.

    Args:
        shapes: The shapes of the results; None if unknown.
        assumed_elements: The number of elements of a result of unknown shape.
    """
    elements = sum(assumed_elements if dims is None else math.prod(dims) for dims in shapes)
    total = _CALL_US + elements * _ELEMENT_NS / 1000
    each = f"{_CALL_US} us, and {_ELEMENT_NS} ns for each of about {elements} numbers that it returns"
    return f"each call costs {total:.0f} us at least ({each})"
