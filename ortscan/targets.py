"""The targets as data: operator domains, control flow, recurrent operators and their limits, and how far to unroll loops.

Some execution providers run without their hardware. ``python -m tests.campaigns providers`` runs these providers and writes
tests/data/providers.json, and a test compares their rows here with this file. The other rows follow from the kernel tables of
onnxruntime 1.31 and the operator lists of its execution providers. Nodes that a provider does not support run on onnxruntime's CPU
provider, with copies in both directions.
"""

from dataclasses import dataclass, field

from rewrites.base.abilities import ALL_CONTROL_FLOW, Abilities, Recurrent, UnrollLimits
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, shown
from rewrites.graph.context import Bidirectional
from rewrites.native.functions import DOMAIN as PLANS

__all__ = ["MOST_NODES", "TARGETS", "Target", "target_named", "unroll_limits"]

MOST_NODES = 1 << 18
"""The most nodes that an unrolled loop may have if ``max_unroll`` is set."""

_MICROSOFT = frozenset({"com.microsoft"})
_ALL_RECURRENT = {op: Recurrent() for op in ("RNN", "LSTM", "GRU")}
_CUDNN = Recurrent(activations=False, clip=False, peepholes=False, input_forget=False, reset_before=False)

_QNN = Recurrent(activations=False, clip=False, input_forget=False, lengths=False)
"""QNN accepts coupled gates but ignores the coupling."""
_OPENVINO = Recurrent(peepholes=False, input_forget=False)
"""OpenVINO accepts peepholes and coupled gates but ignores both."""
_ONLY_IF = frozenset({"If"})


@dataclass(frozen=True)
class Target:
    """A target: a runtime or execution provider to run models on.

    Args:
        name: the name of the target.
        domains: the operator domains that a rewrite may use, besides the standard one.
        control_flow: the operators among Scan, Loop and If that the target runs.
        recurrent: the recurrent operators that the target runs, and their limits.
        native: True if recurrent nodes are used even if onnxruntime on a CPU would run the loop faster.
        unroll: how far loops are unrolled if ``max_unroll`` is not set.
        bidirectional: which recurrent nodes are merged into bidirectional ones, as in ``rewrites.graph.context.Options``.
        recurrent_until: the newest opset whose recurrent operators the target runs; set only if models of newer opsets also load.
    """

    name: str
    domains: frozenset[str] = frozenset()
    control_flow: frozenset[str] = ALL_CONTROL_FLOW
    recurrent: dict[str, Recurrent] = field(default_factory=lambda: dict(_ALL_RECURRENT))
    native: bool = True
    unroll: UnrollLimits = field(default_factory=UnrollLimits)
    bidirectional: Bidirectional = "equal"
    recurrent_until: int | None = None

    @property
    def loops(self) -> bool:
        """True if Scan and Loop run on the target."""
        return "Scan" in self.control_flow

    @property
    def abilities(self) -> Abilities:
        """The part of the target that rules use."""
        return Abilities(self.name, self.control_flow, self.recurrent, self.recurrent_until)

    @property
    def newest_opset(self) -> int:
        """The newest opset of the target, which is that of the installed onnxruntime."""
        from ortscan.ort.installed import newest_opset

        return newest_opset()

    @property
    def newest_ir_version(self) -> int:
        """The newest IR version of the target, which is that of the installed onnxruntime."""
        from ortscan.ort.installed import newest_ir_version

        return newest_ir_version()


def _without_loops(
    name: str,
    recurrent: dict[str, Recurrent],
    control_flow: frozenset[str] = frozenset(),
    bidirectional: Bidirectional = "equal",
    recurrent_until: int | None = None,
) -> Target:
    limits = UnrollLimits(None, _NODES_WITHOUT_LOOPS)
    return Target(name, frozenset(), control_flow, recurrent, True, limits, bidirectional, recurrent_until)


_NODES_WITHOUT_LOOPS = 20_000
_KEPT = UnrollLimits(steps=0)
_SHORT = UnrollLimits(steps=16, nodes=256, where_it_pays=True)
"""The limits for a CPU, measured by ``python -m tests.campaigns benchmarks.unrolling``.

Loops that are unrolled within these limits run 1.2 to 1.5 times faster and load in a few milliseconds. Larger loops gain no more
and load slowly: 800 nodes in 100 ms, 12 000 nodes in 3 s.
"""

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("onnx", unroll=_KEPT, bidirectional="always"),
        Target("cpu", _MICROSOFT | {PLANS}, native=False, bidirectional="narrow", unroll=_SHORT),
        Target("cuda", recurrent=dict.fromkeys(_ALL_RECURRENT, _CUDNN), unroll=_KEPT),
        Target("tensorrt", unroll=_KEPT),
        _without_loops("directml", dict(_ALL_RECURRENT)),
        _without_loops("webgpu", {op: Recurrent() for op in ("LSTM", "GRU")}, _ONLY_IF, recurrent_until=21),
        _without_loops("coreml", {}, bidirectional="never"),
        _without_loops("nnapi", {}, bidirectional="never"),
        _without_loops("qnn", dict.fromkeys(("LSTM", "GRU"), _QNN), _ONLY_IF),
        _without_loops("openvino", dict.fromkeys(_ALL_RECURRENT, _OPENVINO), _ONLY_IF),
    )
}


def target_named(name: str) -> Target:
    """Return the target called ``name``. Raise OptionError if there is no such target."""
    if not isinstance(name, str) or name not in TARGETS:
        raise OptionError(f"target {shown(name)} is not known; the targets are {', '.join(TARGETS)}{did_you_mean(name, TARGETS)}.")
    return TARGETS[name]


def unroll_limits(target: Target, max_unroll: int | None) -> UnrollLimits:
    """Return how far to unroll loops for ``target``.

    If ``max_unroll`` is set, it limits the steps, and ``MOST_NODES`` limits the nodes.
    """
    if max_unroll is None:
        return target.unroll
    return UnrollLimits(max_unroll if max_unroll > 1 else 0, MOST_NODES)
