"""The abilities of a target, the limits of unrolling, and the costs of operators in ns.

``python -m ortscan bench --calibrate FILE`` measures the costs. The defaults were measured with onnxruntime 1.32 on one core of a
server CPU. The defaults are rounded in favour of loops. So if a replacement of a loop is cheaper than the loop by these defaults,
the replacement should be faster on any machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

__all__ = ["ALL_CONTROL_FLOW", "Abilities", "Costs", "Recurrent", "UnrollLimits", "cost_names"]


ALL_CONTROL_FLOW = frozenset({"Scan", "Loop", "If"})


@dataclass(frozen=True)
class Recurrent:
    """The features of an RNN, LSTM or GRU that the target supports.

    Args:
        activations: Activation functions other than the defaults.
        clip: Clipped gates.
        peepholes: Peepholes of an LSTM.
        input_forget: An LSTM with coupled gates.
        reset_before: A GRU with ``linear_before_reset=0``.
        lengths: A batch whose rows have different numbers of steps (``sequence_lens``).
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
        """Return a phrase for a feature that a node uses but the target does not support, or None.

        Each argument is True if the node uses the feature with this name. The phrase is a text such as ``clipped gates``.
        """
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
    """The abilities of the target ``name``.

    Args:
        control_flow: The supported operators among Scan, Loop and If.
        recurrent: The supported operators among RNN, LSTM and GRU, and their features.
        recurrent_until: The newest opset whose recurrent operators are supported. None if all opsets are supported.
    """

    name: str = "cpu"
    control_flow: frozenset[str] = ALL_CONTROL_FLOW
    recurrent: Mapping[str, Recurrent] = field(default_factory=lambda: {op: Recurrent() for op in ("RNN", "LSTM", "GRU")})
    recurrent_until: int | None = None

    @property
    def loops(self) -> bool:
        """Return True if the target supports Scan."""
        return "Scan" in self.control_flow


@dataclass(frozen=True)
class UnrollLimits:
    """The limits on unrolling. A loop above a limit is not unrolled.

    Args:
        steps: The largest number of steps that a loop may have; None for any number.
        nodes: The largest number of nodes that the unrolled steps of one loop may have.
        bytes: The largest size in bytes of the constants that may be computed for the unrolled steps of one loop.
        where_it_pays: True to unroll only loops that run faster unrolled on onnxruntime's CPU kernels.
    """

    steps: int | None = 0
    nodes: int = 4096
    bytes: int = 64 << 20
    where_it_pays: bool = False


@dataclass(frozen=True)
class Costs:
    """The costs of loops and operators, in ns.

    Args:
        start: The cost of starting a loop.
        step: The cost of one iteration of a loop.
        node: The cost of one node of the body, per iteration.
        loop_byte: The cost of one byte of the states, per iteration.
        operator: The cost of an operator that runs once for all steps.
        near_byte: The cost of one byte of a result that fits in the L2 cache.
        far_byte: The cost of one byte of a result that does not fit in the L2 cache.
        product: The cost of one multiplication in a matrix product.
        power, logarithm: The cost of computing one power or one logarithm.
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
        """Return the time of a loop.

        Args:
            steps: The number of iterations.
            nodes: The number of nodes in the body.
            step_bytes: The number of bytes of all states.
        """
        return self.start + steps * (self.step + self.node * nodes + self.loop_byte * step_bytes)


def cost_names() -> list[str]:
    """Return the names of all costs."""
    return [field.name for field in fields(Costs)]
