"""Propose advice for the remaining loops: options that are not set yet, and values for unknown sizes."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ortscan.native.library import library_path
from ortscan.running.specs import SessionSpec
from ortscan.targets import TARGETS
from ortscan.verb_options import REWRITING_OPTIONS
from rewrites.base.report import LoopReport, RewriteReport
from rewrites.native.operator_names import DOMAIN

__all__ = ["AdviceCandidate", "candidates"]

_FEW_ROWS = (2, 1)
"""Batch sizes at which recurrent nodes are often faster than loops."""
_MOST_DIMS = 4
_LONGEST_UNROLLED = 64
_SOME_STEPS = 16
_SOME_VALUE = 8
_LARGER_BUDGETS = (1 << 30, 4 << 30)
_INTEGERS = (5, 7)
"""The element types int32 and int64."""


@dataclass(frozen=True)
class AdviceCandidate:
    """Options to try in addition to the caller's options.

    Attributes:
        flags: The options as flags of the command line.
        options: The options as keywords.
        when: The condition under which these options help, such as "T is mostly 1". Empty if they always help.
        sizes: The sizes at which the candidate is timed, by the names of dimensions.
        is_portable: True if these options help in any session of onnxruntime, False if the session needs ortscan's library.
    """

    flags: str
    options: Mapping[str, Any]
    when: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    is_portable: bool = True


def candidates(
    report: RewriteReport, options: Mapping[str, Any], inputs: Sequence[SessionSpec], defaults: Sequence[str]
) -> Iterator[AdviceCandidate]:
    """Yield the candidates for the loops left in ``report``.

    Args:
        report: the report on the model with the caller's options.
        options: the caller's options.
        inputs: the inputs of the model.
        defaults: the names of initializers that are listed as inputs.
    """
    left, target = report.loops_left, TARGETS[report.target]
    codes = {reason.code for loop in left for reason in loop.reasons}
    yield from _for_remaining_loops(left, codes, options, target.loops)
    if defaults and options.get("freeze", False) is False:
        yield AdviceCandidate("--freeze all", {"freeze": True}, "no run gives these inputs other values than their defaults")
    free = [dim for spec in inputs for dim in spec.dims or () if isinstance(dim, str)]
    free = [dim for dim in dict.fromkeys(free) if dim not in (options.get("dims") or {})]
    if any(code.startswith("COST-") for code in codes):
        for dim in free[:_MOST_DIMS]:
            for size in _FEW_ROWS:
                dims, mostly = {**(options.get("dims") or {}), dim: size}, f"{size} or less" if size > 1 else "1"
                yield AdviceCandidate(
                    f"--dim {shlex.quote(f'{dim}={size}')}",
                    {"dims": dims},
                    f"{dim} is mostly {mostly}",
                    {dim: size},
                )
    if not target.loops or codes & {"UNROLL-UNKNOWN", "LINEAR-STEPS", "CUMULATIVE-STEPS", "CONSTANT-STATES"}:
        for dim in free[:_MOST_DIMS]:
            dims = {**(options.get("fix_dims") or {}), dim: _SOME_STEPS}
            flags = f"--fix-dim {shlex.quote(f'{dim}={_SOME_STEPS}')}"
            yield AdviceCandidate(
                flags, {"fix_dims": dims}, f"{dim} is always {_SOME_STEPS}, or another number", {dim: _SOME_STEPS}
            )
    for spec in inputs if any(not isinstance(loop.steps, int) for loop in left) else ():
        if spec.kind == "tensor" and spec.dims in ((), (1,)) and spec.elem_type in _INTEGERS:
            value = _SOME_VALUE if spec.dims == () else [_SOME_VALUE]
            fixed = {**(options.get("fix_inputs") or {}), spec.name: value}
            flags = f"--fix-input {shlex.quote(f'{spec.name}={value}')}"
            yield AdviceCandidate(flags, {"fix_inputs": fixed}, f"{spec.name} is always {value}, or another number")
    if DOMAIN in target.domains and not options.get("native") and library_path() is not None:
        yield AdviceCandidate("--native", {"native": True}, "ortscan's library is registered where it runs", is_portable=False)


def _for_remaining_loops(
    left: Sequence[LoopReport], codes: set[str], options: Mapping[str, Any], runs_loops: bool
) -> Iterator[AdviceCandidate]:
    steps = {loop.steps for loop in left if isinstance(loop.steps, int) and loop.steps <= _LONGEST_UNROLLED}
    if steps and (options.get("max_unroll") or 0) < max(steps) and runs_loops:
        yield AdviceCandidate(f"--max-unroll {max(steps)}", {"max_unroll": max(steps)})
    if not options.get("fast_math"):
        yield AdviceCandidate("--fast-math", {"fast_math": True}, "results may round differently, and infinite inputs may give NaN")
    if "MEMORY-BUDGET" in codes:
        for size in _LARGER_BUDGETS:
            if size > options.get("memory_budget", REWRITING_OPTIONS["memory_budget"].default):
                flags = f"--memory-budget {size >> 30}G"
                yield AdviceCandidate(flags, {"memory_budget": size}, f"{size >> 30} GiB of memory are available")
    if options.get("opset", "auto") != "auto":
        yield AdviceCandidate("--opset auto", {"opset": "auto"}, "the result may be in a newer opset")
    if options.get("passes") is not None or options.get("skip"):
        yield AdviceCandidate("no --passes and no --skip", {"passes": None, "skip": ()})
