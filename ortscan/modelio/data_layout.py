"""Lays tensors out in one file of external data.

Tensors of 1 MiB and more start at multiples of 64 KiB, so that any system can map them; what several names share is written
once, as it was in the file it came from.
"""

from collections.abc import Hashable, Sequence
from typing import BinaryIO

import onnx_ir as ir

from ortscan.modelio.slots import Slot
from ortscan.modelio.tensors import FileTensor, bytes_needed, reference_to
from rewrites.base.errors import InvariantBroken

__all__ = ["write_data"]

_LARGE = 1 << 20
_ALIGNMENT = 1 << 16
_SMALL_ALIGNMENT = 64


def write_data(slots: Sequence[Slot], file: BinaryIO, location: str) -> list[tuple[Slot, ir.ExternalTensor]]:
    """Write the tensors in ``slots`` to ``file`` and return references to them, for a model beside ``location``."""
    written: dict[Hashable, int] = {}
    references = []
    for slot in slots:
        tensor, size = slot.get(), bytes_needed(slot.get())
        key = _content_of(tensor)
        if key not in written:
            end = file.seek(0, 2)
            written[key] = -(-end // _alignment(size)) * _alignment(size)
            file.truncate(written[key])
            file.seek(0, 2)
            _append(tensor, file)
            if file.seek(0, 2) != written[key] + size:
                raise InvariantBroken(f"Tensor {tensor.name!r} has {size} bytes by its shape but another number was written.")
        references.append((slot, reference_to(tensor, location, written[key], size)))
    return references


def _append(tensor: ir.TensorProtocol, file: BinaryIO) -> None:
    if hasattr(tensor, "tofile"):
        tensor.tofile(file)
    else:
        file.write(tensor.tobytes())


def _content_of(tensor: ir.TensorProtocol) -> Hashable:
    if isinstance(tensor, FileTensor):
        return id(tensor.data), tensor.offset or 0, bytes_needed(tensor)
    return id(tensor)


def _alignment(size: int) -> int:
    return _ALIGNMENT if size >= _LARGE else _SMALL_ALIGNMENT
