"""Reads the roles of a step's inputs and outputs from the caller's names.

Names, types and shapes that do not fit the step are errors.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, listed, quoted, shown
from rewrites.graph.dims import differ
from rewrites.graph.type_names import shape_name, type_name
from rewrites.graph.values import static_dims
from rewrites.stepping.initial_states import Fill, read_initial

__all__ = ["RoleNames", "StepRoles", "read_roles"]

_WHOLE = (ir.DataType.INT64, ir.DataType.INT32)


@dataclass(frozen=True)
class RoleNames:
    """The roles as the caller names them. The attributes are the arguments of ``ortscan.loop``."""

    states: Mapping[str, str]
    scan: Sequence[str] | Mapping[str, int] = ()
    stop: str | None = None
    max_steps: int | str | None = None
    counter: str | None = None
    initial: Mapping[str, Any] | None = None
    outputs: Sequence[str] | None = None
    stack: Sequence[str] | Mapping[str, int] = ()


@dataclass(frozen=True)
class StepRoles:
    """The checked roles of a step.

    Attributes:
        states: the output that feeds each state, by input.
        scan: the axis of the steps in the whole model's input, by scanned input.
        stop: the output that ends the loop, or None.
        limit: the most steps: a number, the name of an input of the whole model, or None.
        counter: the input that counts the steps from 0, or None.
        initial: the values that states start from, by input. All other states start from inputs of the whole model.
        outputs: the outputs of the whole model, in order.
        stack: the axis of the steps in each stacked output. All other outputs are last values of states.
    """

    states: Mapping[str, str]
    scan: Mapping[str, int]
    stop: str | None
    limit: int | str | None
    counter: str | None
    initial: Mapping[str, np.ndarray | Fill]
    outputs: Sequence[str]
    stack: Mapping[str, int]

    @property
    def returned_states(self) -> list[str]:
        """The outputs that are last values of states."""
        return [name for name in self.outputs if name not in self.stack]


def read_roles(step: ir.Model, names: RoleNames) -> StepRoles:
    """Return the roles that ``names`` describes. Raise OptionError if they do not fit ``step``."""
    inputs = {value.name or "": value for value in step.graph.inputs}
    outputs = {value.name or "": value for value in step.graph.outputs}
    states = _read_states(names.states, inputs, outputs)
    scan = _axes("scan", names.scan, inputs, "input")
    _refuse_second_roles(states, scan, names.counter)
    if names.counter is not None:
        _check_counter(_known("counter", names.counter, inputs, "input"))
    if names.stop is not None:
        _check_stop(_known("stop", names.stop, outputs, "output"))
    limit = _read_limit(names.max_steps, {*inputs, *outputs})
    if not scan and limit is None:
        raise OptionError("The number of steps is unknown: scan an input, or set max_steps.")
    wanted = _read_outputs(names.outputs, outputs)
    if shared := [name for name in wanted if name in inputs]:
        raise OptionError(f"{listed(shared)} is an input and an output of the step; return other outputs.")
    asked = _axes("stack", names.stack, outputs, "output")
    if unreturned := [name for name in asked if name not in wanted]:
        raise OptionError(f"stack: {listed(unreturned)} is not among the returned outputs.")
    stack = {name: asked.get(name, 0) for name in wanted if name in asked or name not in states.values()}
    for name in stack:
        if not isinstance(outputs[name].type, ir.TensorType | None):
            raise OptionError(f"The output {quoted(name)} is no tensor, so its values cannot be stacked; return other outputs.")
    initial = read_initial({} if names.initial is None else names.initial, states, scan, names.counter, inputs, outputs)
    return StepRoles(states, scan, names.stop, limit, names.counter, initial, wanted, stack)


def _known(role: str, name: Any, values: Mapping[str, ir.Value], kind: str) -> ir.Value:
    if name not in values:
        hint = did_you_mean(name, values)
        raise OptionError(f"{role}: the step has no {kind} {quoted(name)}{hint}; its {kind}s are {listed(values) or 'none'}.")
    return values[name]


def _read_states(states: Any, inputs: Mapping[str, ir.Value], outputs: Mapping[str, ir.Value]) -> dict[str, str]:
    if not isinstance(states, Mapping):
        raise OptionError(f"states must be a dict of inputs to outputs, such as {{'h_in': 'h_out'}}, not {shown(states)}.")
    for name, source in states.items():
        before, after = _known("states", name, inputs, "input"), _known("states", source, outputs, "output")
        pair = f"The output {quoted(source)} cannot feed the state {quoted(name)}"
        if before.type is not None and after.type is not None and before.type != after.type:
            raise OptionError(f"{pair}: its type is {type_name(after.type)}, but the input has {type_name(before.type)}.")
        if differ(before.shape, after.shape):
            raise OptionError(f"{pair}: its shape is {shape_name(after.shape)}, but the input has {shape_name(before.shape)}.")
    return dict(states)


def _axes(role: str, axes: Any, values: Mapping[str, ir.Value], kind: str) -> dict[str, int]:
    """Return the axis of the steps for each name.

    The tensors of all steps have one axis more than ``values``.
    """
    if isinstance(axes, str) or not isinstance(axes, Mapping | Collection):
        raise OptionError(f"{role} must be a list of names, or a dict of names to axes, not {shown(axes)}.")
    checked: dict[str, int] = {}
    for name, axis in axes.items() if isinstance(axes, Mapping) else ((name, 0) for name in axes):
        value = _known(role, name, values, kind)
        if name in checked:
            raise OptionError(f"{role} names {quoted(name)} twice.")
        if not isinstance(value.type, ir.TensorType | None):
            raise OptionError(f"{role}: {quoted(name)} is no tensor, so it cannot have an axis for the steps.")
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise OptionError(f"{role}: the axis of {quoted(name)} must be a whole number, not {shown(axis)}.")
        rank = None if value.shape is None else len(value.shape) + 1
        if (rank is None and axis != 0) or (rank is not None and not -rank <= axis < rank):
            allowed = "0, because its rank is unknown" if rank is None else f"in {-rank}..{rank - 1}"
            raise OptionError(f"{role}: the axis {axis} of {quoted(name)} must be {allowed}.")
        checked[name] = axis if rank is None else axis % rank
    return checked


def _refuse_second_roles(states: Mapping[str, str], scan: Mapping[str, int], counter: str | None) -> None:
    twice = [name for name in scan if name in states]
    if counter in states or counter in scan:
        twice.append(str(counter))
    if twice:
        raise OptionError(f"The input {quoted(twice[0])} has two roles; it can be a state, scanned or the counter.")


def _check_counter(value: ir.Value) -> None:
    sizes = static_dims(value)
    if value.dtype not in _WHOLE or sizes is None or any(size != 1 for size in sizes):
        raise OptionError(f"counter: the input {quoted(value.name)} must be one int64 or int32 number, of the shape [] or [1].")


def _check_stop(value: ir.Value) -> None:
    if value.dtype != ir.DataType.BOOL:
        raise OptionError(
            f"stop: the output {quoted(value.name)} must be bool, not {type_name(value.dtype)}; let the step compute a bool."
        )


def _read_limit(limit: Any, names: Collection[str]) -> int | str | None:
    if isinstance(limit, str):
        if not limit or limit in names:
            raise OptionError(f"max_steps: the new input needs a name of its own, not {shown(limit)}.")
        return limit
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or not 0 < limit < 1 << 31):
        raise OptionError(f"max_steps must be a whole number above 0, or the name of a new input, not {shown(limit)}.")
    return limit


def _read_outputs(wanted: Any, outputs: Mapping[str, ir.Value]) -> list[str]:
    if wanted is None:
        return list(outputs)
    if isinstance(wanted, str) or not isinstance(wanted, Collection):
        raise OptionError(f"outputs must be a list of names, not {shown(wanted)}.")
    for name in wanted:
        _known("outputs", name, outputs, "output")
    if not wanted:
        raise OptionError("outputs must name at least one output.")
    twice = next((name for name in wanted if list(wanted).count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"outputs names {quoted(twice)} twice.")
    return list(wanted)
