"""What the place where a model will run can do, as far as rules care: control flow, and recurrent operators with their limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ALL_CONTROL_FLOW", "Abilities", "Recurrent", "UnrollLimits"]

ALL_CONTROL_FLOW = frozenset({"Scan", "Loop", "If"})


@dataclass(frozen=True)
class Recurrent:
    """What an RNN, LSTM or GRU may have to run natively.

    ``activations``: others than the operator's own. ``reset_before``: a GRU with ``linear_before_reset=0``.
    """

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
