"""A decoder of loop plans, which checks the output of the compiler."""

import base64
import struct

from rewrites.native.encoding import MAGIC, OPERANDS
from rewrites.native.operations import Op
from rewrites.native.plan import (
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

__all__ = ["MalformedPlan", "decode", "from_text"]


class MalformedPlan(Exception):
    """The bytes are not a loop plan."""


def from_text(text: str) -> Plan:
    """Return the plan in the text of an attribute."""
    try:
        return decode(base64.b64decode(text, validate=True))
    except ValueError as fault:
        raise MalformedPlan(f"the text is no loop plan: {fault}") from None


def decode(data: bytes) -> Plan:
    """Return the plan in ``data``. Only its form is checked."""
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
        if magic != MAGIC or words != len(self.words):
            raise ValueError("the header is another's")
        symbol_table = tuple(Symbol(self.one(), self.one()) for _ in range(symbols))
        self.sizes = [self._size(symbols) for _ in range(sizes)]
        plan = Plan(
            symbols=symbol_table,
            inputs=tuple(self._input() for _ in range(inputs)),
            outputs=tuple(self._output() for _ in range(outputs)),
            regions=tuple(self.size() for _ in range(regions)),
            states=tuple(self._state() for _ in range(states)),
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

    def _state(self) -> PlanState:
        storage = self.one()
        kind = max(each for each in Storage if each <= storage)
        return PlanState(kind, self.size(), self.one(), storage - kind)

    def _value(self) -> Value:
        kind, index, dtype = self.take(3)
        return Value(ValueKind(kind), index, self.size(), self.size(), dtype)

    def _instruction(self) -> Instruction:
        op, flags = self.take(2)
        dims, count = self.four(), self.one()
        if not 0 <= count <= OPERANDS:
            raise ValueError("an instruction has too many operands")
        operands = [self._operand() for _ in range(OPERANDS)]
        matrix = (self.size(), self.size(), self.size())
        first, second = struct.unpack("<2f", struct.pack("<2i", *self.take(2)))
        return Instruction(Op(op), dims, tuple(operands[:count]), matrix, (first, second), flags)

    def _operand(self) -> PlanOperand | None:
        value = self.one()
        if value < 0:
            self.take(5)
            return None
        return PlanOperand(value, self.size(), self.four())
