"""What a target can run (control flow, recurrent operators, unrolled loops) and what loops and operators cost there, in ns.

``python -m ortscan bench --calibrate FILE`` measures the costs. The defaults are those of onnxruntime 1.32 on one core of a
server CPU, rounded in favour of the loop: where they choose another form, that form is faster on any machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

__all__ = ["ALL_CONTROL_FLOW", "Abilities", "Costs", "Recurrent", "UnrollLimits", "cost_names"]


ALL_CONTROL_FLOW = frozenset({"Scan", "Loop", "If"})


@dataclass(frozen=True)
class Recurrent:
    """What an RNN, LSTM or GRU may have to run natively; ``reset_before`` is a GRU with ``linear_before_reset=0``."""

    activations: bool = True
    clip: bool = True
    peepholes: bool = True
    input_forget: bool = True
    reset_before: bool = True
    lengths: bool = True

    def lacking(
        self, *, activations: bool, clip: bool, peepholes: bool, input_forget: bool, reset_before: bool, lengths: bool
    ) -> str | None:
        """Say what a node with these things has that does not run; None where it runs."""
        missing = [
            (self.lengths or not lengths, "rows of their own lengths"),
            (self.activations or not activations, "activations other than the usual ones"),
            (self.clip or not clip, "clipped gates"),
            (self.peepholes or not peepholes, "peepholes"),
            (self.input_forget or not input_forget, "coupled gates"),
            (self.reset_before or not reset_before, "a reset gate before the product"),
        ]
        return next((what for fine, what in missing if not fine), None)


@dataclass(frozen=True)
class Abilities:
    """``name``: of the target. ``control_flow``: which of Scan, Loop and If run; ``recurrent``: which of RNN, LSTM and GRU.

    ``recurrent_until``: the newest opset whose recurrent operators run, where it is not the newest that loads.
    """

    name: str = "cpu"
    control_flow: frozenset[str] = ALL_CONTROL_FLOW
    recurrent: Mapping[str, Recurrent] = field(default_factory=lambda: {op: Recurrent() for op in ("RNN", "LSTM", "GRU")})
    recurrent_until: int | None = None

    @property
    def loops(self) -> bool:
        """Whether a Scan can run there."""
        return "Scan" in self.control_flow


@dataclass(frozen=True)
class UnrollLimits:
    """How far loops are unrolled. ``steps``: of one loop, None for any number. ``nodes``: that one loop may become.

    ``bytes``: that constants computed for single steps may take in all. ``where_it_pays``: only loops that onnxruntime's CPU
    kernels run faster so.
    """

    steps: int | None = 0
    nodes: int = 4096
    bytes: int = 64 << 20
    where_it_pays: bool = False


@dataclass(frozen=True)
class Costs:
    """``start``, ``step``, ``node``: of a loop, of each of its iterations, and of each node of its body in each.

    ``loop_byte``: of each byte of its states in each iteration. ``operator``: of an operator on all steps at once; ``near_byte``,
    ``far_byte``: of each byte of what it gives, which the processor's second cache holds, or not. ``product``: of a multiplication
    within a product of matrices. ``power``, ``logarithm``: of one number.
    """

    start: float = 8000
    step: float = 1000
    node: float = 250
    loop_byte: float = 0.28
    operator: float = 850
    near_byte: float = 0.05
    far_byte: float = 0.12
    product: float = 0.04
    power: float = 0.3
    logarithm: float = 1.8

    def loop_ns(self, steps: int, nodes: int, step_bytes: int) -> float:
        """Return what a loop of ``steps`` iterations of so many nodes takes, whose states have ``step_bytes``."""
        return self.start + steps * (self.step + self.node * nodes + self.loop_byte * step_bytes)


def cost_names() -> list[str]:
    """Return the names of all costs."""
    return [field.name for field in fields(Costs)]
