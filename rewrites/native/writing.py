"""Writes the steps of a body, which are already in their final order, as a plan."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from rewrites.native.body import Body, BodyStep
from rewrites.native.memory import Place, ResultMemory, allocate_workspace
from rewrites.native.operations import NUMPY, Op, bytes_of, words_of
from rewrites.native.plan import (
    Form,
    Input,
    Instruction,
    Output,
    Phase,
    Plan,
    PlanOperand,
    PlanPack,
    PlanRefused,
    PlanState,
    Size,
    Storage,
    Value,
    ValueKind,
)
from rewrites.native.views import Buffer, Origin, View
from rewrites.native.walks import ANY_STRIDES, PRODUCTS, PlanWalk, plan_walk

__all__ = ["write"]

_UNROLLED = 256
"""The maximum number of instructions into which the outermost axes of one step may be unrolled."""
_FROM_OUTSIDE = {
    Origin.SCANNED: ValueKind.SCANNED,
    Origin.CAPTURED: ValueKind.CAPTURED,
    Origin.OLD: ValueKind.OLD,
    Origin.STEP_NUMBER: ValueKind.STEP_NUMBER,
}


def write(
    body: Body, steps: Sequence[BodyStep], memory: ResultMemory, inputs: Sequence[Input], outputs: Sequence[Output], form: Form
) -> Plan:
    """Return the plan that runs ``steps``. ``inputs`` must include the captured values."""
    states_in = inputs[: len(memory.storages)]
    sizes = [math.prod(size.coefficient for size in each.dims) * words_of(each.dtype) for each in states_in]
    state_places, temporaries, regions = allocate_workspace(steps, memory, sizes, body.free)
    writer = _Writer(memory, temporaries)
    for step in steps:
        if not _is_copy_in_place(step, memory):
            writer.add(step)
    states = [
        PlanState(storage, _offset_in_elements(offset, each.dtype), output if storage == Storage.OUTPUT_ROWS else region)
        for (storage, output), (region, offset), each in zip(memory.storages, state_places, states_in, strict=True)
    ]
    for state in body.growing.values():
        states[state.index] = PlanState(states[state.index].storage, Size(state.rows), state_places[state.index][0], state.axis)
    return Plan(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        states=tuple(states),
        packs=tuple(writer.packs),
        constants=b"".join(writer.words),
        values=tuple(writer.values),
        instructions=tuple(writer.instructions),
        phases=(Phase(True, 0, len(writer.instructions)),),
        regions=tuple(map(Size, regions)),
        form=form,
    )


def _is_copy_in_place(step: BodyStep, memory: ResultMemory) -> bool:
    """Return True if ``step`` copies a state to its own memory, so that it needs no instruction."""
    source = step.sources[0]
    if step.op != Op.COPY or source is None or source.buffer.origin != Origin.OLD or not (source.is_whole and step.target.is_whole):
        return False
    state = source.buffer.index
    return memory.storages[state][0] == Storage.IN_PLACE and memory.new_states[state] is step.target.buffer


class _Writer:
    def __init__(self, memory: ResultMemory, temporaries: dict[Buffer, Place]) -> None:
        self.memory = memory
        self.temporaries = temporaries
        self.values: dict[Value, int] = {}
        self.packs: dict[PlanPack, int] = {}
        self.constants: dict[bytes, int] = {}
        self.words: list[bytes] = []
        self.instructions: list[Instruction] = []
        self.filled = 0

    def add(self, step: BodyStep) -> None:
        """Write the instructions of a step.

        If it has more axes than an instruction can have, write one instruction for each index of the outermost axes.
        """
        walk = plan_walk(step)
        operands = [step.target, *step.sources]
        most_axes = 2 if step.op in PRODUCTS else 4
        dims, strides = _with_unit_axis(walk, step.op, most_axes)
        extra = max(0, len(dims) - most_axes)
        if math.prod(dims[:extra]) > _UNROLLED:
            raise PlanRefused("NATIVE-LIMIT", f"{step.op.name} has {len(dims)} axes")
        pad = most_axes - (len(dims) - extra)
        inner = [1] * pad + dims[extra:]
        full = [*inner, 1, 1] if step.op in PRODUCTS else inner
        sizes = (Size(full[0]), Size(full[1]), Size(full[2]), Size(full[3]))
        matrix = walk.matrix
        for place in product(*map(range, dims[:extra])):
            written = [
                None if view is None or own is None else self.operand(view, own, place, pad, step.op == Op.GEMM and index == 2)
                for index, (view, own) in enumerate(zip(operands, strides, strict=True))
            ]
            self.instructions.append(
                Instruction(
                    step.op,
                    sizes,
                    tuple(written),
                    (Size(matrix[0]), Size(matrix[1]), Size(matrix[2])),
                    (float(np.float32(step.immediates[0])), float(np.float32(step.immediates[1]))),
                )
            )

    def operand(self, view: View, strides: Sequence[int], place: Sequence[int], pad: int, as_pack: bool) -> PlanOperand:
        if as_pack:
            return PlanOperand(self.pack(view))
        offset = view.offset + sum(index * stride for index, stride in zip(place, strides, strict=False))
        left = [0] * pad + list(strides[len(place) :])
        return PlanOperand(self.value(view.buffer), Size(offset), (Size(left[0]), Size(left[1]), Size(left[2]), Size(left[3])))

    def value(self, buffer: Buffer) -> int:
        place = self.memory.results.get(buffer)
        if place is not None:
            value = Value(*place, Size(buffer.size), dtype=buffer.dtype)
        elif buffer.origin == Origin.CONSTANT:
            assert buffer.array is not None
            offset = self.constant(buffer.array.astype(NUMPY[buffer.dtype]).tobytes(), bytes_of(buffer.dtype))
            value = Value(ValueKind.CONSTANT, 0, Size(buffer.size), _offset_in_elements(offset, buffer.dtype), buffer.dtype)
        elif buffer.origin == Origin.COMPUTED:
            region, offset = self.temporaries[buffer]
            value = Value(ValueKind.TEMPORARY, region, Size(buffer.size), _offset_in_elements(offset, buffer.dtype), buffer.dtype)
        else:
            value = Value(_FROM_OUTSIDE[buffer.origin], buffer.index, Size(buffer.size), dtype=buffer.dtype)
        return self.values.setdefault(value, len(self.values))

    def constant(self, data: bytes, item_size: int) -> int:
        """Store a constant unless it is already stored, and return its offset in words.

        The offset is a multiple of the element size.

        Args:
            data: The bytes of the constant.
            item_size: The size of one element in bytes.
        """
        if data not in self.constants or (4 * self.constants[data]) % item_size:
            gap = -self.filled % max(1, item_size // 4)
            self.constants[data] = self.filled + gap
            self.words.append(bytes(4 * gap) + data + bytes(-len(data) % 4))
            self.filled += len(self.words[-1]) // 4
        return self.constants[data]

    def pack(self, view: View) -> int:
        rows, columns = view.shape[-2:]
        strides = (Size(view.strides[-2]), Size(view.strides[-1]))
        pack = PlanPack(view.buffer.index, Size(view.offset), Size(rows), Size(columns), *strides)
        index = self.packs.setdefault(pack, len(self.packs))
        return self.values.setdefault(Value(ValueKind.PACK, index, Size(rows * columns)), len(self.values))


def _offset_in_elements(words: int, dtype: int) -> Size:
    """Convert an offset in words to an offset in elements."""
    return Size(4 * words // bytes_of(dtype))


def _with_unit_axis(walk: PlanWalk, op: Op, most_axes: int) -> tuple[list[int], list[list[int] | None]]:
    """Return the dims and strides of ``walk``, with an innermost axis of size 1 added if ``op`` needs it.

    An operation needs it if it requires contiguous innermost elements, and an operand of ``walk`` does not have them.
    """
    inner = [own[-1] for own in walk.strides if own]
    if op in ANY_STRIDES or not walk.dims or (inner[0] in (0, 1) and all(each in (0, 1) for each in inner)):
        return walk.dims, walk.strides
    if op >= Op.SUM:
        return walk.dims, walk.strides
    return [*walk.dims, 1], [None if own is None else [*own, 1] for own in walk.strides]
