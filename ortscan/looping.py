"""The public verb loop: make the model of a whole loop from the model of one step."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

import onnx
import onnx_ir as ir

from ortscan.base.messages import quietly
from ortscan.edge.border import wrap_errors
from ortscan.edge.limited import limited
from ortscan.edge.programs import ExportedProgram, accepting_programs
from ortscan.migration import migrated
from ortscan.modelio import AnyModel, Interface, LoadedModel, load, return_model, sealed, to_proto
from ortscan.modelio.reading import read_from_pipe
from ortscan.option_types import check_path
from ortscan.ort.model_errors import checker_fault
from ortscan.pipeline.compare_with_original import Level, level_of, require_no_difference
from rewrites.base.errors import InvariantBroken
from rewrites.stepping.step_roles import RoleNames, StepRoles, read_roles
from rewrites.stepping.whole_model import build_whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ortscan.verb_options import LoopOptions

__all__ = ["WholeLoop", "loop", "whole_loop"]

_ProtoLike = str | os.PathLike[str] | bytes | onnx.ModelProto
_Program = TypeVar("_Program", bound=ExportedProgram)
_FIRST_OPSET = 11
"""The first opset of a whole model. Steps of older opsets are migrated to it."""


@dataclass(frozen=True)
class WholeLoop:
    """The model of a whole loop.

    Attributes:
        step: the model of a step, as the caller passed it.
        loaded: the model of the whole loop.
        roles: the roles of the inputs and outputs of the step.
        spent: the seconds that building the loop took.
    """

    step: AnyModel
    loaded: LoadedModel
    roles: StepRoles
    spent: float


@wrap_errors
@quietly
def whole_loop(step: Any, names: RoleNames) -> WholeLoop:
    """Build the model of the whole loop, without comparing it with the step.

    ``names``: the arguments of ``loop``.
    """
    started = time.monotonic()
    step = read_from_pipe(step)
    loaded = load(step)
    roles = read_roles(loaded.model, names)
    if loaded.model.opset_imports.get("", _FIRST_OPSET) < _FIRST_OPSET:
        loaded, _ = migrated(step, _FIRST_OPSET)
    loaded.model.opset_imports.setdefault("", _FIRST_OPSET)
    loaded.listed = loaded.judged = None
    build_whole(loaded.model, roles)
    loaded.interface = Interface.of(loaded.model)
    fault = checker_fault(to_proto(loaded))
    if fault is not None and checker_fault(to_proto(load(step))) is None:
        raise InvariantBroken(f"The whole loop is not a valid model: {fault}.")
    return WholeLoop(step, loaded, roles, time.monotonic() - started)


@overload
def loop(step: ir.Model, *, states: Mapping[str, str], **options: "Unpack[LoopOptions]") -> ir.Model: ...
@overload
def loop(step: _ProtoLike, *, states: Mapping[str, str], **options: "Unpack[LoopOptions]") -> onnx.ModelProto: ...
@overload
def loop(step: _Program, *, states: Mapping[str, str], **options: "Unpack[LoopOptions]") -> _Program: ...
@accepting_programs
@limited
@wrap_errors
@quietly
def loop(
    step: Any,
    *,
    states: Mapping[str, str],
    scan: Sequence[str] | Mapping[str, int] = (),
    stop: str | None = None,
    max_steps: int | str | None = None,
    counter: str | None = None,
    initial: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    stack: Sequence[str] | Mapping[str, int] = (),
    inputs: Any = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    verify: bool | str = "quick",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Any:
    """Return a model of the whole loop whose step is ``step``.

    One run of the result does what a program does that runs ``step`` again and again, and passes its states on.

        loop("step.onnx", states={"h_in": "h_out"}, scan=["x"], output="whole.onnx")

    The result has a Scan. If a stop output, ``max_steps`` or a state with changing sizes is used, it has a Loop. ``optimize`` can
    take both out. Inputs without a role have the same value in all steps.

    Args:
        step: the model of a step, as for ``optimize``.
        states: for each state, the input that reads it and the output that is its next value.
        scan: the inputs of which each step gets one row. In the result they have one more axis, for the steps. It is axis 0, unless
            a dict such as ``{"x": 1}`` names another axis.
        stop: a bool output. The loop ends after the step in which all its elements are true.
        max_steps: the most steps, or the name of a new int64 input of the result with this number. Without it, the length of the
            scanned inputs is the number of steps.
        counter: an int64 or int32 input with one element, which gets the number of the step, from 0.
        initial: the first values of states, by input: a number that fills the state, or an array. Other states start from inputs
            of the result, with the names of the inputs of the step.
        outputs: the outputs of the result. By default, these are all outputs of the step. For states, the last values are returned.
        stack: states of which all values are returned, instead of the last, by their outputs. A dict also names the axis of the
            steps in any output. The default is axis 0.
        inputs: the inputs of the result for the comparison, as for ``verify``. By default they are random.
        shapes: the shapes of the result's inputs for the comparison, by name; None leaves a size free.
        verify: as for ``optimize``. The result is compared with a Python loop that runs ``step``.
        time_limit, memory_limit, output: as for ``optimize``.

    Returns:
        A model of the same kind as for ``optimize``.

    Raises:
        OptionError: a name, type or shape does not fit the step, or the number of steps is unknown.
        VerificationFailed: the result differs from the Python loop.
        OrtscanError: the step is malformed, or cannot be read or written.
    """
    check_path(output)
    level = level_of(verify)
    whole = whole_loop(step, RoleNames(states, scan, stop, max_steps, counter, initial, outputs, stack))
    with sealed(whole.loaded):
        if level is not None:
            _require_equal(whole, level, inputs, shapes)
        return return_model(whole.loaded, output)


def _require_equal(whole: WholeLoop, level: Level, inputs: Any, shapes: Any) -> None:
    """Raise VerificationFailed if the whole loop differs from its steps.

    Issue a warning if nothing could be compared.
    """
    from ortscan.running.budget import quick_seconds
    from ortscan.verification.compare_steps import verify_steps

    seconds = quick_seconds(whole.spent) if level == "quick" else None
    options = {"inputs": inputs, "shapes": shapes, "level": level, "time_limit": seconds}
    verification = verify_steps(whole.step, whole.loaded, whole.roles, **options)
    require_no_difference(verification, "The whole loop differs from its steps", "ortscan.loop")
