"""Turns a Scan whose state changes its shape into a Loop, because onnxruntime refuses such Scans.

    l = Scan (s0, xs) body(s, x) => Concat(s, x)    ->    l = Loop (T, s0) body(i, s) => Concat(s, Gather(xs, i))

The rule applies in these cases:

* The known sizes of the state that the body returns differ from those of the initial state.
* The body appends something to the state by a Concat, perhaps in a branch of an If.
* The body returns a Slice, Tile, Pad, Compress or Resize of the state, perhaps from a branch of an If.

A state that keeps its known sizes stays, such as an empty state that is appended to itself.

Scans over strings stay, because onnxruntime's Gather does not copy whole rows of strings.

Works around ORT-SCAN-CHANGING-STATE and ORT-GATHER-STRINGS.
"""

import onnx
import onnx_ir as ir

from rewrites.analysis.shapes.long_vectors import has_long_vectors
from rewrites.base import since
from rewrites.base.errors import is_raised_by
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import differ, forgotten, with_axes, without_axis
from rewrites.graph.marks import carry
from rewrites.graph.replace import replace_value, take_over
from rewrites.graph.values import const_array, producer_of, static_dims, through_identity
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import Loop, ScanView, State, captured_values
from rewrites.ops.versions import move_first_axis, shape_of, slice_axis, squeeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


_TO_THE_START = -(1 << 62)
_RESIZING = frozenset({"Compress", "Pad", "Resize", "Slice", "Tile"})


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a step changes the shape of a state."""
    if not isinstance(loop, ScanView) or loop.batched:
        return NOTHING_HERE
    shapes = zip(loop.states, _shapes_after_a_step(loop, ctx), strict=True)
    grown = next((state for state, shape in shapes if _may_change(state, shape)), None)
    if grown is None:
        return NOTHING_HERE
    if any(scan.outer.dtype == ir.DataType.STRING for scan in loop.scan_inputs):
        return NotApplicable("GROWING-STRINGS", f"the state '{grown.inner.name}' grows, and strings are scanned")
    if ctx.opset < since.SLICE_INPUTS and any(output.reverse for output in loop.scan_outputs):
        return NotApplicable("GROWING-OPSET", f"a result is stacked backwards, in opset {ctx.opset}")

    def edit() -> list[ir.Node]:
        return [_write_loop(loop, ctx)]

    what = f"made it a Loop, since the state '{grown.inner.name}' changes its shape, which onnxruntime's Scan refuses"
    return Patch(what, edit)


def _may_change(state: State, shape: ir.Shape | None) -> bool:
    """Return True if a step may change the shape of ``state``, which is ``shape`` after the first step."""
    if differ(state.initial.shape, shape):
        return True
    is_kept = shape is not None and shape.is_static() and shape == state.initial.shape
    return not is_kept and _may_resize(state.next, state)


def _may_resize(value: ir.Value, state: State) -> bool:
    """Return True if a node that changes shapes, such as Concat, computes ``value`` from ``state``.

    If an If computes ``value``, return True if such a node computes it in at least one branch.
    """
    source = through_identity(value)
    node = producer_of(source)
    if node is None or source is None:
        return False
    if node.op_type == "If":
        index = list(node.outputs).index(source)
        return any(_may_resize(branch.outputs[index], state) for branch in node_graphs(node))
    if node.op_type == "Concat":
        return len(node.inputs) > 1 and any(through_identity(operand) is state.inner for operand in node.inputs)
    if node.op_type not in _RESIZING or through_identity(node.inputs[0]) is not state.inner:
        return False
    sizes = static_dims(source)
    return sizes is None or sizes != static_dims(state.inner)


def _shapes_after_a_step(loop: ScanView, ctx: Context) -> list[ir.Shape | None]:
    """Return the shapes of the states after the first step, with None for unknown shapes.

    onnx infers the shapes in the body here, from the shapes of the initial states and scan inputs. Its inference also evaluates
    sizes that nodes compute, so it finds the rank of the result of a Reshape to computed sizes.
    """
    unknown: list[ir.Shape | None] = [None] * len(loop.states)
    if any(node_graphs(node) for node in loop.body) or not any(state.initial.shape for state in loop.states):
        return unknown
    inputs = [(state.inner, state.initial.shape) for state in loop.states]
    inputs += [(scan.inner, without_axis(scan.outer.shape, scan.axis)) for scan in loop.scan_inputs]
    inputs += [(value, value.shape) for value in captured_values(loop.body)]
    graph = onnx.GraphProto(name="body")
    for value, shape in inputs:
        if not isinstance(value.type, ir.TensorType):
            return unknown
        graph.input.append(ir.serde.serialize_value(ir.Value(name=value.name, type=value.type, shape=shape)))
        array = const_array(value)
        if array is not None and array.dtype.kind in "iu":
            graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    graph.node.extend(ir.serde.serialize_node(node) for node in loop.body)
    graph.output.extend(ir.serde.serialize_value(ir.Value(name=state.next.name, type=state.next.type)) for state in loop.states)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in ctx.model.opset_imports.items()]
    model = onnx.helper.make_model(graph, ir_version=ctx.model.ir_version, opset_imports=imports)
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=not has_long_vectors(loop.body))
    except Exception as error:
        if not is_raised_by(error, "onnx"):
            raise
        return unknown
    return [ir.serde.deserialize_type_proto_for_shape(info.type) for info in inferred.graph.output]


def _write_loop(loop: ScanView, ctx: Context) -> ir.Node:
    old, body, graph = loop.node, loop.body, loop.node.graph
    assert graph is not None
    before, inside, after = ctx.builder(), ctx.builder(), ctx.builder()
    first = loop.scan_inputs[0]
    count = squeeze(before, shape_of(before, first.outer, first.axis), [0])
    step = ir.Value(name=ctx.names.fresh("step"), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))
    goes_on = ir.Value(name=ctx.names.fresh("goes_on"), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    for scan in loop.scan_inputs:
        index = inside.op("Sub", inside.op("Sub", count, inside.const(1)), step) if scan.reverse else step
        row = inside.op("Gather", scan.outer, index, axis=scan.axis, hint=scan.inner.name)
        replace_value(scan.inner, row, ctx.names)
    condition = inside.op("Identity", goes_on)
    _remove_sizes(loop)
    inside.prepend_to(body)
    results = list(body.outputs)
    body.inputs[:] = [step, goes_on, *(state.inner for state in loop.states)]
    body.outputs[:] = [condition, *results]
    del old.attributes["body"]
    outputs = [ir.Value(name=ctx.names.fresh(value.name or "result"), type=value.type) for value in old.outputs]
    operands = [count, None, *(state.initial for state in loop.states)]
    node = ir.Node("", "Loop", operands, [ir.AttrGraph("body", body)], outputs=outputs, name=old.name, version=old.version)
    node.doc_string = old.doc_string
    node.metadata_props.update(old.metadata_props)
    carry(old, node)
    new_results = list(outputs[: len(loop.states)])
    for output, value in zip(loop.scan_outputs, outputs[len(loop.states) :], strict=True):
        value.shape = with_axes(output.inner.shape, 0, None)
        new_results.append(_move_to_axis(after, value, output.axis, output.reverse))
    graph.insert_before(old, [*before.nodes, node, *after.nodes])
    for state in loop.states:
        if state.final is not None and not state.final.is_graph_output():
            state.final.shape = None
    for old_result, new_result in zip(old.outputs, new_results, strict=True):
        take_over(old_result, new_result, ctx.names)
    graph.remove(old, safe=True)
    return node


def _move_to_axis(b: Builder, value: ir.Value, axis: int, reverse: bool) -> ir.Value:
    if reverse:
        value = slice_axis(b, value, 0, -1, _TO_THE_START, -1)
    return move_first_axis(b, value, axis, 0 if value.shape is None else len(value.shape)) if axis else value


def _remove_sizes(loop: ScanView) -> None:
    """Remove the sizes from all shapes in the body, because they may be correct only for the first step."""
    values = [value for node in all_nodes(loop.body) for value in node.outputs]
    for value in [*(state.inner for state in loop.states), *values]:
        value.shape = forgotten(value.shape, lambda _: True)


RULE = Rule("growing-state", "repair", "loop", check)
