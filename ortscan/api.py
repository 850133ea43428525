"""What ``import ortscan`` offers: optimize, explain, verify."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir

from ortscan.border import one_sentence
from ortscan.evaluate import evaluate
from ortscan.fixed_shapes import FixedShapes, fixed_sizes, merged_shapes
from ortscan.kernels import has_kernel
from ortscan.lifting import Lifted, load_in_opset
from ortscan.modelio import (
    Inlining,
    LoadedModel,
    ModelLike,
    hand_back,
    inline_functions,
    inline_functions_with_loops,
    restore_interface,
    retake_interface,
)
from ortscan.needs import note_python_ops
from ortscan.options import (
    DEFAULT,
    DEFAULT_MEMORY_BUDGET,
    check_flags,
    check_path,
    memory_bytes,
    most_steps,
    on_request_names,
    rules_for,
    size_hints,
)
from ortscan.placement import place, target_line
from ortscan.quiet import quietly
from ortscan.targets import target_named, unroll_limits
from ortscan.verification.arguments import given_shapes
from rewrites.abilities import Abilities
from rewrites.context import Context, Options
from rewrites.driver import count_operators, rewrite
from rewrites.errors import OptionError, VerificationFailed
from rewrites.lowering.lower import NODE_RULES, may_be_refused
from rewrites.lowering.recurrent_node import is_recurrent
from rewrites.plain_text import shown
from rewrites.prepare import has_absent_nodes, has_loops, learn_again, name_free_dims, prepare, tidy
from rewrites.python_ops.place import place_python_ops
from rewrites.recurrences.bidirectional import both_directions, turned_nodes
from rewrites.recurrences.bidirectional.pairs import may_have_pairs
from rewrites.recurrences.bidirectional.turned_nodes import may_be_turned
from rewrites.report import Report
from rewrites.rules import ON_REQUEST
from rewrites.unrolling.both_branches import run_both_branches
from rewrites.unrolling.cleanup import clean_up

if TYPE_CHECKING:
    from ortscan.verification import Verification
    from ortscan.verification.budget import Level

__all__ = ["explain", "optimize", "rewritten", "verify"]

Shapes = Mapping[str, Sequence[int | None]]


@one_sentence
@quietly
def optimize(
    model: ModelLike,
    *,
    target: str = "cpu",
    opset: int | str = "auto",
    shapes: Shapes | None = None,
    fix_shapes: Shapes | None = None,
    max_unroll: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    fast_math: bool = False,
    custom_ops: bool = False,
    passes: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    verify: bool = False,
    output: str | os.PathLike[str] | None = None,
) -> onnx.ModelProto | ir.Model:
    """Give ``model`` without the loops that can go, computing the same numbers up to the order of sums.

    RNN, GRU and LSTM nodes that onnxruntime refuses, or computes otherwise than the operators' text says, become ones it runs.

    ``model``: a path, bytes, a ModelProto or an onnx_ir Model; it is never changed. An onnx_ir Model comes back as one, all others
    as a ModelProto. Inputs, outputs, their names, order, types and declared shapes stay.
    ``target``: where it will run, a name out of ``ortscan.targets.TARGETS``; ``onnx`` uses standard operators only.
    ``opset``: ``auto`` takes a model that holds a loop, and is older than opset 18, there first where that is sound: most rewrites
    have their operators by then. ``keep`` stays in the opset of the model; a number takes it there, or raises MigrationError.
    ``shapes``: typical shapes of inputs, such as ``{"x": [64, 1, 128]}``, for cost decisions only.
    ``fix_shapes``: shapes to build into the model: it takes no others from then on, and what depends on them becomes constant, trip
    counts first of all. None leaves a dimension free; a named one is bound wherever it is named. The outputs' shapes follow.
    ``max_unroll``: write loops of up to so many steps out, one step after the other, whether that gains or not; 0 for none. By
    default what the target asks for: where it runs no loops any number, up to 20 000 nodes; on ``cpu`` up to 16 steps that gain.
    ``memory_budget``: bytes that the stacked temporaries of one loop may take at a time.
    ``fast_math``: also allow algebraic expansions that round differently (pairwise distances by a matrix product).
    ``custom_ops``: also run what onnxruntime has no kernel for, in wider types or by calls of Python, and sequences without steps
    or rows (``guard-scan`` and ``guard-recurrence`` are used then). A model that calls Python runs only in a Python process with
    ortscan and onnxruntime-extensions (``ortscan.InferenceSession``, or ``ortscan.register``).
    ``passes``, ``skip``: rules to use, or not to use, by the names that reports show; ``default`` stands for all that are used
    where none are named. Used only where named: ``guard-scan`` and ``guard-recurrence``, which let a model run on sequences without
    steps or rows.
    ``verify``: compare both models on onnxruntime and raise VerificationFailed where they differ.
    ``output``: also write the result there (external data is kept external); may be the path the model came from. What comes back
    for a path then refers to the external data beside the output instead of holding it. Without ``output`` it holds all weights,
    and over 2 GB cannot be serialised.

    Raises OptionError: an option is not of its kind. Raises OrtscanError: the model cannot be read, holds a malformed loop, or the
    result cannot be written.
    """
    check_path(output)
    check_flags(verify=verify)
    loaded, report = rewritten(
        model,
        target=target,
        opset=opset,
        shapes=shapes,
        fix_shapes=fix_shapes,
        max_unroll=max_unroll,
        memory_budget=memory_budget,
        fast_math=fast_math,
        custom_ops=custom_ops,
        passes=passes,
        skip=skip,
    )
    if verify:
        _verify_or_raise(model, loaded, report, merged_shapes(shapes, fix_shapes))
    return hand_back(loaded, output)


@one_sentence
def explain(model: ModelLike, **options: Any) -> Report:
    """Say what ``optimize`` would do to each loop of ``model``, and why it leaves what it leaves.

    ``options`` are those of ``optimize``. Nothing is changed or written. Raises OrtscanError as ``optimize`` does.
    """
    for name in ("verify", "output"):
        options.pop(name, None)
    for name in options:
        if name not in inspect.signature(rewritten).parameters:
            raise OptionError(f"optimize has no option {shown(name)}.")
    return rewritten(model, **options)[1]


@one_sentence
@quietly
def verify(
    before: ModelLike,
    after: "ModelLike | LoadedModel",
    *,
    inputs: Any = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    shapes: Shapes | None = None,
    level: "Level" = "full",
    time_limit: float | None = None,
    memory_limit: int | None = None,
) -> "Verification":
    """Run both models on onnxruntime at several sizes of each free dimension and compare all outputs.

    ``inputs``: a dict of arrays, a list of such dicts, or the path of an .npz file, instead of random inputs. ``rtol``, ``atol``:
    tolerances instead of those that fit the types. ``shapes``: fixes the shapes of inputs. ``level``: ``quick`` tries few, small
    cases, and of a large model each loop by itself. ``time_limit``, ``memory_limit``: seconds and bytes instead of those of the
    level. See ``Verification`` for the result.
    """
    from ortscan.verification import verify as compare

    limits: dict[str, Any] = {"level": level, "time_limit": time_limit, "memory_limit": memory_limit}
    return compare(before, after, inputs=inputs, seed=seed, rtol=rtol, atol=atol, shapes=shapes, **limits)


@one_sentence
@quietly
def rewritten(
    model: ModelLike,
    *,
    target: str = "cpu",
    opset: int | str = "auto",
    shapes: Shapes | None = None,
    fix_shapes: Shapes | None = None,
    max_unroll: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    fast_math: bool = False,
    custom_ops: bool = False,
    passes: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    stop_after: int | None = None,
    debug: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[LoadedModel, Report]:
    """Do what ``optimize`` does up to handing back: give the rewritten model as it is held inside, and the report.

    ``stop_after``: apply that many patches only. ``debug``: check the whole model after each patch. ``progress``: called with the
    number of loops done and of all loops.
    """
    chosen = target_named(target)
    check_flags(fast_math=fast_math, custom_ops=custom_ops, debug=debug)
    rules = rules_for([DEFAULT, *on_request_names()] if custom_ops and passes is None else passes, skip)
    node_rules = [rule for rule in NODE_RULES if rule in rules or rule not in ON_REQUEST]
    budget, typical = memory_bytes(memory_budget), given_shapes(shapes)
    sizes = fixed_sizes(fix_shapes)
    unrolling = unroll_limits(chosen, most_steps(max_unroll))
    if stop_after is not None and (not isinstance(stop_after, int) or stop_after < 0):
        raise OptionError(f"stop_after must be a whole number of 0 or more, not {stop_after!r}.")

    said = [target_line(chosen)] if chosen.name != "cpu" else []

    def attempt(lifted: Lifted) -> Report:
        model, tied = lifted.loaded.model, bool(lifted.loaded.tied)
        messages = lifted.loaded.tied + lifted.messages + _inline(model, chosen.abilities, node_rules) + said
        fixed = FixedShapes(model, sizes) if sizes else None
        messages += fixed.messages if fixed is not None else []
        idle = fixed is None and not custom_ops and not has_loops(model) and not has_absent_nodes(model, chosen.abilities)
        if idle and not _nodes_to_look_at(model, rules):
            counted = count_operators(model.graph)
            return Report(operators_before=counted, operators_after=counted, target=target, messages=messages, tied=tied)
        name_free_dims(model)
        hints = size_hints(model, typical)
        options = Options(
            budget,
            hints,
            fast_math=fast_math,
            custom_ops=custom_ops,
            native_always=chosen.native,
            bidirectional=chosen.bidirectional,
            domains=chosen.domains,
            target=chosen.abilities,
            unroll=unrolling,
        )
        ctx = Context.of(model, options, evaluate, has_kernel if custom_ops else None)
        prepare(ctx)
        learn = learn_again if fixed is None else _clean_up_and_learn
        if fixed is not None:
            clean_up(model.graph, list(model.graph), ctx)
        report = rewrite(ctx, rules, stop_after=stop_after, debug=debug, progress=progress, learn=learn)
        report.flattened, said_of_branches = run_both_branches(ctx)
        messages += said_of_branches
        if custom_ops and stop_after is None:
            report.kernel_gaps = place_python_ops(ctx)
            messages += note_python_ops(lifted.loaded, report)
        tidy(ctx)
        if fixed is not None:
            fixed.put_into_outputs(ctx.model)
            retake_interface(lifted.loaded)
        restore_interface(lifted.loaded)
        report.operators_after = count_operators(model.graph)
        report.give_every_loop_a_reason()
        place(report, chosen)
        report.target, report.messages, report.fixed, report.tied = target, messages, fixed is not None, tied
        return report

    lifted = load_in_opset(model, opset, chosen.abilities, node_rules)
    report = attempt(lifted)
    if lifted.migration is not None and not lifted.needed and not report.changed:
        lifted = load_in_opset(model, "keep", chosen.abilities)
        report = attempt(lifted)
    elif not report.changed and not lifted.needed and not report.loops:
        lifted = load_in_opset(model, "keep", chosen.abilities)
    report.migrated = lifted.migration is not None and lifted.migration.source != lifted.migration.target
    return lifted.loaded, report


def _clean_up_and_learn(ctx: Context) -> bool:
    clean_up(ctx.model.graph, list(ctx.model.graph), ctx)
    return learn_again(ctx)


def _nodes_to_look_at(model: ir.Model, rules: Sequence[ModuleType]) -> bool:
    """Whether some recurrent node may not run as it is, is to be guarded, or may be one with another."""
    if not any(is_recurrent(node) for node in model.graph.all_nodes()):
        return False
    if any(rule in ON_REQUEST for rule in rules) or (both_directions in rules and may_have_pairs(model.graph)):
        return True
    if turned_nodes in rules and any(is_recurrent(node) and may_be_turned(node) for node in model.graph.all_nodes()):
        return True
    return may_be_refused(Context.of(model, Options(), evaluate))


def _inline(model: ir.Model, target: Abilities, rules: Sequence[ModuleType]) -> list[str]:
    outcome = inline_functions_with_loops(model)
    if any(is_recurrent(node) for function in model.functions.values() for node in function.all_nodes()):
        trial = model.clone()
        inline_functions(trial, _holds_recurrent_nodes)
        ctx = Context.of(trial, Options(), evaluate)
        prepare(ctx)
        if may_be_refused(ctx, rules) or has_absent_nodes(trial, target):
            more = inline_functions(model, _holds_recurrent_nodes)
            messages = [f"inlined the function {name}, which holds a recurrent node" for name in more.inlined]
            return _said(outcome) + messages + [f"left the function {name} as it is: {reason}" for name, reason in more.kept]
    return _said(outcome)


def _holds_recurrent_nodes(function: ir.Function) -> bool:
    return any(is_recurrent(node) for node in function.all_nodes())


def _said(outcome: Inlining) -> list[str]:
    messages = [f"inlined the function {name}, which holds a loop" for name in outcome.inlined]
    return messages + [f"left the function {name} as it is: {reason}" for name, reason in outcome.kept]


def _verify_or_raise(before: ModelLike, after: LoadedModel, report: Report, shapes: Shapes | None) -> None:
    from ortscan.report.words import refused_node

    outcome = verify(before, after, shapes=shapes)
    if not outcome.ok:
        refused = refused_node(report) if outcome.inconclusive else None
        raise VerificationFailed(refused or f"The rewritten model is not what the original is: {outcome.summary()}")
