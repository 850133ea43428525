"""From a model, what the caller fixed and what the graph tells, to inputs that can be tried."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ortscan.running.analysis import Analysis, KnownSizes, analyse, known_sizes
from ortscan.running.budget import Budget, Level
from ortscan.running.crash_risks import crashes_on_empty_input, may_crash, rank_conflicts
from ortscan.running.graph_index import all_nodes
from ortscan.running.specs import Spec, input_specs, overridable_names
from ortscan.verification.cases.planned_cases import Inputs
from ortscan.verification.given.inputs import with_arrays
from ortscan.verification.given.interface import quoted
from ortscan.verification.sizes.asked_sizes import asked_size
from ortscan.verification.sizes.constraints import Sizes
from ortscan.verification.sizes.from_operators import learn_sizes
from ortscan.verification.sizes.untried_rows import untried_rows
from ortscan.verification.values.make_value import is_integer, unmakeable
from ortscan.verification.values.may_be_large import may_be_divided, may_be_large
from ortscan.verification.values.named_cases import unfed
from ortscan.verification.values.named_values import Named, named_values
from ortscan.verification.values.roles import Role, find_roles
from ortscan.verification.values.value_kinds import MOST_ALONE, can_be_zero
from rewrites.base.errors import is_from_elsewhere

__all__ = ["Prepared", "prepare"]

_SMALL = 1 << 22
_LOOPS = frozenset(["Scan", "Loop", "RNN", "LSTM", "GRU"])
_MANY = 16


@dataclass(frozen=True)
class Prepared:
    """Inputs to try with advice on sizes, or the ``problems`` that forbid trying.

    ``loose``: the advice without what only branches of Ifs say, None where that is no other. ``perilous``: a run may kill the
    process it runs in. ``too_large``: why no session must be made, either.
    """

    inputs: Inputs
    learned: Sizes | None
    loose: Sizes | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    perilous: bool
    not_tried: tuple[str, ...] = ()
    too_large: tuple[str, ...] = ()


def prepare(
    models: tuple[onnx.ModelProto, onnx.ModelProto],
    watched: Sequence[Set[tuple[str, ...]]],
    specs: Sequence[Spec],
    sizes: Mapping[str, int],
    given: Mapping[str, Any],
    seed: int,
    level: Level,
    budget: Budget,
) -> Prepared:
    """Get ready to run both models on ``given`` and made-up values for the rest, with the free dimensions in ``sizes`` fixed.

    ``watched``: for each the nodes, by their outputs, that need no process of their own: see ``guards``.
    """
    before, after = models
    specs, bound = with_arrays(specs, given)
    sizes = {**sizes, **bound}
    fragile = crashes_on_empty_input(before) or crashes_on_empty_input(after)
    problems = [reason for spec in specs if spec.name not in given and (reason := unmakeable(spec)) is not None]
    if fragile and (0 in sizes.values() or any(isinstance(v, np.ndarray) and v.size == 0 for v in given.values())):
        problems.append(f"a size of zero is asked for, and {fragile} kills onnxruntime's process on it")
    analysis, notes = _advice(before, specs)
    if any(spec.dims is None for spec in input_specs(before.graph)):
        problems += _conflicts("original", analysis) + _conflicts("result", _advice(after, specs)[0])
    roles = {} if analysis is None else find_roles(analysis)
    inner = KnownSizes({}) if analysis is None else known_sizes(analysis)
    size, name = inner.fixed()
    fits = size <= _MANY * sum(value.nbytes for value in given.values() if isinstance(value, np.ndarray)) or budget.allows(size)
    too_large = () if fits else (f"'{name}' would take {size >> 20} MiB",)
    inputs = Inputs(
        specs=specs,
        given=given,
        sizes=sizes,
        defaults=_defaults(before, overridable_names(before) & overridable_names(after) - set(given)),
        roles=roles,
        inner=inner,
        large=_large(analysis, specs, given, roles),
        divided=set() if analysis is None else may_be_divided(analysis),
        named=_named(models, specs),
        loops=any(node.op_type in _LOOPS for model in models for node, _ in all_nodes(model)),
        avoid_nothing=fragile is not None,
        seed=seed,
        level=level,
        budget=budget,
        asked=asked_size(after),
    )
    if fragile and inputs.free_sizes:
        notes.append(f"sizes of zero were not tried: {fragile} does not survive them on onnxruntime")
    learned = None if analysis is None else learn_sizes(analysis)
    loose = None if analysis is None else learn_sizes(analysis, branches=False)
    if loose is not None and learned is not None and loose.told(inputs.free_sizes) == learned.told(inputs.free_sizes):
        loose = None
    other = _advice(after, specs)[0] if crashes_on_empty_input(after) else None
    perilous = may_crash(before, analysis, watched[0]) or may_crash(after, other, watched[1])
    not_tried = (*_not_tried(inputs, before, after), *untried_rows(inputs.axes(learned), level))
    return Prepared(inputs, learned, loose, tuple(problems), tuple(notes), perilous, not_tried, too_large)


def _advice(proto: onnx.ModelProto, specs: Sequence[Spec]) -> tuple[Analysis | None, list[str]]:
    """The analysis only helps to choose good inputs, so a graph it cannot read is no obstacle."""
    try:
        return analyse(proto, specs), []
    except Exception as error:
        if is_from_elsewhere(error):
            raise
        return None, [f"inputs were chosen without reading the graph ({type(error).__name__}: {error})"]


def _named(models: tuple[onnx.ModelProto, onnx.ModelProto], specs: Sequence[Spec]) -> Named:
    """Advice, too: what of a model cannot be read names nothing."""
    try:
        return named_values(models, specs)
    except Exception as error:
        if is_from_elsewhere(error):
            raise
        return Named()


def _not_tried(inputs: Inputs, before: onnx.ModelProto, after: onnx.ModelProto) -> Iterator[str]:
    """Say which inputs are not given the values that other inputs are."""
    if inputs.level == "full":
        small = [spec.name for spec in inputs.missing if is_integer(spec) and spec.name not in inputs.large]
        if small := [name for name in small if not inputs.roles.get(name, Role()).trips]:
            yield f"large integers for {quoted(small)}, which may be an index or decide sizes"
        ragged = [
            name for name, role in inputs.roles.items() if role.positive and not role.lengths and role.highs and not role.ranges
        ]
        if ragged := [name for name in ragged if name in {spec.name for spec in inputs.missing}]:
            yield f"0 for {quoted(ragged)}"
        whole = [spec.name for spec in inputs.missing if not is_integer(spec) and inputs.roles.get(spec.name, Role()).decisive]
        if whole:
            yield f"large floats for {quoted(whole)}, which decide sizes"
        alone = can_be_zero(inputs.missing, inputs.roles, inputs.avoid_nothing)[MOST_ALONE:]
        if alone:
            yield f"zeros for {quoted(alone)} alone"
        yield from unfed(inputs.missing, inputs.named, inputs.roles, inputs.large - inputs.divided)
        least = [name for name in inputs.large if name in inputs.divided]
        if least:
            yield f"the least integer for {quoted(least)}, which is divided"
    kept = sorted((overridable_names(before) & overridable_names(after)) - set(inputs.defaults) - set(inputs.given))
    if kept:
        yield f"other values for the defaults of {quoted(kept)}"


def _large(analysis: Analysis | None, specs: Sequence[Spec], given: Mapping[str, Any], roles: Mapping[str, Role]) -> set[str]:
    candidates = {spec.name for spec in specs if is_integer(spec) and spec.name not in given and spec.name not in roles}
    return candidates & may_be_large(analysis) if candidates and analysis is not None else set()


def _conflicts(label: str, analysis: Analysis | None) -> list[str]:
    if analysis is None:
        return [f"the {label} has inputs without a declared rank and cannot be read, so running it is not safe"]
    return [f"the {label} would crash onnxruntime: {conflict}" for conflict in rank_conflicts(analysis.model)]


def _defaults(proto: onnx.ModelProto, names: set[str]) -> dict[str, np.ndarray]:
    """The small float defaults among the initializers ``names``."""
    found = {}
    for tensor in proto.graph.initializer:
        small = tensor.name in names and int(np.prod(tensor.dims)) <= _SMALL and not tensor.external_data
        if small and tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16):
            found[tensor.name] = onnx.numpy_helper.to_array(tensor)
    return found
