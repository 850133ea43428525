"""An induction variable of a Loop becomes an expression of the step number.

    Loop(M, c, k0, h0) body(i, c, k, h) => (c, k + 2, f(h, k))    ->    Loop(M, c, h0) body(i, c, h) => (c, f(h, k0 + 2 * i))

Conditions: the state is an int32 or int64 of one element. Its next value is its value plus a constant, or an affine function of the
step number that continues the initial value. If the final value of the state is read, the trip count must be known before the loop.

The state may also be a float, or an integer that is computed from floats. Then the trip count must be constant, and so small that
floats represent all values exactly. If a Cast converts such a float to an integer, an expression of the step number replaces the
Cast, too.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import INTEGERS, AffineExpression, counts_exactly
from rewrites.analysis.induction.emission import emit, larger, scalar_of
from rewrites.analysis.induction.induction_variables import Counter, counters, trip_count
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import replace_value
from rewrites.graph.values import const_array, is_read, static_dims
from rewrites.loops import Loop, LoopView, rebuild
from rewrites.ops.versions import reshape
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if ``loop`` is a Loop with induction variables that an expression can replace."""
    if not isinstance(loop, LoopView):
        return NOTHING_HERE
    steps = trip_count(loop, ctx.opset)
    variables = [counter for counter in counters(loop, ctx.opset) if counter.step and _is_replaceable(counter, steps)]
    if not variables:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        gone = {counter.state.inner for counter in variables}
        kept = [state for state in loop.states if state.inner not in gone]
        results = [*(state.next for state in kept), *(output.inner for output in loop.scan_outputs)]
        loop.body.outputs[:] = [loop.body.outputs[0], *results]
        inside, after = ctx.builder(), ctx.builder()
        for counter in variables:
            state = counter.state
            for cast in _casts_to_integers(state.inner):
                replace_value(
                    cast.outputs[0], _emit_value_in_step(inside, counter, loop.iteration, cast.outputs[0].dtype), ctx.names
                )
            if state.inner.uses():
                replace_value(state.inner, _emit_value_in_step(inside, counter, loop.iteration, state.initial.dtype), ctx.names)
            if state.final is not None and is_read(state.final):
                assert loop.limit is not None
                zero = after.const(np.array(0, np.int64))
                replace_value(
                    state.final,
                    _to_state_type(after, counter, _emit_final_number(after, counter, steps, loop.limit, zero)),
                    ctx.names,
                )
        after.insert_before(loop.node)
        inside.prepend_to(loop.body)
        return [rebuild(loop, ctx.names, states=kept)]

    names = listed(counter.state.inner.name for counter in variables)
    return Patch(f"made the counting states {names} from the number of the step", edit)


def _is_replaceable(counter: Counter, steps: AffineExpression | None) -> bool:
    """Return True if expressions of the step number can replace the state of ``counter`` exactly.

    ``steps``: the trip count, if known.
    """
    final, step_count = counter.state.final, None if steps is None else steps.number
    if counter.exact_to is not None:
        return step_count is not None and counter.start.number is not None and counts_exactly(max(0, step_count), counter.exact_to)
    return steps is not None or not is_read(final)


def _casts_to_integers(variable: ir.Value) -> list[ir.Node]:
    """Return the Casts of ``variable`` to integers; an empty list if ``variable`` is an integer itself."""
    if variable.dtype in INTEGERS:
        return []
    users = {user: None for user, _ in variable.uses()}
    return [user for user in users if user.op_type == "Cast" and user.outputs[0].dtype in INTEGERS]


def _emit_value_in_step(b: Builder, counter: Counter, iteration: ir.Value, dtype: ir.DataType | None) -> ir.Value:
    """Emit the value of the induction variable in step ``iteration``, with the shape of the state.

    ``dtype``: the type of the emitted value.
    """
    number = _cast(b, iteration, dtype)
    if counter.step != 1:
        number = b.op("Mul", number, b.const(np.array(counter.step, (dtype or ir.DataType.INT64).numpy())))
    if counter.start.number != 0:
        number = b.op("Add", number, _cast(b, counter.state.initial, dtype, counter.state.initial.dtype))
    dims = static_dims(counter.state.initial) or ()
    shapes = [static_dims(value) or () for value in (iteration, counter.state.initial)]
    fits = shapes[0] == dims or (counter.start.number != 0 and len(dims) >= len(shapes[0]))
    return number if fits else reshape(b, number, list(dims))


def _emit_final_number(b: Builder, counter: Counter, steps: AffineExpression | None, limit: ir.Value, zero: ir.Value) -> ir.Value:
    """Emit the final value of the induction variable as an int64 scalar.

    Args:
        b: Collects the nodes after the loop.
        counter: The induction variable.
        steps: The trip count as an expression; None if unknown.
        limit: The trip count as a value, which may be negative.
        zero: A constant 0.
    """
    if steps is not None and steps.number is not None:
        return emit(b, counter.start + counter.step * max(0, steps.number))
    count = larger(b, scalar_of(b, limit), zero)
    if counter.step != 1:
        count = b.op("Mul", count, b.const(np.array(counter.step, np.int64)))
    return count if counter.start.number == 0 else b.op("Add", count, scalar_of(b, counter.state.initial))


def _to_state_type(b: Builder, counter: Counter, number: ir.Value) -> ir.Value:
    """Convert ``number`` to the type and shape of the state of ``counter``."""
    initial = counter.state.initial
    dims = list(static_dims(initial) or ())
    known = const_array(number)
    if known is not None:
        return b.const(known.astype((initial.dtype or ir.DataType.INT64).numpy()).reshape(dims))
    typed = _cast(b, number, initial.dtype)
    return reshape(b, typed, dims) if dims else typed


def _cast(b: Builder, value: ir.Value, dtype: ir.DataType | None, source_dtype: ir.DataType | None = ir.DataType.INT64) -> ir.Value:
    """Emit a Cast of ``value`` from ``source_dtype`` to ``dtype`` if the two types differ."""
    return value if dtype == source_dtype or dtype is None else b.op("Cast", value, to=int(dtype))


RULE = Rule("induction-states", "loop_form", "loop", check, formerly="counter-states")
