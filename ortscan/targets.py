"""Where a model will run, as data: operator domains, control flow, recurrent operators with their limits, how far to unroll.

``python -m tests.campaigns providers`` runs each provider that can be had without its hardware. Rows of such targets state what was
seen there; a test holds them to its record (tests/data/providers.json). The others are taken from onnxruntime 1.31's kernel tables
and the operator lists of its execution providers. What a provider does not run falls back to onnxruntime's CPU, with copies to and
fro.
"""

from dataclasses import dataclass, field

from rewrites.base.abilities import ALL_CONTROL_FLOW, Abilities, Recurrent, UnrollLimits
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, shown
from rewrites.graph.context import Bidirectional
from rewrites.native.functions import DOMAIN as PLANS

__all__ = ["MOST_NODES", "TARGETS", "Target", "target_named", "unroll_limits"]

MOST_NODES = 1 << 18
"""How many nodes one loop may become where ``max_unroll`` is given."""

_MICROSOFT = frozenset({"com.microsoft"})
_ALL_RECURRENT = {op: Recurrent() for op in ("RNN", "LSTM", "GRU")}
_CUDNN = Recurrent(activations=False, clip=False, peepholes=False, input_forget=False, reset_before=False)

_QNN = Recurrent(activations=False, clip=False, input_forget=False, lengths=False)
"""It takes coupled gates, and runs them as if they were not."""
_OPENVINO = Recurrent(peepholes=False, input_forget=False)
"""It takes both, and runs them as if they were not there."""
_ONLY_IF = frozenset({"If"})


@dataclass(frozen=True)
class Target:
    """One place to run a model.

    ``domains``: operator domains a rewrite may use beside the standard one. ``control_flow``: which of Scan, Loop and If run there.
    ``recurrent``: which recurrent operators run there, and within which limits. ``native``: whether they are taken even where
    onnxruntime on a CPU would run the loop faster. ``unroll``: how far loops are unrolled where ``max_unroll`` is not given.
    ``bidirectional``: which recurrent nodes run in both directions at once, as ``rewrites.graph.context.Options`` has it.
    ``recurrent_until``: the newest opset whose recurrent operators run there, where newer ones load as well.
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
        """Whether Scan and Loop run there."""
        return "Scan" in self.control_flow

    @property
    def abilities(self) -> Abilities:
        """What rules need to know of it."""
        return Abilities(self.name, self.control_flow, self.recurrent, self.recurrent_until)

    @property
    def newest_opset(self) -> int:
        """The newest opset it takes: that of the installed onnxruntime."""
        from ortscan.ort.installed import newest_opset

        return newest_opset()

    @property
    def newest_ir_version(self) -> int:
        """The newest IR version it takes: that of the installed onnxruntime."""
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
"""For a CPU, measured by ``python -m tests.campaigns benchmarks.unrolling``: such loops run 1.2 to 1.5 times faster, and load in
a few milliseconds; 800 nodes take 100 ms to load, and 12 000 three seconds, for the same gain at best.
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
    """Return the target called ``name``; raises OptionError where there is none."""
    if not isinstance(name, str) or name not in TARGETS:
        raise OptionError(f"target {shown(name)} is not known; the targets are {', '.join(TARGETS)}{did_you_mean(name, TARGETS)}.")
    return TARGETS[name]


def unroll_limits(target: Target, max_unroll: int | None) -> UnrollLimits:
    """Return how far to unroll for ``target``; ``max_unroll`` steps, and nodes as ``MOST_NODES`` allows, where it is given."""
    if max_unroll is None:
        return target.unroll
    return UnrollLimits(max_unroll if max_unroll > 1 else 0, MOST_NODES)
