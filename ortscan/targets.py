"""The table of targets: which operators each target runs, and how far loops are unrolled for it.

Some execution providers can be run without their hardware. ``python -m tests.campaigns providers`` runs them and writes what they
support to tests/data/providers.json. A test compares the table with this file. For the other targets, the table follows the kernel
tables of onnxruntime 1.31 and the operator lists of its execution providers.

If a provider does not support a node, onnxruntime runs the node on the CPU provider, and copies its inputs and outputs.
"""

from dataclasses import dataclass, field

from rewrites.base.abilities import ALL_CONTROL_FLOW, Abilities, Recurrent, UnrollLimits
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, quoted, shown
from rewrites.graph.context import Bidirectional
from rewrites.native.operator_names import DOMAIN as PLANS

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
        control_flow: which of Scan, Loop and If the target runs.
        recurrent: the recurrent operators that the target runs, and which of their features it lacks.
        native: True to replace a loop by a recurrent node even if the loop would be faster on onnxruntime's CPU provider.
        unroll: how far loops are unrolled if the option ``max_unroll`` is not set.
        bidirectional: which recurrent nodes are merged into bidirectional ones, as in ``rewrites.graph.context.Options``.
        recurrent_until: the newest opset whose recurrent operators the target runs. None if it runs those of every opset that it
            loads.
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
        """The facts about the target that rules need."""
        return Abilities(self.name, self.control_flow, self.recurrent, self.recurrent_until)

    @property
    def newest_opset(self) -> int:
        """The newest opset that the target runs, which is the newest opset of the installed onnxruntime."""
        from ortscan.ort.installed import newest_opset

        return newest_opset()

    @property
    def newest_ir_version(self) -> int:
        """The newest IR version that the target loads: the newest one of the installed onnxruntime."""
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
        known = ", ".join(TARGETS)
        raise OptionError(f"target: {shown(name)} is not known{_suggestion(name)}; the targets are {known} (onnx: any other).")
    return TARGETS[name]


_OTHER_NAMES = {
    "onnx": {"any", "generic", "amd", "rocm", "hip", "migraphx"},
    "cpu": {"x86", "x64", "amd64", "arm", "arm64", "default"},
    "cuda": {"gpu", "nvidia", "cudnn"},
    "tensorrt": {"trt", "tensor-rt", "nvtensorrtrtx"},
    "directml": {"dml", "directx", "dx12", "windows", "amd"},
    "webgpu": {"js", "web", "browser", "wasm", "webnn"},
    "coreml": {"apple", "ane", "mac", "macos", "ios", "npu"},
    "nnapi": {"android"},
    "qnn": {"qualcomm", "snapdragon", "hexagon", "htp", "npu"},
    "openvino": {"intel", "ov", "npu"},
}
"""Other words for the targets, in small letters."""


def _suggestion(name: object) -> str:
    if not isinstance(name, str):
        return ""
    word = name.casefold().removesuffix("executionprovider")
    meant = [target for target, words in _OTHER_NAMES.items() if word == target or word in words]
    return f", perhaps {' or '.join(map(quoted, meant))} was meant" if meant else did_you_mean(name, TARGETS)


def unroll_limits(target: Target, max_unroll: int | None) -> UnrollLimits:
    """Return the limits for unrolling a loop for ``target``.

    If the option ``max_unroll`` is not None, it is the maximum number of steps, and ``MOST_NODES`` is the maximum number of nodes
    of the unrolled loop.
    """
    if max_unroll is None:
        return target.unroll
    return UnrollLimits(max_unroll if max_unroll > 1 else 0, MOST_NODES)
