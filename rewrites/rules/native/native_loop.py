"""A Scan becomes a call of a function that holds it, which the library of loop plans runs by itself where it is registered.

    hT, ys = Scan(h0, xs) body(h, x) => (f(h, x, w), g(h, x, w))
    ->    hT, ys = ai.ortscan.Scan1 <plan> (h0, xs, w)
          ai.ortscan.Scan1:l0 (h0, xs, w) => (hT, ys) { hT, ys = Scan(h0, xs) body(h, x) => (f(h, x, w), g(h, x, w)) }

Everywhere else onnxruntime inlines the function and runs the Scan. Constants that are in the plan are in the function too.
Condition: the whole body has a plan (see ``rewrites.native``).
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.base.made import Made
from rewrites.edits.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.loops import Loop, ScanInput, ScanOutput, ScanView, State, captured_values, make_scan, stand_in_for
from rewrites.native.compiling import Compiled, compile_loop
from rewrites.native.encoding import to_text
from rewrites.native.names import DOMAIN, IR_VERSION, OPERATOR

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether the loop has a plan."""
    if not isinstance(loop, ScanView) or DOMAIN not in ctx.options.domains:
        return NOTHING_HERE
    compiled = compile_loop(loop, ctx)
    if isinstance(compiled, NotApplicable):
        return compiled

    def edit() -> Sequence[ir.Node]:
        _call_instead(loop, compiled, ctx)
        return []

    count = len(compiled.plan.instructions)
    made = Made(planned=max(1, count))
    return Patch(f"wrote a plan of {count} instructions for {DOMAIN}.{OPERATOR}", edit, compiled.notes, made)


def _call_instead(loop: ScanView, compiled: Compiled, ctx: Context) -> None:
    """Put a call in the place of the loop, and the loop into the function that it calls."""
    old, model = loop.node, ctx.model
    given = [*(state.initial for state in loop.states), *(scan.outer for scan in loop.scan_inputs), *compiled.captured]
    outputs = [ir.Value(name=ctx.names.fresh(value.name or "result"), type=value.type) for value in old.outputs]
    overload = _free_overload(model)
    plan = ir.AttrString("plan", to_text(compiled.plan))
    call = ir.Node(DOMAIN, OPERATOR, given, [plan], overload=overload, outputs=outputs, name=old.name)
    del old.attributes["body"]
    stand_in_for(old, call, list(zip(old.outputs, outputs, strict=True)), ctx.names)
    for value in outputs:
        value.name = value.name or ctx.names.fresh("unread")  # the function returns it all the same
    function = _function(loop, compiled, overload, ctx)
    model.functions[function.identifier()] = function
    model.opset_imports.setdefault(DOMAIN, 1)
    model.ir_version = max(model.ir_version, IR_VERSION)


def _free_overload(model: ir.Model) -> str:
    number = 0
    while (DOMAIN, OPERATOR, f"l{number}") in model.functions:
        number += 1
    return f"l{number}"


def _function(loop: ScanView, compiled: Compiled, overload: str, ctx: Context) -> ir.Function:
    names = ctx.names
    states = [State(_parameter(state.initial, ctx), state.inner, state.next, None) for state in loop.states]
    scans = [ScanInput(_parameter(scan.outer, ctx), scan.inner, scan.axis, scan.reverse) for scan in loop.scan_inputs]
    stacked = [ScanOutput(output.inner, None, output.axis, output.reverse) for output in loop.scan_outputs]
    inside, constants = {value: _parameter(value, ctx) for value in compiled.captured}, list[ir.Node]()
    for value in captured_values(loop.body):
        if value not in inside:
            array = const_array(value)
            assert array is not None
            inside[value] = _parameter(value, ctx)
            attribute = ir.AttrTensor("value", ir.tensor(array, name=inside[value].name))
            constants.append(ir.Node("", "Constant", [], [attribute], outputs=[inside[value]], name=names.fresh("constant")))
    for node in loop.body:
        for index, read in enumerate(node.inputs):
            if read is not None and read in inside:
                node.replace_input_with(index, inside[read])
    scan = make_scan(names, loop.body, states, scans, stacked, "loop")
    parameters = [
        *(state.initial for state in states),
        *(part.outer for part in scans),
        *map(inside.__getitem__, compiled.captured),
    ]
    for parameter in parameters:
        parameter.type = parameter.shape = None  # the call says them, and onnx_ir does not read those of a function
    graph = ir.Graph(
        parameters, scan.outputs, nodes=[*constants, scan], opset_imports={"": ctx.opset}, name=f"{OPERATOR}_{overload}"
    )
    return ir.Function(DOMAIN, OPERATOR, overload, graph=graph, attributes=[ir.Attr("plan", ir.AttributeType.STRING, None)])


def _parameter(value: ir.Value, ctx: Context) -> ir.Value:
    """Return what stands for an outer value in the function."""
    return ir.Value(name=ctx.names.fresh(value.name or "value"), type=value.type, shape=value.shape)


RULE = Rule("native-loop", "native", "loop", check, use="asked")
