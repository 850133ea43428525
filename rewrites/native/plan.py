"""Defines the tables of a loop plan, and the exception for a loop without a plan.

``encoding`` stores all distinct sizes in one table, and writes the index of a size wherever a plan has the size.
"""

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
    """Raised inside this package if a loop has no plan. ``reason`` says why."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.reason = NotApplicable(code, detail)


@dataclass(frozen=True)
class Size:
    """A size, such as ``4 * B ** 2``: ``coefficient`` times powers of the symbols.

    ``exponents``: the exponent of each symbol; () if all are 0.
    """

    coefficient: int
    exponents: tuple[int, ...] = ()


ZERO, ONE = Size(0), Size(1)


@dataclass(frozen=True)
class Symbol:
    """A size that is known only at run time: the size of axis ``axis`` of input ``input``.

    If the input is a state that grows, ``axis`` is its size before the step. ``-1 - axis`` is its size after the step.
    """

    input: int
    axis: int


class Form(IntEnum):
    """The kind of loop.

    The number of steps depends on the scan inputs (SCAN), or on a condition and a limit (LOOP).
    """

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
    """An input of the operator.

    ``dims``: the sizes of the input in one step, so without the steps axis of a scanned input.
    """

    kind: InputKind
    dims: tuple[Size, ...]
    backwards: bool = False
    dtype: int = FLOAT


@dataclass(frozen=True)
class Output:
    """A stacked output. ``dims``: its sizes in one step, without the steps axis."""

    dims: tuple[Size, ...]
    backwards: bool = False
    dtype: int = FLOAT


class Storage(IntEnum):
    """How a state is stored.

    IN_PLACE: the new state overwrites the old one. TWO_ROWS: old and new state have separate memory, and swap after each step.
    OUTPUT_ROWS: the state is a row of a stacked output. GROWS: each step adds rows to the state. Old and new state share memory.
    GROWS_IN_TWO: the same, but old and new state are in two regions, which swap after each step.
    """

    IN_PLACE = 0
    TWO_ROWS = 1
    OUTPUT_ROWS = 2
    GROWS = 3
    GROWS_IN_TWO = 19


@dataclass(frozen=True)
class PlanState:
    """The memory of a state between steps.

    ``region_or_output``: the index of the output if the storage is OUTPUT_ROWS. Otherwise the index of a region of the workspace,
    which holds the state from ``offset`` on. A state that grows has one or two regions of its own. It grows along ``axis``, and
    ``offset`` is the number of rows that each step adds.
    """

    storage: Storage
    offset: Size = ZERO
    region_or_output: int = 0
    axis: int = 0


@dataclass(frozen=True)
class PlanPack:
    """A matrix [k, n] in a captured input, which the library packs."""

    input: int
    offset: Size
    k: Size
    n: Size
    stride_k: Size
    stride_n: Size


class ValueKind(IntEnum):
    """The kind of memory that holds the elements of a value."""

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
    """``count`` consecutive elements from ``offset`` on, in the memory named by ``kind`` and ``index``."""

    kind: ValueKind
    index: int
    count: Size
    offset: Size = ZERO
    dtype: int = FLOAT


@dataclass(frozen=True)
class PlanOperand:
    """A strided view of a value.

    Element ``[i3, i2, i1, i0]`` is at ``offset`` plus the sum of all products of an index and its stride.
    """

    value: int
    offset: Size = ZERO
    strides: tuple[Size, Size, Size, Size] = (ZERO, ZERO, ZERO, ZERO)


@dataclass(frozen=True)
class Instruction:
    """One operation, in nested loops of the sizes ``dims`` from the outermost to the innermost.

    The first operand is the destination. None is an omitted operand. ``matrix``: M, N and K of a product; (1, 1, 1) for most other
    operations.
    """

    op: Op
    dims: tuple[Size, Size, Size, Size]
    operands: tuple[PlanOperand | None, ...]
    matrix: tuple[Size, Size, Size] = (ONE, ONE, ONE)
    immediates: tuple[float, float] = (0.0, 0.0)
    flags: int = 0


@dataclass(frozen=True)
class Phase:
    """``count`` consecutive instructions of a plan, from number ``first`` on.

    If ``stepwise``, each step runs all of them before the next step starts. Otherwise each instruction runs for a block of steps at
    once.
    """

    stepwise: bool
    first: int
    count: int

    def of(self, instructions: Sequence[Instruction]) -> Sequence[Instruction]:
        """Return the instructions of this phase. ``instructions`` are all instructions of the plan."""
        return instructions[self.first : self.first + self.count]


@dataclass(frozen=True)
class Plan:
    """The plan of a loop.

    ``constants``: the bytes of all constants. ``regions``: the size of each region of the workspace in 4-byte words.
    """

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
