"""A Loop whose condition its body computes, as a call of the operator that runs its plan.

hT, ys = Loop(M, cond, h0) body(i, c, h) => (c', h', y)
->    hT, ys = ai.ortscan.Loop1 <plan> (cond, h0, M, w)    with a function that holds the Loop
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.loops import LoopView, captured_values, stand_in_for
from rewrites.native.compiling import Compiled
from rewrites.native.encoding import to_text
from rewrites.native.functions import add_function, constants_inside, free_overload, function_of, parameter, read_inside
from rewrites.native.names import DOMAIN, LOOP_OPERATOR

__all__ = ["call_instead_of_loop"]

_NO_LIMIT = np.array(np.iinfo(np.int64).max)


def call_instead_of_loop(loop: LoopView, compiled: Compiled, ctx: Context) -> None:
    """Put a call in the place of the Loop, and the Loop into the function that it calls."""
    old, build, body = loop.node, ctx.builder(), loop.body
    condition = loop.condition if loop.condition is not None else build.const(np.array(True), np.bool_)
    limit = loop.limit if loop.limit is not None else build.const(_NO_LIMIT)
    build.insert_before(old)
    given = [condition, *(state.initial for state in loop.states), limit, *compiled.captured]
    outputs = [ir.Value(name=ctx.names.fresh(value.name or "result"), type=value.type) for value in old.outputs]
    overload = free_overload(ctx.model, LOOP_OPERATOR)
    del old.attributes["body"]
    start, states, most = parameter(condition, ctx), [parameter(state.initial, ctx) for state in loop.states], parameter(limit, ctx)
    inside = {value: parameter(value, ctx) for value in compiled.captured}
    parameters = [start, *states, most, *inside.values()]
    constants = constants_inside(captured_values(body), inside, ctx)
    read_inside(body, inside)
    results = [ir.Value(name=ctx.names.fresh(value.name or "result"), type=value.type) for value in body.outputs[1:]]
    held = ir.Node("", "Loop", [most, start, *states], [ir.AttrGraph("body", body)], outputs=results, name=ctx.names.fresh("loop"))
    function = function_of(LOOP_OPERATOR, overload, parameters, results, [*constants, held], ctx)
    plan = ir.AttrString("plan", to_text(compiled.plan))
    call = ir.Node(DOMAIN, LOOP_OPERATOR, given, [plan], overload=overload, outputs=outputs, name=old.name)
    stand_in_for(old, call, list(zip(old.outputs, outputs, strict=True)), ctx.names)
    for value in outputs:
        value.name = value.name or ctx.names.fresh("unread")  # the function returns it all the same
    add_function(ctx.model, function)
