"""Moves a reduction over all steps into the loop if the stack of all steps needs too much memory.

    ys = Scan(h0, xs) body(h, x) => (h2, y); s = ReduceSum(ys, axis 0)    ->    s = Scan(h0, 0, xs) body(h, a, x) => (h2, a + y)

The stack ys is then never built. A stack that fits in the memory budget stays, because reducing all steps at once is faster.
Conditions: only the reduction reads the stack, and the shape of one step is known. The reduction is a ReduceSum or ReduceMean of
float32 or float64 (only the order of summation changes), or a ReduceMax or ReduceMin of int32 or int64. All other reductions would
change the result:

* A sum of integers that is too large becomes the largest integer in onnxruntime's ReduceSum, but overflows in its Add.
* Whether onnxruntime's ReduceMax and ReduceMin of floats return NaN depends on the step that has the NaN.
* Narrower floats would be rounded in each step.

Works around ORT-REDUCED-INTEGERS and ORT-REDUCED-NAN.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.base.plain_text import listed
from rewrites.fission.stacks import stacking_obstacle
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import rank_of, static_dims
from rewrites.loops import Loop, LoopView, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import axes_of, keepdims, shape_of, squeeze, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_INTEGERS = frozenset({ir.DataType.INT32, ir.DataType.INT64})
_ADDS = {"ReduceSum": "Add", "ReduceMean": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}


@dataclass(frozen=True)
class _ReducedOutput:
    """A scan ``output`` that only the node ``reduction`` reads. ``dims`` and ``dtype``: those of one step."""

    output: ScanOutput
    reduction: ir.Node
    dims: tuple[int, ...]
    dtype: ir.DataType


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a stack exceeds the memory budget and is only reduced over the steps."""
    if isinstance(loop, LoopView) or not loop.states or stacking_obstacle(loop, ctx) is not None:
        return NOTHING_HERE
    sizes = StepSizes.of(loop, ctx)
    reduced = [output_sum for output in loop.scan_outputs if (output_sum := _match_reduction(output, sizes, ctx)) is not None]
    if not reduced:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        gone = {id(output_sum.output) for output_sum in reduced}
        sums = [_reduce_in_loop(loop, output_sum, ctx) for output_sum in reduced]
        outputs = [output for output in loop.scan_outputs if id(output) not in gone]
        node = rebuild(loop, ctx.names, states=[*loop.states, *sums], scan_outputs=outputs)
        give_own_nodes(loop.body, ctx.names)
        return [node]

    names = listed(output_sum.output.inner.name for output_sum in reduced)
    return Patch(f"summed up {names} step by step", edit)


def _match_reduction(output: ScanOutput, sizes: StepSizes, ctx: Context) -> _ReducedOutput | None:
    """Return ``output`` with its reduction if the loop can reduce it step by step, else None."""
    outer, inner = output.outer, output.inner
    if outer is None or outer.is_graph_output() or sizes.step_bytes(inner) * sizes.steps <= ctx.options.memory_budget:
        return None
    readers, dims, dtype = list(outer.uses()), static_dims(inner), inner.dtype
    if len(readers) != 1 or dims is None or dtype is None:
        return None
    node, index = readers[0]
    if node.op_type not in _ADDS or node.domain != "" or index != 0 or axes_of(node, ctx.opset, rank_of(outer)) != (output.axis,):
        return None
    floats = dtype in _FLOATS and node.op_type in ("ReduceSum", "ReduceMean")
    integers = dtype in _INTEGERS and _ADDS[node.op_type] != "Add" and ctx.opset >= since.INTEGER_MAX
    return _ReducedOutput(output, node, dims, dtype) if floats or integers else None


def _reduce_in_loop(loop: ScanView, reduced: _ReducedOutput, ctx: Context) -> State:
    """Add the reduction to the loop and return its new state. Users of the reduction read its final value."""
    before, inside, after = ctx.builder(), ctx.builder(), ctx.builder()
    name, dtype = reduced.output.inner.name, reduced.dtype.numpy()
    least = {"ReduceMax": "min", "ReduceMin": "max"}.get(reduced.reduction.op_type)
    neutral = np.array([0 if least is None else getattr(np.iinfo(dtype), least)], dtype)
    initial = before.op("ConstantOfShape", before.const(list(reduced.dims)), value=ir.tensor(neutral), hint=f"{name}_none")
    inner = ir.Value(name=ctx.names.fresh(f"{name}_so_far"), type=ir.TensorType(reduced.dtype), shape=ir.Shape(reduced.dims))
    total = inside.op(_ADDS[reduced.reduction.op_type], inner, reduced.output.inner, hint=f"{name}_sum")
    final = ir.Value(name=ctx.names.fresh(f"{name}_total"), type=ir.TensorType(reduced.dtype), shape=ir.Shape(reduced.dims))
    result = final
    if reduced.reduction.op_type == "ReduceMean":
        scan = loop.scan_inputs[0]
        count = squeeze(after, shape_of(after, scan.outer, scan.axis), [0])
        result = after.op("Div", final, after.op("Cast", count, to=int(reduced.dtype)))
    if keepdims(reduced.reduction):
        result = unsqueeze(after, result, [reduced.output.axis])
    before.insert_before(loop.node)
    inside.append_to(loop.body)
    after.insert_after(loop.node)
    replace_value(reduced.reduction.outputs[0], result, ctx.names)
    remove_nodes([reduced.reduction])
    return State(initial, inner, total, final)


RULE = Rule("sums-over-time", "fission", "loop", check)
