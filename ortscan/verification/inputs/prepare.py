"""Find out from the graphs of two models which inputs they accept, and prepare the inputs to try."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ortscan.running.analysis import Analysis, KnownSizes, analyse, if_readable, known_sizes
from ortscan.running.budget import Budget, Level
from ortscan.running.constraints import SizeFacts, learn_sizes
from ortscan.running.crash_risks import crashes_on_empty_input, may_crash, rank_conflicts
from ortscan.running.graph_index import all_nodes
from ortscan.running.specs import SessionSpec, input_specs, overridable_names
from ortscan.verification.inputs.axis import largest_compared_size
from ortscan.verification.inputs.cases import Inputs
from ortscan.verification.inputs.interface import quoted
from ortscan.verification.inputs.make_value import is_integer, unmakeable
from ortscan.verification.inputs.may_be_large import may_be_divided, may_be_large
from ortscan.verification.inputs.named_values import NamedValues, named_values
from ortscan.verification.inputs.plan import untried_rows
from ortscan.verification.inputs.roles import Role, find_roles
from ortscan.verification.inputs.shapes import with_arrays
from ortscan.verification.inputs.value_kinds import MOST_ALONE, can_be_zero, values_not_fed
from rewrites.base.errors import is_from_elsewhere

__all__ = ["InputPlan", "prepare"]


_SMALL = 1 << 22
_LOOPS = frozenset(["Scan", "Loop", "RNN", "LSTM", "GRU"])
_MANY = 16


@dataclass(frozen=True)
class InputPlan:
    """The inputs to try.

    Attributes:
        inputs: all inputs, with the facts that are needed to generate values.
        learned: the known facts about sizes; None if the graph cannot be read.
        learned_without_branches: the facts in ``learned`` that do not come from branches of Ifs. None if branches of Ifs add no
            facts, or if the graph cannot be read.
        problems: the reasons why nothing can be tried. Empty if there are none.
        notes: notes for the report of the comparison.
        may_crash: True if a run may crash the process.
        not_tried: phrases on what the cases do not cover.
        too_large: the reasons why creating a session would take too much memory. Empty if there are none.
    """

    inputs: Inputs
    learned: SizeFacts | None
    learned_without_branches: SizeFacts | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    may_crash: bool
    not_tried: tuple[str, ...] = ()
    too_large: tuple[str, ...] = ()


def prepare(
    models: tuple[onnx.ModelProto, onnx.ModelProto],
    watched: Sequence[Set[tuple[str, ...]]],
    specs: Sequence[SessionSpec],
    sizes: Mapping[str, int],
    fixed: Mapping[str, Any],
    seed: int,
    level: Level,
    budget: Budget,
) -> InputPlan:
    """Prepare the inputs on which both models will run.

    Args:
        models: the original and the rewritten model.
        watched: for each model, the outputs of the nodes that `Guards` checks before each run. These nodes are no reason to run the
            model in a subprocess.
        specs: the declarations of the inputs of the original.
        sizes: the sizes of free dimensions that the caller chose.
        fixed: the values of inputs that the caller passed. Values of other inputs are generated.
        seed: the seed of the values.
        level: how thorough the comparison is.
        budget: the available memory.
    """
    before, after = models
    specs, bound = with_arrays(specs, fixed)
    sizes = {**sizes, **bound}
    fragile = crashes_on_empty_input(before) or crashes_on_empty_input(after)
    problems = [reason for spec in specs if spec.name not in fixed and (reason := unmakeable(spec)) is not None]
    if fragile and (0 in sizes.values() or any(isinstance(v, np.ndarray) and v.size == 0 for v in fixed.values())):
        problems.append(f"a size of zero was requested, but onnxruntime may crash or return uninitialised values at {fragile}")
    analysis, notes = _analysis(before, specs)
    if any(spec.dims is None for spec in input_specs(before.graph)):
        problems += _conflicts("original", analysis) + _conflicts("result", _analysis(after, specs)[0])
    roles = {} if analysis is None else find_roles(analysis)
    inner = KnownSizes({}) if analysis is None else known_sizes(analysis)
    size, name = inner.largest_fixed()
    fits = size <= _MANY * sum(value.nbytes for value in fixed.values() if isinstance(value, np.ndarray)) or budget.allows(size)
    candidates = {spec.name for spec in specs if is_integer(spec) and spec.name not in fixed and spec.name not in roles}
    inputs = Inputs(
        specs=specs,
        fixed=fixed,
        sizes=sizes,
        defaults=_defaults(before, overridable_names(before) & overridable_names(after) - set(fixed)),
        roles=roles,
        inner_sizes=inner,
        large=candidates & may_be_large(analysis) if candidates and analysis is not None else set(),
        divided=set() if analysis is None else may_be_divided(analysis),
        named=if_readable(lambda: named_values(models, specs)) or NamedValues(),
        has_loops=any(node.op_type in _LOOPS for model in models for node, _ in all_nodes(model)),
        avoid_empty=fragile is not None,
        seed=seed,
        level=level,
        budget=budget,
        largest_compared_size=largest_compared_size(after),
    )
    if fragile and inputs.free_sizes:
        notes.append(f"sizes of zero were not tried, because onnxruntime may crash or return uninitialised values at {fragile}")
    learned = None if analysis is None else learn_sizes(analysis)
    learned_without_branches = None if analysis is None else learn_sizes(analysis, branches=False)
    if (
        learned_without_branches is not None
        and learned is not None
        and learned_without_branches.groups_with_sizes(inputs.free_sizes) == learned.groups_with_sizes(inputs.free_sizes)
    ):
        learned_without_branches = None
    other = _analysis(after, specs)[0] if crashes_on_empty_input(after) else None
    return InputPlan(
        inputs,
        learned,
        learned_without_branches,
        problems=tuple(problems),
        notes=tuple(notes),
        may_crash=may_crash(before, analysis, watched[0]) or may_crash(after, other, watched[1]),
        not_tried=(*_kinds_not_tried(inputs, before, after), *untried_rows(inputs.axes(learned), level)),
        too_large=() if fits else (f"'{name}' would take {size >> 20} MiB",),
    )


def _analysis(proto: onnx.ModelProto, specs: Sequence[SessionSpec]) -> tuple[Analysis | None, list[str]]:
    """Return the analysis of a model, and notes for the report.

    If the graph can be read, the list of notes is empty. Otherwise the analysis is None, and a note says why. The analysis only
    helps to choose good inputs, so the comparison can continue without an analysis.
    """
    try:
        return analyse(proto, specs), []
    except Exception as error:
        if is_from_elsewhere(error):
            raise
        return None, [f"inputs were chosen without reading the graph ({type(error).__name__}: {error})"]


def _conflicts(label: str, analysis: Analysis | None) -> list[str]:
    if analysis is None:
        return [f"the {label} has inputs without a declared rank and cannot be read, so running it is not safe"]
    return [f"the {label} would crash onnxruntime: {conflict}" for conflict in rank_conflicts(analysis.model)]


def _defaults(proto: onnx.ModelProto, names: Set[str]) -> dict[str, np.ndarray]:
    """Return the values of the initializers ``names``, by name.

    Leave out initializers that are very large, are stored as external data, or are no floats.
    """
    defaults = {}
    for tensor in proto.graph.initializer:
        small = tensor.name in names and int(np.prod(tensor.dims)) <= _SMALL and not tensor.external_data
        if small and tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16):
            defaults[tensor.name] = onnx.numpy_helper.to_array(tensor)
    return defaults


def _kinds_not_tried(inputs: Inputs, before: onnx.ModelProto, after: onnx.ModelProto) -> Iterator[str]:
    """Yield phrases on kinds of values that some inputs do not get in any case."""
    missing, roles = inputs.missing, inputs.roles
    if inputs.level == "full":
        small = [spec.name for spec in missing if is_integer(spec) and spec.name not in inputs.large]
        if small := [name for name in small if not roles.get(name, Role()).is_trip_count]:
            yield f"large integers for {quoted(small)}, which may be indices or sizes"
        ragged = [name for name, role in roles.items() if role.positive and not role.lengths and role.highs and not role.ranges]
        if ragged := [name for name in ragged if name in {spec.name for spec in missing}]:
            yield f"0 for {quoted(ragged)}"
        whole = [spec.name for spec in missing if not is_integer(spec) and roles.get(spec.name, Role()).is_strict]
        if whole:
            yield f"large floats for {quoted(whole)}, which determine sizes"
        if alone := can_be_zero(missing, roles, inputs.avoid_empty)[MOST_ALONE:]:
            yield f"zeros for only one of {quoted(alone)}"
        yield from values_not_fed(missing, inputs.named, roles, inputs.large - inputs.divided)
        if least := [name for name in inputs.large if name in inputs.divided]:
            yield f"the lowest integer for {quoted(least)}, which is divided"
    kept = sorted((overridable_names(before) & overridable_names(after)) - set(inputs.defaults) - set(inputs.fixed))
    if kept:
        yield f"other values for the defaults of {quoted(kept)}"
