"""Encodes plans as bytes and as the text of the attribute ``plan``."""

import base64
import struct
from collections.abc import Iterable, Iterator

from rewrites.native.plan import ZERO, Instruction, Plan, PlanOperand, Size

__all__ = ["MAGIC", "OPERANDS", "count_sizes", "encode", "to_text"]

MAGIC = 0x314E4C50
OPERANDS = 5


def encode(plan: Plan) -> bytes:
    """Return the bytes of a plan."""
    sizes = _Sizes(len(plan.symbols))
    tables = [
        *(word for symbol in plan.symbols for word in (symbol.input, symbol.axis)),
        *(word for each in plan.inputs for word in (each.kind, each.dtype, each.backwards, len(each.dims), *sizes.of(each.dims))),
        *(word for each in plan.outputs for word in (each.dtype, each.backwards, len(each.dims), *sizes.of(each.dims))),
        *sizes.of(plan.regions),
        *(word for each in plan.states for word in (each.storage + each.axis, *sizes.of([each.offset]), each.region_or_output)),
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
        *(MAGIC, 16 + len(tables), len(plan.symbols), len(sizes.index), len(plan.inputs), len(plan.states), len(plan.outputs)),
        *(len(plan.packs), len(plan.constants) // 4, len(plan.values), len(plan.instructions), len(plan.phases), plan.block),
        *(len(plan.regions), plan.form, 0),
    )
    return struct.pack(f"<{16 + len(tables)}i", *header, *tables)


def count_sizes(plan: Plan) -> int:
    """Return the number of distinct sizes in a plan."""
    return int(struct.unpack_from("<i", encode(plan), 12)[0])


def to_text(plan: Plan) -> str:
    """Return the text for the attribute ``plan``: the encoded plan in base64."""
    return base64.b64encode(encode(plan)).decode("ascii")


class _Sizes:
    """The table of the distinct sizes of a plan.

    The table starts with the size 0. If an operand of an instruction is omitted, its offset and strides are encoded as index 0, so
    they refer to this size.
    """

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
    absent: list[PlanOperand | None] = [None] * (OPERANDS - len(instruction.operands))
    for operand in [*instruction.operands, *absent]:
        if operand is None:
            yield from (-1, 0, 0, 0, 0, 0)
        else:
            yield from (operand.value, *sizes.of([operand.offset, *operand.strides]))
    yield from sizes.of(instruction.matrix)
    yield from struct.unpack("<2i", struct.pack("<2f", *instruction.immediates))
