"""Encode plans as bytes and as the text of the attribute ``plan``, and decode them."""

import base64
import struct
from collections.abc import Iterable, Iterator

from rewrites.base.errors import OrtscanError
from rewrites.native.operations import Op
from rewrites.native.plan import (
    ZERO,
    Form,
    Input,
    InputKind,
    Instruction,
    Output,
    Phase,
    Plan,
    PlanOperand,
    PlanPack,
    PlanState,
    Size,
    Storage,
    Symbol,
    Value,
    ValueKind,
)

__all__ = ["MalformedPlan", "count_sizes", "decode", "encode", "from_text", "to_text"]

_MAGIC = 0x314E4C50
_OPERANDS = 5


class MalformedPlan(OrtscanError):
    """Bytes that are no loop plan."""


def encode(plan: Plan) -> bytes:
    """Return the bytes of a plan."""
    sizes = _Sizes(len(plan.symbols))
    tables = [
        *(word for symbol in plan.symbols for word in (symbol.input, symbol.axis)),
        *(word for each in plan.inputs for word in (each.kind, each.dtype, each.backwards, len(each.dims), *sizes.of(each.dims))),
        *(word for each in plan.outputs for word in (each.dtype, each.backwards, len(each.dims), *sizes.of(each.dims))),
        *sizes.of(plan.regions),
        *(word for each in plan.states for word in (each.storage, *sizes.of([each.offset]), each.place)),
        *(
            word
            for each in plan.packs
            for word in (each.input, *sizes.of([each.offset, each.k, each.n, each.stride_k, each.stride_n]))
        ),
        *struct.unpack(f"<{len(plan.constants) // 4}i", plan.constants),
        *(word for each in plan.values for word in (each.kind, each.index, each.dtype, *sizes.of([each.count, each.offset]))),
        *(word for each in plan.instructions for word in _instruction_words(each, sizes)),
        *(word for each in plan.phases for word in (each.stepwise, each.first, each.count)),
    ]
    split = 2 * len(plan.symbols)
    tables[split:split] = sizes.words()
    header = (
        *(_MAGIC, 16 + len(tables), len(plan.symbols), len(sizes.index), len(plan.inputs), len(plan.states), len(plan.outputs)),
        *(len(plan.packs), len(plan.constants) // 4, len(plan.values), len(plan.instructions), len(plan.phases), plan.block),
        *(len(plan.regions), plan.form, 0),
    )
    return struct.pack(f"<{16 + len(tables)}i", *header, *tables)


def count_sizes(plan: Plan) -> int:
    """Return the number of sizes in a plan."""
    return int(struct.unpack_from("<i", encode(plan), 12)[0])


def to_text(plan: Plan) -> str:
    """Return the text of a plan for the attribute."""
    return base64.b64encode(encode(plan)).decode("ascii")


def from_text(text: str) -> Plan:
    """Return the plan of the text of an attribute."""
    try:
        return decode(base64.b64decode(text, validate=True))
    except ValueError as fault:
        raise MalformedPlan(f"the text is no loop plan: {fault}") from None


class _Sizes:
    """The table of sizes, each entered once; the first is 0, which omitted words mean."""

    def __init__(self, symbols: int) -> None:
        self.symbols = symbols
        self.index: dict[Size, int] = {}
        self.of([ZERO])

    def of(self, sizes: Iterable[Size]) -> list[int]:
        padded = (Size(size.coefficient, size.exponents or (0,) * self.symbols) for size in sizes)
        return [self.index.setdefault(size, len(self.index)) for size in padded]

    def words(self) -> list[int]:
        return [word for size in self.index for word in (size.coefficient, *size.exponents)]


def _instruction_words(instruction: Instruction, sizes: _Sizes) -> Iterator[int]:
    yield from (instruction.op, instruction.flags, *sizes.of(instruction.dims), len(instruction.operands))
    absent: list[PlanOperand | None] = [None] * (_OPERANDS - len(instruction.operands))
    for operand in [*instruction.operands, *absent]:
        if operand is None:
            yield from (-1, 0, 0, 0, 0, 0)
        else:
            yield from (operand.value, *sizes.of([operand.offset, *operand.strides]))
    yield from sizes.of(instruction.matrix)
    yield from struct.unpack("<2i", struct.pack("<2f", *instruction.immediates))


def decode(data: bytes) -> Plan:
    """Return the plan of some bytes; only their form is checked."""
    try:
        return _Reader(data).plan()
    except (struct.error, IndexError, ValueError) as fault:
        raise MalformedPlan(f"the bytes are no loop plan: {fault}") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.words: tuple[int, ...] = struct.unpack(f"<{len(data) // 4}i", data)
        self.at = 0
        self.sizes: list[Size] = []

    def take(self, count: int) -> tuple[int, ...]:
        if not 0 <= count <= len(self.words) - self.at:
            raise ValueError("it ends too early")
        self.at += count
        return self.words[self.at - count : self.at]

    def one(self) -> int:
        return self.take(1)[0]

    def flag(self) -> bool:
        return bool(self.one())

    def size(self) -> Size:
        index = self.one()
        if index < 0:
            raise ValueError("a size has a negative number")
        return self.sizes[index]

    def dims(self) -> tuple[Size, ...]:
        return tuple(self.size() for _ in range(self.one()))

    def four(self) -> tuple[Size, Size, Size, Size]:
        return self.size(), self.size(), self.size(), self.size()

    def plan(self) -> Plan:
        magic, words, symbols, sizes, inputs, states, outputs, packs, constants, values, instructions, phases, block = self.take(13)
        regions, form, _ = self.take(3)
        if magic != _MAGIC or words != len(self.words):
            raise ValueError("the header is another's")
        symbol_table = tuple(Symbol(self.one(), self.one()) for _ in range(symbols))
        self.sizes = [self._size(symbols) for _ in range(sizes)]
        plan = Plan(
            symbols=symbol_table,
            inputs=tuple(self._input() for _ in range(inputs)),
            outputs=tuple(self._output() for _ in range(outputs)),
            regions=tuple(self.size() for _ in range(regions)),
            states=tuple(PlanState(Storage(self.one()), self.size(), self.one()) for _ in range(states)),
            packs=tuple(
                PlanPack(self.one(), self.size(), self.size(), self.size(), self.size(), self.size()) for _ in range(packs)
            ),
            constants=struct.pack(f"<{constants}i", *self.take(constants)),
            values=tuple(self._value() for _ in range(values)),
            instructions=tuple(self._instruction() for _ in range(instructions)),
            phases=tuple(Phase(self.flag(), self.one(), self.one()) for _ in range(phases)),
            block=block,
            form=Form(form),
        )
        if self.at != len(self.words):
            raise ValueError("it goes on after its end")
        return plan

    def _size(self, symbols: int) -> Size:
        coefficient, *exponents = self.take(1 + symbols)
        return Size(coefficient, tuple(exponents) if any(exponents) else ())

    def _input(self) -> Input:
        kind, dtype, backwards = self.take(3)
        return Input(InputKind(kind), self.dims(), bool(backwards), dtype)

    def _output(self) -> Output:
        dtype, backwards = self.take(2)
        return Output(self.dims(), bool(backwards), dtype)

    def _value(self) -> Value:
        kind, index, dtype = self.take(3)
        return Value(ValueKind(kind), index, self.size(), self.size(), dtype)

    def _instruction(self) -> Instruction:
        op, flags = self.take(2)
        dims, count = self.four(), self.one()
        if not 0 <= count <= _OPERANDS:
            raise ValueError("an instruction has too many operands")
        operands = [self._operand() for _ in range(_OPERANDS)]
        matrix = (self.size(), self.size(), self.size())
        first, second = struct.unpack("<2f", struct.pack("<2i", *self.take(2)))
        return Instruction(Op(op), dims, tuple(operands[:count]), matrix, (first, second), flags)

    def _operand(self) -> PlanOperand | None:
        value = self.one()
        if value < 0:
            self.take(5)
            return None
        return PlanOperand(value, self.size(), self.four())
