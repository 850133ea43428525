"""What stands for a loop, in the words that the library reads (see LOOP_PLANS.md)."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewrites.native.operations import NARROW, NUMPY

__all__ = ["Answer", "label_of"]

_MAGIC = 0x31414C50
_A_PLAN, _A_MODEL = 0, 1
_NONE = -1


@dataclass(frozen=True)
class Answer:
    """A plan with what it reads and gives, or a model.

    ``inputs``: labels of values, or constants. ``outputs``: labels, None where one is left out. ``copies``: outputs that are
    values, as they are.
    """

    content: bytes
    is_plan: bool
    inputs: Sequence[int | np.ndarray] = ()
    outputs: Sequence[int | None] = ()
    copies: Sequence[tuple[int, int]] = ()

    def encoded(self) -> bytes:
        """Return the words."""
        kind = _A_PLAN if self.is_plan else _A_MODEL
        parts = [_words(_MAGIC, kind, len(self.inputs), len(self.outputs), len(self.copies), len(self.content))]
        parts += [_words(each) if isinstance(each, int) else _constant(each) for each in self.inputs]
        parts += [_words(_NONE if each is None else each) for each in self.outputs]
        parts += [_words(*each) for each in self.copies]
        return b"".join([*parts, self.content])


def label_of(name: str | None) -> int | None:
    """Return the label in the name of a value of a loop's model, None where it is none."""
    digits = (name or "")[1:]
    return int(digits) if name and name[0] == "v" and digits.isascii() and digits.isdigit() else None


def _words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def _constant(array: np.ndarray) -> bytes:
    dtype, held = next((dtype, kind) for dtype, kind in (*NUMPY.items(), *NARROW.items()) if kind == array.dtype)
    content = np.ascontiguousarray(array, held).tobytes()
    return _words(_NONE, dtype, array.ndim, *array.shape) + content + bytes(-len(content) % 4)
