"""The report on a run: what became of every loop, and why. ``explain``, ``--json`` and HTML show it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from rewrites.base.weights_report import WeightsReport

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Advice", "Fired", "KernelGap", "LoopReport", "NodeReport", "PatchOutcome", "Reason", "RewriteReport"]

Fate = Literal["removed", "compiled", "reduced", "rewritten", "kept"]


@dataclass(frozen=True)
class PatchOutcome:
    """The result of a patch on a loop.

    Args:
        native: The recurrent operator that replaces the loop, or empty.
        on_cpu: True if the target does not support ``native``, so that it runs on onnxruntime's CPU provider.
        under_if: True if a Scan remains in a branch of an If. The branch runs only if the loop has at least one step.
        unrolled: The number of unrolled steps.
        instructions: The number of instructions of the plan, if the loop became a call of ortscan's library.
        is_a: A description of what the loop computes.
    """

    native: str = ""
    on_cpu: bool = False
    under_if: bool = False
    unrolled: int = 0
    instructions: int = 0
    is_a: str = ""


@dataclass(frozen=True)
class Fired:
    """A patch that ``rule`` applied to the loop ``loop``.

    ``number``: the number of the patch, counted from 1 in order of application. ``what``: what the patch did. ``made``: its result.
    """

    number: int
    rule: str
    loop: str
    what: str
    made: PatchOutcome = field(default_factory=PatchOutcome)


@dataclass(frozen=True)
class Reason:
    """The reason why a rule did not apply to a loop: a stable ``code``, and ``detail`` in words.

    ``is_a``: a description of what the loop computes, if the rule recognised it.
    """

    rule: str
    code: str
    detail: str
    is_a: str = ""


@dataclass(frozen=True)
class Advice:
    """An option that changed the fate of a loop in a trial run.

    Args:
        flags: The option on the command line.
        options: The same option as keywords of ``optimize``.
        fate: The fate of the loop with this option.
        text: The advice in one line.
        when: The condition under which the option helps, or empty.
        seconds: The times of a run of the model without and with the option; None if not measured.
        at: The sizes of the dimensions in the measured runs, by name.
    """

    flags: str
    options: Mapping[str, Any]
    fate: Fate
    text: str
    when: str = ""
    seconds: tuple[float, float] | None = None
    at: Mapping[str, int] = field(default_factory=dict)


@dataclass
class LoopReport:
    """The report of a loop of the original model, or of a loop that a rewrite created.

    Args:
        where: The path of names from the main graph, such as ``main/Scan 'cell'``.
        kind: Scan, Scan-8 or Loop. RNN, LSTM or GRU for a recurrent node that the target does not support.
        steps: The trip count as a number or symbol; None if it is unknown.
        nodes_before, nodes_after: The number of nodes in the body, including nested nodes. ``nodes_after`` is 0 if the loop is
            gone.
        fate: removed (no loop remains), compiled (in a function, with a plan for ortscan's library), reduced (a smaller loop
            remains), rewritten (another loop with as many nodes remains), kept (unchanged).
        reasons: The reasons why the loop remains, the most important first; empty for a removed loop.
        notes: Assumptions and estimates, such as the memory of a vectorised part.
        unrolled_nodes: The number of nodes of the unrolled steps, if the loop is unrolled.
        tree_nodes: The number of nodes of the prefix tree that the loop replaced.
        fallback: True if an If runs what remains of the loop, only for what its replacement does not cover.
        runs: What the loop became, and whether the target or the CPU runs it; empty if the target runs all operators.
        is_a: What the loop computes, if known: ``LSTM, forward, H=128, lengths by mask``.
        scope: The part of the exported program that the loop comes from.
        cost: A text with the measured share of the loop in the time of a run, before and after the rewrite.
        advice: Options that change the fate of the loop, if any were tried.
    """

    where: str
    kind: str
    steps: int | str | None
    nodes_before: int
    nodes_after: int = 0
    fate: Fate = "kept"
    fired: list[Fired] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unrolled_nodes: int = 0
    tree_nodes: int = 0
    fallback: bool = False
    runs: str = ""
    is_a: str = ""
    scope: str = ""
    cost: str = ""
    advice: list[Advice] = field(default_factory=list)


@dataclass(frozen=True)
class KernelGap:
    """A node for which the runtime has no kernel. ``operator``: its operator in the original model.

    ``fate``: ``wider`` (it now runs in a wider type), ``python`` (a call to Python replaces it) or ``kept``. ``detail``: how the
    node runs, what the call costs, or why the node was kept. ``code``: for a kept node, the code of the reason in ``detail``.
    """

    where: str
    operator: str
    fate: Literal["wider", "python", "kept"]
    detail: str = ""
    code: str = ""


@dataclass
class NodeReport:
    """The report on the RNN, GRU or LSTM node (``kind``) with the path ``where``."""

    where: str
    kind: str
    fired: list[Fired] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)


@dataclass
class RewriteReport:
    """The outcome of one run over a model.

    Args:
        operators_before, operators_after: The number of nodes of each type, including those in bodies.
        messages: Facts about the complete model, such as inlined functions.
        nodes: The recurrent nodes that onnxruntime cannot run unchanged.
        cells: Reports on recurrent nodes. ``fired``: ortscan's library runs the node if registered. ``reasons``: why it does not.
        pairs: Reports on recurrent nodes. ``fired``: the node was reversed or joined with another node. ``reasons``: why not.
        migrated: True if the opset changed.
        fixed: True if sizes were fixed.
        unplanned: True if compiled loops became loops again, because the target does not run their plans.
        flattened: The number of Ifs that were replaced by nodes that run both branches.
        tied: True if outputs of bodies, branches or Scans were repaired because onnxruntime rejects the original outputs.
        kernel_gaps: Nodes without a kernel, if custom ops were allowed.
        changes: Patches of the complete model. They are numbered separately from ``patches``, the patches of loops.
        weights: The weights that were stored in fewer bits, and the error that this makes. None if that was not requested.
    """

    loops: list[LoopReport] = field(default_factory=list)
    patches: list[Fired] = field(default_factory=list)
    operators_before: Counter[str] = field(default_factory=Counter)
    operators_after: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    target: str = "cpu"
    opset: int = 0
    migrated: bool = False
    nodes: list[NodeReport] = field(default_factory=list)
    pairs: list[NodeReport] = field(default_factory=list)
    cells: list[NodeReport] = field(default_factory=list)
    fixed: bool = False
    unplanned: bool = False
    flattened: int = 0
    tied: bool = False
    kernel_gaps: list[KernelGap] = field(default_factory=list)
    changes: list[Fired] = field(default_factory=list)
    weights: WeightsReport | None = None

    @property
    def changed(self) -> bool:
        """Return True if the run changed the model. Without loops, tidying does not count."""
        has_patches = self.patches or any(self.loops or fired.rule == "decide-branches" for fired in self.changes)
        has_steps = self.flattened or self.migrated or self.fixed or self.unplanned or self.tied
        is_smaller = self.weights is not None and self.weights.stored
        return bool(has_patches or has_steps or is_smaller) or any(gap.fate != "kept" for gap in self.kernel_gaps)

    @property
    def loops_left(self) -> Sequence[LoopReport]:
        """Return the loops that remain and have no plan for ortscan's library."""
        return [loop for loop in self.loops if loop.fate not in ("removed", "compiled")]

    def give_every_loop_a_reason(self) -> None:
        """Add the reason NO-RULE to each remaining loop that has no reason."""
        for loop in self.loops_left:
            loop.reasons = loop.reasons or [Reason("none", "NO-RULE", "no rule in use applies to it")]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as lists, dicts, strings and numbers, ready for JSON."""
        plain = asdict(replace(self, operators_before=Counter(), operators_after=Counter()))
        return plain | {"operators_before": dict(self.operators_before), "operators_after": dict(self.operators_after)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Self":
        """Return the report from ``plain``, the result of ``to_dict``."""
        parts = {
            "loops": [_loop(loop) for loop in plain["loops"]],
            "nodes": [NodeReport(**{**node, **_inner(node)}) for node in plain["nodes"]],
            "pairs": [NodeReport(**{**pair, **_inner(pair)}) for pair in plain["pairs"]],
            "cells": [NodeReport(**{**cell, **_inner(cell)}) for cell in plain["cells"]],
            "patches": _fired(plain["patches"]),
            "changes": _fired(plain["changes"]),
            "kernel_gaps": _all(KernelGap, plain["kernel_gaps"]),
            "weights": None if plain["weights"] is None else WeightsReport.from_dict(plain["weights"]),
        }
        counts = {name: Counter(plain[name]) for name in ("operators_before", "operators_after")}
        return cls(**{**plain, **counts, **parts})


def _loop(entry: Mapping[str, Any]) -> LoopReport:
    advice = [Advice(**{**each, "seconds": each["seconds"] and tuple(each["seconds"])}) for each in entry["advice"]]
    return LoopReport(**{**entry, **_inner(entry), "advice": advice})


def _inner(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"fired": _fired(entry["fired"]), "reasons": _all(Reason, entry["reasons"])}


def _fired(entries: Sequence[Mapping[str, Any]]) -> list[Fired]:
    return [Fired(**{**entry, "made": PatchOutcome(**entry["made"])}) for entry in entries]


def _all(kind: Callable[..., Any], entries: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [kind(**entry) for entry in entries]
