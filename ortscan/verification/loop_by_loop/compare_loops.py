"""Comparing a large model loop by loop, each on inputs of its own: cheaper than running the whole, and nearer to a fault."""

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import onnx

from ortscan.modelio.source import Source, changed_source, weight
from ortscan.running.budget import RUN_SECONDS, Budget
from ortscan.running.graph_index import GraphIndex, all_nodes
from ortscan.running.specs import Spec, input_specs
from ortscan.verification.compare_models import Settings, compare_models
from ortscan.verification.loop_by_loop.cutting import Cut, cut_loop
from ortscan.verification.loop_by_loop.value_types import value_types
from ortscan.verification.result import Verification

__all__ = ["compare_loops", "has_loops_of_its_own", "is_large"]

LARGE_NODES = 2000
"""A model with more nodes, those of bodies included, is compared loop by loop where a quick comparison is asked for."""

LARGE_BYTES = 64 << 20
"""So is one with more bytes of weights."""

_MOST_NODES = 1000
_SECONDS_A_NODE = 0.002
_ANY_BYTES = 1 << 40
_LOOPS = frozenset(["Scan", "Loop", "RNN", "LSTM", "GRU"])


def is_large(proto: onnx.ModelProto) -> bool:
    """Return whether running the whole model is too dear for a quick comparison."""
    return weight(proto) > LARGE_BYTES or _count(proto) > LARGE_NODES


def has_loops_of_its_own(proto: onnx.ModelProto) -> bool:
    """Return whether the main graph holds a loop or a recurrent node."""
    return any(node.op_type in _LOOPS for node in proto.graph.node)


def compare_loops(
    old: Source,
    new: Source,
    specs: Sequence[Spec],
    sizes: Mapping[str, int],
    settings: Settings,
    budget: Budget,
    stack: ExitStack,
) -> Verification:
    """Compare each loop and recurrent node of the main graph by itself, in an order drawn by the seed, until time is up.

    A difference counts where the whole models differ as well, or cannot be run: alone a loop may get what it never gets in its
    model. Where some sizes are fixed in ``sizes``, and what they come to at a loop is not known, it must be the whole models that
    differ. Where no loop can be cut out it is compared as a whole after all, if there is time.
    """
    before, after = GraphIndex(old.proto.graph), GraphIndex(new.proto.graph)
    types = value_types(old.proto, specs, sizes)
    positions = [position for position, node in enumerate(before.nodes) if node.op_type in _LOOPS]
    random.Random(settings.seed).shuffle(positions)
    found: list[Verification] = []
    left_out: dict[str, list[str]] = {}
    unchanged, done = 0, set[str]()
    for position in positions:
        label = f"{before.nodes[position].op_type} '{before.nodes[position].name or before.nodes[position].output[0]}'"
        if budget.is_spent():
            left_out.setdefault("", []).append(label)
            continue
        cut = cut_loop(position, before, after, types, _MOST_NODES)
        if isinstance(cut, str):
            left_out.setdefault(cut, []).append(label)
            continue
        if done.issuperset(cut.outputs):
            continue
        done.update(cut.outputs)
        sides = [_model(old, before, cut.before, cut, types), _model(new, after, cut.after, cut, types)]
        if sides[0].graph == sides[1].graph:
            unchanged += 1
            continue
        outcome = _compare(old, new, sides, settings, budget, stack)
        if outcome.outcome == "inconclusive":
            left_out.setdefault(outcome.problems[0], []).append(label)
            continue
        outcome = _labelled(outcome, label)
        if outcome.outcome == "different":
            whole = compare_models(old, new, specs, sizes, [{}], settings, Budget(RUN_SECONDS, _ANY_BYTES), stack)
            if whole.outcome == "different":
                return replace(whole, notes=(*whole.notes, f"{label} differs by itself"))
            if whole.outcome == "equal":
                left_out.setdefault("it differs only on inputs that it does not get in its model", []).append(label)
                continue
            if sizes and any(_is_of_unknown_size(types[name], specs) for name in cut.inputs):
                left_out.setdefault("it differs by itself, on sizes that it may not get in its model", []).append(label)
                continue
            return outcome
        found.append(outcome)
    outcome = _summed_up(found, left_out, unchanged, len(positions))
    if outcome.inconclusive and _SECONDS_A_NODE * _count(old.proto) < budget.left():
        return compare_models(old, new, specs, sizes, [{}], settings, budget, stack)
    return outcome


def _compare(
    old: Source, new: Source, sides: Sequence[onnx.ModelProto], settings: Settings, budget: Budget, stack: ExitStack
) -> Verification:
    one, other = changed_source(old, sides[0], stack), changed_source(new, sides[1], stack)
    return compare_models(one, other, input_specs(one.proto.graph), {}, [{}], settings, budget, stack)


def _is_of_unknown_size(declared: onnx.TypeProto, specs: Sequence[Spec]) -> bool:
    """Whether a dimension is neither fixed nor one of the inputs that are free."""
    free = {dim for spec in specs for dim in spec.dims or ()}
    return any(not dim.HasField("dim_value") and dim.dim_param not in free for dim in declared.tensor_type.shape.dim)


def _model(
    source: Source, index: GraphIndex, nodes: Iterable[int], cut: Cut, types: Mapping[str, onnx.TypeProto]
) -> onnx.ModelProto:
    proto = source.proto
    model = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import, functions=proto.functions)
    model.graph.name = proto.graph.name
    names = dict.fromkeys(name for position in nodes for name in index.reads(position))
    for position in nodes:
        model.graph.node.append(index.nodes[position])
    for name in names:
        if name in index.initializers:
            model.graph.initializer.append(index.initializers[name])
    for field, members in ((model.graph.input, cut.inputs), (model.graph.output, cut.outputs)):
        field.extend(onnx.ValueInfoProto(name=name, type=types[name]) for name in members)
    inner = {name for position in nodes for name in index.nodes[position].output}
    model.graph.value_info.extend(value for value in proto.graph.value_info if value.name in inner - set(cut.outputs))
    return model


def _labelled(outcome: Verification, label: str) -> Verification:
    cases = [replace(case, varied={**case.varied, "loop": label}) for case in outcome.cases]
    first = outcome.first_difference
    if first is not None:
        first = replace(first, case=replace(first.case, varied={**first.case.varied, "loop": label}))
    return replace(outcome, cases=cases, first_difference=first)


def _summed_up(found: Sequence[Verification], left_out: Mapping[str, Sequence[str]], unchanged: int, loops: int) -> Verification:
    not_tried = [f"{_listed(labels)} ({reason})" if reason else _listed(labels) for reason, labels in left_out.items()]
    notes = [f"compared loop by loop, each on inputs of its own: {len(found)} of {loops}"]
    if unchanged:
        notes.append(f"{unchanged} more are as they were")
    problems = () if found or (unchanged and not left_out) else ("no loop could be compared by itself",)
    return Verification(
        ok=not problems,
        cases=[case for one in found for case in one.cases],
        outputs=[output for one in found for output in one.outputs],
        problems=problems,
        notes=(*notes, *dict.fromkeys(note for one in found for note in one.notes)),
        inconclusive=bool(problems),
        not_tried=(*not_tried, "the model around its loops", *dict.fromkeys(text for one in found for text in one.not_tried)),
    )


def _count(proto: onnx.ModelProto) -> int:
    return sum(1 for _ in all_nodes(proto))


def _listed(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more loops"
