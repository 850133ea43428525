"""The tables of a loop plan, and the reason why a loop has none; sizes are written in place, the encoding gathers them."""

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
    """Carries a reason out of the compiler's parts; it never leaves this package."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.reason = NotApplicable(code, detail)


@dataclass(frozen=True)
class Size:
    """``coefficient`` times each symbol to the power of its exponent; no exponents: a number."""

    coefficient: int
    exponents: tuple[int, ...] = ()


ZERO, ONE = Size(0), Size(1)


@dataclass(frozen=True)
class Symbol:
    """A dimension known only at run time: an axis of an input as it is given."""

    input: int
    axis: int


class Form(IntEnum):
    """What says how many steps there are: what is scanned, or a condition and a limit."""

    SCAN = 0
    LOOP = 1


class InputKind(IntEnum):
    """What an input of the operator is to the loop."""

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
    """Where a state lives."""

    IN_PLACE = 0
    TWO_ROWS = 1
    OUTPUT_ROWS = 2


@dataclass(frozen=True)
class PlanState:
    """Where a state is kept from step to step: at ``offset`` in region ``place``, or in the rows of output ``place``."""

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
    """Where the elements of a value are."""

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
    """``count`` elements from ``offset`` on of what ``kind`` and ``index`` name."""

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
    """One operation over ``dims``, outermost first; the destination is the first operand, None is an operand left out.

    ``matrix`` is M, N and K of a product and ones for all else.
    """

    op: Op
    dims: tuple[Size, Size, Size, Size]
    operands: tuple[PlanOperand | None, ...]
    matrix: tuple[Size, Size, Size] = (ONE, ONE, ONE)
    immediates: tuple[float, float] = (0.0, 0.0)
    flags: int = 0


@dataclass(frozen=True)
class Phase:
    """Instructions one after the other: all of them in each step (``stepwise``), or each of them in all steps of a block."""

    stepwise: bool
    first: int
    count: int

    def of(self, instructions: Sequence[Instruction]) -> Sequence[Instruction]:
        """Return those of a plan's instructions that are in the phase."""
        return instructions[self.first : self.first + self.count]


@dataclass(frozen=True)
class Plan:
    """A whole loop; ``constants`` are as they are in memory, ``regions``: the words of 4 bytes of each part of the workspace."""

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
