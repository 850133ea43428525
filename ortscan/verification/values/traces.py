"""How a value hangs together with an input of the model: as the input itself, moved about, or a multiple of it plus a number."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import onnx

from ortscan.verification.values.turning_points import Known

__all__ = ["Trace", "traces_of"]

_FIRST = (
    "Cast CastLike Identity Reshape Squeeze Unsqueeze Flatten Transpose Slice Gather GatherElements GatherND Expand Tile Split Pad "
    "Dropout ReduceMax ReduceMin ReduceMean TopK MaxPool Compress ReverseSequence SequenceAt ConcatFromSequence SplitToSequence "
    "OptionalGetElement Optional Unique Clip Round Floor Ceil Relu Trilu DepthToSpace SpaceToDepth StringNormalizer StringSplit"
)
_FROM_FIRST = frozenset(_FIRST.split())
_FROM_ANY = frozenset(["Concat", "SequenceConstruct", "SequenceInsert", "Min", "Max"])
_FROM = {"Where": (1, 2), "ScatterElements": (0, 2), "ScatterND": (0, 2), "Scatter": (0, 2)}


@dataclass(frozen=True)
class Trace:
    """Something that is ``scale`` times an input plus ``shift``."""

    input: str
    scale: float | int = 1
    shift: float | int = 0


def traces_of(
    node: onnx.NodeProto, operands: Sequence[Sequence[Trace]], constants: Callable[[int], Sequence[Known]]
) -> Iterator[Trace]:
    """Return what the first output of ``node`` is made of; ``constants`` are the elements of operands that are constant."""
    first = operands[0] if operands else ()
    match node.op_type:
        case kind if kind in _FROM_FIRST:
            yield from first
        case kind if kind in _FROM_ANY:
            yield from (trace for operand in operands for trace in operand)
        case kind if kind in _FROM:
            yield from (trace for at in _FROM[kind] if at < len(operands) for trace in operands[at])
        case "Neg":
            yield from (Trace(trace.input, -trace.scale, -trace.shift) for trace in first)
        case "Abs":
            yield from (Trace(trace.input, sign * trace.scale, sign * trace.shift) for trace in first for sign in (1, -1))
        case "Add" | "Sub" | "Mul" | "Div" if len(operands) == 2:
            for at, operand in enumerate(operands):
                numbers = [each for each in constants(1 - at) if not isinstance(each, str)]
                for trace in operand if len(set(numbers)) == 1 else ():
                    yield from _moved(trace, node.op_type, numbers[0], at)


def _moved(trace: Trace, kind: str, number: float, at: int) -> Iterator[Trace]:
    """Return ``trace`` with ``number`` added and so on; it is the operand at the place ``at``."""
    scale, shift = trace.scale, trace.shift
    if kind == "Add":
        yield Trace(trace.input, scale, shift + number)
    elif kind == "Sub":
        yield Trace(trace.input, scale, shift - number) if at == 0 else Trace(trace.input, -scale, number - shift)
    elif kind == "Mul" and number:
        yield Trace(trace.input, scale * number, shift * number)
    elif kind == "Div" and at == 0 and number:
        yield Trace(trace.input, scale / number, shift / number)
