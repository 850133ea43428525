"""The fate of every loop, and the reasons: the data behind ``explain``, ``--json`` and the HTML page."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Advice", "Fired", "KernelGap", "LoopReport", "NodeReport", "PatchOutcome", "Reason", "RewriteReport"]


Fate = Literal["removed", "planned", "reduced", "rewritten", "kept"]


@dataclass(frozen=True)
class PatchOutcome:
    """The result of a patch on a loop.

    Args:
        native: The recurrent operator that replaces it, or empty.
        on_cpu: True if the target leaves that operator to onnxruntime's CPU.
        under_if: True if a Scan runs in a branch of an If, for one step or more.
        unrolled, planned: The numbers of unrolled steps, and of instructions of its plan if it became a call.
        is_a: What the loop computes.
    """

    native: str = ""
    on_cpu: bool = False
    under_if: bool = False
    unrolled: int = 0
    planned: int = 0
    is_a: str = ""


@dataclass(frozen=True)
class Fired:
    """A patch that was applied. ``number`` counts over the whole run, like ``stop_after``; ``made`` is the outcome."""

    number: int
    rule: str
    loop: str
    what: str
    made: PatchOutcome = field(default_factory=PatchOutcome)


@dataclass(frozen=True)
class Reason:
    """The reason why a rule did not fire on a loop: a stable code and the values that decided it.

    ``is_a``: what the loop computes nevertheless.
    """

    rule: str
    code: str
    detail: str
    is_a: str = ""


@dataclass(frozen=True)
class Advice:
    """An option that would change the fate of a loop, as a trial has shown.

    Args:
        flags: The option on the command line.
        options: The same as keywords of ``optimize``.
        fate: The fate of the loop with this option.
        text: All of this in one line.
        when: The condition for it to help, or empty.
        seconds: The time of a run of the model without and with it; None if it was not timed.
        at: The sizes for ``seconds``.
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
    """One loop of the original model, or one that a rewrite created.

    Args:
        where: The path of names from the main graph, such as ``main/Scan 'cell'``.
        kind: Scan, Scan-8 or Loop; or RNN, LSTM or GRU if the target has no such node.
        steps: The trip count as a number or symbol; None if it is unknown.
        nodes_before, nodes_after: The number of nodes in the body, with nested ones; 0 for a loop that is gone.
        fate: removed (no loop left), planned (in a function, with a plan for ortscan's library), reduced (a smaller loop left),
            rewritten (another loop left, of no fewer nodes), kept (unchanged).
        reasons: Why it is still there, the most important first; empty for a removed loop.
        notes: Assumptions and estimates, such as the memory of a vectorised part.
        unrolled_nodes: The number of nodes of its steps, if they are unrolled.
        runs: Where its replacement runs on the target.
        is_a: What it computes, if known: ``LSTM, forward, H=128, lengths by mask``.
        scope, cost: Its origin in the exported program; its measured share of a run, and the share that is left.
        advice: Options that would change its fate, if they were tried.
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
    runs: str = ""
    is_a: str = ""
    scope: str = ""
    cost: str = ""
    advice: list[Advice] = field(default_factory=list)


@dataclass(frozen=True)
class KernelGap:
    """A node for which the runtime has no kernel.

    ``operator``: its original operator. ``fate``: ``wider`` (it now runs in a wider type), ``python`` (it became a call of Python)
    or ``kept``. ``detail``: how it runs, the cost of the call, or the values that decided; ``code``: the reason code if it was
    kept.
    """

    where: str
    operator: str
    fate: Literal["wider", "python", "kept"]
    detail: str = ""
    code: str = ""


@dataclass
class NodeReport:
    """The fate of an RNN, GRU or LSTM node (``kind``) at the path ``where``. onnxruntime cannot run it unchanged."""

    where: str
    kind: str
    fired: list[Fired] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)


@dataclass
class RewriteReport:
    """The outcome of one run over a model.

    Args:
        operators_before, operators_after: The number of nodes of each type, bodies included.
        messages: Facts about the whole model, such as inlined functions.
        nodes, cells: The recurrent nodes that onnxruntime cannot run unchanged, and those that ortscan's library runs if it is
            registered, or why it does not.
        pairs: Nodes that were reversed, or joined into a bidirectional node, or could not be.
        migrated, fixed: True if its opset changed, or if shapes were built in.
        flattened: The number of Ifs both of whose branches now run.
        tied: True if outputs of bodies or branches had to be written differently.
        kernel_gaps: Nodes without a kernel, if custom ops were allowed.
        changes: Patches of the whole model, before and after those of its loops, numbered separately.
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
    flattened: int = 0
    tied: bool = False
    kernel_gaps: list[KernelGap] = field(default_factory=list)
    changes: list[Fired] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Return True if a patch, built-in shapes, an If, an output, the opset or a missing kernel changed the model."""
        return (
            bool(self.patches or self.flattened)
            or any(fired.rule == "decide-branches" for fired in self.changes)
            or self.migrated
            or self.fixed
            or self.tied
            or any(gap.fate != "kept" for gap in self.kernel_gaps)
        )

    @property
    def loops_left(self) -> Sequence[LoopReport]:
        """Return the loops that are left and have no plan."""
        return [loop for loop in self.loops if loop.fate not in ("removed", "planned")]

    def give_every_loop_a_reason(self) -> None:
        """Add a reason to each remaining loop that no rule gave one."""
        for loop in self.loops_left:
            loop.reasons = loop.reasons or [Reason("none", "NO-RULE", "no rule in use applies to it")]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists, dicts, strings and numbers, ready for JSON."""
        plain = asdict(replace(self, operators_before=Counter(), operators_after=Counter()))
        return plain | {"operators_before": dict(self.operators_before), "operators_after": dict(self.operators_after)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Self":
        """Return the report from the result of ``to_dict``."""
        lists = {
            "loops": [_loop(loop) for loop in plain["loops"]],
            "nodes": [NodeReport(**{**node, **_inner(node)}) for node in plain["nodes"]],
            "pairs": [NodeReport(**{**pair, **_inner(pair)}) for pair in plain["pairs"]],
            "cells": [NodeReport(**{**cell, **_inner(cell)}) for cell in plain["cells"]],
            "patches": _fired(plain["patches"]),
            "changes": _fired(plain["changes"]),
            "kernel_gaps": _all(KernelGap, plain["kernel_gaps"]),
        }
        counts = {name: Counter(plain[name]) for name in ("operators_before", "operators_after")}
        return cls(**{**plain, **counts, **lists})


def _loop(entry: Mapping[str, Any]) -> LoopReport:
    return LoopReport(**{**entry, **_inner(entry), "advice": [_advice(advice) for advice in entry["advice"]]})


def _advice(entry: Mapping[str, Any]) -> Advice:
    seconds = entry["seconds"]
    return Advice(**{**entry, "seconds": None if seconds is None else tuple(seconds)})


def _inner(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"fired": _fired(entry["fired"]), "reasons": _all(Reason, entry["reasons"])}


def _fired(entries: Sequence[Mapping[str, Any]]) -> list[Fired]:
    return [Fired(**{**entry, "made": PatchOutcome(**entry["made"])}) for entry in entries]


def _all(kind: Callable[..., Any], entries: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [kind(**entry) for entry in entries]
