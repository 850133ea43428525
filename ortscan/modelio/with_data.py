"""Write a model and a file of external data.

A complete model with its data is on disk at any time, even if the new model and its data replace an old model and its data:

1. The new data is written to a new file: ``NAME.data``, or a numbered file such as ``NAME.1.data`` if ``NAME.data`` exists.
2. The new model, which refers to this file, replaces the old model in one step.
3. The new data is copied to ``NAME.data``, which replaces the old data.
4. A second version of the new model, which refers to ``NAME.data``, replaces the first version.

Steps 3 and 4 are skipped if the new data stays in the file of step 1.

If the process is killed, either the old model or the new model is complete. A hard link would avoid the copy, but onnx rejects data
that has two names.
"""

import filecmp
import os
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir

from ortscan.base.temporary import run_twice
from ortscan.modelio.data_files import DataFile
from ortscan.modelio.destination import DataPath, Replacement, data_path, write_model
from ortscan.modelio.loaded import LoadedModel, to_proto, written
from ortscan.modelio.protos import tensors_in
from ortscan.modelio.slots import AttributeSlot, Slot, substituted
from ortscan.modelio.tensors import FileTensor, bytes_needed, reference_to
from rewrites.base.errors import InvariantBroken, ModelFileError

__all__ = ["SMALL", "external_slots", "serialised", "write_with_data"]

SMALL = 1024
"""Tensors of at most this many bytes are always embedded."""

_MARK = "ortscan-embed:"
_LARGE = 1 << 20
_ALIGNMENT = 1 << 16
_SMALL_ALIGNMENT = 64


def write_with_data(loaded: LoadedModel, slots: Sequence[Slot], output: Path, target: Path, source: Path | None) -> None:
    """Write the model to ``target``, and tensors of more than SMALL bytes to a file next to it.

    ``output`` is the path that the caller gave, before links were followed. ``source`` is the file that the model was read from.
    Raise ModelFileError or OSError if a file cannot be written.
    """
    outside = [slot for slot in slots if _belongs_outside(slot)]
    inside = [slot for slot in external_slots(slots) if not _belongs_outside(slot)]
    if not outside:
        with Replacement() as files:
            write_model(serialised(loaded, inside), target, files)
            files.commit()
        return
    if os.path.realpath(output.parent) != str(target.parent):
        raise ModelFileError(
            f"{output} is a symbolic link into another folder, so the external data of the model would be found only from one of "
            f"them; pass {target} as the output."
        )
    read = [tensor.data for tensor in (slot.get() for slot in slots) if isinstance(tensor, FileTensor)]
    used = list(dict.fromkeys([*loaded.files, *read]))
    location = data_path(target, source, used)
    overwritten = [file for file in used if any(file.is_now_at(path) for path in (location.final_path, *location.obsolete) if path)]
    with Replacement() as files:
        data = files.open(location.path)
        moved = _write_data(outside, data, location.path.name)
        proto = serialised(loaded, inside, moved)
        if location.is_taken:
            data.flush()
            _write_beside(Path(data.name), proto, target, location)
            return
        write_model(proto, target, files)
        again = Replacement()
        try:
            files.commit()
            if location.final_path is not None:
                with suppress(OSError):  # if the disk is too full for a copy, the data keeps its first name
                    copied = DataFile(str(location.path), hold=False)
                    copied.append_to(again.open(location.final_path), 0, copied.size)
                    write_model(_renamed(proto, location.final_path.name), target, again)
                    again.commit()
        finally:
            run_twice(lambda: _tidy(location, files, again))
    for file in overwritten:
        for reader in file.readers:
            reader.invalidate()


def _tidy(location: DataPath, files: Replacement, again: Replacement) -> None:
    again.clear()
    if not files.is_done:
        return
    unneeded = [] if location.final_path is None else [location.path if again.is_done else location.final_path]
    for path in (*unneeded, *location.obsolete):
        with suppress(OSError):
            path.unlink()


def _write_beside(data: Path, proto: onnx.ModelProto, target: Path, location: DataPath) -> None:
    """Write ``proto`` to ``target`` so that it refers to the existing data file ``location.final_path``.

    ``data`` is the data file to which ``proto`` refers now. Raise ModelFileError if the two data files differ.
    """
    existing = location.final_path
    assert existing is not None
    if existing.is_symlink() or not filecmp.cmp(data, existing, shallow=False):
        raise ModelFileError(
            f"{target} cannot be written: its external data would go to {existing}, which exists and does not belong to a model "
            f"at {target}; remove it or choose another output."
        )
    with Replacement() as files:
        write_model(_renamed(proto, existing.name), target, files)
        files.commit()


def _renamed(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Change all references to external data in ``proto`` to the file ``name``.

    All data must be in one file.
    """
    for tensor in tensors_in(proto):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = name
    return proto


def _belongs_outside(slot: Slot) -> bool:
    tensor = slot.get()
    return bytes_needed(tensor) > SMALL and (not isinstance(slot, AttributeSlot) or isinstance(tensor, ir.ExternalTensor))


def _write_data(slots: Sequence[Slot], file: BinaryIO, location: str) -> list[tuple[Slot, ir.ExternalTensor]]:
    """Write the tensors in ``slots`` to ``file``, which has the name ``location``.

    Return a reference to the file for each slot.

    Tensors of 1 MiB and more start at multiples of 64 KiB, so that any system can map them. Shared data is written once.
    """
    written: dict[Hashable, int] = {}
    references = []
    for slot in slots:
        tensor, size = slot.get(), bytes_needed(slot.get())
        key = _content_of(tensor)
        if key not in written:
            end = file.seek(0, 2)
            alignment = _ALIGNMENT if size >= _LARGE else _SMALL_ALIGNMENT
            written[key] = -(-end // alignment) * alignment
            file.truncate(written[key])
            file.seek(0, 2)
            if hasattr(tensor, "tofile"):
                tensor.tofile(file)
            else:
                file.write(tensor.tobytes())
            if file.seek(0, 2) != written[key] + size:
                raise InvariantBroken(f"Tensor {tensor.name!r} should have {size} bytes, but another number was written.")
        references.append((slot, reference_to(tensor, location, written[key], size)))
    return references


def _content_of(tensor: ir.TensorProtocol) -> Hashable:
    if isinstance(tensor, FileTensor):
        return id(tensor.data), tensor.offset or 0, bytes_needed(tensor)
    return id(tensor)


def external_slots(slots: Iterable[Slot]) -> list[Slot]:
    """Return the slots that hold external tensors."""
    return [slot for slot in slots if isinstance(slot.get(), ir.ExternalTensor)]


def serialised(loaded: LoadedModel, embed: Sequence[Slot], moved: Sequence[tuple[Slot, ir.ExternalTensor]] = ()) -> onnx.ModelProto:
    """Serialise the model. Embed its external tensors in the message, or let them refer to other files.

    ``loaded`` is not changed. At any time, at most one tensor is in memory twice.

    Args:
        loaded: the model.
        embed: the slots of external tensors that become part of the message.
        moved: slots of external tensors, each with the reference that replaces the old one.

    Raises:
        InvariantBroken: the message would have a reference that is in neither ``embed`` nor ``moved``, the interface changed, or
            the model cannot be serialised.
    """
    tensors = [slot.get() for slot in embed]
    marks = [(slot, reference_to(slot.get(), f"{_MARK}{number}")) for number, slot in enumerate(embed)]
    with substituted([*marks, *moved]):
        proto = written(loaded) if marks or moved else to_proto(loaded)
    locations = {reference.location for _, reference in moved}
    for message in tensors_in(proto):
        if message.data_location != onnx.TensorProto.EXTERNAL:
            continue
        location = next(entry.value for entry in message.external_data if entry.key == "location")
        if location.startswith(_MARK):
            message.ClearField("external_data")
            message.ClearField("data_location")
            message.raw_data = tensors[int(location.removeprefix(_MARK))].tobytes()
        elif location not in locations:
            raise InvariantBroken(f"Tensor {message.name!r} would still refer to {location!r}.")
    return proto
