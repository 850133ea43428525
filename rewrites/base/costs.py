"""What loops, and operators on all steps at once, take on a machine, in ns: by these numbers a form is chosen.

``python -m ortscan bench --calibrate FILE`` measures them; those here are of onnxruntime 1.32 on one core of a server CPU, on the
side of the loop: where they decide, a form gains whatever the machine.
"""

from dataclasses import dataclass, fields

__all__ = ["Costs", "cost_names"]


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
