"""What became of every loop, and why: the data behind ``explain``, ``--json`` and the HTML page."""

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
    """What stands in a loop's place.

    ``native``: its recurrent operator, or empty. ``on_cpu``: whether the target leaves that to onnxruntime's CPU. ``under_if``:
    whether a Scan runs in one branch of an If, for one step or more. ``unrolled``: how many steps were written one after the other.
    ``planned``: how many instructions the plan of it has, where it became a call of a function that holds it. ``is_a``: what the
    loop was found to compute.
    """

    native: str = ""
    on_cpu: bool = False
    under_if: bool = False
    unrolled: int = 0
    planned: int = 0
    is_a: str = ""


@dataclass(frozen=True)
class Fired:
    """A patch that was applied; ``number`` counts over the whole run, as ``stop_after`` does, and ``made`` is the outcome."""

    number: int
    rule: str
    loop: str
    what: str
    made: PatchOutcome = field(default_factory=PatchOutcome)


@dataclass(frozen=True)
class Reason:
    """Why a rule did not fire on a loop: a stable code and the values that decided it. ``is_a``: what the loop computes all the
    same.
    """

    rule: str
    code: str
    detail: str
    is_a: str = ""


@dataclass(frozen=True)
class Advice:
    """What would change what becomes of a loop, and has been tried.

    ``flags``: what to add to the command line; ``options``: the same as keywords of ``optimize``. ``when``: what has to hold for
    it to be of use, or nothing. ``fate``: what becomes of the loop then. ``seconds``: of a run of the model without and with it, at
    the sizes ``at``; None where it was not timed. ``text``: all that in one line.
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
    """One loop of the original model, or one that a rewrite made.

    ``where``: path of names from the main graph, such as ``main/Scan 'cell'``; ``kind``: Scan, Scan-8 or Loop, or
    RNN, LSTM or GRU where the target has no such node.
    ``steps``: the trip count as a number or symbol, None where it is not known.
    ``nodes_before``, ``nodes_after``: nodes in the body, nested ones included; after is 0 for a loop that is gone.
    ``fate``: removed (no loop left), planned (in a function, with a plan for ortscan's library), reduced (a smaller loop left),
    rewritten (another loop left, of no fewer nodes), kept (as it was).
    ``unrolled_nodes``: how many nodes its steps are, unrolled. ``runs``: where what it has become runs on the target.
    ``reasons``: why it is still there (empty for a removed loop); the first is the one that matters most.
    ``notes``: what was assumed or estimated, such as the memory of a vectorised part.
    ``is_a``: what it computes, as far as that is known: ``LSTM, forward, H=128, lengths by mask``. ``scope``: where it comes from
    in the program that was exported, where the exporter says. ``cost``: what it takes of a run, and what of it is left, where that
    was measured. ``advice``: what would change its fate, where that was tried.
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

    ``operator``: what it was. ``fate``: ``wider`` (it runs in a wider type now), ``python`` (it is a call of Python) or ``kept``.
    ``detail``: how, what the call costs, or the values that decided; ``code``: the reason code of one that was kept.
    """

    where: str
    operator: str
    fate: Literal["wider", "python", "kept"]
    detail: str = ""
    code: str = ""


@dataclass
class NodeReport:
    """An RNN, GRU or LSTM node (``kind``) that onnxruntime does not run as it is, at the path ``where``: what became of it."""

    where: str
    kind: str
    fired: list[Fired] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)


@dataclass
class RewriteReport:
    """The outcome of one run over a model.

    ``operators_before``, ``operators_after``: how many nodes of each type, bodies included.
    ``nodes``: the recurrent nodes that onnxruntime does not run as they are.
    ``cells``: the recurrent nodes that ortscan's library runs where it is registered, or why it does not.
    ``pairs``: nodes that were reversed, or became bidirectional with one of the other direction, or could not.
    ``messages``: facts about the whole model, such as functions that were inlined. ``migrated``: whether its opset is another now.
    ``fixed``: whether shapes were built in. ``flattened``: of how many Ifs both branches run now.
    ``tied``: whether outputs of bodies or branches had to be written otherwise.
    ``kernel_gaps``: nodes without a kernel, looked for where custom ops were allowed.
    ``changes``: patches of the model as a whole, before and after those of its loops, numbered on their own.
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
        """Return True if anything but cleaning changed: a patch, built-in shapes, an If, an output, the opset, or a missing
        kernel.
        """
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
        """The loops that are still there, and have no plan."""
        return [loop for loop in self.loops if loop.fate not in ("removed", "planned")]

    def give_every_loop_a_reason(self) -> None:
        """Say of loops that are left, and that no rule had anything to say of, that it is so."""
        for loop in self.loops_left:
            loop.reasons = loop.reasons or [Reason("none", "NO-RULE", "of the rules in use none has more to do with it")]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists, dicts, strings and numbers, ready for JSON."""
        plain = asdict(replace(self, operators_before=Counter(), operators_after=Counter()))
        return plain | {"operators_before": dict(self.operators_before), "operators_after": dict(self.operators_after)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Self":
        """Make the report that ``to_dict`` gave ``plain`` of."""
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
