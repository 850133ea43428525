"""Compare two large models loop by loop.

Each loop is cut out of both models, and its two versions run on generated inputs. This is faster than running the whole models, and
shows which loop has a defect.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx

from ortscan.modelio.source import ModelSource, changed_source, initializer_bytes
from ortscan.running.budget import RUN_SECONDS, Budget
from ortscan.running.graph_index import GraphIndex, all_nodes
from ortscan.running.specs import SessionSpec, input_specs
from ortscan.verification.compare_models import compare_models
from ortscan.verification.compare_settings import CompareSettings
from ortscan.verification.cut_loop import cut_loop, value_types
from ortscan.verification.result import Verification

__all__ = ["compare_loops", "has_loops_of_its_own", "is_large"]

LARGE_NODES = 2000
"""A quick comparison runs loop by loop if the model has more nodes than this, including the nodes in bodies."""

LARGE_BYTES = 64 << 20
"""A quick comparison also runs loop by loop if the model has more bytes of weights than this."""

_SECONDS_A_NODE = 0.002
_ANY_BYTES = 1 << 40
_LOOPS = frozenset(["Scan", "Loop", "RNN", "LSTM", "GRU"])


def is_large(proto: onnx.ModelProto) -> bool:
    """Return True if running the model may take too long for a quick comparison."""
    return initializer_bytes(proto) > LARGE_BYTES or _count(proto) > LARGE_NODES


def has_loops_of_its_own(proto: onnx.ModelProto) -> bool:
    """Return True if the main graph contains a loop or a recurrent node."""
    return any(node.op_type in _LOOPS for node in proto.graph.node)


def compare_loops(
    old: ModelSource,
    new: ModelSource,
    specs: Sequence[SessionSpec],
    sizes: Mapping[str, int],
    settings: CompareSettings,
) -> Verification:
    """Compare each loop and recurrent node of the main graph separately.

    The loops are compared in random order until the time limit is reached. If a loop differs, it may have run on inputs that never
    occur in the model. Therefore the whole models are compared too, and their outcome decides:

    * If the whole models differ, their difference is returned.
    * If the whole models are equal, the difference of the loop is ignored.
    * If the comparison of the whole models is inconclusive, the difference of the loop is returned. There is one exception: if the
      caller chose ``sizes``, and an input of the loop has an unknown size, the difference is ignored. The loop may have run at a
      size that never occurs in the model.

    If no loop can be compared separately, and there is enough time, the whole models are compared. See `compare_models` for the
    arguments.
    """
    budget, stack = settings.budget, settings.stack
    before, after = GraphIndex(old.proto.graph), GraphIndex(new.proto.graph)
    types = value_types(old.proto, specs, sizes)
    positions = [position for position, node in enumerate(before.nodes) if node.op_type in _LOOPS]
    random.Random(settings.seed).shuffle(positions)
    outcomes: list[Verification] = []
    left_out: dict[str, list[str]] = {}
    unchanged, done = 0, set[str]()

    def leave_out(label: str, reason: str) -> None:
        left_out.setdefault(reason, []).append(label)

    for position in positions:
        label = f"{before.nodes[position].op_type} '{before.nodes[position].name or before.nodes[position].output[0]}'"
        if budget.is_spent():
            leave_out(label, "")
            continue
        cut = cut_loop(position, before, after, types)
        if isinstance(cut, str):
            leave_out(label, cut)
            continue
        if done.issuperset(cut.outputs):
            continue
        done.update(cut.outputs)
        first, second = cut.model(old.proto, before, cut.before, types), cut.model(new.proto, after, cut.after, types)
        if first.graph == second.graph:
            unchanged += 1
            continue
        sides = changed_source(old, first, stack), changed_source(new, second, stack)
        outcome = compare_models(*sides, input_specs(sides[0].proto.graph), {}, [{}], settings)
        if outcome.outcome == "inconclusive":
            leave_out(label, outcome.problems[0])
            continue
        outcome = _labelled(outcome, label)
        if outcome.outcome == "different":
            patient = replace(settings, budget=Budget(RUN_SECONDS, _ANY_BYTES))
            whole = compare_models(old, new, specs, sizes, [{}], patient)
            if whole.outcome == "different":
                return replace(whole, notes=(*whole.notes, f"{label} differs on its own"))
            if whole.outcome == "equal":
                leave_out(label, "it differs only on inputs that never reach it in its model")
                continue
            if sizes and any(_is_of_unknown_size(types[name], specs) for name in cut.inputs):
                leave_out(label, "it differs on its own, at sizes that may not occur in its model")
                continue
            return outcome
        outcomes.append(outcome)
    outcome = _summed_up(outcomes, left_out, unchanged, len(positions))
    if outcome.inconclusive and _SECONDS_A_NODE * _count(old.proto) < budget.left():
        return compare_models(old, new, specs, sizes, [{}], settings)
    return outcome


def _is_of_unknown_size(declared: onnx.TypeProto, specs: Sequence[SessionSpec]) -> bool:
    """Return True if the type ``declared`` has a dimension of unknown size.

    The size is unknown if it is neither a number nor the name of a free dimension of the inputs ``specs``.
    """
    free = {dim for spec in specs for dim in spec.dims or ()}
    return any(not dim.HasField("dim_value") and dim.dim_param not in free for dim in declared.tensor_type.shape.dim)


def _labelled(outcome: Verification, label: str) -> Verification:
    cases = [replace(case, varied={**case.varied, "loop": label}) for case in outcome.cases]
    first = outcome.first_difference
    if first is not None:
        first = replace(first, case=replace(first.case, varied={**first.case.varied, "loop": label}))
    return replace(outcome, cases=cases, first_difference=first)


def _summed_up(outcomes: Sequence[Verification], left_out: Mapping[str, Sequence[str]], unchanged: int, loops: int) -> Verification:
    not_tried = [f"{_listed(labels)} ({reason})" if reason else _listed(labels) for reason, labels in left_out.items()]
    notes = [f"compared {len(outcomes)} of {loops} loops separately, each on its own inputs"]
    if unchanged:
        notes.append(f"{unchanged} more are unchanged")
    problems = () if outcomes or (unchanged and not left_out) else ("no loop could be compared separately",)
    return Verification(
        ok=not problems,
        cases=[case for outcome in outcomes for case in outcome.cases],
        outputs=[output for outcome in outcomes for output in outcome.outputs],
        problems=problems,
        notes=(*notes, *dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
        inconclusive=bool(problems),
        not_tried=(*not_tried, "the nodes outside loops", *dict.fromkeys(text for each in outcomes for text in each.not_tried)),
    )


def _count(proto: onnx.ModelProto) -> int:
    return sum(1 for _ in all_nodes(proto))


def _listed(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more loops"
