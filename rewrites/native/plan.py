"""The tables of a loop plan, and the reason why a loop has none. Tables hold the sizes themselves; the encoding collects them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from rewrites.base.not_applicable import NotApplicable
from rewrites.native.operations import FLOAT, Op

__all__ = [
    "ONE",
    "ZERO",
    "Form",
    "Input",
    "InputKind",
    "Instruction",
    "Output",
    "Phase",
    "Plan",
    "PlanOperand",
    "PlanPack",
    "PlanRefused",
    "PlanState",
    "Size",
    "Storage",
    "Symbol",
    "Value",
    "ValueKind",
]


class PlanRefused(Exception):
    """Carries a reason out of the compiler. It never leaves this package."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.reason = NotApplicable(code, detail)


@dataclass(frozen=True)
class Size:
    """``coefficient`` times each symbol to the power of its exponent. Without exponents it is a number."""

    coefficient: int
    exponents: tuple[int, ...] = ()


ZERO, ONE = Size(0), Size(1)


@dataclass(frozen=True)
class Symbol:
    """A dimension known only at run time: an axis of an input."""

    input: int
    axis: int


class Form(IntEnum):
    """The source of the number of steps: the scan inputs, or a condition and a limit."""

    SCAN = 0
    LOOP = 1


class InputKind(IntEnum):
    """The role of an input in the loop."""

    INITIAL = 0
    SCANNED = 1
    CAPTURED = 2
    LIMIT = 3


@dataclass(frozen=True)
class Input:
    """An input of the operator; ``dims`` are those of one step."""

    kind: InputKind
    dims: tuple[Size, ...]
    backwards: bool = False
    dtype: int = FLOAT


@dataclass(frozen=True)
class Output:
    """A stacked output; ``dims`` are those of one step."""

    dims: tuple[Size, ...]
    backwards: bool = False
    dtype: int = FLOAT


class Storage(IntEnum):
    """The kind of memory of a state."""

    IN_PLACE = 0
    TWO_ROWS = 1
    OUTPUT_ROWS = 2


@dataclass(frozen=True)
class PlanState:
    """The memory of a state between steps: at ``offset`` in region ``place``, or in the rows of output ``place``."""

    storage: Storage
    offset: Size = ZERO
    place: int = 0


@dataclass(frozen=True)
class PlanPack:
    """A matrix [k, n] in a captured input."""

    input: int
    offset: Size
    k: Size
    n: Size
    stride_k: Size
    stride_n: Size


class ValueKind(IntEnum):
    """The place of the elements of a value."""

    SCANNED = 0
    CAPTURED = 1
    CONSTANT = 2
    TEMPORARY = 3
    ROWS = 4
    STACKED = 5
    OLD = 6
    NEW = 7
    PACK = 8
    STEP_NUMBER = 9


@dataclass(frozen=True)
class Value:
    """``count`` elements from ``offset`` on in the memory that ``kind`` and ``index`` name."""

    kind: ValueKind
    index: int
    count: Size
    offset: Size = ZERO
    dtype: int = FLOAT


@dataclass(frozen=True)
class PlanOperand:
    """An address in a value: the element at ``[i3, i2, i1, i0]`` is at ``offset`` plus each index times its stride."""

    value: int
    offset: Size = ZERO
    strides: tuple[Size, Size, Size, Size] = (ZERO, ZERO, ZERO, ZERO)


@dataclass(frozen=True)
class Instruction:
    """One operation over ``dims``, outermost first. The first operand is the destination; None is an omitted operand.

    ``matrix``: M, N and K of a product, and ones for all others.
    """

    op: Op
    dims: tuple[Size, Size, Size, Size]
    operands: tuple[PlanOperand | None, ...]
    matrix: tuple[Size, Size, Size] = (ONE, ONE, ONE)
    immediates: tuple[float, float] = (0.0, 0.0)
    flags: int = 0


@dataclass(frozen=True)
class Phase:
    """A sequence of instructions. Each step runs all of them (``stepwise``), or each instruction runs for all steps of a block."""

    stepwise: bool
    first: int
    count: int

    def of(self, instructions: Sequence[Instruction]) -> Sequence[Instruction]:
        """Return the plan's instructions in the phase."""
        return instructions[self.first : self.first + self.count]


@dataclass(frozen=True)
class Plan:
    """A whole loop. ``constants``: their bytes in memory. ``regions``: the number of 4-byte words of each part of the workspace."""

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    states: tuple[PlanState, ...]
    values: tuple[Value, ...]
    instructions: tuple[Instruction, ...]
    phases: tuple[Phase, ...]
    packs: tuple[PlanPack, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    constants: bytes = b""
    regions: tuple[Size, ...] = ()
    block: int = 1
    form: Form = Form.SCAN
